package gateway

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
	"github.com/pagewire/pagewire/bridge/weborigin"
	"github.com/pagewire/pagewire/bridge/wire"
)

// MCP Events: package events has the catalogue and the feeds of subscriptions. This file has the
// sources and the subscribers: agents' streams, agents' polls, and Go code. The gateway's lock
// guards all; Following's methods take it.

const (
	// pollLease is how long a subscription is followed after a poll. maxLeases bounds such
	// subscriptions, of which agents have shares, and maxFollowings all subscriptions of a gateway.
	pollLease     = 5 * time.Minute
	maxLeases     = 256
	maxFollowings = 12_000
	// pollEvents is how many events a poll gives if the client names no number.
	pollEvents = 100
	// closedAfter is how long a page must be gone before page.closed is sent.
	closedAfter = 30 * time.Second
	// arrivalTime is how long a new gateway assumes that a page was open before it. It sends no
	// page.opened for these.
	arrivalTime = 5 * time.Second
	// maxVisits bounds the pages for which page.opened and page.closed are sent.
	maxVisits = 4096
)

// eventSources holds all subscriptions, and the pages and resources that they follow.
type eventSources struct {
	all     map[*Following]bool
	leases  map[string]*Following // of polls, by agent's scope, name and arguments
	log     *events.Log
	visits  map[visitKey]*visit
	crowded bool // there were more than maxVisits
	began   time.Time
}

// A visitKey identifies a page for events. A reloaded page, or a frame of the same origin, has the
// same key.
type visitKey struct{ tab, origin string }

type visit struct {
	pages int
	back  func() bool // stops the timer that sends page.closed
}

func (s *eventSources) init(now time.Time) {
	*s = eventSources{all: map[*Following]bool{},
		leases: map[string]*Following{}, log: events.NewLog(now), visits: map[visitKey]*visit{},
		began: now}
}

// Webhooks deliver the events of one principal by webhook.
type Webhooks interface {
	// Subscribe answers events/subscribe, and Unsubscribe events/unsubscribe. result is the JSON
	// text of an object: the members of MCP's result. Each call has its own goroutine, without the
	// gateway's lock. ctx ends when the agent cancels.
	Subscribe(ctx context.Context, r WebhookRequest) (result []byte, refused *bridge.EventError)
	Unsubscribe(ctx context.Context, r WebhookRequest) (result []byte, refused *bridge.EventError)
}

// A WebhookRequest is an agent's request to a Webhooks. Name, arguments and cursor are checked, the
// rest is not.
type WebhookRequest struct {
	events.Subscription
	Mode, URL, Secret string        // of delivery; "" if absent
	Cursor            string        // "" is null
	MaxAge            time.Duration // -1 if absent
	TTL               time.Duration // -1 if absent, 0 if null, which asks for no expiry
}

// SetWebhooks replaces AgentOptions.Webhooks.
func (a *Agent) SetWebhooks(w Webhooks) {
	defer a.g.lock()()
	a.webhooks = w
}

// FollowOptions say where a subscription starts, and how it is followed.
type FollowOptions struct {
	// Cursor is the cursor of a delivered event, from any gateway; "" is now. Events older than
	// MaxAge are left out, unless MaxAge is negative.
	Cursor string
	MaxAge time.Duration
	// MinInterval applies if the subscription's arguments have no minIntervalMs.
	MinInterval time.Duration
	// Wake is called when Next may have a note, with the gateway's lock held: it must not block,
	// nor call the gateway. It may be nil.
	Wake func()
}

// A Following is a subscription that is followed. Its methods may be called concurrently.
type Following struct {
	g       *Gateway
	sub     events.Subscription
	opt     FollowOptions
	pass    *pass
	feed    events.Feed
	changes *events.Changes // the feed of a subscription to events.Updated; otherwise nil
	asked   map[string]bool // URIs whose page has been asked
	release []func()
	timer   *time.Timer // calls wake after the least time between two events
	last    time.Time   // of the last change
	began   bool
	then    []func()    // called when the subscription begins
	lease   *time.Timer // for polls: ends the subscription
	closed  bool
}

// FollowEvents follows a subscription that sees all pages. It fails for an invalid cursor, above
// 12,000 subscriptions, and after Close.
func (g *Gateway) FollowEvents(s events.Subscription, o FollowOptions) (
	*Following, *bridge.EventError) {
	defer g.lock()()
	return g.followEvents(s, o, g.all)
}

