// Package parts reads the user's rules for parts of pages: which part of which page agents may have
// as a resource of its own. The file is JSON, and has the rules of an origin by the parts' names:
//
//	{"https://ci.example": {"jobs": {
//	  "path": "/runs/*",
//	  "find": [{"css": "#jobs"}, {"css": "table", "under": "Jobs"}],
//	  "as": "table",
//	  "except": [".avatar"]
//	}}}
//
// Add writes a part that the user has picked into the file. The package never looks at a page.
package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/pagewire/pagewire/bridge/internal/jsonc"
	"github.com/pagewire/pagewire/bridge/internal/userdir"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Rules are the rules of a file by origin, or pattern of origins, and by the name of the part.
type Rules map[string]map[string]Rule

// A Rule says where a part is, and what is read of it.
type Rule struct {
	// Path is that of the pages that have the part, with their query or without. A * stands for any
	// characters of one name in the path, or of the query. Default: all pages of the origin.
	Path string `json:"path,omitempty"`
	// Find are ways to find the part, the best first.
	Find []Anchor `json:"find"`
	// As is text, table or form. Default text.
	As string `json:"as,omitempty"`
	// Except are CSS selectors of what is left out.
	Except []string `json:"except,omitempty"`
}

// An Anchor is one way to find a part (js/shown/anchor.ts).
type Anchor struct {
	CSS    string `json:"css,omitempty"`
	Under  string `json:"under,omitempty"`
	Row    string `json:"row,omitempty"`
	Column string `json:"column,omitempty"`
	Place  string `json:"place,omitempty"`
}

const (
	// MaxFile bounds a file, in bytes: an agent's process gives its rules to the daemon in one
	// line, where a < takes six.
	MaxFile = 24 << 10
	// MaxParts bounds the parts of one origin: each is a resource of each of its tabs.
	MaxParts = 100
)

// Read reads a file. Its errors name the file, the rule and the remedy.
func Read(file string) (Rules, error) {
	rules, _, err := read(file)
	return rules, err
}

func read(file string) (rules Rules, text []byte, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("the file of parts cannot be read: %w", err)
	}
	defer f.Close()
	if text, err = io.ReadAll(io.LimitReader(f, MaxFile+1)); err != nil {
		return nil, nil, fmt.Errorf("the file of parts %s cannot be read: %w", file, err)
	}
	if rules, err = Parse(text); err != nil {
		return nil, nil, fmt.Errorf("the file of parts %s: %w", file, err)
	}
	return rules, text, nil
}

// Parse reads the text of a file.
func Parse(data []byte) (rules Rules, err error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("it has more than %d bytes: shorten it", MaxFile)
	}
	err = json.Unmarshal(data, &rules, json.RejectUnknownMembers(true))
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName): // one of the two would be lost
		return nil, fmt.Errorf("%w: join the two, or rename one", err)
	case err == nil && rules == nil:
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, fmt.Errorf(
			`%w: want {"https://ci.example": {"jobs": {"find": [{"css": "#jobs"}]}}}`, err)
	}
	for _, origin := range slices.Sorted(maps.Keys(rules)) {
		named := rules[origin]
		if !weborigin.IsPattern(origin) {
			return nil, fmt.Errorf(
				"%q: want an origin such as https://example.com, or https://*.example.com", origin)
		}
		if len(named) > MaxParts {
			return nil, fmt.Errorf("%s has %d parts: remove some, the limit is %d", origin,
				len(named), MaxParts)
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if err := check(name, named[name]); err != nil {
				return nil, fmt.Errorf("the part %q of %s: %w", name, origin, err)
			}
		}
	}
	return rules, nil
}

