package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// An eventAgent speaks MCP Events in the modern era, as the SEP has it.
type eventAgent struct {
	*Agent
	t       *testing.T
	last    int
	streams map[string][]eventMessage // messages that have come, by id
}

type eventMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		EventID, Name, Timestamp string
		Cursor                   *string
		Truncated                *bool
		Data                     json.RawMessage
		Error                    *eventFailure
		Meta                     map[string]json.RawMessage `json:"_meta"`
	}
	Result *eventResult
	Error  *eventFailure
}

type eventResult struct {
	ResultType string
	Events     []struct {
		EventID, Name, Timestamp string
		Data                     json.RawMessage
		Cursor                   *string
	}
	Cursor             *string
	Truncated, HasMore *bool
	NextPollMs         *int
}

type eventFailure struct {
	Code    int
	Message string
	Data    map[string]any
}

func openEventAgent(t *testing.T, g *Gateway, o AgentOptions) *eventAgent {
	t.Helper()
	return &eventAgent{Agent: connect(t, g, o), t: t, streams: map[string][]eventMessage{}}
}

func (a *eventAgent) post(method, params string) (id string) {
	a.t.Helper()
	a.last++
	id = fmt.Sprint(a.last)
	if params != "" {
		params = "," + params
	}
	text := `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		`{"extensions":{"io.modelcontextprotocol/events":{}}}}` + params + `}}`
	if err := a.Write(a.t.Context(), []byte(text)); err != nil {
		a.t.Fatal(err)
	}
	return id
}

func (a *eventAgent) next() (m eventMessage) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), testkit.Patience)
	defer cancel()
	text, err := a.Read(ctx)
	if err != nil {
		a.t.Fatalf("no further message: %v", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		a.t.Fatalf("%v: %s", err, text)
	}
	if m.Method != "" {
		id := string(m.Params.Meta["io.modelcontextprotocol/subscriptionId"])
		if !strings.HasPrefix(m.Method, "notifications/events/") || id == "" {
			a.t.Fatalf("a notification of no stream: %s", text)
		}
		a.streams[id] = append(a.streams[id], m)
	}
	return m
}

func (a *eventAgent) ask(method, params string) eventMessage {
	a.t.Helper()
	id := a.post(method, params)
	for {
		if m := a.next(); string(m.ID) == id {
			return m
		}
	}
}

// poll waits for the answer to a poll, which must not be an error. A cursor of "" is sent as null.
func (a *eventAgent) poll(name, arguments, cursor, more string) *eventResult {
	a.t.Helper()
	at := "null"
	if cursor != "" {
		at = `"` + cursor + `"`
	}
	m := a.ask("events/poll", fmt.Sprintf(`"name":%q,"arguments":%s,"cursor":%s%s`, name, arguments, at, more))
	r := m.Result
	if r == nil || r.ResultType != "complete" || r.Events == nil || r.Cursor == nil || r.Truncated == nil ||
		r.HasMore == nil || r.NextPollMs == nil || *r.NextPollMs < 1000 {
		a.t.Fatalf("a poll is answered %+v %+v", m.Error, r)
	}
	return r
}

// nextOf waits for the next notification of a stream.
func (a *eventAgent) nextOf(id string) eventMessage {
	a.t.Helper()
	for len(a.streams[id]) == 0 {
		if m := a.next(); m.Error != nil {
			a.t.Fatalf("error %+v", m.Error)
		}
	}
	m := a.streams[id][0]
	a.streams[id] = a.streams[id][1:]
	return m
}

// stream opens a stream, and returns its id and first cursor.
func (a *eventAgent) stream(name, arguments, more string) (id, cursor string) {
	a.t.Helper()
	id = a.post("events/stream", fmt.Sprintf(`"name":%q,"arguments":%s%s`, name, arguments, more))
	m := a.nextOf(id)
	if m.Method != "notifications/events/active" || m.Params.Cursor == nil || m.Params.Truncated == nil {
		a.t.Fatalf("a stream begins with %+v", m)
	}
	return id, *m.Params.Cursor
}

// event waits for an event whose data must contain about, a URI or a part of a page's data. Heartbeats may come before it
// on a busy machine.
func (a *eventAgent) event(id, about string) (eventID, cursor string) {
	a.t.Helper()
	m := a.nextOf(id)
	for m.Method == "notifications/events/heartbeat" {
		m = a.nextOf(id)
	}
	if m.Method != "notifications/events/event" || !strings.Contains(string(m.Params.Data), about) ||
		m.Params.Cursor == nil {
		a.t.Fatalf("in place of an event about %s comes %s %s %+v", about, m.Method, m.Params.Data, m.Params.Error)
	}
	return m.Params.EventID, *m.Params.Cursor
}

func refusedWith(t *testing.T, m eventMessage, code int, word string) {
	t.Helper()
	if m.Error == nil || m.Error.Code != code || !strings.Contains(m.Error.Message, word) {
		t.Errorf("answered %+v %+v; want %d, %q", m.Result, m.Error, code, word)
	}
}

// The scenarios events-discovery, events-poll and events-push of the conformance suite, as far as they need no clock.
func TestConformanceEvents(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/cart": "1", app + "/text": "x", app + "/n/{n}": ""})
	a := openEventAgent(t, g, AgentOptions{})
	resource := `{"uri":"` + app + `/cart"}`

	t.Run("events-discovery", func(t *testing.T) {
		id := a.post("events/list", "")
		text, err := a.Read(t.Context())
		if err != nil || !strings.Contains(string(text), `{"resultType":"complete","events":[{"name":"page.resource.updated"`) ||
			!strings.HasPrefix(string(text), `{"jsonrpc":"2.0","id":`+id) || strings.Contains(string(text), "webhook") {
			t.Errorf("the list is %s, %v", text, err)
		}
		refusedWith(t, a.ask("events/list", `"cursor":"x"`), -32602, "no cursor")
		refusedWith(t, a.ask("events/poll", `"name":"none"`), -32023, "NotFound")
		refusedWith(t, a.ask("events/stream", `"name":"none"`), -32023, "NotFound")
		refusedWith(t, a.ask("events/subscribe", `"name":"page.opened"`), -32024, "webhooks need")
		refusedWith(t, a.ask("events/unsubscribe", `"name":"page.opened"`), -32024, "webhooks need")
	})

	t.Run("events-poll", func(t *testing.T) {
		for _, arguments := range []string{`{}`, resource, `{"uriPrefix":"` + app + `/ca"}`, `{"origin":"` + app + `"}`} {
			first := a.poll(events.Updated, arguments, "", "")
			if len(first.Events) > 0 || *first.Truncated {
				t.Fatalf("the first poll gives %+v", first)
			}
			if again := a.poll(events.Updated, arguments, *first.Cursor, `,"maxAgeMs":300000`); len(again.Events) > 0 ||
				*again.Truncated || *again.Cursor != *first.Cursor {
				t.Errorf("without a change a poll gives %+v", again)
			}
			p.set(app+"/cart", "2")
			p.set(app+"/cart", "3")
			var told *eventResult
			testkit.Eventually(t, "a change is an event", func() bool {
				told = a.poll(events.Updated, arguments, *first.Cursor, "")
				return len(told.Events) == 1
			})
			e := told.Events[0]
			if _, err := time.Parse(time.RFC3339, e.Timestamp); err != nil || e.Name != events.Updated || e.Cursor != nil ||
				!strings.HasPrefix(string(e.Data), `{"uri":"`+app+`/cart","title":"state","origin":"`+app+`","tab":1,"revision":`) {
				t.Errorf("the event %+v %s (%v)", e, e.Data, err)
			}
			again := a.poll(events.Updated, arguments, *first.Cursor, "")
			if len(again.Events) != 1 || again.Events[0].EventID != e.EventID {
				t.Errorf("the same poll twice gives %+v and %+v", told, again)
			}
			if after := a.poll(events.Updated, arguments, *told.Cursor, ""); len(after.Events) > 0 {
				t.Errorf("after it comes %+v", after)
			}
			if *told.NextPollMs != 1000 {
				t.Errorf("after a change nextPollMs is %d", *told.NextPollMs)
			}
		}
		// maxEvents gives only the first events, and the cursor after them.
		first := a.poll(events.Updated, `{}`, "", "")
		p.set(app+"/text", "y")
		p.set(app+"/cart", "4")
		cursor, uris := *first.Cursor, []string{}
		testkit.Eventually(t, "both are there", func() bool {
			return len(a.poll(events.Updated, `{}`, cursor, "").Events) == 2
		})
		for more := true; more && len(uris) < 5; {
			r := a.poll(events.Updated, `{}`, cursor, `,"maxEvents":1`)
			for _, e := range r.Events {
				var data struct{ URI string }
				json.Unmarshal(e.Data, &data)
				uris = append(uris, data.URI)
			}
			more, cursor = *r.HasMore, *r.Cursor
		}
		if slices.Sort(uris); !slices.Equal(uris, []string{app + "/cart", app + "/text"}) {
			t.Errorf("one by one come %q", uris)
		}
		refusedWith(t, a.ask("events/poll", `"name":"page.resource.updated","arguments":{"uri":5}`), -32602, "uri must be")
		refusedWith(t, a.ask("events/poll", `"name":"page.resource.updated","cursor":"c_99842"`), -32602, "cursor")
	})

	t.Run("events-push", func(t *testing.T) {
		id, cursor := a.stream(events.Updated, resource, "")
		others := []string{}
		for range 3 {
			other, _ := a.stream(events.Updated, `{}`, "")
			others = append(others, other)
		}
		p.set(app+"/cart", "5")
		eventID, after := a.event(id, `"uri":"`+app+`/cart"`)
		if after == cursor {
			t.Error("the cursor has not moved")
		}
		ids := map[string]bool{eventID: true}
		for _, other := range others {
			eventID, _ := a.event(other, app+"/cart")
			ids[eventID] = true
		}
		if len(ids) != 2 {
			t.Errorf("one change has the ids %v on streams of two subscriptions", ids)
		}
		// A stream from an earlier cursor has the same event again, with the same id.
		again, _ := a.stream(events.Updated, resource, `,"cursor":"`+cursor+`"`)
		if second, _ := a.event(again, app+"/cart"); second != eventID {
			t.Errorf("told again it is %s, and was %s", second, eventID)
		}
		for _, gone := range append(others, again) {
			a.Write(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+gone+`}}`))
		}
		p.set(app+"/cart", "6")
		a.event(id, app+"/cart")
		a.ask("server/discover", "")
		for _, gone := range append(others, again) {
			if len(a.streams[gone]) > 0 {
				t.Errorf("a stream that was cancelled says %+v", a.streams[gone])
			}
		}
		a.Write(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`))
		a.ask("server/discover", "")
		if n := g.Snapshot().Stats.Streams; n != 0 {
			t.Errorf("%d streams are left", n)
		}
	})
}

