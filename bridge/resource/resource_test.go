package resource

import (
	"fmt"
	"strings"
	"testing"
)

var at = Rule{Origin: "https://x.test"}

// A template matches only the URIs that it expands to.
func TestTemplates(t *testing.T) {
	for _, c := range []struct {
		template, uri string
		want          string // the pairs, or "" for no match
	}{
		{"https://x.test/i/{id}", "https://x.test/i/1", "[{id 1}]"},
		{"https://x.test/i/{id}", "https://x.test/i/", ""},
		{"https://x.test/i/{id}", "https://x.test/i/1/2", ""},
		{"https://x.test/i/{id}", "https://x.test/i/1?q=2", ""},
		{"https://x.test/i/{id}", "https://x.test/i/%C3%A9%2F", "[{id é/}]"},
		{"https://x.test/i/{id}", "https://x.test/i/a+b", "[{id a+b}]"},
		{"https://x.test/i/{id}", "https://x.test/i/%2", ""},
		{"https://x.test/i/{id}", "https://x.test/i/%gg", ""},
		{"https://x.test/i/{id}", "https://x.test/I/1", ""},
		{"https://x.test/i/{id}", "https://x.test", ""},
		{"https://x.test/i/{a}/x/{b}", "https://x.test/i/1/x/2", "[{a 1} {b 2}]"},
		{"https://x.test/i/{a}-{b}.json", "https://x.test/i/1-2-3.json", "[{a 1} {b 2-3}]"},
		{"https://x.test/i/{a}.json", "https://x.test/i/a.json.json", "[{a a.json}]"},
		{"https://x.test/i/{a}.json", "https://x.test/i/a.jso", ""},
		// %2F is one character
		{"https://x.test/i/{a}2{b}", "https://x.test/i/%2Fx2y", "[{a /x} {b y}]"},
		{"https://x.test/i/{a}20{b}", "https://x.test/i/x%20y20z", "[{a x y} {b z}]"},
		{"https://x.test/i/{a}A.json", "https://x.test/i/%C3%AA.json", ""},
		{"https://x.test/i/{a}9/{b}", "https://x.test/i/%C3%A99/y", "[{a é} {b y}]"},
		{"https://x.test/i/{a}f", "https://x.test/i/%2f", ""},
		{"https://x.test/i/{a}/data", "https://x.test/i/1/data", "[{a 1}]"},
		{"https://x.test/s{?q,lang}", "https://x.test/s", "[]"},
		{"https://x.test/s{?q,lang}", "https://x.test/s?", "[]"},
		{"https://x.test/s{?q,lang}", "https://x.test/s?lang=en", "[{lang en}]"},
		{"https://x.test/s{?q,lang}", "https://x.test/s?lang=en&q=a%20b+c",
			"[{lang en} {q a b c}]"},
		{"https://x.test/s{?q,lang}", "https://x.test/s?q=1&q=2", ""},
		{"https://x.test/s{?q,lang}", "https://x.test/s?x=1", ""},
		{"https://x.test/s{?q,lang}", "https://x.test/s?q=%", ""},
		{"https://x.test/s/{k}{?q}", "https://x.test/s/a?q=", "[{q } {k a}]"},
		{"https://x.test/s{?q}", "https://x.test/s?q=1#f", ""},
		{"https://x.test/{a}/{b}/{c}/{d}", "https://x.test/.pagewire/tab/2/x", ""}, // another tab's
		{"https://x.test/.pagewi{a}/tab/2/x", "https://x.test/.pagewire/tab/2/x", ""},
		{"https://x.test/{a}/{b}", "https://x.test/x/.pagewire", "[{a x} {b .pagewire}]"},
		{"https://x.test/.pagewire/tab/2/{a}{?q}", "https://x.test/.pagewire/tab/2/x?q=1",
			"[{q 1} {a x}]"},
		{"https://x.test/.pagewire/tab/2/{a}", "https://x.test/.pagewire/tab/23/x", ""},
	} {
		parsed, err := parseTemplate(c.template)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		got := ""
		if pairs, ok := parsed.match(c.uri); ok {
			got = fmt.Sprint(pairs)
		}
		if got != c.want {
			t.Errorf("%s on %s: got %q, want %q", c.template, c.uri, got, c.want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("https://x.test/{a}-{b}.json{?q,r}", "https://x.test/1-2.json?q=%41")
	f.Add("https://x.test/{a}", "https://x.test/%")
	f.Add("https://x.test/{a}/{b}", "https://x.test/.pagewire/x")
	f.Fuzz(func(t *testing.T, template, uri string) {
		parsed, err := parseTemplate(template)
		if err != nil {
			return
		}
		if pairs, ok := parsed.match(uri); ok && len(pairs) > len(parsed.parts)+len(parsed.query) {
			t.Errorf("%s on %s: %v", template, uri, pairs)
		}
	})
}

// An exact registration takes precedence over one that takes parameters, that over a template, and
// an earlier template over a later one.
func TestPrecedence(t *testing.T) {
	g := NewRegistry(at, 0, 0)
	for _, r := range []Resource{
		{URI: "https://x.test/a/{first}", Name: "first"},
		{URI: "https://x.test/a/{second}", Name: "second"},
		{URI: "https://x.test/a/1", Name: "exact"},
		{URI: "https://x.test/b{?x}", Name: "template"},
		{URI: "https://x.test/b", Name: "params", Schema: &Schema{}},
		{URI: "https://x.test/b?x=1", Name: "exact query"},
	} {
		if _, err := g.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	for uri, want := range map[string]string{
		"https://x.test/a/1": "exact", "https://x.test/a/2": "first",
		"https://x.test/b?x=1": "exact query", "https://x.test/b?x=2": "params",
		"https://x.test/b": "params",
	} {
		if e := g.Find(uri); e == nil || e.Name != want {
			t.Errorf("%s: got %+v, want %s", uri, e, want)
		}
	}
	g.Remove("https://x.test/a/{first}")
	if e := g.Find("https://x.test/a/2"); e == nil || e.Name != "second" {
		t.Errorf("after removal: %+v", e)
	}
	if g.Remove("https://x.test/a/{first}") != nil {
		t.Error("removed twice")
	}
}

// Entries that stay are listed exactly once while others come and go between the pages.
func TestPagesAreStable(t *testing.T) {
	g := NewRegistry(at, 0, 0)
	uri := func(i int) string { return fmt.Sprintf("https://x.test/%d", i) }
	for i := range 1000 {
		if _, err := g.Add(Resource{URI: uri(i), Name: "n"}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	cursor, pages := "", 0
	for {
		room := 7
		next, err := g.Page(false, cursor, func(e *Entry) bool {
			if room--; room < 0 {
				return false
			}
			seen[e.URI]++
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		g.Remove(uri(2 * pages))
		if _, err := g.Add(Resource{URI: uri(2000 + pages), Name: "n"}); err != nil {
			t.Fatal(err)
		}
		if pages++; next == "" || pages > 500 {
			break
		}
		cursor = next
	}
	if seen[uri(2000)] != 0 {
		t.Error("a list ends where it ended when it was begun, and has what came later")
	}
	for i := 1; i < 1000; i += 2 {
		if seen[uri(i)] != 1 {
			t.Fatalf("%s was listed %d times", uri(i), seen[uri(i)])
		}
	}
}

func TestNumbers(t *testing.T) {
	for s, want := range map[string][2]bool{ // number, integer
		"0": {true, true}, "-0": {true, true}, "12": {true, true}, "01": {false, false},
		"":    {false, false},
		"-":   {false, false},
		"1.5": {true, false}, "1.": {false, false}, ".5": {false, false}, "1e3": {true, false},
		"1e":   {false, false},
		"1E-2": {true, false},
		"0x10": {false, false}, "1_0": {false, false}, "Infinity": {false, false},
		"NaN": {false, false},
		"1 ":  {false, false},
	} {
		if got := [2]bool{isNumber(s, false), isNumber(s, true)}; got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

// No URI of another origin passes as one of the page's.
func TestRule(t *testing.T) {
	for uri, want := range map[string]bool{
		"https://x.test/": true, "https://x.test/a?b=c@d": true, "https://x.test/a@b": true,
		"https://x.test": false, "https://x.test.evil/": false, "https://x.test@evil/": false,
		"https://x.test:443/":          false,
		"https://evil/https://x.test/": false, "http://x.test/": false, "HTTPS://x.test/": false,
		"https://x.test\\@evil/": false,
		"//x.test/":              false, "https:/x.test/": false, "javascript:alert(1)": false,
		"data:text/html,x": false, "": false,
		":":                 false,
		"https://x.test/\n": false, "https://x.test/é": false, "https://x.test/#": false,
		"https://x.test/.pagewire": true, "https://x.test/.pagewire/": false,
		"https://x.test/.pagewire/tab/2/a": false,
		"https://x.test/.pagewire/{a}":     false, "https://x.test/a/.pagewire/": true,
		"https://x.test/?/.pagewire/": true,
	} {
		if err := at.Check(uri); (err == nil) != want {
			t.Errorf("%q: %v", uri, err)
		}
	}
	for _, origin := range []string{"null", ""} {
		if err := (Rule{Origin: origin}).Check("null/"); err == nil {
			t.Errorf("the origin %q admits something", origin)
		}
	}
}

// Under the gateway's path an agent may wait for what a tab offers or shows, and for nothing else.
func TestAwaitsUnderGatewayPath(t *testing.T) {
	g := NewRegistry(Rule{Any: true, Web: true}, 0, 0)
	for path, want := range map[string]bool{
		"/.pagewire/tab/2/a": true, "/.pagewire/shown": true, "/.pagewire/shown/tab/2?from=1": true,
		"/.pagewire/parts/a":       true,
		"/.pagewire/shown?links=1": true, "/.pagewire/shown/a": false, "/.pagewire/parts/": false,
		"/.pagewire/shown/tab/": false,
		"/.pagewire/":           false, "/.pagewire/tab/": false, "/.pagewire/tab/x": false,
		"/.pagewire/show": false, "/.pagewire/part": false,
	} {
		if g.Awaits("https://x.test"+path) != want {
			t.Errorf("an agent may wait for %s: %t", path, !want)
		}
	}
}

func BenchmarkFindTemplate(b *testing.B) {
	g := NewRegistry(at, 0, 0)
	if _, err := g.Add(Resource{URI: "https://x.test/{kind}/{id}{?q}", Name: "n"}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if g.Find("https://x.test/books/123?q=1") == nil {
			b.Fatal("not found")
		}
	}
}

// No entry answers for a URI that is longer than the bound, as no page could say that it has
// changed.
func TestLongURIs(t *testing.T) {
	const most = 40
	g := NewRegistry(Rule{Any: true}, 0, most)
	for _, r := range []Resource{{URI: "https://x.test/i/{id}", Name: "i"},
		{URI: "https://x.test/q", Name: "q",
			Schema: &Schema{}}} {
		if _, err := g.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, prefix := range []string{"https://x.test/i/", "https://x.test/q?a="} {
		for n, want := range map[int]bool{most: true, most + 1: false} {
			uri := prefix + strings.Repeat("x", n-len(prefix))
			if _, _, err := g.Resolve(uri); (err == nil) != want || (g.Find(uri) != nil) != want {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
}
