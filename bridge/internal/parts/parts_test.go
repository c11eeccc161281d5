package parts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

const example = `{
	"https://ci.example": {"jobs": {"path": "/runs/*", "find": [{"css": "#jobs"}, {"css": "table", "under": "Jobs"}],
		"as": "table", "except": [".avatar"]}, "log": {"find": [{"row": "browser", "column": "Status"}]}},
	"https://*.example": {"jobs": {"find": [{"place": "main > p"}]}, "all": {"find": [{"css": "main"}]}}
}`

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "parts.json")
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ origin, url, want string }{
		{"https://ci.example", "https://ci.example/runs/1?tab=2", "all jobs log"},
		{"https://ci.example", "https://ci.example/", "all log"},
		{"https://other.example", "https://other.example/x", "all jobs"},
		{"http://ci.example", "http://ci.example/runs/1", ""},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(rules.Of(c.origin, c.url))), " "); got != c.want {
			t.Errorf("%s has %q, want %q", c.url, got, c.want)
		}
	}
	if r := rules.Of("https://ci.example", "https://ci.example/runs/1")["jobs"]; r.IsByPlace() || r.As != "table" {
		t.Errorf("the origin's own rule comes last: %+v", r)
	}
	if r := rules.Of("https://other.example", "https://other.example/")["jobs"]; !r.IsByPlace() {
		t.Errorf("%+v is not found by its place", r)
	}
}

// Each error names the file, the rule and what is right.
func TestReadErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "parts.json")
	find := `"find": [{"css": "p"}]`
	part := func(name, members string) string {
		return `{"https://ci.example": {"` + name + `": {` + members + `}}}`
	}
	many := make([]string, MaxParts+1)
	for i := range many {
		many[i] = `"p` + strings.Repeat("x", i%50) + string(rune('a'+i/50)) + `": {` + find + `}`
	}
	for text, want := range map[string]string{
		``:                                     `want {"https://ci.example"`,
		`[]`:                                   `want {"https://ci.example"`,
		`{"https://ci.example": {"jobs": []}}`: `want {"https://ci.example"`,
		part("jobs", find) + "x":               "after top-level value",
		`null`:                                 `want {"https://ci.example"`,
		`{"https://ci.example": {}, "https://ci.example": {}}`:                          `duplicate object member name "https://ci.example"`,
		`{"https://ci.example": {"jobs": {` + find + `}, "j\u006fbs": {` + find + `}}}`: `join the two, or rename one`,
		part("jobs", find+`, `+find):                                                    `duplicate object member name "find"`,
		part("jobs", find+`, "Path": "/"`):                                              `unknown object member name "Path"`,
		part("jobs", `"find": [{"css": "p", "css": "q"}]`):                              `duplicate object member name "css"`,
		`{"ci.example": {}}`:                                                            `"ci.example": want an origin`,
		part("jobs", find+`, "pth": "/"`):                                               `unknown object member name "pth"`,
		part("a/b", find):                                                               `the part "a/b" of https://ci.example: its name`,
		part("", find):                                                                  `the part "" of https://ci.example: its name`,
		part("jobs", ``):                                                                `the part "jobs" of https://ci.example: find is empty`,
		part("jobs", find+`, "path": "runs"`):                                           `path "runs": want`,
		part("jobs", find+`, "path": "*/runs"`):                                         `path "*/runs": want`,
		part("jobs", find+`, "as": "json"`):                                             `as "json": want text, table or form`,
		part("jobs", find+`, "except": [""]`):                                           "except has an empty selector",
		part("jobs", `"find": [{}]`):                                                    "find 1: want css, row or place",
		part("jobs", `"find": [{"under": "x"}]`):                                        "find 1: want css, row or place",
		part("jobs", `"find": [{"css": "p"}, {"css": "p", "column": "x"}]`):             `find 2: column "x" needs the row`,
		part("jobs", `"find": [{"css": "p", "place": "p"}]`):                            "find 1: place stands alone",
		`{"https://ci.example": {` + strings.Join(many, ",") + `}}`:                     "has 101 parts",
		part("jobs", `"find": [{"css": "`+strings.Repeat("x", MaxFile)+`"}]`):           "shorten it",
		part("jobs", `"find": [{"css": "p", "position": 1}]`):                           `unknown object member name "position"`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(file)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		path, at string
		want     bool
	}{
		{"", "/x", true}, {"/*", "/x?y", true}, {"/*", "/x/y", false}, {"/", "/", true}, {"/", "/x", false}, {"/runs/*", "/runs/", true},
		{"/runs/*", "/run", false}, {"/*/jobs", "/a/b/jobs", false}, {"/*/jobs", "/a/jobs", true},
		{"/runs/*", "/runs/1/settings/secrets", false}, {"/runs/*", "/runs/1/", false}, {"/runs/*", "/runs/1?x=/y", true},
		{"/runs/*/jobs", "/runs/1?x/jobs", false}, {"/runs/*?*", "/runs/1/2?x", false}, {"/runs/*?a=*", "/runs/1?a=/x", true},
		{"/*/jobs", "/jobs", false}, {"/a*a", "/a", false},
		{"/a*b*c", "/a1c2b3c", true}, {"/a*b*c", "/a1c", false}, {"/*?*tab=2*", "/runs?tab=2&x", true}, {"/a.c", "/abc", false},
		{"/a**c", "/ac", true}, {"/[", "/[", true},
	} {
		if got := (Rule{Path: c.path}).isAt(c.at); got != c.want {
			t.Errorf("%s at %s: %v", c.path, c.at, got)
		}
	}
	// Of has the query, or not.
	for path, want := range map[string]int{"/runs": 1, "/runs?tab=2": 1, "/*?*=2": 1, "/*?*=3": 0, "/runs?": 0, "/runs?tab=3": 0, "/ru": 0} {
		rules := Rules{"https://ci.example": {"a": {Path: path}}}
		if got := rules.Of("https://ci.example", "https://ci.example/runs?tab=2#x"); len(got) != want {
			t.Errorf("%s has %v", path, got)
		}
	}
}