// A subscription to all resources includes resources that come later and those of other tabs. A subscription may name a
// URI of a template. When a named URI comes later, that is an event, because it can be read from then on.
func TestEventsOfWhatComes(t *testing.T) {
	g := newGateway(t, Options{})
	a := openEventAgent(t, g, AgentOptions{})
	all, _ := a.stream(events.Updated, `{}`, "")
	one, _ := a.stream(events.Updated, `{"uri":"`+app+`/late"}`, "")
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/cart": "1", app + "/n/{n}": ""})
	square, _ := a.stream(events.Updated, `{"uri":"`+app+`/n/4"}`, "")
	p.set(app+"/cart", "2")
	a.event(all, app+"/cart")
	p.offer(app+"/late", "1")
	a.event(one, app+"/late")
	p.set(app+"/late", "2")
	first, cursor := a.event(one, app+"/late")
	a.event(all, app+"/late")
	p.page.Touch(app + "/n/{n}")
	a.event(square, app+"/n/4")

	// Another tab has the same URI under its own path.
	q := &testPage{t: t, page: testkit.NewPage(t, nil)}
	q.page.Epoch("another")
	q.attach(g, tabInfo("b"))
	g.Focus("a")
	q.offer(app+"/cart", "9")
	q.set(app+"/cart", "10")
	a.event(all, "/.pagewire/tab/2/cart")

	// A reload is an event if the resource is followed, and the next daemon gives the same id for the same change.
	h := newGateway(t, Options{})
	p.crash()
	p.page.Resume(nil)
	p.attach(h, tabInfo("a"))
	b := openEventAgent(t, h, AgentOptions{})
	id, _ := b.stream(events.Updated, `{"uri":"`+app+`/late"}`, `,"cursor":"`+strings.Replace(cursor, ".2", ".1", 1)+`"`)
	if second, _ := b.event(id, app+"/late"); second != first {
		t.Errorf("the next daemon calls it %s, and this one %s", second, first)
	}
	r := b.poll(events.Updated, `{"uri":"`+app+`/late"}`, cursor, "")
	if len(r.Events) > 0 || *r.Truncated {
		t.Errorf("at the next daemon there are %+v behind the last cursor", r)
	}
	p.page.Epoch("after a reload")
	p.Close("reload")
	p.page.Resume(nil)
	p.attach(h, tabInfo("a"))
	b.event(id, app+"/late")
	if r = b.poll(events.Updated, `{"uri":"`+app+`/late"}`, cursor, ""); len(r.Events) != 1 || !*r.Truncated {
		t.Errorf("a document that is gone gives %+v", r)
	}
}