func (g *Gateway) followEvents(s events.Subscription, o FollowOptions, p *pass) (
	*Following, *bridge.EventError) {
	refused := events.CheckCursor(s.Name, o.Cursor)
	if refused != nil {
		return nil, refused
	}
	if g.closed || len(g.events.all) >= maxFollowings {
		return nil, exhausted(maxFollowings)
	}
	f := &Following{g: g, sub: s, opt: o, pass: p, asked: map[string]bool{}}
	g.events.all[f] = true
	if s.Name != events.Updated {
		f.feed, _ = events.NewVisits(s, g.events.log, p.Permits, o.Cursor, o.MaxAge,
			g.opt.wallClock())
		f.begin()
		return f, nil
	}
	f.changes = events.NewChanges(s, o.MinInterval, p.Sees)
	f.feed = f.changes
	f.timer = time.AfterFunc(time.Hour, g.locked(f.wake))
	f.timer.Stop()
	f.followAll()
	return f, nil
}

func exhausted(most int) *bridge.EventError {
	return &bridge.EventError{Kind: bridge.EventExhausted,
		Message: "too many subscriptions: the limit is " +
			strconv.Itoa(most),
		Data: wire.Text(`{"limit":"subscriptions","max":`).Int(most).Raw(`}`)}
}

// Next takes the next note, if there is one (ok). The first note is events.Active, when the pages
// are followed.
func (f *Following) Next() (n events.Note, ok bool) {
	defer f.g.lock()()
	return f.next()
}

// Cursor is a watermark: Next has returned all events at or before it. It is "" until the
// subscription has begun.
func (f *Following) Cursor() string {
	defer f.g.lock()()
	return f.cursor()
}

func (f *Following) cursor() string {
	if !f.began {
		return ""
	}
	return f.feed.Cursor()
}

// Close ends the subscription. Next returns no note afterwards.
func (f *Following) Close() {
	defer f.g.lock()()
	f.close()
}

// close is called with the lock held.
func (f *Following) close() {
	if f.closed {
		return
	}
	f.closed = true
	delete(f.g.events.all, f)
	for uri := range f.asked {
		f.g.books.Unfollow(uri, (*follower)(f))
	}
	for _, release := range f.release {
		release()
	}
	for _, timer := range []*time.Timer{f.timer, f.lease} {
		if timer != nil {
			timer.Stop()
		}
	}
}

func (f *Following) wake() {
	if f.began && !f.closed && f.opt.Wake != nil {
		f.opt.Wake()
	}
}

// next is called with the lock held.
func (f *Following) next() (n events.Note, ok bool) {
	if f.closed || !f.began {
		return n, false
	}
	now := f.g.opt.wallClock()
	n, ok, at := f.feed.Next(now)
	if !ok && !at.IsZero() {
		f.timer.Reset(max(at.Sub(now), time.Millisecond))
	}
	f.g.complement(&n)
	return n, ok
}

// complement adds the data of an event about a resource.
func (g *Gateway) complement(n *events.Note) {
	if n.Kind != events.Event || n.Name != events.Updated {
		return
	}
	uri := n.Subject
	title, tab, origin := "", 0, weborigin.Of(uri)
	if r := g.catalog.EntryOf(uri); r != nil {
		title, tab, origin = cmp.Or(r.Title, r.Resource.Name), r.Page.InTab.Number, r.Page.Origin
	}
	n.Data = events.UpdatedData(uri, title, origin, tab, g.books.Revision(uri))
}

// followAll follows all resources of a new subscription, and begins it when their pages report
// changes.
func (f *Following) followAll() {
	g := f.g
	var uris []string
	if f.sub.URI != "" {
		uris = f.wants(uris, f.sub.URI)
	} else {
		for r := range g.listed {
			uris = f.wants(uris, r.URI)
		}
	}
	f.follow(uris, func() {
		// followEvents has checked the cursor
		_ = f.changes.Begin(f.opt.Cursor, f.opt.MaxAge, g.opt.wallClock())
		f.begin()
	})
}

func (f *Following) begin() {
	f.began = true
	then := f.then
	f.then = nil
	for _, call := range then {
		call()
	}
	f.wake()
}

func (f *Following) whenBegun(then func()) {
	if f.began {
		then()
		return
	}
	f.then = append(f.then, then)
}

// wants appends a URI if the subscription includes it and does not follow it yet.
func (f *Following) wants(uris []string, uri string) []string {
	template := f.sub.URI == "" && strings.Contains(uri, "{")
	// What pages show is looked at only for who names at least its origin.
	unasked := taburi.Shown(uri) && f.sub.Origin == "" &&
		!strings.HasPrefix(f.sub.URI+f.sub.URIPrefix, weborigin.Of(uri))
	if f.asked[uri] || template || unasked || uri == door.FrontURI || !f.pass.Sees(uri) ||
		!f.sub.Matches(uri, weborigin.Of(uri)) {
		return uris
	}
	if len(f.asked)+1 > events.MaxURIs {
		f.changes.Overflow()
		return uris
	}
	f.asked[uri] = true
	return append(uris, uri)
}

