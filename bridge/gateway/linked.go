package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
	"github.com/pagewire/pagewire/bridge/link"
)

// linked is the link with a page. The gateway's lock guards all of it except of and send.
type linked struct {
	of   *Page    // whose transport it is
	p    *Page    // of its document: of, until its hello names a document that has a page (ways.go)
	info PageInfo // as its transport knows it
	peer *link.Peer
	// send is called without the lock, by the goroutine that has set sending.
	send    func(frame []byte)
	sending bool
	// returns an error if the page must not be asked now; nil if there is no limit
	full   func() error
	late   *time.Timer // sends frames that are due while nothing else happens
	closed bool
	ended  bool // send has been called with nil
	held   held // in Gateway.held
	ready  bool // it has offered what its document has
	// offers and tools are what it has offered while it was not in use, or not ready; nil if the
	// page has it.
	offers map[string]bridge.Resource
	tools  *[]bridge.Tool
}

func newLinked(p *Page, send func([]byte)) *linked {
	l := &linked{of: p, p: p, info: p.PageInfo, send: send}
	g := p.g
	l.peer = link.New(g.now(), (*pageCore)(l), g.opt.Version, g.opt.PageLimits)
	l.late = time.AfterFunc(time.Hour, g.locked(func() { g.outgoing(l) }))
	l.late.Stop()
	return l
}

// outgoing sends the page's frames when the lock is released, or when they are due.
func (g *Gateway) outgoing(l *linked) { g.outgoingAt(l, g.now()) }

// report tells the page's developer on its console. It skips "".
func (p *Page) report(sentence string) {
	switch {
	case sentence == "":
	case p.link != nil:
		if p.link.peer.Report(sentence) {
			p.g.outgoing(p.link)
		}
	case p.runner != nil && len(p.said) < maxSaid && !slices.Contains(p.said, sentence):
		p.said = append(p.said, sentence)
		p.runner.Report(sentence)
	}
}

// maxSaid bounds Page.said.
const maxSaid = 100

// tell says on the page's console what the gate has mended or left out of an answer.
func (p *Page) tell(of string, faults gate.Faults) {
	for _, f := range faults {
		p.report(of + ": " + f.String())
	}
}

func (g *Gateway) outgoingAt(l *linked, now bridge.Time) {
	at, ok := l.peer.Deadline()
	if ok && at <= now || l.closed && !l.ended {
		ok = false
		if !l.sending {
			l.sending = true
			g.toSend = append(g.toSend, l)
		}
	}
	if ok {
		l.late.Reset(g.mu.Until(at))
	}
}

// dispatch sends the frames that outgoing has noted. It holds no lock while it sends: a slow
// transport delays only the goroutines that send to that page.
func (g *Gateway) dispatch(list []*linked) {
	for _, l := range list {
		for {
			frame, ok := g.nextFrame(l)
			if !ok {
				break
			}
			if frame != nil {
				g.tap(Event{Way: ToPage, Page: l.of.URL, Text: frame})
			}
			l.send(frame)
		}
	}
}

// nextFrame takes the next frame for a page; nil for the end of the transport. ok is false if there
// is none.
func (g *Gateway) nextFrame(l *linked) (frame []byte, ok bool) {
	defer g.lock()()
	now := g.now()
	if frame = l.peer.Take(now); frame != nil {
		return frame, true
	}
	if l.closed && !l.ended {
		l.ended = true
		return nil, true
	}
	l.sending = false
	// With the same now as above, this only sets a timer. With a later now, a frame that has fallen
	// due since would be noted as being sent, and would stay until the gateway's next action.
	g.outgoingAt(l, now)
	return nil, false
}

// settle runs after each frame of the page. A *link.Ended ends the page.
func (l *linked) settle(err error) {
	p, g := l.p, l.p.g
	l.count()
	g.outgoing(l)
	p.setStill(false)
	if why := (*link.Ended)(nil); errors.As(err, &why) {
		g.countRefused(why.Reason)
		g.log.Warn("a page's link has ended", "origin", p.Origin, "url", p.URL, "reason", err)
		l.of.leave(err.Error(), 0) // the page would repeat its fault
	}
}

// close ends the link, if there is one.
func (l *linked) close() {
	if l != nil && !l.closed {
		l.closed = true
		l.late.Stop()
		l.peer.Close()
		l.p.g.outgoing(l)
	}
}

// detail is what an agent is told of a failure. An error is the server's word, so a page's are
// quoted.
func detail(a link.Answer) string {
	if a.Said {
		return "the page says: " + strconv.Quote(Shorten(a.Detail, maxWords))
	}
	return a.Detail
}

