//go:build !js

package site

import (
	"encoding/json"
	"io/fs"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// repositoryRoot is seen from this package.
const repositoryRoot = "../.."

// Every link of every document leads somewhere: to a file that is there, and to a heading that it has.
func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	s := open(t)
	seen, links := 0, 0
	err := fs.WalkDir(s.root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && (base == "node_modules" || base == "dist" || base == "bin" || base == "testdata" ||
			base != "." && strings.HasPrefix(base, ".")):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(s.root, name)
		if err != nil {
			return err
		}
		p, err := s.render(name, text)
		if err != nil {
			t.Error(err)
		}
		for _, broken := range p.broken {
			t.Error(broken)
		}
		seen++
		links += strings.Count(string(p.html), `href="`)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 10 || links < 20 {
		t.Errorf("%d documents with %d links: the test sees nothing", seen, links)
	}
}

// Headings make ids of their own; what a heading can be called the frame must not be.
func TestIDsOfTheFrameAreItsOwn(t *testing.T) {
	for _, m := range regexp.MustCompile(` id="([^"{]*)"`).FindAllStringSubmatch(pageHTML, -1) {
		if !strings.HasPrefix(m[1], "site-") {
			t.Errorf("the id %s could be a heading's: begin it with site-", m[1])
		}
	}
}

// The index has each page of the manual once, and each begins as the house wants it.
func TestEachPageIsListedOnceAndBeginsWithItsTitle(t *testing.T) {
	s := open(t)
	groups, err := s.Groups()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{index: 1}
	for _, g := range groups {
		for _, p := range g.Pages {
			listed[p.File]++
		}
	}
	pages, err := s.Pages()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pages {
		if n := listed[name]; n != 1 {
			t.Errorf("%s is listed %d times in %s, want once", name, n, index)
		}
		text, err := fs.ReadFile(s.root, name)
		if err != nil {
			t.Error(err)
			continue
		}
		_, headings := parse(text)
		titles := slices.DeleteFunc(slices.Clone(headings), func(h heading) bool { return h.Level != 1 })
		if len(titles) != 1 || headings[0].Level != 1 {
			t.Errorf("%s has %d titles, or does not begin with one", name, len(titles))
		}
	}
}

func open(t *testing.T) *Site {
	t.Helper()
	s, err := New(os.DirFS(repositoryRoot))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var small = fstest.MapFS{
	index: {Data: []byte("# Manual\n\n## First\n\n- [One](one.md): it.\n- [`two`](clients/two.md)\n\n## Empty\n")},
	"demo/docs/one.md": {
		Data: []byte("# One\n\nFor all.\n\n## A `b` & c\n\n[two](clients/two.md#t-w-o) [s](../../SECURITY.md)" +
			" [d](../1-x) [g](../../go.mod) [e](https://e.example/a) [a](#a-b--c)\n\n" +
			"<!-- setup js\nx\n-->\n```js no-run=\"why\"\nconst a = \"<b>\";\n```\n\n" +
			"<img alt=x src=\"../p.png\">\n\n> [!NOTE]\n> Mind.\n\n## Rows\n\n| a | b | c |\n|---|---|---|\n" +
			"| `no … is here, or-so` | it is not there | put it there |\n"),
	},
	"demo/docs/clients/two.md": {
		Data: []byte("# Two\n\n## T w-o\n\n## T w-o\n\n[gone](gone.md) [here](#gone) [far](../one.md#gone)\n"),
	},
	"SECURITY.md":         {Data: []byte("# Security\n")},
	"demo/1-x/index.html": {},
	"demo/p.png":          {Data: []byte("\x89PNG")},
	"go.mod":              {Data: []byte("module secret")},
	".git/config.md":      {Data: []byte("secret")},
}

func get(t *testing.T, s *Site, url string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", url, nil))
	return w
}

func TestAPageIsShownWithItsNeighbours(t *testing.T) {
	s, err := New(small)
	if err != nil {
		t.Fatal(err)
	}
	w := get(t, s, "/docs/one")
	body := w.Body.String()
	for _, want := range []string{
		`<h2 id="a-b--c"><a class="anchor" href="#a-b--c"`, `href="/docs/clients/two#t-w-o"`,
		`href="/docs/repository/SECURITY.md"`, `href="/demo/1-x/"`, `href="` + forge + `blob/main/go.mod"`,
		`href="https://e.example/a"`, `src="/docs/files/demo/p.png"`, `data-language="js"`, `<span class="s2">`,
		`&lt;b&gt;`,
		`<blockquote class="alert"><p><strong>Note.</strong> Mind.`, `<title>One · Pagewire</title>`,
		`<a rel="prev" href="/docs/">`, `<a rel="next" href="/docs/clients/two"><small>Next</small>two</a>`,
		`<a href="/docs/one" aria-current="page">One</a>`, `<h2>First</h2>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, refused := range []string{"setup js", "<h2>Empty</h2>"} {
		if strings.Contains(body, refused) {
			t.Errorf("the page has %s", refused)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

func TestBrokenLinksAreNamed(t *testing.T) {
	s, err := New(small)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.render("demo/docs/clients/two.md", small["demo/docs/clients/two.md"].Data)
	want := []string{"demo/docs/clients/two.md: a link to gone.md, which is not there",
		"demo/docs/clients/two.md has no heading #gone, to which a link leads",
		"demo/docs/one.md has no heading #gone, to which a link leads"}
	if err != nil || !slices.Equal(p.broken, want) {
		t.Errorf("%v, %q, want %q", err, p.broken, want)
	}
	if p.headings[2].ID != "t-w-o-1" {
		t.Errorf("the second heading of a name has the id %s", p.headings[2].ID)
	}
}

func TestOnlyDocumentsAndPicturesAreServed(t *testing.T) {
	s, err := New(small)
	if err != nil {
		t.Fatal(err)
	}
	for url, status := range map[string]int{
		"/docs/": 200, "/docs/clients/two": 200, "/docs/repository/SECURITY.md": 200, "/docs/files/demo/p.png": 200,
		"/docs/one.md": 302, "/docs/none": 404, "/docs/repository/go.mod": 404, "/docs/files/go.mod": 404,
		"/docs/repository/.git/config.md": 404, "/docs/files/../../go.mod": 307, "/docs/..%2f..%2fSECURITY": 404,
		"/docs/repository/none.md": 404,
	} {
		if w := get(t, s, url); w.Code != status || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d, want %d: %s", url, w.Code, status, w.Body)
		}
	}
}

func TestSearchFindsPassages(t *testing.T) {
	s, err := New(small)
	if err != nil {
		t.Fatal(err)
	}
	var passages []passage
	if err := json.Unmarshal(get(t, s, "/docs/search.json").Body.Bytes(), &passages); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(passages, func(p passage) bool { return p.URL == "/docs/one#a-b--c" })
	if at < 0 || passages[at].Page != "One" || !strings.Contains(passages[at].Text, "two s d g e a") ||
		strings.Contains(passages[at].Text, "setup") {
		t.Errorf("%+v", passages)
	}
	at = slices.IndexFunc(passages, func(p passage) bool { return p.Title == "no … is here, or-so" })
	if want := "/docs/one#rows:~:text=is%20here%2C%20or%2Dso"; at < 0 || passages[at].URL != want ||
		passages[at].Text != "it is not there put it there" {
		t.Errorf("%+v, want %s", passages, want)
	}
}
