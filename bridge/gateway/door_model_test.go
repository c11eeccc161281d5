package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// The model of the door: who owns each page, and what each agent's scope has, in plain sets. Pages, their profiles' names,
// focus and agents change at random, and so does the time. Each page writes its number into all that it gives: [tN] into
// what may be told only as long as it is permitted, and <N.k> into contents, which an agent may be shown again that it
// was given before. So a leak is a number in a message to an agent whose scope does not have that page when it is sent.

// A modelPage is a page that answers when the test says so. It is in one goroutine with the gateway.
type modelPage struct {
	*Page
	w       *doorModel
	n, k    int // its number, and that of its document's state
	tab     int
	origin  string
	profile string // by its transport
	source  string
	way     *modelPage // the page of its document, if this is another way
	mu      sync.Mutex
	inbox   [][]json.RawMessage
	// unconfirmed has the subscriptions that the page has not confirmed, reads and calls what it has
	// not answered.
	unconfirmed  []string
	reads, calls []int
	watched      map[string]bool
	gone         bool
	dropped      time.Time // when the gateway forgets it; zero while it is attached
}

// A modelAgent is an agent that sends any request, and remembers what it was given.
type modelAgent struct {
	*Agent
	w        *doorModel
	origins  []string // of its scope; nil has all
	profiles []string
	front    bool
	last     int
	latest   string
	given    map[string]bool
	uris     []string
	listens  map[int][]string // the URIs of each acknowledged listen, by its id
	told     map[string]bool  // of an update since the last settle
	results  map[int]bool     // since then, by the request's id
}

type doorModel struct {
	t      *testing.T
	r      *rand.Rand
	g      *Gateway
	pages  []*modelPage
	ended  []*modelPage
	agents []*modelAgent
	names  map[string][]string // given to sources
	frees  map[string][]func()
	n      int
	began  time.Time // of the step
	log    []string
	counts map[string]int
}

func newDoorModel(t *testing.T, seed uint64) *doorModel {
	return &doorModel{t: t, r: rand.New(rand.NewPCG(seed, 1)), names: map[string][]string{}, frees: map[string][]func(){},
		counts: map[string]int{}, g: New(Options{Grace: time.Second})}
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// document is the page itself, or that of which it is another way.
func (p *modelPage) document() *modelPage {
	if p.way != nil {
		return p.way
	}
	return p
}

// owner is whose a page is by the model.
func (p *modelPage) owner() bridge.Owner {
	p = p.document()
	o := bridge.Owner{Origin: p.origin, Profile: p.profile}
	if names := p.w.names[p.source]; p.source != "" && len(names) > 0 {
		o.Profile = names[len(names)-1]
		if p.profile != "" && p.profile != o.Profile {
			o.Profile = ""
		}
	}
	return o
}

// permits is the model's door.
func (a *modelAgent) permits(o bridge.Owner) bool {
	return (a.origins == nil || slices.Contains(a.origins, o.Origin)) &&
		(a.profiles == nil || slices.Contains(a.profiles, o.Profile))
}

func (w *doorModel) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *doorModel) page(n int) *modelPage {
	for _, p := range slices.Concat(w.pages, w.ended) {
		if p.n == n {
			return p
		}
	}
	return nil
}

var marks = regexp.MustCompile(`\[t(\d+)\]|<(\d+)\.(\d+)>`)