// A page that stands still, in a dialog or a frozen tab, keeps nobody from the events of the others. What it had changed
// is told when it goes on.
func TestEventsBesideAPageThatDoesNotAnswer(t *testing.T) {
	const other = "https://other.example/doc"
	g := newGateway(t, Options{})
	g.events.BeginsWithin = time.Millisecond
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "1"})
	still := openPage(t, g, PageInfo{Tab: "b", Origin: "https://other.example", URL: other}, map[string]string{other: "1"})
	still.set(other, "2")
	still.page.HoldWatch = make(chan struct{})
	a := openEventAgent(t, g, AgentOptions{})
	sub, _ := events.Parse(events.Updated, []byte(`{}`))
	f, refused := g.FollowEvents(sub, events.FollowOptions{MaxAge: -1})
	if refused != nil {
		t.Fatal(refused)
	}
	noted := func(want events.NoteKind, about string) {
		t.Helper()
		var n events.Note
		testkit.Eventually(t, "there is a note", func() (ok bool) { n, ok = f.Next(); return ok })
		if n.Kind != want || n.Subject != about || n.Truncated {
			t.Errorf("in place of one about %q comes %+v", about, n)
		}
	}
	noted(events.Active, "")
	id, _ := a.stream(events.Updated, `{}`, "")
	polled := a.poll(events.Updated, `{}`, "", "")
	told := func(uri string) {
		t.Helper()
		noted(events.Event, uri)
		a.event(id, uri)
		cursor := *polled.Cursor
		testkit.Eventually(t, "a poll has it", func() bool {
			polled = a.poll(events.Updated, `{}`, cursor, "")
			return len(polled.Events) > 0
		})
		if len(polled.Events) != 1 || !strings.Contains(string(polled.Events[0].Data), uri) || *polled.Truncated {
			t.Errorf("in place of %s a poll has %+v", uri, polled)
		}
	}
	p.set(cart, "2")
	told(cart)
	close(still.page.HoldWatch)
	told(other)
	still.set(other, "3")
	told(other)
}

