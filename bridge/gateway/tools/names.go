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

	"github.com/pagewire/pagewire/bridge/internal/quota"
)

// Names gives the tools of pages their names for agents. Its owner guards it.
//
// A page's tool keeps its name. If pages of two origins have tools of the same name, the later one
// gets its host as a suffix, so that a name that an agent has learned does not change its meaning.
// This holds while a page has the tool, and usually for good: Sweep forgets only names that no page
// has used for long.
type Names struct {
	ours   []string
	given  map[pageTool]*given
	owners map[string]pageTool // the reverse; the origin of ours is us
	sweeps int
	inUse  int // the names that were asked for since the last sweep
	// version counts the names that were given.
	version int
}

// A pageTool is a tool by its page's origin and its name there.
type pageTool struct{ origin, tool string }

// given is the name that agents see.
type given struct {
	name string
	used int // the number of sweeps before the last request for it
}

// us stands for the origin of our own tools.
const us = "pagewire"

// NewNames returns a Names that never gives a page one of the names ours, which may be titles, too.
func NewNames(ours ...string) *Names {
	n := &Names{ours: ours, given: map[pageTool]*given{}, owners: map[string]pageTool{}}
	for _, name := range ours {
		n.owners[name] = pageTool{us, name}
	}
	return n
}

// Recall restores a name that an earlier process is said to have given to a page's tool. It ignores
// a name that is taken or that Of could not give.
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

// maxTries is the number of suffixes that Recall accepts for a tool. The second has a hash, so a
// third does not occur.
const maxTries = 3

// Given calls f, in no order, with each name that was asked for since the last Sweep but one.
func (n *Names) Given(f func(origin, tool, name string)) {
	for key, g := range n.given {
		if g.used >= n.sweeps-1 {
			f(key.origin, key.tool, g.name)
		}
	}
}

// Version changes whenever a name is given.
func (n *Names) Version() int { return n.version }

// Of returns the name of a page's tool for agents. It is the same each time, until Sweep forgets
// it.
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

// suffix returns the suffix for a name that is taken: the host, or, from the second try on, the
// beginning of the host and a hash of the tool. Numbers would need many tries: a page can have
// 1,000 tools whose names begin alike.
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
	return "_" + host[:min(len(host), maxSuffix-1-hashed)] + hash(
		fmt.Sprint(try, " ", key.origin, " ", key.tool))
}

// taken reports whether a name cannot be given, because another tool has it or it ends like a name
// of OfTab.
func (n *Names) taken(name string) bool {
	_, taken := n.owners[name]
	i := strings.LastIndex(name, tabSuffix)
	return taken || i >= 0 && strings.Trim(name[i+len(tabSuffix):], "0123456789") == ""
}

const tabSuffix = "_tab"

// OfTab returns the name of a tool in the tab with a number.
func OfTab(name string, tab int) string { return Fit(name, tabSuffix+strconv.Itoa(tab)) }

func (n *Names) give(key pageTool, name string) {
	// Copies, since the names would keep the text of the page's whole list of tools alive.
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

// maxIdle bounds the names without a page. Without it, a page that keeps registering new tools
// would take 3 MB a second.
const maxIdle = 10_000

// Sweep forgets names without a page. Call it after a round of Of for all tools of pages. If there
// are more than maxIdle other names, it keeps half of maxIdle. It forgets names of the sites and
// origins with the most, so that no page can push out another's names. Among these it forgets the
// names that were not asked for the longest.
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
		return cmp.Or(cmp.Compare(n.given[b].used, n.given[a].used),
			strings.Compare(a.tool, b.tool))
	})
	origin := func(key pageTool) string { return key.origin }
	kept := quota.BySite(idle, origin, func(pageTool) int { return 1 })
	for _, key := range kept[maxIdle/2:] {
		delete(n.owners, n.given[key].name)
		delete(n.given, key)
	}
}

const (
	// maxName bounds a name. Cursor drops a tool in silence if the names of its server and itself
	// have more than about 60 characters together.
	maxName = 60 - len("pagewire") - 1
	// maxSuffix leaves 19 characters for the page's own name.
	maxSuffix = 32
	// hashed is the length of a result of hash.
	hashed = 9
)

// Fit makes a name that every client accepts: letters, digits, _ and -, at most 51 with the suffix.
// A longer name is cut and gets a hash, so that names that begin alike differ.
func Fit(name, suffix string) string {
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' ||
				r == '-' {
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

// hash returns an underscore and 8 hexadecimal digits of a text's SHA-256.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "_" + hex.EncodeToString(sum[:4])
}
