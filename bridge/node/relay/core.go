package relay

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/wire"
)

const (
	// maxCalls is how many open calls a core may have. A Peer asks 64 at once.
	maxCalls = 1024
	// maxWatches is how many URIs a core may watch. A gateway counts the changes of 10,000, and each
	// of its agents may subscribe to 1,024 besides. A hostile node watched any number: 50,000 URIs of
	// 4 KB, under a template or of no page at all, took 200 MB.
	maxWatches = 20_000
	// maxReport bounds a sentence for the page's developer, in bytes.
	maxReport = 4096
)

// Join adds a core. It sends the core two frames at once: the page's description, and its offers.
// Without acts the core does not get the page's tools and cannot call them.
func (r *Relay) Join(now bridge.Time, owner any, acts bool) *Core {
	c := &Core{Owner: owner, r: r, acts: acts, pending: map[uint32]*pending{}, began: now}
	r.cores = append(r.cores, c)
	c.say(call("hello").Int(link.Version).Raw(",").Str(r.opt.Build).Raw(",").Bytes(r.describe()))
	c.flush()
	for _, o := range r.offered() {
		c.say(call("register").Str(o.descriptor))
	}
	if r.tools != "" && acts {
		c.say(call("setTools").Str(r.tools))
	}
	if r.bye != "" {
		c.say(call("bye").Raw(r.bye))
	}
	if len(c.out) == 0 {
		c.out = c.out.Raw("[")
	}
	c.flush()
	return c
}

func (r *Relay) offered() []offer {
	return slices.SortedFunc(maps.Values(r.offers), func(a, b offer) int {
		return a.order - b.order
	})
}

// Leave removes the core: its calls end, and URIs that only it watches are no longer watched.
func (c *Core) Leave() {
	if c.left {
		return
	}
	c.left = true
	r := c.r
	r.cores = slices.DeleteFunc(r.cores, func(o *Core) bool { return o == c })
	if len(r.cores) == 0 {
		r.cores = nil
	}
	for _, p := range c.pending {
		if p.end != nil {
			p.end()
		}
	}
	c.pending = nil
	for uri := range r.watches {
		r.unwatch(c, uri)
	}
}

// Receive takes a frame of the core. An error means that it is not a valid frame: the core must
// leave.
func (c *Core) Receive(now bridge.Time, frame []byte) error {
	v, err := wire.Parse(frame, nesting)
	if err != nil || v.Kind() != wire.Array {
		return errNoFrame
	}
	v.Elements(func(said wire.Value) bool {
		err = c.dispatch(now, said)
		return err == nil && !c.left
	})
	c.r.flush()
	return err
}

// nesting bounds the nesting of a core's JSON: arguments are texts.
const nesting = 8

var errNoFrame = errors.New("a core has sent something that is not a frame")

// A Refused is a core's refusal of the page. The page is told the reason, and its link ends.
type Refused struct{ Reason string }

func (e *Refused) Error() string { return e.Reason }

// A request is one call of a core: its name and its arguments.
type request struct{ args [6]wire.Value }

func (q *request) text(i int) string {
	s, _ := q.args[i].Text()
	return s
}

func (c *Core) dispatch(now bridge.Time, said wire.Value) error {
	var q request
	n := 0
	said.Elements(func(v wire.Value) bool {
		if n < len(q.args) {
			q.args[n] = v
		}
		n++
		return true
	})
	switch q.text(0) {
	case "hello":
		if theirs, ok := q.args[3].Get("now").Int(); ok {
			c.late.Heard(c.began, bridge.Time(theirs))
		}
		return nil
	case "refused":
		return &Refused{q.text(1)}
	case "report":
		sentence := q.text(1) // it may quote what the page has written
		c.r.peer.Report(sentence[:min(len(sentence), maxReport)])
		return nil
	case "watched":
		uri, on := q.text(1), q.args[2].True()
		if len(uri) > c.r.peer.URIBytes() || on && !c.r.owns(uri) {
			return errNoFrame
		}
		c.watch(uri, on)
		return nil
	}
	id, ok := q.args[1].Int()
	if !ok || id < 1 || id >= 1<<32 {
		return errNoFrame
	}
	return c.ask(now, uint32(id), &q)
}