// follow makes the pages of the URIs report changes, and then calls then. eventOffered follows URIs
// without a page later.
func (f *Following) follow(uris []string, then func()) {
	books := f.g.books
	books.Track(uris, func(failed map[string]string) {
		if f.closed {
			return
		}
		for _, uri := range uris {
			if failed[uri] != "" {
				if _, known := f.g.engine.Find(uri); known {
					f.changes.Overflow()
				}
				delete(f.asked, uri)
				continue
			}
			books.Follow(uri, (*follower)(f))
			// as without a page, if it leads to one that the agent does not see by now
			state := events.State{}
			if f.pass.Sees(uri) {
				state = f.g.eventState(uri)
			}
			f.changes.Add(uri, state)
		}
		then()
	})
}

// eventState is the document and revision of a followed URI, as last reported by its page; zero if
// unknown.
func (g *Gateway) eventState(uri string) (s events.State) {
	r := g.catalog.EntryOf(uri)
	if r == nil || r.Page.Life().Left() {
		return s
	}
	p := pageOf(r.Page)
	count, ok := p.follows.Count(r.Own(uri), r.Own(r.Resource.URI))
	if !ok {
		return s
	}
	if p.document == "" {
		p.document = events.Document(p.Origin, cmp.Or(p.epoch, fmt.Sprint(p.Tab, " ", p.Order)))
	}
	return events.State{Document: p.document, Count: count, At: g.opt.wallClock()}
}

// follower is a Following as the books see it. Its methods run with the lock held.
type follower Following

// Touched notes that a page has reported a change of a URI: no cursor from now on covers it.
func (f *follower) Touched(uri string) {
	if f.pass.Sees(uri) {
		f.changes.Touched(uri, f.g.eventState(uri))
		f.last = f.g.opt.wallClock()
	}
}

// Changed passes on a change of a URI, at the pace of the books.
func (f *follower) Changed(uri string) {
	if f.pass.Sees(uri) {
		f.changes.Changed(uri, f.g.eventState(uri))
		(*Following)(f).wake()
	}
}

// eventOffered follows a new resource, if subscriptions want it. It also tells of watched URIs that
// have come back.
func (g *Gateway) eventOffered(key string, r *bridge.Resource) {
	if len(g.events.all) == 0 {
		return
	}
	for _, uri := range g.watchedOf(key, r) {
		g.books.Tell(uri)
	}
	g.eventWished(key, r)
}

// eventWished follows a resource of subscriptions that want it, and could not have it until now.
func (g *Gateway) eventWished(key string, r *bridge.Resource) {
	for f := range g.events.all {
		if f.changes == nil {
			continue
		}
		var uris []string
		if f.sub.URI == "" && !r.Unlisted {
			uris = f.wants(uris, key)
		} else if f.sub.URI != "" && !f.asked[f.sub.URI] && g.leads(f.sub.URI, key) {
			uris = f.wants(uris, f.sub.URI)
		}
		if len(uris) == 0 {
			continue
		}
		f.follow(uris, func() {
			// it waits for this URI, which has changed: it can be read now
			if f.sub.URI == uris[0] {
				f.changes.Arrived(uris[0])
			}
			f.wake()
		})
	}
}

// visited notes that a page has come.
func (g *Gateway) visited(p *Page) {
	if p.Shown {
		return // only pages that offer something by themselves are told
	}
	s := &g.events
	key := visitKey{p.InTab.Key, p.Origin}
	v := s.visits[key]
	switch {
	case v != nil:
		v.back()
	case len(s.visits) >= maxVisits:
		if !s.crowded {
			s.crowded = true
			g.log.Warn(
				"there are so many pages that page.opened and page.closed are not told of further ones", "limit", maxVisits)
		}
		return
	default:
		v = &visit{back: func() bool { return false }}
		s.visits[key] = v
		if g.opt.wallClock().Sub(s.began) >= arrivalTime {
			g.tellVisit(events.Opened, p)
		}
	}
	v.pages++
}

// left notes that a page has gone.
func (g *Gateway) left(p *Page) {
	s := &g.events
	key := visitKey{p.InTab.Key, p.Origin}
	v := s.visits[key]
	if v == nil || p.Shown {
		return
	}
	if v.pages--; v.pages > 0 || g.closed {
		return
	}
	v.back = time.AfterFunc(g.opt.closedAfter, g.locked(func() {
		if s.visits[key] == v && v.pages == 0 && !g.closed {
			delete(s.visits, key)
			g.tellVisit(events.Closed, p)
		}
	})).Stop
}

