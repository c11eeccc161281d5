package link

import (
	"slices"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// answerDelay is how long what is not urgent may wait for something to travel with, in ms. A call's end mostly goes with the
// next read.
const answerDelay = 10

// A Peer is the core's end of one link. Its methods are not to be called concurrently; those that Receive calls may call
// the Peer again.
type Peer struct {
	core  Core
	build string
	limit Limits

	begun bool
	over  bool
	earn  allowance

	out    wire.Text   // calls for the page: a JSON array without its end
	urgent bool        // one of them cannot wait
	owes   bool        // the page has said something and has had no answer
	since  bridge.Time // when what waits began to

	resources map[string]int // bytes of their descriptors
	bytes     int            // of all

	asked   map[uint32]*ask
	lastAsk uint32
	running int    // of the asked, those that the page has been sent and has not answered
	waiting []*ask // the rest, in order
}

// An ask is a read or a tool call, until End.
type ask struct {
	id       uint32
	text     wire.Text // the call, until it is sent
	sent     bool
	answered bool
	done     func(Answer)
	progress func(members []byte)
}

// New returns the core's end of a link that begins at now. build is the version of Pagewire that the page is told.
func New(now bridge.Time, core Core, build string, limits Limits) *Peer {
	p := &Peer{core: core, build: build, limit: limits.withDefaults(), resources: map[string]int{}, asked: map[uint32]*ask{}}
	p.earn = allowance{left: p.limit.CallsBurst, filled: now}
	return p
}

// gone is the answer of a page that is no more.
var gone = Answer{Failure: bridge.ReadFailed, Detail: "the page went away before it answered"}

// Close ends the link. What was asked is answered with a failure.
func (p *Peer) Close() {
	if p.over {
		return
	}
	p.over = true
	ids := make([]uint32, 0, len(p.asked))
	for id := range p.asked {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if a := p.asked[id]; a != nil {
			delete(p.asked, id)
			if !a.answered {
				a.done(gone)
			}
		}
	}
	p.waiting = nil
}

// Receive takes a frame of the page. It keeps nothing of it but the contents of an answer. The error is an *Ended:
// then the link is over, the road is to be closed, and Take has what the page is still to be told.
func (p *Peer) Receive(now bridge.Time, frame []byte) error {
	if p.over {
		return nil
	}
	if reason := p.receive(now, frame); reason != "" {
		p.say("refused", nil).add(quote(reason)).end()
		p.urgent = true
		p.Close()
		return &Ended{reason}
	}
	return nil
}

func (p *Peer) receive(now bridge.Time, frame []byte) (reason string) {
	limit := p.limit.FrameBytes
	if !p.begun {
		limit = p.limit.HelloBytes
	}
	if len(frame) > limit {
		return above("a frame has "+wire.Itoa(len(frame))+" bytes", limit, "")
	}
	p.owe(now)
	tooMany := above("it says more calls than it may", p.limit.Calls, " a second")
	if !p.earn.spend(now, 1, &p.limit) { // for the frame, which may be empty
		return tooMany
	}
	if p.begun && len(frame) > 0 && frame[0] == contentsMark {
		return p.answer(frame)
	}
	err := calls(frame, func(c call) error {
		if p.over {
			return nil
		}
		if !p.earn.spend(now, 1, &p.limit) {
			return &Ended{tooMany}
		}
		if !p.begun {
			return p.hello(&c)
		}
		if !p.obey(&c) {
			return errCall
		}
		return nil
	})
	switch err := err.(type) {
	case nil:
		return ""
	case *Ended:
		return err.Reason
	default:
		return err.Error()
	}
}

// hello takes the page's first call.
func (p *Peer) hello(c *call) error {
	if c.name != "hello" {
		return &Ended{"the first frame is not a hello"}
	}
	version, ok := c.integer(0, 1<<31)
	build, okBuild := c.text(1)
	a, okAbout := about(c.args[2])
	switch {
	case !ok:
		return errCall
	case version != Version:
		return &Ended{"the page's Pagewire " + build + " speaks version " + wire.Itoa(int(version)) + " of the link, and Pagewire " +
			p.build + " version " + wire.Itoa(Version) + ": update the older of the two"}
	case !okBuild || !okAbout:
		return errCall
	}
	p.begun = true
	if err := p.core.Hello(a); err != nil {
		return &Ended{err.Error()}
	}
	return nil
}

// Welcome answers the page's hello. tab, if it is not "", is the id that the page has from now on.
func (p *Peer) Welcome(tab string) {
	about := wire.Text(`{}`)
	if tab != "" {
		about = wire.Text(`{"tab":`).Str(tab).Raw(`}`)
	}
	p.say("hello", wire.Text{}.Int(Version)).add(quote(p.build)).add(about).end()
	p.urgent = true
}

// obey does one call of the page, and reports whether it is one.
func (p *Peer) obey(c *call) bool {
	uri, isText := c.text(0)
	switch c.name {
	case "register":
		if isText {
			p.register(uri)
		}
		return isText
	case "unregister":
		if isText && len(uri) <= p.limit.URIBytes {
			p.bytes -= p.resources[uri]
			delete(p.resources, uri)
			p.core.Unregister(uri)
		}
		return isText
	case "touch":
		revision, ok := c.integer(1, 1<<53)
		if isText && ok && len(uri) <= p.limit.URIBytes {
			p.core.Touch(uri, revision)
		}
		return isText && ok
	case "setTools":
		if isText {
			p.setTools(uri)
		}
		return isText
	case "complete":
		return p.fail(c)
	case "progress":
		return p.progress(c)
	case "note":
		a, ok := about(c.args[0])
		if ok {
			p.core.Note(a)
		}
		return ok
	case "bye":
		on, ok := c.boolean(0)
		if ok {
			p.core.Bye(on)
		}
		return ok
	}
	return p.obeyPort(c)
}

func (p *Peer) obeyPort(c *call) bool {
	ports, serves := p.core.(PortCore)
	port, ok := c.port()
	if !serves || !ok {
		return false
	}
	switch c.name {
	case "open":
		ports.Open(port)
	case "receive":
		message, ok := c.text(1)
		if ok {
			ports.Receive(port, []byte(message))
		}
		return ok
	case "writable":
		on, ok := c.boolean(1)
		if ok {
			ports.Writable(port, on)
		}
		return ok
	case "close":
		ports.Close(port)
	default:
		return false
	}
	return true
}

func (p *Peer) register(descriptor string) {
	refuse := func(uri, why string) { p.Report("resource refused: " + uri + ": " + why) }
	if len(descriptor) > p.limit.DescriptorBytes {
		refuse("", above("a descriptor has "+wire.Itoa(len(descriptor))+" bytes", p.limit.DescriptorBytes, ""))
		return
	}
	r, err := bridge.DecodeResource([]byte(descriptor))
	before, known := p.resources[r.URI]
	switch {
	case err != nil:
		refuse(r.URI, err.Error())
	case len(r.URI) > p.limit.URIBytes:
		refuse("", above("a URI has "+wire.Itoa(len(r.URI))+" bytes", p.limit.URIBytes, ""))
	case !known && len(p.resources) >= p.limit.Resources:
		refuse(r.URI, above("the page has too many", p.limit.Resources, ""))
	case p.bytes-before+len(descriptor) > p.limit.ResourcesBytes:
		refuse(r.URI, above("the page's descriptors are too long together", p.limit.ResourcesBytes, " bytes"))
	default:
		if err := p.core.Register(r); err != nil {
			refuse(r.URI, err.Error())
			return
		}
		p.resources[r.URI] = len(descriptor)
		p.bytes += len(descriptor) - before
	}
}

func (p *Peer) setTools(text string) {
	refuse := func(why string) { p.Report("tools refused: " + why) }
	if len(text) > p.limit.ToolsBytes {
		refuse(above("they have "+wire.Itoa(len(text))+" bytes", p.limit.ToolsBytes, ""))
		return
	}
	tools, err := bridge.DecodeTools([]byte(text))
	if err == nil && len(tools) > p.limit.Tools {
		refuse(above("there are "+wire.Itoa(len(tools)), p.limit.Tools, ""))
		return
	}
	for _, t := range tools {
		if len(t.JSON) > p.limit.DescriptorBytes {
			refuse(above(t.Name+" has "+wire.Itoa(len(t.JSON))+" bytes", p.limit.DescriptorBytes, ""))
			return
		}
	}
	if err == nil {
		err = p.core.SetTools(tools)
	}
	if err != nil {
		refuse(err.Error())
	}
}

// Held is how many bytes of descriptors are kept for the page.
func (p *Peer) Held() int { return p.bytes }