// An agent gets only the events of resources that it may list and read. No answer shows that there are others.
func TestEventsWithinTheScope(t *testing.T) {
	g := newGateway(t, Options{Deny: []string{"https://bank.example"}})
	g.events.Began = time.Time{} // so that pages that come now count as new
	a := openEventAgent(t, g, AgentOptions{Deny: []string{"https://secret.example"}})
	all, _ := a.stream(events.Updated, `{}`, "")
	opened, _ := a.stream(events.Opened, `{}`, "")
	for _, origin := range []string{"https://secret.example", app} {
		info := PageInfo{Tab: origin, Origin: origin, URL: origin + "/", Title: "T"}
		p := openPage(t, g, info, map[string]string{origin + "/cart": "1"})
		testkit.Eventually(t, "it is followed, if it is seen", func() bool {
			return p.page.Watches(origin+"/cart") == (origin == app)
		})
		p.set(origin+"/cart", "2")
	}
	a.event(all, app+"/cart")
	a.event(opened, app)
	if r := a.poll(events.Updated, `{}`, "", ""); len(r.Events) > 0 {
		t.Errorf("polled %+v", r)
	}
	for _, arguments := range []string{`{"uri":"https://secret.example/cart"}`, `{"origin":"https://secret.example"}`,
		`{"uri":"https://bank.example/"}`, `{"origin":"https://bank.example"}`} {
		refusedWith(t, a.ask("events/stream", `"name":"page.resource.updated","arguments":`+arguments), -32024, "does not see")
	}
	// By a prefix, a hidden resource looks like one that does not exist.
	if r := a.poll(events.Updated, `{"uriPrefix":"https://secret.example/"}`, "", ""); len(r.Events) > 0 || *r.Truncated {
		t.Errorf("polled %+v", r)
	}
	if s := a.poll(events.Updated, `{"uri":"https://none.example/x"}`, "", ""); len(s.Events) > 0 {
		t.Errorf("polled %+v", s)
	}
	if len(a.streams[all])+len(a.streams[opened]) > 0 {
		t.Errorf("further come %+v", a.streams)
	}
}

// A page is opened once and closed once, even with a reload, a frame or a navigation within its origin in between.
func TestPageEvents(t *testing.T) {
	g := newGateway(t, Options{Grace: time.Millisecond})
	g.events.ClosedAfter = 100 * time.Millisecond
	a := openEventAgent(t, g, AgentOptions{})
	openPage(t, g, tabInfo("before"), map[string]string{app + "/x": "1"}) // it counts as there before the gateway began
	g.events.Began = time.Time{}
	opened, _ := a.stream(events.Opened, `{}`, "")
	closed, cursor := a.stream(events.Closed, `{"origin":"`+app+`"}`, "")
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/x": "1"})
	m := a.nextOf(opened)
	if want := `{"origin":"https://app.example","tab":2,"url":"https://app.example/","title":"App a"}`; string(m.Params.Data) != want {
		t.Errorf("opened is %s", m.Params.Data)
	}
	for range 3 {
		p.crash()
		p.page.Resume(nil)
		p.attach(g, tabInfo("a"))
	}
	frame := tabInfo("a")
	frame.Frame = "1"
	q := openPage(t, g, frame, map[string]string{app + "/y": "1"})
	q.Close("it is removed")
	p.Close("its tab was closed")
	a.event(closed, `"tab":2`)
	other := tabInfo("c")
	openPage(t, g, other, map[string]string{app + "/x": "1"})
	a.event(opened, `"tab":3`)
	if r := a.poll(events.Closed, `{}`, cursor, ""); len(r.Events) != 1 || *r.Truncated {
		t.Errorf("polled %+v", r)
	}
	if len(a.streams[closed])+len(a.streams[opened]) > 0 {
		t.Errorf("further come %+v", a.streams)
	}
}

