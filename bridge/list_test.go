package bridge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A lister is an agent that follows a list, and the Host of its engine.
type lister struct {
	t      testing.TB
	engine *Engine
	answer []byte
}

func newLister(t testing.TB, o Options) *lister {
	l := &lister{t: t}
	o.Rule, o.Tools = Rule{Origin: "https://x.test"}, true
	l.engine = New(o, l)
	l.must(l.engine.Open(0, 1))
	l.must(l.engine.Receive(0, 1, []byte(
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)))
	return l
}

func (l *lister) Send(_ PortID, m Message)  { l.answer = m.AppendTo(nil) }
func (l *lister) Read(CallID, Request)      {}
func (l *lister) CallTool(CallID, ToolCall) {}
func (l *lister) End(CallID)                {}
func (l *lister) Watched(_ string, _ bool)  {}
func (l *lister) add(uri string, bytes int) { l.must(l.engine.Register(0, described(uri, bytes))) }
func (l *lister) must(err error)            { l.t.Helper(); fatal(l.t, err) }
func described(uri string, bytes int) Resource {
	return Resource{URI: uri, Name: "n", Description: strings.Repeat("d", bytes), Size: -1}
}

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A listed is one page of a list.
type listed struct {
	names []string // in order
	bytes int      // of the entries, with the commas between them
	next  string
	code  int // of the error
}

// page asks for one page of the list of "resources", "resourceTemplates" or "tools".
func (l *lister) page(what, cursor string) (p listed) {
	l.t.Helper()
	method := map[string]string{"resources": "resources/list",
		"resourceTemplates": "resources/templates/list",
		"tools":             "tools/list"}[what]
	text, _ := json.Marshal(map[string]string{"cursor": cursor})
	l.answer = nil
	_ = l.engine.Receive(0, 1,
		fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, text))
	var m struct {
		Result map[string]json.RawMessage
		Error  struct{ Code int }
	}
	fatal(l.t, json.Unmarshal(l.answer, &m))
	p.code = m.Error.Code
	if m.Result == nil {
		return p
	}
	if next := m.Result["nextCursor"]; next != nil {
		fatal(l.t, json.Unmarshal(next, &p.next))
	}
	var entries []struct{ URI, URITemplate, Name string }
	fatal(l.t, json.Unmarshal(m.Result[what], &entries))
	p.bytes = len(m.Result[what]) - len("[]")
	for _, e := range entries {
		p.names = append(p.names,
			map[string]string{"resources": e.URI, "resourceTemplates": e.URITemplate,
				"tools": e.Name}[what])
	}
	return p
}

// A list of any size has at most the 64 pages that the TypeScript client follows. A page has at
// most 1 MiB, or the part of a larger list that maxPages requires. Each resource is listed once.
func TestAListIsFewPages(t *testing.T) {
	const large = 255 << 10
	for name, list := range map[string]struct{ many, bytes, large int }{
		"many":                {many: 50_000},
		"large":               {large: 150},
		"many and large":      {many: 20_000, large: 150},
		"as many as a page's": {many: 9_990, bytes: 300, large: 10},
		"16 MiB":              {many: 10_000, bytes: 1600},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLister(t, Options{Limits: Limits{Resources: -1}})
			n := list.many + list.large
			for i := range n {
				bytes := list.bytes
				if list.large > 0 && i%(n/list.large) == 0 {
					bytes = large
				}
				l.add(number(i), bytes)
			}
			most := max(1<<20, l.engine.registry.Bytes()/maxPages)
			pages, next := 0, 0
			for cursor, more := "", true; more; more = cursor != "" {
				p := l.page("resources", cursor)
				for _, uri := range p.names {
					if uri != number(next) {
						t.Fatalf("page %d lists %s, not %s", pages, uri, number(next))
					}
					next++
				}
				if p.bytes > most {
					t.Fatalf("page %d has %d bytes; %d are enough", pages, p.bytes, most)
				}
				pages++
				cursor = p.next
			}
			if pages > 64 || next != n {
				t.Errorf("%d pages list %d of %d", pages, next, n)
			}
			t.Logf("%d resources of %d KiB: %d pages", n, l.engine.registry.Bytes()>>10, pages)
		})
	}
}

func number(i int) string { return fmt.Sprintf("https://x.test/%06d", i) }

// FuzzList follows a list while the host changes it by data. A resource that stays is listed
// exactly once, and none more often than it was registered. Each page is within its bounds, and
// only the last may be empty. Any text is accepted as a cursor, or refused with -32602.
func FuzzList(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, cursor := range []string{"", "r", "r1", "r0", "r01", "rA", "r-1", "r+1", "r1z141z3",
		"rzzzzzzzzzzzzz", "t1",
		"n", "nb",
		"\x00", "r1\n", "ü"} {
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data, cursor)
	}
	f.Fuzz(func(t *testing.T, data []byte, cursor string) {
		l := newLister(t, Options{PageSize: 5, PageBytes: 300})
		followed := newFollowed(l)
		for len(data) > 1 && !followed.over {
			followed.step(data[0], data[1])
			data = data[2:]
		}
		followed.followToEnd()
		for _, what := range []string{"resources", "resourceTemplates", "tools"} {
			if p := l.page(what, cursor); p.code != 0 && p.code != -32602 {
				t.Fatalf("%s from %q: error %d", what, cursor, p.code)
			}
		}
	})
}

// A followed is a list of resources that is followed while it changes.
type followed struct {
	*lister
	constant map[string]bool // there since the first page
	seen     map[string]int
	added    map[string]int
	sizes    map[string]int
	cursor   string
	over     bool
}

func newFollowed(l *lister) *followed {
	f := &followed{lister: l, constant: map[string]bool{}, seen: map[string]int{},
		added: map[string]int{},
		sizes: map[string]int{}}
	for i := range byte(20) {
		f.put(i, i*7)
		f.constant[key(i)] = true
	}
	return f
}

func key(n byte) string { return fmt.Sprintf("https://x.test/%02d", n%40) }

func (f *followed) put(n, bytes byte) {
	if f.engine.Register(0, described(key(n), int(bytes))) == nil {
		f.added[key(n)]++
		f.sizes[key(n)] = int(bytes)
	}
}

// step registers or withdraws a resource, or follows the list by a page.
func (f *followed) step(what, n byte) {
	switch what % 4 {
	case 0:
		f.put(n, what)
	case 1:
		if f.engine.Unregister(0, key(n)) {
			delete(f.constant, key(n))
		}
	default:
		f.follow()
	}
}

func (f *followed) follow() {
	p := f.page("resources", f.cursor)
	if p.code != 0 || p.next == f.cursor && p.next != "" || len(p.names) == 0 && p.next != "" {
		f.t.Fatalf("the page behind %q: %+v", f.cursor, p)
	}
	if len(p.names) > 5 || len(p.names) > 1 && p.bytes > 300 {
		f.t.Fatalf("a page of %d resources and %d bytes", len(p.names), p.bytes)
	}
	for _, uri := range p.names {
		if f.seen[uri]++; f.seen[uri] > f.added[uri] {
			f.t.Fatalf("%s was registered %d times, and listed %d times", uri, f.added[uri],
				f.seen[uri])
		}
	}
	f.cursor, f.over = p.next, p.next == ""
}

// followToEnd follows the list to its followToEnd.
func (f *followed) followToEnd() {
	for !f.over {
		f.follow()
	}
	for uri := range f.constant {
		if f.seen[uri] != 1 {
			f.t.Fatalf("%s was there all the time, and listed %d times", uri, f.seen[uri])
		}
	}
}