func (g *Gateway) tellVisit(name string, p *Page) {
	g.events.log.Add(events.Visit{Name: name, Page: p.InTab.Key + " " + p.Origin, Epoch: p.epoch,
		Owner: p.Owner,
		Time:  g.opt.wallClock(), Data: events.PageData(p.Origin, p.InTab.Number, p.URL, p.Title)})
	for f := range g.events.all {
		if f.changes == nil && f.pass.Permits(p.Owner()) {
			f.last = g.opt.wallClock()
			f.wake()
		}
	}
}

// Events answers a request of an agent.
func (h *host) Events(id bridge.CallID, r bridge.EventRequest) {
	g := (*Gateway)(h)
	c := &call{id: id, agent: g.agents[r.Port]}
	g.calls[id] = c
	answer := func(result []byte, refused *bridge.EventError) {
		g.engine.Complete(g.now(), id, bridge.Result{Contents: result, Refused: refused})
	}
	if c.agent == nil {
		return
	}
	if refused := g.eventsFor(c, r, answer); refused != nil {
		answer(nil, refused)
	}
}

// eventsFor answers a request, now or later, or returns the reason for refusing it.
func (g *Gateway) eventsFor(c *call, r bridge.EventRequest,
	answer func([]byte, *bridge.EventError)) *bridge.EventError {
	if r.Method == wire.EventsList {
		if r.Cursor != "" {
			return &bridge.EventError{Kind: bridge.EventInvalid,
				Message: "the list has one page, and no cursor"}
		}
		answer(wire.Text(`{"events":`).Bytes(events.List(c.agent.webhooks != nil)).Raw(`}`), nil)
		return nil
	}
	sub, refused := g.subscriptionOf(c.agent, r)
	if refused != nil {
		return refused
	}
	switch r.Method {
	case wire.EventsPoll:
		return g.poll(c.agent, sub, r, answer)
	case wire.EventsStream:
		f, refused := g.followEvents(sub,
			FollowOptions{Cursor: r.Cursor, MaxAge: milliseconds(r.MaxAge),
				Wake: func() { g.engine.Wake(g.now(), c.id) }}, c.agent.pass)
		if refused != nil {
			return refused
		}
		c.cancel = f.close
		c.events = f
		f.whenBegun(func() {
			first, _ := f.next()
			answer(append(append([]byte{'{'}, first.Members()...), '}'), nil)
			f.wake()
		})
	default:
		g.askWebhooks(c, sub, r, answer)
	}
	return nil
}

// subscriptionOf reads the subscription of a request. It refuses a URI or origin that the agent may
// never see.
func (g *Gateway) subscriptionOf(a *Agent, r bridge.EventRequest) (
	s events.Subscription, refused *bridge.EventError) {
	webhook := r.Method == wire.EventsSubscribe || r.Method == wire.EventsUnsubscribe
	if webhook && a.webhooks == nil {
		return s, &bridge.EventError{Kind: bridge.EventForbidden,
			Message: "webhooks need an agent that a service has authenticated; use events/poll or events/stream",
			Data:    wire.Text(`{"reason":"no_principal"}`)}
	}
	if s, refused = events.Parse(r.Name, r.Arguments); refused != nil {
		return s, refused
	}
	if refused = events.CheckCursor(s.Name, r.Cursor); refused != nil {
		return s, refused
	}
	for _, at := range []string{s.URI, s.Origin} {
		if at != "" && !a.pass.MayWish(at) {
			return s, &bridge.EventError{Kind: bridge.EventForbidden,
				Message: "this agent does not see " +
					Shorten(at, maxTitle), Data: wire.Text(`{"reason":"scope"}`)}
		}
	}
	return s, nil
}

// milliseconds is a duration of at most 10,000 hours; -1 if n is negative, which means that there
// is none.
func milliseconds(n bridge.Time) time.Duration {
	if n < 0 {
		return -1
	}
	return min(time.Duration(min(n, 1<<40))*time.Millisecond, 10_000*time.Hour)
}