// check takes the messages to an agent, and returns the number of those that a touch may cause.
func (a *modelAgent) check() (n int) {
	for a.out.Size() > 0 {
		message, err := a.Read(a.w.t.Context())
		if err != nil {
			return n
		}
		a.w.counts["messages"]++
		text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(message))
		a.checkText(text)
		if !a.front && strings.Contains(text, `where\":\"tab `) {
			a.w.t.Fatalf("%s\nan agent without the front is given it: %s", a.w.last(), text)
		}
		var m struct {
			Method string
			ID     int
			Result json.RawMessage
			Params struct {
				URI  string
				Meta struct {
					ID int `json:"io.modelcontextprotocol/subscriptionId"`
				} `json:"_meta"`
				Notifications struct{ ResourceSubscriptions []string }
			}
		}
		_ = json.Unmarshal(message, &m)
		switch m.Method {
		case "":
			a.results[m.ID] = m.Result != nil
			delete(a.listens, m.ID)
		case "notifications/subscriptions/acknowledged":
			a.listens[m.Params.Meta.ID] = m.Params.Notifications.ResourceSubscriptions
		case "notifications/resources/updated":
			a.told[m.Params.URI] = true
		}
		// A page that reacts again gets plain names of tools back, and a touch makes all waits look, some of which end then.
		if m.Method != "" && m.Method != "notifications/tools/list_changed" {
			n++
			a.latest = string(message)
		}
		if m.Method == "notifications/resources/updated" && m.Params.URI != door.FrontURI && !a.w.mayKnow(a, m.Params.URI) {
			a.w.t.Fatalf("%s\nthe agent with %q %q is told of a change of %s", a.w.last(), a.origins, a.profiles, m.Params.URI)
		}
		a.uris = append(a.uris, regexp.MustCompile(`https://[a-z]+\.example/[^"\\ ]*`).FindAllString(text, 50)...)
		a.uris = a.uris[max(0, len(a.uris)-100):]
	}
	return n
}

func (a *modelAgent) checkText(text string) {
	for _, m := range marks.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1] + m[2])
		p := a.w.page(n)
		if p == nil || !a.permits(p.owner()) && !a.given[m[0]] {
			a.w.t.Fatalf("%s\nthe agent with %q %q, front %t, is given %s of page %d of %v: %s", a.w.last(), a.origins,
				a.profiles, a.front, m[0], n, p.owner(), text)
		}
		if a.w.counts["of pages"]++; m[2] != "" {
			a.given[m[0]] = true
		}
	}
}

func (w *doorModel) last() string { return strings.Join(w.log[max(0, len(w.log)-40):], "\n") }

// mayKnow reports whether the gateway has, or had in this step, a page of an agent's scope at a URI's origin.
func (w *doorModel) mayKnow(a *modelAgent, uri string) bool {
	for _, p := range slices.Concat(w.pages, w.ended) {
		if strings.HasPrefix(uri, p.origin+"/") && a.permits(p.owner()) && (!p.gone || !p.dropped.Before(w.began)) {
			return true
		}
	}
	return false
}

func (p *modelPage) say(calls ...any) {
	text, _ := json.Marshal(calls)
	p.raw(string(text))
}

func (p *modelPage) raw(frame string) {
	if !p.gone {
		_ = p.Receive([]byte(frame)) // an error ends the page
	}
}

// pump lets the pages take what the gateway has sent them.
func (w *doorModel) pump() {
	for again := true; again; {
		again = false
		for _, p := range w.pages {
			p.mu.Lock()
			inbox := p.inbox
			p.inbox = nil
			p.mu.Unlock()
			for _, call := range inbox {
				if again = true; !p.gone {
					p.obey(call)
				}
			}
		}
	}
}

func (p *modelPage) obey(call []json.RawMessage) {
	var kind, uri string
	var id int
	_ = json.Unmarshal(call[0], &kind)
	if len(call) > 1 {
		_ = json.Unmarshal(call[1], &id)
		_ = json.Unmarshal(call[1], &uri)
	}
	switch kind {
	case "watched":
		p.watched[uri] = string(call[2]) == "true"
		if string(call[2]) != "true" || strings.Contains(uri, "/alive/") {
			return
		}
		if p.w.r.IntN(3) == 0 {
			p.unconfirmed = append(p.unconfirmed, uri)
			return
		}
		p.say([]any{"touch", uri, p.document().k})
	case "read", "callTool":
		if !slices.ContainsFunc(p.w.agents, func(a *modelAgent) bool { return a.permits(p.owner()) }) {
			p.w.t.Fatalf("%s\npage %d of %v is asked by nobody who sees it: %s", p.w.last(), p.n, p.owner(), call)
		}
		p.w.counts["asked"]++
		if kind == "read" {
			p.reads = append(p.reads, id)
		} else {
			p.calls = append(p.calls, id)
		}
	case "end":
		is := func(other int) bool { return other == id }
		p.reads, p.calls = slices.DeleteFunc(p.reads, is), slices.DeleteFunc(p.calls, is)
	}
}