// ask is dispatch for calls with a number. A hostile node must not make the page say more than the
// page's own limits, for which its link would end. JSON that names URIs may be longer than one, and
// the transport bounds a tool's arguments.
func (c *Core) ask(now bridge.Time, id uint32, q *request) error {
	most := c.r.peer.URIBytes()
	done := func(p *pending) func(link.Answer) {
		return func(a link.Answer) { c.answer(id, p, a) }
	}
	switch q.text(0) {
	case "read":
		if max(len(q.text(2)), len(q.text(3)), len(q.text(4))/4) > most {
			return errNoFrame
		}
		return c.begin(id, q.text(3), func(p *pending) {
			p.call, p.end = c.r.peer.Read(q.text(2), q.text(3), q.text(4), done(p))
		})
	case "callTool":
		unless, ok := c.conditions(q.text(4))
		if !ok || !c.acts || max(len(q.text(2))/4, len(q.text(4))/64) > most {
			return errNoFrame
		}
		return c.begin(id, "", func(p *pending) {
			h := link.ToolHandler{Done: func(a link.Answer) { done(p)(ran(a)) },
				Progress: func(p bridge.Progress) { c.progress(id, p.Members()) }}
			if sent, ok := q.args[5].Int(); ok && c.late.Known() {
				h.Asks = c.late.Late(now, bridge.Time(sent))
				h.Started = func() { c.starts("started", id) }
				h.Starting = func(now bridge.Time) bool {
					p.asked = now
					c.starts("starting", id)
					return false
				}
			}
			p.call, p.end = c.r.peer.CallTool(now, q.text(2), []byte(q.text(3)), unless, h)
		})
	case "start":
		if p := c.pending[id]; p != nil {
			if theirs, ok := q.args[2].Int(); ok {
				c.late.Heard(p.asked, bridge.Time(theirs))
			}
			c.r.peer.Start(now, p.call)
		}
		return nil
	case "end":
		if p := c.pending[id]; p != nil {
			delete(c.pending, id)
			p.end()
		}
		return nil
	}
	return errNoFrame
}

func (c *Core) begin(id uint32, uri string, ask func(*pending)) error {
	if c.pending[id] != nil || len(c.pending) >= maxCalls {
		return errNoFrame
	}
	p := &pending{uri: uri}
	c.pending[id] = p
	ask(p)
	return nil
}

// conditions decodes the JSON text of [[uri, revision], …]. "" is an empty list.
func (c *Core) conditions(text string) (list []link.Seen, ok bool) {
	if text == "" {
		return nil, true
	}
	v, err := wire.Parse([]byte(text), nesting)
	if err != nil || v.Kind() != wire.Array {
		return nil, false
	}
	ok = true
	v.Elements(func(pair wire.Value) bool {
		var s link.Seen
		i := 0
		pair.Elements(func(v wire.Value) bool {
			switch i {
			case 0:
				s.URI, ok = v.Text()
				ok = ok && len(s.URI) <= c.r.peer.URIBytes()
			case 1:
				s.Revision, ok = v.Int()
			}
			i++
			return ok
		})
		list = append(list, s)
		return ok
	})
	return list, ok
}

// statuses are the numbers of Failures on the link. Any other Failure counts as InvalidContents.
var statuses = map[bridge.Failure]int{bridge.ReadFailed: 1, bridge.InvalidContents: 2,
	link.Stale: 3}