// poll answers events/poll. The resources stay followed for the next poll.
func (g *Gateway) poll(a *Agent, sub events.Subscription, r bridge.EventRequest,
	answer func([]byte, *bridge.EventError)) (refused *bridge.EventError) {
	key := fmt.Sprintf("%s %q %s", a.pass, sub.Name, sub.Arguments)
	f := g.events.leases[key]
	if f == nil {
		leave, ok := g.places.Try(a.client.name, quota.Room{Name: "polls", Places: maxLeases})
		if !ok {
			refused = exhausted(maxLeases)
			refused.Message += " for all agents, and one may poll as many as are left to the others; those that it " +
				"does not poll for 5 minutes end"
			return refused
		}
		if f, refused = g.followEvents(sub, FollowOptions{MaxAge: -1}, a.pass); refused != nil {
			leave()
			return refused
		}
		f.release = append(f.release, leave)
		g.events.leases[key] = f
		f.lease = time.AfterFunc(pollLease, g.locked(func() {
			if g.events.leases[key] == f {
				delete(g.events.leases, key)
				f.close()
			}
		}))
	}
	f.lease.Reset(pollLease)
	f.whenBegun(func() { answer(f.answerPoll(a, r), nil) })
	return nil
}

func (f *Following) answerPoll(a *Agent, r bridge.EventRequest) []byte {
	now, maxAge := f.g.opt.wallClock(), milliseconds(r.MaxAge)
	var feed events.Feed // subscriptionOf has checked the cursor
	if f.changes != nil {
		feed, _ = f.changes.At(r.Cursor, maxAge, now)
	} else {
		feed, _ = events.NewVisits(f.sub, f.g.events.log, f.pass.Permits, r.Cursor, maxAge, now)
	}
	text := wire.Text(`{"events":[`)
	truncated, more, count, at := false, false, 0, ""
	for {
		at = feed.Cursor() // before the next event, which may be left for the next poll
		n, ok, _ := feed.Next(now)
		if !ok {
			break
		}
		truncated = truncated || n.Truncated
		if n.Kind != events.Event {
			continue
		}
		if more = count >= cmp.Or(r.Max, pollEvents) && !n.Whole; more {
			break
		}
		count++
		f.g.complement(&n)
		text = n.AppendTo(text.Next(), false)
		a.tellEvent(n)
		if f.changes != nil {
			f.changes.Told(n.Subject, now)
		}
	}
	pause := 30_000
	switch ago := now.Sub(f.last); {
	case ago < 10*time.Second:
		pause = 1000
	case ago < time.Minute:
		pause = 5000
	}
	text = text.Raw(`],"cursor":`).Str(at).Raw(`,"truncated":`)
	text = strconv.AppendBool(text, truncated)
	text = strconv.AppendBool(text.Raw(`,"hasMore":`), more)
	return text.Raw(`,"nextPollMs":`).Int(pause).Raw(`}`)
}

// tellEvent records that an agent is told of a change, so that reminders and hooks do not repeat
// it.
func (a *Agent) tellEvent(n events.Note) {
	if a.memory == nil || n.Name != events.Updated {
		return
	}
	if revision := a.g.books.Revision(n.Subject); revision > 0 {
		a.memory.Told(n.Subject, revision)
	}
}

// askWebhooks answers events/subscribe and events/unsubscribe.
func (g *Gateway) askWebhooks(c *call, sub events.Subscription, r bridge.EventRequest,
	answer func([]byte, *bridge.EventError)) {
	q := WebhookRequest{Subscription: sub, Cursor: r.Cursor, MaxAge: milliseconds(r.MaxAge),
		TTL: milliseconds(r.TTL)}
	q.Mode, _ = r.Delivery.Get("mode").Text()
	q.URL, _ = r.Delivery.Get("url").Text()
	q.Secret, _ = r.Delivery.Get("secret").Text()
	ask := c.agent.webhooks.Subscribe
	if r.Method == wire.EventsUnsubscribe {
		ask = c.agent.webhooks.Unsubscribe
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go func() {
		result, refused := ask(ctx, q)
		g.locked(func() { answer(result, refused) })()
	}()
}

// EndStreams ends the agent's streams of events, each with this reason.
func (a *Agent) EndStreams(why *bridge.EventError) {
	defer a.g.lock()()
	for id, c := range maps.Clone(a.g.calls) {
		if c.events != nil && c.agent == a {
			a.g.engine.Terminate(a.g.now(), id, why)
		}
	}
}

func (h *host) NextEvent(id bridge.CallID) (n bridge.EventNote, ok bool) {
	c := h.calls[id]
	if c == nil || c.events == nil {
		return n, false
	}
	note, ok := c.events.next()
	if ok && note.Kind == events.Event {
		c.agent.tellEvent(note)
	}
	return bridge.EventNote{Members: note.Members(), Gap: note.Kind == events.Active,
		Refused: note.Refused}, ok
}

func (h *host) EventCursor(id bridge.CallID) string {
	if c := h.calls[id]; c != nil && c.events != nil {
		return c.events.cursor()
	}
	return ""
}