// A change that an agent was told of by an event is not in its reminders and prompts.
func TestEventsCountAsTold(t *testing.T) {
	for name, told := range map[string]bool{"event": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, Options{})
			p := openPage(t, g, tabInfo("a"), map[string]string{app + "/cart": "1"})
			a := openEventAgent(t, g, AgentOptions{})
			ask := func() string {
				text, err := a.Changes(t.Context(), calls.Ask{})
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			a.ask("tools/call", `"name":"read_page_resource","arguments":{"uri":"`+app+`/cart"}`)
			ask()
			if told {
				id, _ := a.stream(events.Updated, `{}`, "")
				p.set(app+"/cart", "2")
				a.event(id, app+"/cart")
			} else {
				p.set(app+"/cart", "2")
			}
			if text := ask(); strings.Contains(text, "/cart") == told {
				t.Errorf("the prompt says %q", text)
			}
		})
	}
}

// An agent's subscriptions are bounded, and a page that changes without end does not flood it with events.
func TestEventLimits(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), nil)
	for i := range events.MaxURIs + 1 {
		p.offer(fmt.Sprintf("%s/%d", app, i), "x")
	}
	a := openEventAgent(t, g, AgentOptions{})
	id := a.post("events/stream", `"name":"page.resource.updated"`)
	a.nextOf(id)
	if m := a.nextOf(id); m.Method != "notifications/events/error" || m.Params.Error.Code != -32025 ||
		m.Params.Error.Data["max"] != float64(events.MaxURIs) {
		t.Errorf("above the limit of resources comes %+v", m)
	}
	if r := a.poll(events.Updated, `{}`, *m0(a, t), ""); !*r.Truncated {
		t.Error("a poll above the limit does not say so")
	}
	for range 63 {
		a.stream(events.Opened, `{}`, "")
	}
	for range 1000 {
		refusedWith(t, a.ask("events/stream", `"name":"page.opened"`), -32025, "64")
	}
	for i := range events.MaxLeases/2 - 1 {
		a.poll(events.Opened, fmt.Sprintf(`{"origin":"https://%d.example"}`, i), "", "")
	}
	refusedWith(t, a.ask("events/poll", `"name":"page.closed"`), -32025, fmt.Sprint(events.MaxLeases))

	b := openEventAgent(t, g, AgentOptions{}) // it has a share, too
	b.poll(events.Closed, `{}`, "", "")
	refusedWith(t, a.ask("events/poll", `"name":"page.closed"`), -32025, fmt.Sprint(events.MaxLeases)) // b's is not its
	flood, _ := b.stream(events.Updated, `{"uri":"`+app+`/1"}`, "")
	for i := range 1000 {
		p.set(app+"/1", fmt.Sprint(i))
	}
	p.set(app+"/1", "last")
	count := 0
	for last := ""; !strings.HasPrefix(last, "1001."); count++ {
		last, _ = b.event(flood, app+"/1")
	}
	if count > 100 {
		t.Errorf("1,001 changes at once make %d events", count)
	}
}

// A subscription to all pages is told of a page beside one that has more resources than it follows.
func TestEventsBesideALargePage(t *testing.T) {
	const large = "https://aaa.example"
	g := newGateway(t, Options{})
	state := map[string]string{}
	for i := range events.MaxURIs + 1 {
		state[fmt.Sprintf("%s/%04d", large, i)] = "x"
	}
	openPage(t, g, PageInfo{Tab: "z", Origin: large, URL: large + "/", Transport: "test"}, state)
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "one"})
	a := openEventAgent(t, g, AgentOptions{})
	first := a.poll(events.Updated, `{}`, "", "")
	p.set(app+"/doc", "two")
	testkit.Eventually(t, "a poll tells of the small page", func() bool {
		r := a.poll(events.Updated, `{}`, *first.Cursor, "")
		return *r.Truncated && len(r.Events) == 1 &&
			strings.Contains(string(r.Events[0].Data), app+"/doc")
	})
}