// answer passes a page's answer on. If the page has gone, its core is notified by other means.
func (c *Core) answer(id uint32, p *pending, a link.Answer) {
	p.uri = ""
	switch {
	case c.left || a.Gone:
	case a.Failure == "":
		c.flush()
		frame := make(wire.Text, 0,
			len(a.Contents)+32).Raw("=").Int(int(id)).Raw(" ").Int(int(a.Revision)).Raw(" ")
		c.r.opt.Send(c, frame.Bytes(a.Contents))
	default:
		status, known := statuses[a.Failure]
		if !known {
			status = statuses[bridge.InvalidContents]
		}
		detail := a.Detail
		if a.Failure == link.Stale {
			detail = listed(a.Stale)
		}
		c.say(call("complete").Int(int(id)).Raw(",").Int(status).Raw(",").Int(int(a.Revision)).
			Raw(",").Str(detail))
	}
}

// ran is the answer to a tool's call. The link's statuses do not say that a tool has run, so one
// whose result is too large gets another result.
func ran(a link.Answer) link.Answer {
	if a.Failure != link.TooLarge {
		return a
	}
	result := wire.Text(`{"content":[{"type":"text","text":`).Str(link.NotShown + a.Detail).
		Raw(`}],"isError":true}`)
	return link.Answer{Contents: result, Revision: a.Revision}
}

func listed(texts []string) string {
	list := wire.Text("[")
	for _, text := range texts {
		list = list.Next().Str(text)
	}
	return string(list.Raw("]"))
}

func (c *Core) progress(id uint32, members []byte) {
	if !c.left {
		c.say(call("progress").Int(int(id)).Raw(",").Str("{" + string(members) + "}"))
	}
}

// starts passes on that the page starts a tool, or asks whether to.
func (c *Core) starts(name string, id uint32) {
	if !c.left {
		c.say(call(name).Int(int(id)))
	}
}

// watch adds the core to a URI's watchers, or removes it. The answer is a touch with the URI's
// revision, from the page or, if the page has answered already, from the relay. Above maxWatches
// there is none: many agents of one gateway may need more, and keep the others.
func (c *Core) watch(uri string, on bool) {
	r := c.r
	if !on {
		r.unwatch(c, uri)
		return
	}
	w := r.watches[uri]
	switch {
	case w != nil && slices.Contains(w.cores, c), c.watching == maxWatches:
		return
	case w == nil:
		if r.watches == nil {
			r.watches = map[string]*watch{}
		}
		uri = strings.Clone(uri)
		r.watches[uri] = &watch{cores: []*Core{c}}
		r.peer.Watched(uri, true)
	default:
		w.cores = append(w.cores, c)
		if w.active {
			c.touch(uri, w.revision)
		}
	}
	c.watching++
}

func (r *Relay) unwatch(c *Core, uri string) {
	w := r.watches[uri]
	if w == nil || !slices.Contains(w.cores, c) {
		return
	}
	w.cores = slices.DeleteFunc(w.cores, func(o *Core) bool { return o == c })
	c.watching--
	if len(w.cores) > 0 {
		return
	}
	r.peer.Watched(uri, false)
	if delete(r.watches, uri); len(r.watches) == 0 {
		r.watches = nil
	}
}

// reads reports whether the core waits for a read of a URI for which some is true.
func (c *Core) reads(some func(uri string) bool) bool {
	for _, p := range c.pending {
		if p.uri != "" && some(p.uri) {
			return true
		}
	}
	return false
}

func (c *Core) touch(uri string, revision int64) {
	c.say(call("touch").Str(uri).Raw(",").Int(int(revision)))
}

// maxOut bounds one frame without its last call, in bytes. A page offers up to 20 MiB, which are 40
// as texts of JSON, and a message of the bus has at most 18.
const maxOut = 1 << 20

// Continues reports whether more of a page's offers follow a frame that Join has sent: all but the
// last exceed maxOut.
func Continues(frame []byte) bool { return len(frame) > maxOut+len("]") }

// say writes a call for the core, given without its closing bracket.
func (c *Core) say(text wire.Text) {
	if len(c.out) == 0 {
		c.out = c.out.Raw("[")
	} else {
		c.out = c.out.Raw(",")
	}
	if c.out = c.out.Bytes(text).Raw("]"); len(c.out) > maxOut {
		c.flush()
	}
}

func call(name string) wire.Text { return wire.Text("[").Str(name).Raw(",") }
