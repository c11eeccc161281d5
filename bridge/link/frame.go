package link

import (
	"errors"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A Frame is a decoded frame of a page. Decoding needs no Peer, so a caller that shares a lock
// between pages need not hold it.
type Frame struct {
	bytes int
	steps []step
	bad   string // the reason why the link ends after these steps; "" if it does not
	tools [][]bridge.Tool

	hello    *About    // of a hello
	answered *answered // of an answer's contents
}

// Hello returns the page's hello, if the frame begins with it, for callers that need it before
// there is a Peer.
func (f Frame) Hello() (a About, ok bool) {
	if f.hello == nil {
		return About{}, false
	}
	return *f.hello, true
}

// A step is a call of the page. It returns the reason why the link ends, or "".
type step struct {
	first bool // it is a hello
	do    func(*Peer) string
}

// Reasons to end the link for invalid frames.
const (
	noFrame = "a frame that is neither calls nor contents"
	noCall  = "a call that the link does not have"
)

// contentsMark begins a frame with the contents of an answer: =CALL REVISION JSON.
const contentsMark = '='

// Parse decodes a frame. Of the frame it keeps only the contents of an answer.
func Parse(frame []byte, l Limits) (f Frame) {
	l = l.withDefaults()
	f.bytes = len(frame)
	if len(frame) > l.FrameBytes {
		f.bad = above("a frame has "+wire.Itoa(len(frame))+" bytes", l.FrameBytes, "")
		return f
	}
	if len(frame) > 0 && frame[0] == contentsMark {
		f.answer(frame, &l)
		return f
	}
	v, err := wire.Parse(frame, nesting)
	if err != nil || v.Kind() != wire.Array {
		f.bad = noFrame
		return f
	}
	v.Elements(func(element wire.Value) bool {
		c, ok := decodeCall(element)
		before := len(f.steps)
		if !ok || !f.add(&c, &l) {
			f.steps, f.bad = f.steps[:before], noCall
		}
		return f.bad == ""
	})
	return f
}

// answer decodes a frame of contents.
func (f *Frame) answer(frame []byte, l *Limits) {
	n, rest, ok := number(frame[1:], 1<<32)
	var revision int64
	if ok {
		revision, rest, ok = number(rest, 1<<53)
	}
	if !ok {
		f.bad = noFrame
		return
	}
	a := Answer{Contents: rest, Revision: revision}
	if len(rest) > l.ContentsBytes {
		given := "what the page gave has " + wire.Itoa(len(rest)) + " bytes"
		a = Answer{Failure: TooLarge, Detail: above(given, l.ContentsBytes, "")}
	}
	given := &answered{uint32(n), a}
	f.answered = given
	f.addStep(func(p *Peer) {
		if asked := p.findAsk(given.call); asked != nil {
			p.complete(asked, given.answer)
		}
	})
}

// number reads a decimal number below a bound, and the space after it, from the beginning of text.
func number(text []byte, below int64) (n int64, rest []byte, ok bool) {
	for i, c := range text {
		switch {
		case c == ' ' && i > 0:
			return n, text[i+1:], true
		case c < '0' || c > '9' || i > 15:
			return 0, nil, false
		}
		if n = n*10 + int64(c-'0'); n >= below {
			return 0, nil, false
		}
	}
	return 0, nil, false
}

func (f *Frame) then(do func(*Peer) string) { f.steps = append(f.steps, step{do: do}) }

// addStep adds a step that cannot fail.
func (f *Frame) addStep(do func(*Peer)) {
	f.then(func(p *Peer) string {
		do(p)
		return ""
	})
}

// A call is a name and its arguments.
type call struct {
	name string
	args [4]wire.Value
}

func decodeCall(v wire.Value) (c call, ok bool) {
	if v.Kind() != wire.Array {
		return c, false
	}
	i := 0
	ok = true
	v.Elements(func(element wire.Value) bool {
		switch {
		case i == 0:
			c.name, ok = element.Text()
		case i > len(c.args):
			ok = false
		default:
			c.args[i-1] = element
		}
		i++
		return ok
	})
	return c, ok && i > 0
}

// text returns an argument that must be a string.
func (c *call) text(i int) (string, bool) { return c.args[i].Text() }

// integer returns an argument that must be an integer of 0 or more, below a bound.
func (c *call) integer(i int, below int64) (int64, bool) {
	n, ok := c.args[i].Int()
	return n, ok && n >= 0 && n < below
}

func (c *call) boolean(i int) (on, ok bool) {
	return c.args[i].True(), c.args[i].Kind() == wire.Bool
}

// add turns a call into a step. It reports false if the link has no such call.
func (f *Frame) add(c *call, l *Limits) bool {
	text, isText := c.text(0)
	switch c.name {
	case "hello":
		version, okVersion := c.integer(0, 1<<31)
		build, okBuild := c.text(1)
		a, okAbout := about(c.args[2])
		f.steps = append(f.steps,
			step{first: true, do: func(p *Peer) string { return p.hello(version, build, a) }})
		ok := okVersion && okBuild && okAbout
		if ok && len(f.steps) == 1 {
			f.hello = &a
		}
		return ok
	case "register":
		if isText {
			f.register(text, l)
		}
		return isText
	case "unregister":
		f.addStep(func(p *Peer) { p.unregister(text) })
		return isText
	case "touch":
		revision, ok := c.integer(1, 1<<53)
		f.addStep(func(p *Peer) { p.core.Touch(text, revision) })
		return isText && ok && len(text) <= l.URIBytes
	case "setTools":
		if isText {
			f.setTools(text, l)
		}
		return isText
	case "complete":
		return f.complete(c)
	case "progress":
		return f.progress(c)
	case "started", "starting":
		id, ok := c.integer(0, 1<<32)
		handle := (*Peer).started
		if c.name == "starting" {
			handle = (*Peer).starting
		}
		f.addStep(func(p *Peer) { handle(p, uint32(id)) })
		return ok
	case "note":
		a, ok := about(c.args[0])
		f.addStep(func(p *Peer) { p.core.Note(a) })
		return ok
	case "bye":
		gone, ok := c.boolean(0)
		f.addStep(func(p *Peer) { p.core.Bye(gone) })
		return ok
	}
	return false
}

func (f *Frame) register(descriptor string, l *Limits) {
	var r bridge.Resource
	var err error
	if len(descriptor) > l.DescriptorBytes && units(descriptor) > l.DescriptorBytes {
		given := "a descriptor has " + wire.Itoa(len(descriptor)) + " bytes"
		err = errors.New(above(given, l.DescriptorBytes, " UTF-16 code units"))
	} else if r, err = bridge.DecodeResource([]byte(descriptor)); err == nil &&
		len(r.URI) > l.URIBytes {
		err = errors.New(above("a URI has "+wire.Itoa(len(r.URI))+" bytes", l.URIBytes, ""))
		r.URI = ""
	}
	f.addStep(func(p *Peer) { p.register(r, descriptor, err) })
}

// units is the length of a text in UTF-16 code units, as pages measure their descriptors.
func units(text string) (n int) {
	for _, r := range text {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}

// setTools takes the tools that are within the limits, in order. If it leaves others out, it
// reports why.
func (f *Frame) setTools(text string, l *Limits) {
	var tools []bridge.Tool
	var why string
	all, err := bridge.DecodeTools([]byte(text))
	bytes := len("]")
	for _, t := range all {
		length := len(",") + len(t.JSON)
		switch {
		case len(t.JSON) > l.DescriptorBytes:
			why = above(t.Name+" has "+wire.Itoa(len(t.JSON))+" bytes", l.DescriptorBytes, "")
		case len(tools) == l.Tools:
			why = above("there are more", l.Tools, "")
		case bytes+length > l.ToolsBytes:
			why = above("they have "+wire.Itoa(len(text))+" bytes", l.ToolsBytes, "")
		default:
			bytes += length
			tools = append(tools, t)
		}
	}
	switch n := len(all); {
	case err != nil && n == 0:
		f.addStep(func(p *Peer) { p.refuseTools(err) })
		return
	case n > len(tools):
		err = errors.New(wire.Itoa(n-len(tools)) + " of " + wire.Itoa(n) + " are left out: " + why)
		text = arrayOf(tools)
	case err != nil:
		text = arrayOf(tools)
	}
	f.tools = append(f.tools, tools)
	f.addStep(func(p *Peer) { p.setTools(tools, text, err) })
}

// EachTool calls set with each tool that the frame offers, before Apply. Like Parse it needs no
// Peer.
func (f *Frame) EachTool(set func(*bridge.Tool)) {
	for _, list := range f.tools {
		for i := range list {
			set(&list[i])
		}
	}
}

func arrayOf(tools []bridge.Tool) string {
	text := wire.Text("[")
	for _, t := range tools {
		text = text.Next().Bytes(t.JSON)
	}
	return string(text.Raw("]"))
}

// complete handles an answer that is a failure.
func (f *Frame) complete(c *call) bool {
	id, okID := c.integer(0, 1<<32)
	status, okStatus := c.integer(1, 4)
	revision, okRevision := c.integer(2, 1<<53)
	detail, okDetail := c.text(3)
	if !okID || !okStatus || !okRevision || !okDetail {
		return false
	}
	a := Answer{Revision: revision, Detail: detail, Said: detail != ""}
	switch status {
	case 1:
		a.Failure = bridge.ReadFailed
	case 2:
		a.Failure = bridge.InvalidContents
	case 3:
		a.Failure, a.Detail, a.Said = Stale, "", false
		list, err := wire.Parse([]byte(detail), nesting)
		if err != nil || list.Kind() != wire.Array {
			return false
		}
		list.Elements(func(v wire.Value) bool {
			uri, ok := v.Text()
			if ok {
				a.Stale = append(a.Stale, uri)
			}
			return ok
		})
	default:
		return false
	}
	f.addStep(func(p *Peer) {
		if asked := p.findAsk(uint32(id)); asked != nil {
			p.complete(asked, a)
		}
	})
	return true
}

func (f *Frame) progress(c *call) bool {
	id, okID := c.integer(0, 1<<32)
	params, okParams := c.text(1)
	p, some, err := bridge.DecodeProgress([]byte(params))
	if !okID || !okParams || err != nil {
		return false
	}
	if !some {
		return true
	}
	f.addStep(func(peer *Peer) {
		if asked := peer.findAsk(uint32(id)); asked != nil && asked.tool != nil &&
			asked.tool.Progress != nil {
			asked.tool.Progress(p)
		}
	})
	return true
}

// about decodes a page's description of itself. Members of wrong types, and too long ones, are
// ignored.
func about(v wire.Value) (a About, ok bool) {
	text := func(name string, most int) string {
		s, _ := v.Get(name).Text()
		if len(s) > most {
			return ""
		}
		return s
	}
	a = About{Epoch: text("epoch", 64), Tab: text("tab", 64), Frame: text("frame", 64),
		URL: text("url", 8192), Origin: text("origin", 1024), Browser: text("browser", 1024),
		Profile: text("profile", 256), Window: text("window", 64), Target: text("target", 64)}
	if title, is := v.Get("title").Text(); is {
		a.Title = &title
	}
	a.Focused, _ = v.Get("focused").Int()
	a.Dial, _ = v.Get("dial").Int()
	a.Starts = v.Get("starts").True()
	a.Shown = v.Get("shown").True()
	return a, v.Kind() == wire.Object
}

// An answered is a frame of contents before Check.
type answered struct {
	call   uint32
	answer Answer
}

// Check passes an answer with contents, if the frame is one, through gate, which returns what the
// asker gets. An error ends the link: the contents are no JSON. Like Parse it needs no Peer.
func (f *Frame) Check(gate func(Answer) (Answer, error)) {
	if f.answered == nil || f.answered.answer.Failure != "" {
		return
	}
	a, err := gate(f.answered.answer)
	if err != nil {
		f.bad, f.steps = "contents that are no JSON", nil
		return
	}
	f.answered.answer = a
}