// m0 is the present cursor.
// The pace that one agent asks for holds back no event of another, which polls with the same arguments.
func TestPaceOfAnotherAgent(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "1"})
	for _, o := range []AgentOptions{{}, {Only: []string{app}}, {Transport: TransportRequest}} {
		a, b := openEventAgent(t, g, o), openEventAgent(t, g, o)
		poll := func(a *eventAgent, cursor string) *eventResult {
			return a.poll(events.Updated, `{"minIntervalMs":3600000}`, cursor, "")
		}
		atA, atB := *poll(a, "").Cursor, *poll(b, "").Cursor
		p.set(cart, p.page.Text(cart)+"1")
		testkit.Eventually(t, "the first agent has its event", func() bool { return len(poll(a, atA).Events) == 1 })
		if n := len(poll(b, atB).Events); n != 1 {
			t.Errorf("%+v: the other has %d events", o, n)
		}
	}
}

func m0(a *eventAgent, t *testing.T) *string {
	t.Helper()
	return a.poll(events.Updated, `{}`, "", "").Cursor
}

// Go code follows a subscription without an agent.
func TestFollowEvents(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/cart": "1"})
	sub, refused := events.Parse(events.Updated, []byte(`{"origin":"`+app+`"}`))
	if refused != nil {
		t.Fatal(refused)
	}
	wake := make(chan struct{}, 1)
	follow := func(cursor string) *events.Following {
		f, refused := g.FollowEvents(sub, events.FollowOptions{Cursor: cursor, MaxAge: -1, Wake: func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		}})
		if refused != nil {
			t.Fatal(refused)
		}
		return f
	}
	next := func(f *events.Following) (n events.Note) {
		testkit.Eventually(t, "there is a note", func() (ok bool) { n, ok = f.Next(); return ok })
		return n
	}
	f := follow("")
	if n := next(f); n.Kind != events.Active || n.Truncated || n.Occurrence.Cursor != f.Cursor() {
		t.Errorf("it begins with %+v", n)
	}
	for len(wake) > 0 {
		<-wake
	}
	p.set(app+"/cart", "2")
	testkit.Ends(t, "it is woken", wake)
	n := next(f)
	if n.Kind != events.Event || n.Subject != app+"/cart" || !strings.Contains(string(n.AppendTo(nil, true)), n.ID) {
		t.Errorf("the event is %+v", n)
	}
	f.Close()
	f.Close()
	testkit.Eventually(t, "the page is no longer followed", func() bool { return !p.page.Watches(app + "/cart") })
	p.set(app+"/cart", "3")
	g = newGateway(t, Options{})
	p.crash()
	p.page.Resume(nil)
	p.attach(g, tabInfo("a"))
	f = follow(n.Occurrence.Cursor)
	if m := next(f); m.Truncated {
		t.Errorf("it begins with %+v", m)
	}
	if m := next(f); m.Kind != events.Event || m.ID == n.ID || m.Subject != n.Subject {
		t.Errorf("what changed while nobody followed is %+v", m)
	}
	other, _ := events.Parse(events.Opened, []byte(`{}`))
	for range events.MaxFollowings - 1 {
		if _, refused := g.FollowEvents(other, events.FollowOptions{MaxAge: -1}); refused != nil {
			t.Fatal(refused)
		}
	}
	if _, refused := g.FollowEvents(other, events.FollowOptions{}); refused == nil || refused.Kind != bridge.EventExhausted {
		t.Errorf("above the limit: %v", refused)
	}
	if _, refused := g.FollowEvents(sub, events.FollowOptions{Cursor: "nonsense"}); refused == nil ||
		refused.Kind != bridge.EventInvalid {
		t.Errorf("a cursor that is none: %v", refused)
	}
}

// Resources that no page offers any more leave their room in a subscription to others.
func TestGoneResourcesLeaveRoom(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/stays": "1"})
	a := openEventAgent(t, g, AgentOptions{})
	id, _ := a.stream(events.Updated, `{}`, "")
	for i := range 2 * events.MaxURIs {
		uri := fmt.Sprint(app, "/", i)
		p.offer(uri, "x")
		p.page.Withdraw(uri)
	}
	p.offer(app+"/last", "1")
	for _, uri := range []string{app + "/last", app + "/stays"} {
		p.set(uri, "2")
		if a.event(id, uri); len(a.streams[id]) > 0 {
			t.Fatalf("the subscription is told %+v", a.streams[id])
		}
	}
}