// open attaches a page, or another way of one's document.
func (w *doorModel) open(tab int, origin string, of *modelPage) {
	w.n++
	key, profile, source := fmt.Sprint("tab", tab), []string{"Work", "Private", "", ""}[tab%4], []string{"", "s1", "s2"}[tab%3]
	if of != nil {
		key, source = "other "+key, ""
		if profile = of.owner().Profile; profile == "" { // one of another profile is another document
			profile = []string{"Work", "Private"}[tab/2%2]
		}
	}
	w.note("page %d comes to %s, of %q by %q", w.n, key, profile, source)
	p := &modelPage{w: w, n: w.n, tab: tab, origin: origin, profile: profile, source: source, way: of,
		watched: map[string]bool{}}
	info := PageInfo{Tab: key, Origin: origin, URL: origin + "/", Title: fmt.Sprintf("[t%d]", w.n), Profile: profile,
		Source: source, Transport: "cdp", Browser: "Chrome", Window: "w" + key}
	epoch := fmt.Sprint("e", w.n)
	if of != nil {
		info.Transport, info.Title, epoch = "extension", fmt.Sprintf("[t%d]", of.n), fmt.Sprint("e", of.n)
	}
	page, err := w.g.Attach(info, func(frame []byte) {
		var calls [][]json.RawMessage
		if json.Unmarshal(frame, &calls) == nil {
			p.mu.Lock() // a timer's goroutine may send
			p.inbox = append(p.inbox, calls...)
			p.mu.Unlock()
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	p.Page = page
	w.pages = append(w.pages, p)
	if of != nil { // by the model the document's page has this profile from now on
		if of.profile == "" {
			of.profile = profile
		}
		if of.source == "" {
			of.source = source
		}
	}
	p.say([]any{"hello", 1, "0", map[string]any{"epoch": epoch}})
	p.offer()
}

func (p *modelPage) offer() {
	n := p.document().n
	var calls []any
	for _, path := range []string{"/doc", "/item/{id}", "/list{?q,sort}", fmt.Sprint("/only/", n)} {
		member := "uri"
		if strings.Contains(path, "{") {
			member = "uriTemplate"
		}
		text, _ := json.Marshal(map[string]any{"uri": p.origin + path, member: p.origin + path, "name": "state",
			"title": fmt.Sprintf("[t%d]", n)})
		calls = append(calls, []any{"register", string(text)})
	}
	var tools []any
	for _, name := range []string{"pay", "search"} {
		tools = append(tools, map[string]any{"name": name, "description": fmt.Sprintf("[t%d]", n),
			"inputSchema": map[string]any{"type": "object"}, "_meta": map[string]any{
				"pagewire/freshState": map[string]any{"uris": []string{p.origin + "/doc"}}}})
	}
	text, _ := json.Marshal(tools)
	p.say(append(calls, []any{"setTools", string(text)})...)
}

// leave ends a page, for good or for a while.
func (p *modelPage) leave(mayReturn bool) {
	ends := []*modelPage{p}
	for _, other := range p.w.pages {
		if other.way == p || p.way != nil && (other == p.way || other.way == p.way) {
			ends = append(ends, other)
		}
	}
	for _, e := range ends { // all ways of the document
		p.w.g.Behind(e.Tab) // the browser tells of the next document
		e.gone, e.dropped = true, time.Now()
		if mayReturn {
			e.dropped = e.dropped.Add(time.Second)
			e.Lost("its connection ended")
		} else {
			e.Close("it is closed")
		}
		e.unconfirmed, e.reads, e.calls = nil, nil, nil
		p.w.pages = slices.DeleteFunc(p.w.pages, func(q *modelPage) bool { return q == e })
		p.w.ended = append(p.w.ended, e)
	}
}

// rename gives a profile another name, or takes the last one back.
func (w *doorModel) rename(source string) {
	if len(w.frees[source]) > 0 && w.r.IntN(2) == 0 {
		w.takeNameBack(source)
		return
	}
	name := pick(w.r, []string{"Work", "Private"})
	w.names[source] = append(w.names[source], name)
	w.note("%s is called %s", source, name)
	w.frees[source] = append(w.frees[source], w.g.NameProfile(source, name))
}

func (w *doorModel) takeNameBack(source string) {
	last := len(w.frees[source]) - 1
	free := w.frees[source][last]
	w.names[source], w.frees[source] = w.names[source][:last], w.frees[source][:last]
	w.note("the name of %s is taken back", source)
	free()
}

func (a *modelAgent) ask(method, params string) {
	a.last++
	if params != "" {
		params = "," + params
	}
	a.w.note("agent %d: %s %s", a.id, method, params)
	_ = a.Write(a.w.t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+
		`{"extensions":{"io.modelcontextprotocol/events":{}}}}%s}}`, a.last, method, params))
}

func (w *doorModel) uri(a *modelAgent) string {
	if len(a.uris) > 0 && w.r.IntN(2) == 0 {
		uri, _, _ := strings.Cut(pick(w.r, a.uris), "{")
		return uri
	}
	const mark = "/.pagewire/profile="
	uri := pick(w.r, []string{app, bank})
	if w.r.IntN(3) == 0 {
		uri += fmt.Sprint("/.pagewire/tab/", 1+w.r.IntN(8))
	}
	return uri + pick(w.r, []string{"/doc", "/doc", "/item/1", "/list?q=a", "/item/2", "/list?q=a&sort=" + mark + "Work",
		"/list?sort=" + mark + "Private", mark + "Work/doc", fmt.Sprint("/only/", 1+w.r.IntN(w.n+1))})
}

// request sends a random request of an agent.
func (w *doorModel) request(a *modelAgent) {
	uri := w.uri(a)
	call := func(name string, args map[string]any) {
		text, _ := json.Marshal(args)
		a.ask("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, text))
	}
	subject := pick(w.r, []string{`{}`, fmt.Sprintf(`{"uri":%q}`, uri), fmt.Sprintf(`{"origin":%q}`, pick(w.r, []string{app, bank})),
		fmt.Sprintf(`{"uriPrefix":%q}`, uri)})
	event := pick(w.r, []string{"page.resource.updated", "page.resource.updated", "page.opened", "page.closed"})
	switch w.r.IntN(16) {
	case 0, 1, 2:
		a.ask("resources/read", fmt.Sprintf(`"uri":%q`, uri))
	case 3:
		call("read_page_resource", map[string]any{"uri": uri})
	case 4:
		call("wait_for_page_update", map[string]any{"uris": []string{uri, w.uri(a)}, "timeout_ms": w.r.IntN(3000)})
	case 5:
		call("list_page_resources", map[string]any{})
	case 6:
		a.ask(pick(w.r, []string{"resources/list", "resources/templates/list", "tools/list", "skills/list"}), "")
	case 7, 8:
		call(pick(w.r, []string{"pay", "search"})+pick(w.r, []string{"", "", fmt.Sprint("_tab", 1+w.r.IntN(8))}), map[string]any{})
	case 9, 10:
		a.ask("subscriptions/listen", fmt.Sprintf(`"notifications":{"resourceSubscriptions":[%q,%q],"resourcesListChanged":true,`+
			`"toolsListChanged":true}`, uri, w.uri(a)))
	case 11:
		a.ask("events/stream", fmt.Sprintf(`"name":%q,"arguments":%s`, event, subject))
	case 12:
		a.ask("events/poll", fmt.Sprintf(`"name":%q,"arguments":%s`, event, subject))
	case 13:
		a.ask("resources/read", fmt.Sprintf(`"uri":%q`, door.FrontURI))
		call("read_page_resource", map[string]any{"uri": door.FrontURI})
	case 14:
		call("page_changes", map[string]any{"uris": []string{uri}})
	case 15:
		if a.last > 0 {
			id := 1 + w.r.IntN(a.last)
			delete(a.listens, id)
			_ = a.Write(w.t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{`+
				`"requestId":%d}}`, id))
		}
	}
}

func (w *doorModel) connect() {
	a := &modelAgent{w: w, given: map[string]bool{}, front: w.r.IntN(2) == 0, listens: map[int][]string{},
		told: map[string]bool{}, results: map[int]bool{}}
	o := AgentOptions{Transport: pick(w.r, []string{"test", TransportRequest}), Front: a.front}
	if w.r.IntN(2) == 0 {
		a.origins = []string{pick(w.r, []string{app, bank})}
		o.Only = append(o.Only, a.origins...)
	} else if w.r.IntN(3) == 0 {
		a.origins, o.Deny = []string{app}, []string{bank}
	}
	if w.r.IntN(3) > 0 {
		a.profiles = []string{pick(w.r, []string{"Work", "Private"})}
		o.Only = append(o.Only, ProfilePrefix+a.profiles[0])
	}
	a.Agent = connect(w.t, w.g, o)
	w.note("agent %d comes with %q %q", a.id, a.origins, a.profiles)
	w.agents = append(w.agents, a)
}

// step makes one random change or request, and returns the page that alone has caused messages; nil if others have too.
func (w *doorModel) step() (by *modelPage) {
	if len(w.agents) < 2 || len(w.agents) < 7 && w.r.IntN(20) == 0 {
		w.connect()
		return nil
	}
	if len(w.pages) < 2 {
		w.open(w.r.IntN(8), pick(w.r, []string{app, bank}), nil)
		return nil
	}
	p, a := pick(w.r, w.pages), pick(w.r, w.agents)
	switch op := w.r.IntN(100); {
	case op < 5 && len(w.pages) < 9:
		w.open(w.r.IntN(8), pick(w.r, []string{app, app, bank}), nil)
	case op < 7:
		w.note("page %d is closed", p.n)
		p.leave(false)
	case op < 9:
		w.note("page %d is reloaded as %d", p.n, w.n+1)
		p.leave(true)
		if p.way == nil && w.r.IntN(3) > 0 {
			w.open(p.tab, p.origin, nil)
		}
	case op < 11 && p.way == nil && !slices.ContainsFunc(w.pages, func(q *modelPage) bool { return q.way == p }):
		w.open(p.tab, p.origin, p)
	case op < 18:
		w.note("page %d has the focus", p.n)
		w.g.Focus(p.Tab)
	case op < 22:
		w.rename(pick(w.r, []string{"s1", "s2"}))
	case op < 24:
		info := p.PageInfo
		info.Title = fmt.Sprintf("[t%d]", p.n)
		if p.way == nil {
			w.note("page %d is in front", p.n)
			w.g.Front(info, true, "")
		}
	case op < 40:
		p.document().k++
		uri := p.origin + pick(w.r, []string{"/doc", "/doc", "/item/{id}", "/list{?q,sort}", fmt.Sprint("/only/", p.n)})
		w.note("page %d touches %s", p.n, uri)
		p.say([]any{"touch", uri, p.document().k})
		if p.way == nil && len(p.unconfirmed) == 0 { // otherwise it may confirm that a URI leads to it now
			return p
		}
	case op < 60:
		w.answer(p)
	case op < 64:
		w.note("time passes")
		time.Sleep(pick(w.r, []time.Duration{time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second,
			3500 * time.Millisecond, 35 * time.Second}))
	case op < 65:
		w.note("agent %d goes", a.id)
		a.Close()
		w.agents = slices.DeleteFunc(w.agents, func(b *modelAgent) bool { return b == a })
	default:
		w.request(a)
	}
	return nil
}

// answer confirms a subscription, or answers a read or a call of a page.
func (w *doorModel) answer(p *modelPage) {
	n, k := p.document().n, p.document().k
	text := fmt.Sprintf("<%d.%d>", n, k)
	if len(p.unconfirmed) > 0 {
		uri := p.unconfirmed[0]
		p.unconfirmed = p.unconfirmed[1:]
		w.note("page %d confirms that it reports %s", p.n, uri)
		p.say([]any{"touch", uri, k})
	} else if len(p.reads) > 0 {
		id := p.reads[0]
		p.reads = p.reads[1:]
		w.note("page %d answers a read with %s", p.n, text)
		p.raw(fmt.Sprintf(`=%d %d [{"uri":%q,"text":%q}]`, id, k, p.origin+"/doc", text))
	} else if len(p.calls) > 0 {
		id := p.calls[0]
		if w.r.IntN(2) == 0 {
			w.note("page %d tells its progress", p.n)
			p.say([]any{"progress", id, fmt.Sprintf(`{"progress":1,"message":"[t%d]"}`, n)})
			return
		}
		p.calls = p.calls[1:]
		w.note("page %d answers a call with %s", p.n, text)
		p.raw(fmt.Sprintf(`=%d %d {"content":[{"type":"text","text":%q}]}`, id, k, text))
	}
}

// settle makes all watched resources change, and fails unless each agent is told of what it listens to and can read, however
// long ago it listened, and whatever it saw then.
func (w *doorModel) settle() {
	quiet := func() {
		for range 6 {
			for _, p := range w.pages {
				for len(p.unconfirmed)+len(p.reads)+len(p.calls) > 0 {
					w.answer(p)
				}
			}
			time.Sleep(7 * time.Second)
			synctest.Wait()
			w.pump()
			for _, a := range w.agents {
				a.check()
			}
		}
	}
	quiet()
	before := map[*modelAgent][][]string{}
	for _, a := range w.agents {
		clear(a.told)
		clear(a.results)
		for _, id := range slices.Sorted(maps.Keys(a.listens)) {
			before[a] = append(before[a], a.listens[id])
		}
	}
	for _, p := range w.pages {
		p.document().k++
		for _, uri := range slices.Sorted(maps.Keys(p.watched)) {
			if p.watched[uri] {
				p.say([]any{"touch", uri, p.document().k})
			}
		}
	}
	quiet()
	for _, a := range w.agents {
		asked := map[int]string{}
		for _, uris := range before[a] {
			for _, uri := range uris {
				a.ask("resources/read", fmt.Sprintf(`"uri":%q`, uri))
				asked[a.last] = uri
			}
		}
		quiet()
		for id, uri := range asked {
			if a.results[id] && uri != door.FrontURI {
				if w.counts["told"]++; !a.told[uri] {
					w.t.Fatalf("%s\nthe agent with %q %q can read %s, listens to it, and is not told of a change", w.last(), a.origins,
						a.profiles, uri)
				}
			}
		}
	}
}

// make test-gate takes 20,000 steps: DOOR_STEPS=20000. DOOR_SEED=1 gives the steps of a run again.
func TestDoorAgainstAModel(t *testing.T) {
	steps := 750
	if given, err := strconv.Atoi(os.Getenv("DOOR_STEPS")); err == nil {
		steps = given
	}
	seed := testkit.Seed(t, "DOOR_SEED")
	synctest.Test(t, func(t *testing.T) {
		w := newDoorModel(t, seed)
		defer w.g.Close()
		w.g.events.Began = time.Time{}
		tooLittle := func() bool {
			return w.counts["of pages"] < steps/10 || w.counts["asked"] < steps/50 || w.counts["told"] < steps/50
		}
		taken := 0
		// A run in which agents come to ask for little by chance goes on: one of 50 asked 22 times in 1,500 steps.
		for ; taken < steps || tooLittle() && taken < 4*steps; taken++ {
			w.began = time.Now()
			by := w.step()
			for range 2 { // what the pages say has effects, too
				synctest.Wait()
				w.pump()
			}
			for _, a := range slices.Clone(w.agents) {
				n := a.check()
				if by != nil && n > 0 && !a.permits(by.owner()) {
					t.Fatalf("%s\nan agent with %q %q gets %d messages by a change of %v: %s", w.last(),
						a.origins, a.profiles, n, by.owner(), a.latest)
				}
				if ended(a.Agent) {
					t.Fatalf("%s\nan agent's session has ended", w.last())
				}
			}
			if taken%50 == 49 {
				w.settle()
			}
		}
		t.Logf("%d steps: %v", taken, w.counts)
		if tooLittle() {
			t.Errorf("the agents have got too little: %v", w.counts)
		}
	})
}