// readReply converts the answer to a read.
func readReply(a link.Answer) reply {
	r := reply{contents: a.Contents, revision: a.Revision, failure: a.Failure, detail: detail(a),
		gone: a.Gone}
	switch c := a.Checked.(type) {
	case *gate.Result:
		r = reply{failure: bridge.InvalidContents, detail: gate.NoContents}
	case *gate.Contents:
		r.parts = c.Parts
	}
	return r
}

// toolReply converts the answer to a tool call. JSON that is no object is a result, too: the tool
// has run.
func toolReply(a link.Answer) reply {
	r := reply{revision: a.Revision, failure: a.Failure, detail: detail(a), gone: a.Gone}
	r.result, _ = a.Checked.(*gate.Result)
	if r.result == nil && a.Contents != nil {
		r = reply{revision: a.Revision, result: gate.Texts(false, string(a.Contents))}
	} else if a.Failure == link.TooLarge {
		r = reply{revision: a.Revision,
			result: gate.Texts(true, link.NotShown+a.Detail)}
	}
	return r
}

// refuses answers a call with an error if too much waits for the transport already.
func (l *linked) refuses(done func(reply)) bool {
	if l.full == nil {
		return false
	}
	err := l.full()
	if err != nil {
		done(reply{failure: bridge.ReadFailed, detail: err.Error()})
	}
	return err != nil
}

func (l *linked) read(key, uri, params string, done func(reply)) (end func()) {
	if l.refuses(done) {
		return func() {}
	}
	_, finish := l.peer.Read(key, uri, params, func(a link.Answer) {
		if c, ok := a.Checked.(*gate.Contents); ok {
			l.p.tell("what "+key+" gives", c.Faults)
		}
		done(readReply(a))
	})
	return l.ender(finish)
}

func (l *linked) callTool(c *toolCall, r *run, name string, args []byte,
	unless []calls.Condition) (end func()) {
	if l.refuses(r.finish) {
		return func() {}
	}
	g := l.p.g
	var seen []link.Seen
	for _, u := range unless {
		seen = append(seen, link.Seen{URI: u.Own, Revision: u.Count})
	}
	var h link.ToolHandler
	h.Done = func(a link.Answer) {
		answer := toolReply(a)
		if answer.result != nil {
			l.p.tell("the result of the tool "+name, answer.result.Faults)
		}
		if a.Began {
			answer.detail = "the page went away after the tool had begun. Its outcome is " +
				"unknown: look at the page before you call it again"
		}
		for _, u := range unless {
			if slices.Contains(a.Stale, u.Own) {
				answer.stale = append(answer.stale, u.URI)
			}
		}
		r.finish(answer)
	}
	h.Progress = c.tell
	h.Started = r.starts
	h.Starting = func(bridge.Time) bool {
		r.reacted = time.Now()
		return true
	}
	_, finish := l.peer.CallTool(g.now(), name, args, seen, h)
	return l.ender(finish)
}

func (l *linked) ender(finish func()) func() {
	l.p.g.outgoing(l)
	return func() {
		finish()
		l.p.g.outgoing(l)
	}
}

// watched asks the page to report changes of a URI, or to stop.
func (l *linked) watched(uri string, on bool) {
	l.peer.Watched(uri, on)
	l.p.g.outgoing(l)
}

// pageCore is a linked as the page sees it. Page.Receive calls its methods with the lock held.
type pageCore linked

func (c *pageCore) Hello(a link.About) error {
	p := c.p
	p.epoch = a.Epoch
	c.peer.Welcome(p.Given)
	if p.Shown {
		return nil // the document has a page of its own, if it offers something
	}
	if d := p.g.documentOf((*linked)(c)); d != nil {
		(*linked)(c).join(d)
	} else {
		p.g.arrived(p)
	}
	for q := range p.g.pages {
		if q.runner != nil && !q.Life().Left() && q.Origin == p.Origin {
			q.runner.Look()
		}
	}
	return nil
}

// inUse reports whether it is the way of its document that is in use.
func (c *pageCore) inUse() bool { return c.p.link == (*linked)(c) }

func (c *pageCore) Register(r bridge.Resource, _ string) error {
	p := c.p
	if taburi.Reserved(r.URI) && !p.Shown {
		return errors.New("it is under " + bridge.GatewayPath + ", which is the gateway's")
	}
	if !p.owns(r.URI) {
		return errors.New("it is not at the page's origin, " + p.Origin)
	}
	if p.Life().Left() {
		return nil
	}
	var foreign bool
	if r.Icons, foreign = p.ownIcons(r.Icons); foreign {
		c.peer.Report("the resource " + r.URI + " differs for agents: icons that are neither at the " +
			"page's origin nor data are left out, since a client would fetch them")
	}
	if c.offers != nil {
		c.offers[r.URI] = r
	}
	if !c.inUse() {
		return nil
	}
	return p.register(r)
}