// The resources of all subscriptions together are bounded. The subscription that gets fewer because of it is notified.
// Those that have gone leave room.
func TestResourcesOfAllSubscriptions(t *testing.T) {
	g := newGateway(t, Options{})
	most := events.MaxAllURIs / events.MaxURIs
	var pages []*testPage
	for i := range most + 2 {
		state := map[string]string{}
		for n := range events.MaxURIs {
			state[fmt.Sprintf("%s/%d/%d", app, i, n)] = "x"
		}
		if i > most {
			pages[0].Close("it is closed")
		}
		pages = append(pages, openPage(t, g, tabInfo(fmt.Sprint("t", i)), state))
		sub, _ := events.Parse(events.Updated, []byte(fmt.Sprintf(`{"uriPrefix":"%s/%d/"}`, app, i)))
		woken := make(chan bool, 1)
		f, refused := g.FollowEvents(sub, events.FollowOptions{MaxAge: -1, Wake: func() {
			select {
			case woken <- true:
			default:
			}
		}})
		if refused != nil {
			t.Fatal(refused)
		}
		for ok := false; !ok; _, ok = f.Next() {
			testkit.Receive(t, "it begins", woken)
		}
		full := i == most
		if n, ok := f.Next(); ok != full || full && (n.Kind != events.Failed || !strings.Contains(n.Refused.Message, "10000")) {
			t.Fatalf("subscription %d: %v %+v", i, ok, n)
		}
	}
}

