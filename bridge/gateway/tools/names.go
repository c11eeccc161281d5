package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Names gives the tools of pages the names by which agents know them. Its owner guards it.
//
// A page's tool keeps its name. If pages of two origins have a tool of one name, the later one gets its host as a
// suffix: a name that an agent has learned does not change its meaning. This holds while a page has the tool, and
// usually for good: Sweep forgets only names that no page has had for long.
type Names struct {
	ours   []string
	given  map[pageTool]*given
	owners map[string]pageTool // the reverse; us for ours
	sweeps int
	inUse  int // of given, since the last sweep
	// version counts the names that were given.
	version int
}

// A pageTool is a tool by its page's name for it.
type pageTool struct{ origin, tool string }

// given is the name that agents see.
type given struct {
	name string
	used int // the sweep before which it was last asked for
}

// us is the owner of our own tools' names.
const us = "pagewire"

// NewNames returns a Names that gives none of our names to pages.
func NewNames(ours ...string) *Names {
	n := &Names{ours: ours, given: map[pageTool]*given{}, owners: map[string]pageTool{}}
	for _, name := range ours {
		n.owners[name] = pageTool{us, name}
	}
	return n
}

// Recall restores a name that an earlier process is said to have given to a page's tool. It ignores a name that Of
// could not give, and one that is taken.
func (n *Names) Recall(origin, tool, name string) {
	key := pageTool{origin, tool}
	could := name == Fit(tool, "")
	for i := 1; i <= maxTries && !could; i++ {
		could = name == Fit(tool, n.suffix(key, i))
	}
	switch g := n.given[key]; {
	case !could || n.LookLikeOurs(name):
	case g != nil:
		n.use(g)
	case !n.taken(name):
		n.give(key, name)
	}
}

// maxTries is how many suffixes of a tool are recalled. The second has a hash, so a third does not occur.
const maxTries = 3

// Given calls f with each name that was asked for since the last Sweep but one, in no order.
func (n *Names) Given(f func(origin, tool, name string)) {
	for key, g := range n.given {
		if g.used >= n.sweeps-1 {
			f(key.origin, key.tool, g.name)
		}
	}
}

// Version changes whenever a name is given.
func (n *Names) Version() int { return n.version }

// Of returns the name by which agents know a page's tool. It is the same each time, until Sweep forgets it.
func (n *Names) Of(origin, tool string) string {
	key := pageTool{origin, tool}
	if g := n.given[key]; g != nil {
		n.use(g)
		return g.name
	}
	name := Fit(tool, "")
	for i := 1; n.taken(name); i++ {
		name = Fit(tool, n.suffix(key, i))
	}
	n.give(key, name)
	return name
}

// suffix distinguishes a name that is taken: by the host, or, from the second try on, by the beginning of the host and
// a hash of the tool. Numbers would be tried one after the other: a page can have 1,000 tools whose names begin alike.
func (n *Names) suffix(key pageTool, try int) string {
	host := key.origin
	if u, err := url.Parse(key.origin); err == nil {
		host = u.Host
	}
	if n.LookLikeOurs(Fit(key.tool, "_"+host)) {
		host = "site"
	}
	if try == 1 {
		return "_" + host
	}
	return "_" + host[:min(len(host), maxSuffix-1-hashed)] + hash(fmt.Sprint(try, " ", key.origin, " ", key.tool))
}

// taken reports whether a name cannot be given: another tool has it, or it looks like a tab's name.
func (n *Names) taken(name string) bool {
	_, taken := n.owners[name]
	i := strings.LastIndex(name, tabSuffix)
	return taken || i >= 0 && strings.Trim(name[i+len(tabSuffix):], "0123456789") == ""
}

const tabSuffix = "_tab"

// OfTab is the name of a tool in a tab with a number.
func OfTab(name string, tab int) string { return Fit(name, tabSuffix+strconv.Itoa(tab)) }

func (n *Names) give(key pageTool, name string) {
	// A copy: the name is part of the text of a page's whole list of tools.
	key.tool = strings.Clone(key.tool)
	g := &given{name: strings.Clone(name), used: -1}
	n.given[key], n.owners[g.name] = g, key
	n.version++
	n.use(g)
}

func (n *Names) use(g *given) {
	if g.used != n.sweeps {
		g.used = n.sweeps
		n.inUse++
	}
}

// maxIdle is how many names without a page are kept. Without this bound a page that has new tools all the time takes 3
// MB a second.
const maxIdle = 10_000

// Sweep must follow a round in which Of was called for all tools of pages. Of more than maxIdle other names it forgets
// some. It takes them from the sites and origins with the most, so that no page can have another's names forgotten, and
// there the ones that were not asked for the longest.
func (n *Names) Sweep() {
	if len(n.given)-n.inUse > maxIdle {
		n.forget()
	}
	n.sweeps++
	n.inUse = 0
}

func (n *Names) forget() {
	var idle []pageTool
	for key, g := range n.given {
		if g.used != n.sweeps {
			idle = append(idle, key)
		}
	}
	slices.SortFunc(idle, func(a, b pageTool) int {
		return cmp.Or(cmp.Compare(n.given[b].used, n.given[a].used), strings.Compare(a.tool, b.tool))
	})
	origin := func(key pageTool) string { return key.origin }
	kept := bySite(grouped(idle, origin), origin, func(pageTool) int { return 1 })
	for _, key := range kept[maxIdle/2:] {
		delete(n.owners, n.given[key].name)
		delete(n.given, key)
	}
}

const (
	// maxName is the longest name. Cursor drops a tool in silence if its server's name and its own have more than some 60
	// characters together.
	maxName = 60 - len("pagewire") - 1
	// maxSuffix leaves 19 characters for the page's own name.
	maxSuffix = 32
	// hashed is the length of an underscore and a hash.
	hashed = 9
)

// Fit makes a name that every client accepts: letters, digits, _ and -, 51 at most with the suffix. A longer name ends
// with a hash, so that names that begin alike differ.
func Fit(name, suffix string) string {
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
				return r
			}
			return '_'
		}, s)
	}
	suffix = clean(suffix)
	suffix = suffix[:min(len(suffix), maxSuffix)]
	cleaned := clean(name)
	if most := maxName - len(suffix); len(cleaned) > most {
		cleaned = cleaned[:most-hashed] + hash(name)
	}
	return cleaned + suffix
}

// hash is an underscore and the beginning of a text's hash.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "_" + hex.EncodeToString(sum[:4])
}