// ownIcons leaves out the icons of a resource that are not the page's own. A client fetches them,
// and has another place in the network than the page.
func (p *Page) ownIcons(icons []byte) (own []byte, foreign bool) {
	var kept []json.RawMessage
	bridge.JSON(icons).Elements(func(icon bridge.JSON) bool {
		src, _ := icon.Get("src").Text()
		if strings.HasPrefix(src, p.Origin+"/") || strings.HasPrefix(src, "data:image/") {
			kept = append(kept, json.RawMessage(icon))
		} else {
			foreign = true
		}
		return true
	})
	if !foreign {
		return icons, false
	}
	if len(kept) > 0 {
		own, _ = json.Marshal(kept)
	}
	return own, true
}

// room returns an error if an origin has no room for another descriptor. It leaves as much to other
// origins as it has, and always has room for some, whatever the others have.
func (g *Gateway) room(origin string) error {
	now, all := g.held[origin], g.heldAll
	if most := g.opt.OriginBytes; now.bytes >= most {
		return fmt.Errorf(
			"the pages of %s together have too long descriptors; the limit is %d bytes", origin,
			most)
	}
	if now.places >= max(placesAlways, g.opt.resources-all.places) {
		return fmt.Errorf(
			"all open pages together have too many resources; the limit is %d, of which %s leaves as many "+
				"to the others as it has", g.opt.resources, origin)
	}
	if now.bytes >= max(toolsAlways, g.opt.AllBytes-all.bytes) {
		return fmt.Errorf(
			"all open pages together have too long descriptors; the limit is %d bytes, of which %s leaves "+
				"as many to the others as it has", g.opt.AllBytes, origin)
	}
	return nil
}

// count updates the sums that room checks. It is called after each frame of the page and when the
// page is gone. The end of the transport does not reduce the sums, because the page's offers stay
// for a while: otherwise pages that come and go could hold any amount.
func (l *linked) count() {
	g, origin := l.p.g, l.p.Origin
	now := held{l.peer.Held(), 2 * len(l.p.Offers)}
	if l.p.Life() == catalog.Gone || l.p.link != l {
		now = held{} // a reserve offers nothing beside the way in use
	}
	g.heldAll = g.heldAll.changed(l.held, now)
	if g.held[origin] = g.held[origin].changed(l.held, now); g.held[origin] == (held{}) {
		delete(g.held, origin)
	}
	l.held = now
}

// held counts the bytes of descriptors, and their places in the engine: under the page's URI, and
// under the tab's.
type held struct{ bytes, places int }

// placesAlways are the places that each origin may have, whatever others have.
const placesAlways = 200

func (h held) changed(from, to held) held {
	return held{h.bytes + to.bytes - from.bytes, h.places + to.places - from.places}
}

func (c *pageCore) Unregister(uri string) {
	delete(c.offers, uri)
	if c.inUse() {
		c.p.g.catalog.Withdraw(&c.p.Page, uri)
	}
}

func (c *pageCore) Touch(uri string, revision int64) {
	if !c.inUse() || taburi.Reserved(uri) && !c.p.Shown {
		return // of no resource, or of a reserve
	}
	o := c.p.Offers[uri]
	wide := o != nil && answersForMore(uri, &o.Resource)
	if answers, news := c.p.follows.Report(uri, revision, wide); answers {
		c.seal(uri)
		c.p.follows.Confirm(uri)
	} else if news {
		c.p.g.changed(c.p, uri)
	}
}

// seal keeps a new watcher of a URI from sharing an earlier read. A change since that read may have
// been taken for the page's answer to watched, and would not be announced.
func (c *pageCore) seal(own string) {
	g := c.p.g
	g.engine.Seal(own)
	if c.p.Life() == catalog.Here {
		g.engine.Seal(taburi.Of(own, c.p.Segment()))
	}
}

func (c *pageCore) SetTools(tools []bridge.Tool, _ string) error {
	if c.p.Shown {
		return nil // it never acts
	}
	if !c.inUse() {
		c.tools = &tools
		return nil
	}
	return c.p.setTools(tools)
}

// Note counts over each way: all of a document say the same, one after the other.
func (c *pageCore) Note(a link.About) {
	if a.Title != nil {
		c.p.retitle(*a.Title)
	}
	if p := c.p; p.Granted && a.Target != "" && a.Target != p.Target {
		p.g.catalog.SetTarget(&p.Page, strings.Clone(a.Target)) // so that the frame can be freed
	}
	// The extension repeats this with each title. Only a new value is news.
	if a.Focused > 0 && a.Focused != c.p.Focused {
		c.p.Focused = a.Focused
		c.p.g.focusAt(c.p, a.Focused)
	}
}

func (c *pageCore) Bye(gone bool) { c.of.leave("the page has ended the link", truth(!gone)) }