// At most events.MaxVisits pages have page.opened and page.closed, of one site half of them. The log says once that
// further pages have none. Those of another site have them.
func TestVisitLimit(t *testing.T) {
	log := testkit.LogOf(t, "the gateway")
	g := newGateway(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	g.mu.Lock()
	for i := range events.MaxVisits/2 - 1 {
		g.events.Came(&catalog.Page{PageInfo: PageInfo{Origin: app}, InTab: &catalog.Tab{Key: fmt.Sprint(i)}}, "")
	}
	g.mu.Unlock()
	g.events.Began = time.Time{}
	a := openEventAgent(t, g, AgentOptions{})
	opened, _ := a.stream(events.Opened, `{}`, "")
	for _, name := range []string{"last", "above", "further"} {
		openPage(t, g, tabInfo(name), map[string]string{app + "/x": "1"})
	}
	openPage(t, g, PageInfo{Tab: "b", Origin: bank, URL: bank + "/", Title: "Bank", Transport: "test"},
		map[string]string{bank + "/x": "1"})
	a.event(opened, `"title":"App last"`)
	a.event(opened, `"title":"Bank"`)
	if len(a.streams[opened]) > 0 || strings.Count(log.String(), "limit=4096") != 1 {
		t.Errorf("further come %+v, and the log says\n%s", a.streams[opened], log)
	}
}

type testWebhooks struct{ asked chan events.WebhookRequest }

func (w testWebhooks) Subscribe(_ context.Context, r events.WebhookRequest) ([]byte, *bridge.EventError) {
	w.asked <- r
	return []byte(`{"id":"sub_1","refreshBefore":null}`), nil
}

func (w testWebhooks) Unsubscribe(ctx context.Context, _ events.WebhookRequest) ([]byte, *bridge.EventError) {
	return nil, &bridge.EventError{Kind: bridge.EventNotFound, Message: "no", Data: bridge.Text(`{"kind":"subscription"}`)}
}

// An agent with a principal asks for webhooks. A request that is wrong apart from its delivery does not reach Webhooks.
func TestWebhookRequests(t *testing.T) {
	g := newGateway(t, Options{})
	w := testWebhooks{make(chan events.WebhookRequest, 1)}
	a := openEventAgent(t, g, AgentOptions{Webhooks: w})
	delivery := `,"delivery":{"mode":"webhook","url":"https://r.test/cb","secret":"whsec_x"}`
	a.post("events/list", "")
	if text, _ := a.Read(t.Context()); !strings.Contains(string(text), `"delivery":["poll","push","webhook"]`) {
		t.Errorf("the list is %s", text)
	}
	if m := a.ask("events/subscribe", `"name":"page.opened","ttlMs":3600000,"maxAgeMs":5`+delivery); m.Result == nil {
		t.Errorf("answered %+v", m.Error)
	}
	got := <-w.asked
	want := events.WebhookRequest{Subscription: events.Subscription{Name: "page.opened", Arguments: "{}"}, Mode: "webhook",
		URL: "https://r.test/cb", Secret: "whsec_x", MaxAge: 5 * time.Millisecond, TTL: time.Hour}
	if got != want {
		t.Errorf("asked for %+v", got)
	}
	refusedWith(t, a.ask("events/subscribe", `"name":"none"`+delivery), -32023, "NotFound")
	refusedWith(t, a.ask("events/subscribe", `"name":"page.opened","arguments":{"x":1}`+delivery), -32602, "no argument")
	refusedWith(t, a.ask("events/subscribe", `"name":"page.opened","cursor":"x"`+delivery), -32602, "cursor")
	refusedWith(t, a.ask("events/unsubscribe", `"name":"page.opened"`+delivery), -32023, "NotFound")
}

// A change of a page as an update and as an event, from the page's call to the agent's end of its session.
func BenchmarkEventBesideUpdate(b *testing.B) {
	for _, way := range []string{"update", "event"} {
		b.Run(way, func(b *testing.B) {
			g := New(Options{})
			defer g.Close()
			p := testkit.NewPage(b, nil)
			p.Attach(func(send func([]byte)) (testkit.Receiver, error) { return g.Attach(tabInfo("a"), send) })
			const uris = 500 // so that no URI has to wait for its interval
			for i := range uris {
				p.Offer(fmt.Sprintf("%s/%d", app, i), "x")
			}
			a := connect(b, g, AgentOptions{})
			const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
			request := `{"jsonrpc":"2.0","id":1,"method":"events/stream","params":{` + meta + `,"name":"page.resource.updated"}}`
			if way == "update" {
				var list []string
				for i := range uris {
					list = append(list, fmt.Sprintf("%q", fmt.Sprintf("%s/%d", app, i)))
				}
				request = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + meta +
					`,"notifications":{"resourceSubscriptions":[` + strings.Join(list, ",") + `]}}}`
			}
			a.Write(b.Context(), []byte(request))
			a.Read(b.Context())
			n := 0
			for b.Loop() {
				p.Touch(fmt.Sprintf("%s/%d", app, n%uris))
				n++
				if text, err := a.Read(b.Context()); err != nil || !strings.Contains(string(text), app) {
					b.Fatalf("%s, %v", text, err)
				}
			}
		})
	}
}

// The counted URIs are bounded, and what no page offers is not followed.
func TestCountedURIsAreBounded(t *testing.T) {
	g := New(Options{})
	defer g.Close()
	p := testkit.NewPage(t, nil)
	p.Attach(func(send func([]byte)) (testkit.Receiver, error) { return g.Attach(tabInfo("a"), send) })
	p.Offer(app+"/doc", "x")
	defer g.lock()()
	for uri, want := range map[string][2]string{
		app + "/doc":  {"", "Subscription limit reached"},
		app + "/none": {"Resource not found", "Resource not found"},
	} {
		below, at := (*source)(g).Refuses(uri, events.MaxAllURIs-1), (*source)(g).Refuses(uri, events.MaxAllURIs)
		if below != want[0] || at != want[1] {
			t.Errorf("%s: %q below the limit, and %q at it", uri, below, at)
		}
	}
}

// An agent without a session that reads any number of URIs leaves room to one that waits.
func TestReadsOfOneAgentLeaveRoomToWaits(t *testing.T) {
	g := newGateway(t, Options{})
	openPage(t, g, tabInfo("a"), map[string]string{app + "/item/{id}": "item ", app + "/doc": "1"})
	other := openAgent(t, g)
	reader := openEventAgent(t, g, AgentOptions{Transport: TransportRequest})
	g.locked(func() { // as for so many reads
		for i := range events.MaxAllURIs - 1 {
			g.trackRead(&call{}, fmt.Sprint(app, "/item/", i))
		}
	})()
	if m := reader.ask("resources/read", `"uri":"`+app+`/item/last"`); m.Error != nil {
		t.Fatalf("the reader is refused: %+v", m.Error)
	}
	g.locked(func() {
		if n := g.books.Counted(); n != events.MaxAllURIs {
			t.Errorf("%d URIs are counted", n)
		}
	})()
	text, failed := other.Call("wait_for_page_update", map[string]any{"uris": []string{app + "/doc"}, "timeout_ms": 0})
	if failed || !strings.Contains(text, `"timedOut":true`) {
		t.Errorf("another agent waits: %s", text)
	}
}

// The waits of one agent leave room to those of others.
func TestWaitsOfOneAgentLeaveRoom(t *testing.T) {
	g := newGateway(t, Options{})
	openPage(t, g, tabInfo("a"), map[string]string{app + "/item/{id}": "item ", app + "/doc": "1"})
	other, a := openAgent(t, g), openEventAgent(t, g, AgentOptions{Transport: TransportRequest})
	for i := range events.MaxAllURIs/2/50 + 1 {
		var uris []string
		for j := range 50 {
			uris = append(uris, fmt.Sprintf("%s/item/%d.%d", app, i, j))
		}
		list, _ := json.Marshal(uris)
		a.post("tools/call", fmt.Sprintf(`"name":"wait_for_page_update","arguments":{"timeout_ms":25000,"uris":%s}`, list))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	text, err := a.Read(ctx) // of the call that came last
	if err != nil || !strings.Contains(string(text), "too many URIs are waited for at once") {
		t.Errorf("one of many waits is answered %s, %v", text, err)
	}
	if text, failed := other.Call("wait_for_page_update",
		map[string]any{"uris": []string{app + "/doc"}, "timeout_ms": 0}); failed {
		t.Errorf("another agent waits: %s", text)
	}
}
