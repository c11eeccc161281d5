package link

import (
	"slices"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// Read asks for the contents of a URI. key is its registered URI or template, params "" or the JSON
// text of its parameters. done is called once, with the page's answer, unless end is called before.
// end must be called once: the page holds the contents until then.
func (p *Peer) Read(key, uri, params string, done func(Answer)) (call uint32, end func()) {
	a := p.newAsk(done)
	a.text = begin("read").Raw(",").Int(int(a.id)).Raw(",").Str(key).
		Raw(",").Str(uri).Raw(",").Str(params).Raw("]")
	return a.id, p.ask(a)
}

// CallTool asks the page at now to run a tool, unless a URI of unless has changed since the given
// revision. args is the JSON text of an object.
func (p *Peer) CallTool(now bridge.Time, name string, args []byte, unless []Seen,
	h ToolHandler) (call uint32, end func()) {
	p.now = max(p.now, now)
	a := p.newAsk(h.Done)
	a.tool = &h
	condition := wire.Text(nil)
	for _, s := range unless {
		condition = condition.Next().Raw("[").Str(s.URI).Raw(",").Int(int(s.Revision)).Raw("]")
	}
	if condition != nil {
		condition = wire.Text("[").Bytes(condition).Raw("]")
	}
	a.text = begin("callTool").Raw(",").Int(int(a.id)).Raw(",").Str(name).
		Raw(",").Str(string(args)).Raw(",").Str(string(condition))
	return a.id, p.ask(a)
}

// A ToolHandler takes what a page says about a tool call.
type ToolHandler struct {
	// Asks makes the page ask before it starts the tool, because the call may be late already.
	Asks bool
	// Done is called once, with the page's answer, unless end is called before.
	Done func(Answer)
	// Progress may be nil.
	Progress func(bridge.Progress)
	// Started, which may be nil, is called when the page starts the tool.
	Started func()
	// Starting is called when the page got the call late and asks whether to start. It returns true
	// to say so at once, or false to decide later, by Start or end. Nil is true.
	Starting func(now bridge.Time) bool
}

// Starts reports whether the page says when it starts a tool, and asks before it starts one late.
func (p *Peer) Starts() bool { return p.starts }

// Start tells a page that has asked, to start a tool.
func (p *Peer) Start(now bridge.Time, call uint32) {
	if p.findAsk(call) != nil {
		p.say("start", wire.Text{}.Int(int(call))).add(wire.Text{}.Int(int(now))).close()
		p.urgent = true
	}
}

// starting handles a page that asks whether to start a call.
func (p *Peer) starting(call uint32) {
	a := p.findAsk(call)
	switch {
	case a == nil || a.tool == nil:
		p.say("end", wire.Text{}.Int(int(call))).close()
		p.urgent = true
	case a.tool.Starting == nil || a.tool.Starting(p.now):
		p.Start(p.now, call)
	}
}

// started notes that a page starts a call.
func (p *Peer) started(call uint32) {
	if a := p.findAsk(call); a != nil && a.tool != nil && !a.began {
		a.began = true
		if a.tool.Started != nil {
			a.tool.Started()
		}
	}
}

func (p *Peer) newAsk(done func(Answer)) *ask {
	p.lastAsk++
	return &ask{id: p.lastAsk, done: done}
}

// ask sends a call, or keeps it until the page has room.
func (p *Peer) ask(a *ask) (end func()) {
	if p.over {
		a.done(gone)
		return func() {}
	}
	p.asked[a.id] = a
	p.waiting = append(p.waiting, a)
	p.sendWaiting()
	return func() { p.endAsk(a) }
}

func (p *Peer) sendWaiting() {
	for len(p.waiting) > 0 && p.running < p.limit.Asked {
		a := p.waiting[0]
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		if p.asked[a.id] != a {
			continue // it has ended
		}
		p.running++
		a.sent = true
		if p.append(a.text); a.tool != nil {
			if p.starts {
				sent := max(p.now, 1)
				if a.tool.Asks {
					sent = 0
				}
				p.out = p.out.Raw(",").Int(int(sent))
			}
			p.out = p.out.Raw("]")
		}
		a.text = nil
		p.urgent = true
	}
}

func (p *Peer) endAsk(a *ask) {
	if p.asked[a.id] != a {
		return
	}
	delete(p.asked, a.id)
	if !a.sent {
		return
	}
	said := p.say("end", wire.Text{}.Int(int(a.id)))
	if a.tool != nil && p.starts && !a.answered {
		said = said.add(wire.Text("true"))
	}
	said.close()
	if !a.answered {
		p.urgent = true // the page can stop its work
		p.crossed[p.ended%len(p.crossed)] = a.id
		p.ended++
		p.running--
		p.sendWaiting()
	}
}

// findAsk returns the ask with an id, if it has been sent and is not answered; otherwise nil.
func (p *Peer) findAsk(id uint32) *ask {
	if a := p.asked[id]; a != nil && a.sent && !a.answered {
		return a
	}
	return nil
}

// complete passes an answer to its ask.
func (p *Peer) complete(a *ask, answer Answer) {
	a.answered = true
	p.running--
	p.sendWaiting()
	a.done(answer)
}

// TooLarge is the Failure of an answer that is longer than Limits.ContentsBytes.
const TooLarge bridge.Failure = "result_size"

// NotShown begins what an agent is told of a tool's answer that is TooLarge. An agent that took it
// for a failed call would call the tool again.
const NotShown = "The tool has run, and its result is not shown: "

// Watched tells the page that the first watcher of a URI has come (on), or that the last one has
// left. If on is set, the page answers with a touch that has the URI's revision.
func (p *Peer) Watched(uri string, on bool) {
	value := "false"
	if on {
		value = "true"
		p.urgent = true // an agent waits for the answer
	}
	p.say("watched", quote(uri)).add(wire.Text(value)).close()
}

// maxReports bounds the sentences to a page's developer.
const maxReports = 100

// Report sends a sentence to the page's developer, once, and reports whether it did. A page that
// repeats a fault in a loop is not told in a loop.
func (p *Peer) Report(sentence string) bool {
	if len(p.reports) == maxReports || slices.Contains(p.reports, sentence) {
		return false
	}
	p.reports = append(p.reports, sentence)
	p.say("report", quote(sentence)).close()
	if len(p.reports) == maxReports {
		const last = "nothing more is reported about this page: correct these first"
		p.say("report", quote(last)).close()
	}
	return true
}

// Reports are the sentences to the page's developer. They must not be changed.
func (p *Peer) Reports() []string { return p.reports }
