package parts

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		``:                                       `want {"https://ci.example"`,
		`[]`:                                     `want {"https://ci.example"`,
		`{"https://ci.example": {"jobs": []}}`:   `want {"https://ci.example"`,
		part("jobs", find) + "x":                 "there is more after its JSON value",
		`{"ci.example": {}}`:                     `"ci.example": want an origin`,
		part("jobs", find+`, "pth": "/"`):        `unknown field "pth"`,
		part("a/b", find):                        `the part "a/b" of https://ci.example: its name`,
		part("", find):                           `the part "" of https://ci.example: its name`,
		part("jobs", ``):                         `the part "jobs" of https://ci.example: find is empty`,
		part("jobs", find+`, "path": "runs"`):    `path "runs": want`,
		part("jobs", find+`, "as": "json"`):      `as "json": want text, table or form`,
		part("jobs", find+`, "except": [""]`):    "except has an empty selector",
		part("jobs", `"find": [{}]`):             "find 1: want css, row or place",
		part("jobs", `"find": [{"under": "x"}]`): "find 1: want css, row or place",
		part("jobs", `"find": [{"css": "p"}, {"css": "p", "column": "x"}]`):   `find 2: column "x" needs the row`,
		part("jobs", `"find": [{"css": "p", "place": "p"}]`):                  "find 1: place stands alone",
		`{"https://ci.example": {` + strings.Join(many, ",") + `}}`:           "has 101 parts",
		part("jobs", `"find": [{"css": "`+strings.Repeat("x", MaxFile)+`"}]`): "shorten it",
		part("jobs", `"find": [{"css": "p", "position": 1}]`):                 `unknown field "position"`,
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
		{"", "/x", true}, {"*", "/x?y", true}, {"/", "/", true}, {"/", "/x", false}, {"/runs/*", "/runs/", true},
		{"/runs/*", "/run", false}, {"/*/jobs", "/a/b/jobs", true}, {"/*/jobs", "/jobs", false}, {"/a*a", "/a", false},
		{"/a*b*c", "/a1c2b3c", true}, {"/a*b*c", "/a1c", false}, {"*tab=2*", "/runs?tab=2&x", true}, {"/a.c", "/abc", false},
		{"/a**c", "/ac", true}, {"/[", "/[", true},
	} {
		if got := (Rule{Path: c.path}).isAt(c.at); got != c.want {
			t.Errorf("%s at %s: %v", c.path, c.at, got)
		}
	}
}