// IsName reports whether a part may have a name: it is the end of a URI.
var IsName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`).MatchString

func check(name string, r Rule) error {
	switch {
	case !IsName(name):
		return errors.New(
			"its name must be 1 to 64 letters, digits, - and _, and begin with a letter or a digit")
	case r.Path != "" && !strings.HasPrefix(r.Path, "/"):
		return fmt.Errorf(`path %q: want one such as "/runs/*"`, r.Path)
	case r.As != "" && r.As != "text" && r.As != "table" && r.As != "form":
		return fmt.Errorf("as %q: want text, table or form", r.As)
	case slices.Contains(r.Except, ""):
		return errors.New("except has an empty selector: remove it")
	case len(r.Find) == 0:
		return errors.New(`find is empty: want a way to find the part, such as [{"css": "#jobs"}]`)
	}
	for i, a := range r.Find {
		switch {
		case a.Place != "" && a != (Anchor{Place: a.Place}):
			return fmt.Errorf(
				"find %d: place stands alone: make the other members an anchor of their own", i+1)
		case a.CSS == "" && a.Row == "" && a.Place == "":
			return fmt.Errorf("find %d: want css, row or place", i+1)
		case a.Column != "" && a.Row == "":
			return fmt.Errorf("find %d: column %q needs the row in which the cell is: add row", i+1,
				a.Column)
		}
	}
	return nil
}

// Of returns the rules for a page, by the names of its parts. If several patterns have a part of
// one name, the page's own origin comes first, and then the pattern that is longest.
func (r Rules) Of(origin, address string) map[string]Rule {
	patterns := slices.SortedFunc(maps.Keys(r), func(a, b string) int { return len(a) - len(b) })
	found := map[string]Rule{}
	for _, pattern := range patterns {
		if pattern == origin || !weborigin.Match(pattern, origin) {
			continue
		}
		maps.Copy(found, r[pattern])
	}
	maps.Copy(found, r[origin])
	at := "" // of no path
	if u, err := url.Parse(address); err == nil {
		at = u.RequestURI()
	}
	maps.DeleteFunc(found, func(_ string, r Rule) bool { return !r.isAt(at) })
	return found
}

func (r Rule) isAt(address string) bool {
	path, query, _ := strings.Cut(address, "?")
	pattern, queries, asks := strings.Cut(r.Path, "?")
	names, patterns := strings.Split(path, "/"), strings.Split(pattern, "/")
	return r.Path == "" || slices.EqualFunc(patterns, names, match) &&
		(!asks || match(queries, query))
}

// match reports whether a text fits a pattern, where a * stands for any characters.
func match(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	switch {
	case len(parts) == 1:
		return text == pattern
	case len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) ||
		!strings.HasSuffix(text, last):
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(text, part)
		if !ok {
			return false
		}
		text = after
	}
	return true
}

// IsByPlace reports whether only the part's place is known, where another thing may come to stand.
func (r Rule) IsByPlace() bool {
	return !slices.ContainsFunc(r.Find, func(a Anchor) bool { return a.Place == "" })
}

// Add adds a part to a file, or makes the file. All else in it stays, byte for byte. Nothing is
// written where that fails, or where the origin has a part of that name. Others who add to the file
// meanwhile wait for each other.
func Add(ctx context.Context, file, origin, name string, r Rule) error {
	target, err := targetOf(file)
	if err != nil {
		return err
	}
	dir, err := userdir.Open(target) // a lock of this file's own
	if err != nil {
		return err
	}
	defer dir.Close()
	lock, err := dir.Lock(ctx, "parts")
	if err != nil {
		return fmt.Errorf("the part %q cannot be added to %s: %w", name, file, err)
	}
	defer lock.Remove()
	rules, text, err := read(file)
	if errors.Is(err, os.ErrNotExist) {
		text = []byte("{}\n")
	} else if err != nil {
		return err
	}
	if _, ok := rules[origin][name]; ok {
		return fmt.Errorf("the file of parts %s has the part %q of %s already: choose another name",
			file, name, origin)
	}
	if text, err = insert(text, origin, name, r); err == nil {
		_, err = Parse(text)
	}
	if err != nil {
		return fmt.Errorf("the part %q cannot be added to %s: %w", name, file, err)
	}
	return replace(target, text)
}

// insert adds a part to the text of a file, in a line of its own after the other parts of its
// origin.
func insert(text []byte, origin, name string, r Rule) ([]byte, error) {
	d, err := jsonc.Parse(text)
	if err != nil {
		return nil, err
	}
	at, err := jsonc.Find(&d.Root, origin)
	if err != nil {
		return nil, err
	}
	value, err := json.Marshal(r, jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
	if err != nil {
		return nil, err
	}
	rule, err := hujson.Parse(value)
	if err != nil {
		return nil, err
	}
	if at < 0 {
		d.Add(&d.Root, "", origin, hujson.Value{Value: &hujson.Object{}})
	}
	heads, values, _ := jsonc.Items(&d.Root)
	if at < 0 {
		at = len(values) - 1
	}
	if values[at].Value.Kind() != '{' { // it is null
		values[at].Value = &hujson.Object{}
	}
	d.Add(values[at], jsonc.IndentOf(heads[at], ""), name, rule)
	return d.Text(), nil
}

// targetOf returns the path of a file without links.
func targetOf(file string) (string, error) {
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		if _, err := os.Lstat(file); err == nil {
			return "", fmt.Errorf(
				"the file of parts %s is a link to a file that is not there: make the file, or remove the link",
				file)
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err != nil {
			return "", fmt.Errorf("the file of parts %s cannot be made: %w", file, err)
		}
		target = filepath.Join(dir, filepath.Base(file))
	}
	return filepath.Abs(target)
}

// replace writes a file as a whole, or not at all.
func replace(file string, data []byte) error {
	mode := os.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	staged, err := userdir.Stage(file, data, mode)
	defer os.Remove(staged) // it is gone if all went well
	if err != nil {
		return err
	}
	return os.Rename(staged, file)
}