// A part is added to what there is. Where that fails the file stays as it was.
func TestAdd(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	file, link := filepath.Join(dir, "parts.json"), filepath.Join(dir, "link.json")
	rule := Rule{Find: []Anchor{{CSS: "main > p"}, {Place: "p"}}, As: "text"}
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := Add(t.Context(), file, "https://ci.example", "first", rule); err != nil || !strings.Contains(read(), `"css": "main > p"`) {
		t.Fatalf("a new file: %v", err)
	}
	if err := os.WriteFile(file, []byte(example), 0o640); err != nil {
		t.Fatal(err)
	}
	before, err := Read(file)
	if err == nil {
		err = os.Symlink("parts.json", link)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, origin := range []string{"https://ci.example", "https://new.example"} {
		if err := Add(t.Context(), link, origin, "new", rule); err != nil {
			t.Fatal(err)
		}
		if before[origin] == nil {
			before[origin] = map[string]Rule{}
		}
		before[origin]["new"] = rule
		if got, err := Read(file); err != nil || !reflect.DeepEqual(got, before) {
			t.Errorf("it has %+v, %v; want %+v", got, err, before)
		}
	}
	text := read()
	for name, origin := range map[string]string{"new": "https://new.example", "a/b": "https://new.example", "x": "new.example"} {
		if err := Add(t.Context(), file, origin, name, rule); err == nil || !strings.Contains(err.Error(), file) || read() != text {
			t.Errorf("%s of %s: %v, and the file is %s", name, origin, err, read())
		}
	}
	for _, broken := range []string{"{", "null", `{"https://new.example": {}, "https://new.example": {}}`} {
		if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Add(t.Context(), file, "https://new.example", "y", rule); err == nil || read() != broken {
			t.Errorf("a broken file: %v, %s", err, read())
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left %v, %v", entries, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
}

// A link to a file that is not there, as on a disk that is not mounted, stays.
func TestAddThroughLinkToNothing(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	for name, to := range map[string]string{"near": "missing.json", "far": filepath.Join(dir, "missing", "parts.json"),
		"chain": "near", "round": "round"} {
		link := filepath.Join(dir, name)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		err := Add(t.Context(), link, "https://ci.example", "jobs", Rule{Find: []Anchor{{CSS: "p"}}})
		if info, lost := os.Lstat(link); err == nil || lost != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: %v, and it is %v, %v", name, err, info, lost)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
		t.Errorf("left %v, %v", entries, err)
	}
}

// Chrome keeps addresses that Go cannot parse. Only rules for all pages of the site hold there.
func TestAddressThatIsNone(t *testing.T) {
	rules := Rules{"https://ci.example": {"root": {Path: "/"}, "names": {Path: "/*/*"}, "all": {}}}
	for _, address := range []string{"https://ci.example/private/%zz", "https://ci.example/private/%", "%",
		"https://ci.example:port/", "https://ci.example/\x7f"} {
		if got := rules.Of("https://ci.example", address); len(got) != 1 || got["all"].Path != "" {
			t.Errorf("%q has %v", address, got)
		}
	}
}

// Those who add at once lose nothing of each other's.
func TestAddAtOnce(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "parts.json")
	var all sync.WaitGroup
	for i := range 20 {
		file := filepath.Join([]string{dir, link}[i%2], "parts.json")
		all.Go(func() {
			rule := Rule{Find: []Anchor{{CSS: "main"}}}
			if err := Add(t.Context(), file, "https://ci.example", fmt.Sprint("part", i), rule); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if rules, err := Read(file); err != nil || len(rules["https://ci.example"]) != 20 {
		t.Errorf("%d of 20 parts are there: %v", len(rules["https://ci.example"]), err)
	}
}

// A person's lines stay as they are written, in their order.
func TestAddKeepsLines(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "parts.json")
	const first = "{\r\n    \"https://z.example\": {\r\n        \"price\": { \"find\": [{ \"css\": \"a\" }] }"
	for _, c := range [][3]string{
		{first + "\r\n    }\r\n}\r\n", "https://z.example", first + ",\r\n        \"jobs\": {\"find\": [{\"css\": \"main\"}]}\r\n    }\r\n}\r\n"},
		{first + "\r\n    }\r\n}\r\n", "https://a.example", first + "\r\n    },\r\n    \"https://a.example\": {\r\n        \"jobs\": {\"find\": [{\"css\": \"main\"}]}\r\n    }\r\n}\r\n"},
		{`{"https://a.example": null, "https://b.example": {}}`, "https://a.example",
			"{\"https://a.example\": {\n  \"jobs\": {\"find\": [{\"css\": \"main\"}]}\n}, \"https://b.example\": {}}"},
		{"{}", "https://a.example", "{\n  \"https://a.example\": {\n    \"jobs\": {\"find\": [{\"css\": \"main\"}]}\n  }\n}"},
	} {
		if err := os.WriteFile(file, []byte(c[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Add(t.Context(), file, c[1], "jobs", Rule{Find: []Anchor{{CSS: "main"}}})
		if text, _ := os.ReadFile(file); err != nil || string(text) != c[2] {
			t.Errorf("%v, %q, want %q", err, text, c[2])
		}
	}
}
