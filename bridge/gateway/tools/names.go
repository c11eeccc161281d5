//go:build !js

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

// Names gives the tools of pages the names by which agents know them. It is guarded by its owner.
//
// A page's tool keeps its name. Where pages of two origins have one of the same name, who came second has its host
// behind it: a name that an agent has learned does not change its meaning. That is so for as long as a page has the
// tool, and as a rule for good: Sweep forgets names that no page has had for long.
type Names struct {
	ours   []string
	given  map[pageTool]*given
	owners map[string]pageTool // the reverse; us for ours
	sweeps int
	inUse  int // of given, since the last sweep
	// version counts the names that were given.
	version int
}

// A pageTool is a tool by what its page calls it.
type pageTool struct{ origin, tool string }

// given is the name that agents see.
type given struct {
	name string
	used int // sweeps, when it was asked for last
}

// us is whose our own tools' names are.
const us = "pagewire"

// NewNames returns one that gives none of ours away.
func NewNames(ours ...string) *Names {
	n := &Names{ours: ours, given: map[pageTool]*given{}, owners: map[string]pageTool{}}
	for _, name := range ours {
		n.owners[name] = pageTool{us, name}
	}
	return n
}

// Recall keeps the name that a process before this one is said to have given to a page's tool, unless one of them is
// taken: it must be one that Of can give.
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

// maxTries is how many suffixes of a tool are recalled. The second has a hash: nobody has met a third.
const maxTries = 3

// Given calls f with each name that was asked for since the last Sweep but one, in no order.
func (n *Names) Given(f func(origin, tool, name string)) {
	for key, g := range n.given {
		if g.used >= n.sweeps-1 {
			f(key.origin, key.tool, g.name)
		}
	}
}

// Version is another number whenever a name was given.
func (n *Names) Version() int { return n.version }

// Of gives a page's tool the name by which agents know it, the same whenever it is asked, until Sweep forgets it.
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

// suffix is what is put behind a name that is taken: the host, or, from the second try on, the beginning of that and a
// hash of the tool. Numbers would be tried one after the other: a page can have 1,000 tools whose names begin alike.
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
	hash := sha256.Sum256(fmt.Append(nil, try, " ", key.origin, " ", key.tool))
	return "_" + host[:min(len(host), maxSuffix-10)] + "_" + hex.EncodeToString(hash[:4])
}

// taken reports whether a name cannot be given: it is another tool's, or would be taken for that of a tab.
func (n *Names) taken(name string) bool {
	_, taken := n.owners[name]
	i := strings.LastIndex(name, tabSuffix)
	return taken || i >= 0 && strings.Trim(name[i+len(tabSuffix):], "0123456789") == ""
}

const tabSuffix = "_tab"

// OfTab is the name of a tool in a tab of that number.
func OfTab(name string, tab int) string { return Fit(name, tabSuffix+strconv.Itoa(tab)) }

func (n *Names) give(key pageTool, name string) {
	// Not the text that they are parts of: a page's whole list of tools.
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

// maxIdle is how many names are kept that no page has. Without a bound a page that has new tools all the time takes
// 3 MB a second.
const maxIdle = 10_000

// Sweep says that the names of all tools that pages have were asked for since it was called last. It forgets some of
// the others where these are more than maxIdle: those of the sites and origins that have the most, so that no page can
// have another's forgotten, and of an origin those that were not asked for the longest.
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

const maxSuffix = 48

// Fit makes a name that every client takes: letters, digits, _ and -, 64 at most.
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
	name = clean(name)
	return name[:min(len(name), 64-len(suffix))] + suffix
}
