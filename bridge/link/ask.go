package link

import (
	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// Read asks what a URI reads as. key is what it was registered under, params "" or the JSON text of its parameters.
// done is called once, with the page's answer, unless end was called before. end must be called once: the page holds
// the contents until then.
func (p *Peer) Read(key, uri, params string, done func(Answer)) (call uint32, end func()) {
	a := p.newAsk(done)
	a.text = begin("read").Raw(",").Int(int(a.id)).Raw(",").Str(key).Raw(",").Str(uri).Raw(",").Str(params).Raw("]")
	return a.id, p.ask(a)
}

// CallTool asks for a tool to be run with the JSON text of an object, unless one of those URIs has changed since.
// progress is told how far it has come, by the JSON text of members of MCP's progress notification, and may be nil.
func (p *Peer) CallTool(name string, args []byte, unless []Seen, done func(Answer),
	progress func(members []byte)) (call uint32, end func()) {
	a := p.newAsk(done)
	a.progress = progress
	condition := wire.Text(nil)
	for i, s := range unless {
		if i > 0 {
			condition = condition.Raw(",")
		}
		condition = condition.Raw("[").Str(s.URI).Raw(",").Int(int(s.Revision)).Raw("]")
	}
	if condition != nil {
		condition = wire.Text("[").Bytes(condition).Raw("]")
	}
	a.text = begin("callTool").Raw(",").Int(int(a.id)).Raw(",").Str(name).Raw(",").Str(string(args)).Raw(",").Str(
		string(condition)).Raw("]")
	return a.id, p.ask(a)
}

func (p *Peer) newAsk(done func(Answer)) *ask {
	p.lastAsk++
	return &ask{id: p.lastAsk, done: done}
}

// ask sends a call, or keeps it until the page may be asked more.
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
		p.append(a.text)
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
	p.say("end", wire.Text{}.Int(int(a.id))).end()
	if !a.answered {
		p.urgent = true // the page is at work for nobody
		p.crossed[p.ended%len(p.crossed)] = a.id
		p.ended++
		p.running--
		p.sendWaiting()
	}
}

// take finds the ask that a page answers, or says something of: nil if it has ended, was answered, or never was.
func (p *Peer) take(id uint32) *ask {
	if a := p.asked[id]; a != nil && a.sent && !a.answered {
		return a
	}
	return nil
}

// complete hands an answer over.
func (p *Peer) complete(a *ask, answer Answer) {
	a.answered = true
	p.running--
	p.sendWaiting()
	a.done(answer)
}

// TooLarge is the Failure of an answer that is longer than Limits.ContentsBytes.
const TooLarge bridge.Failure = "result_size"

// Watched says that the first watcher of a URI has come, or that the last one has left. The page answers the first with
// a touch that has the URI's revision.
func (p *Peer) Watched(uri string, on bool) {
	value := "false"
	if on {
		value = "true"
		p.urgent = true // an agent waits for the answer
	}
	p.say("watched", quote(uri)).add(wire.Text(value)).end()
}

// Report tells the page's developer something.
func (p *Peer) Report(sentence string) { p.say("report", quote(sentence)).end() }
