//go:build !js

package tools

import (
	"net/url"
	"strconv"
	"strings"
)

// Names gives the tools of pages the names by which agents know them. It is guarded by its owner.
//
// A page's tool keeps its name. Where pages of two origins have one of the same name, who came second has its host
// behind it, for good: a name that an agent has learned never changes its meaning.
type Names struct {
	ours   []string
	given  map[string]string // origin, space, the page's name -> name that agents see
	owners map[string]string // the reverse; us for ours
	count  map[string]int    // origin -> how many names its tools have
}

// us is whose our own tools' names are.
const us = "pagewire"

// NewNames returns one that gives none of ours away.
func NewNames(ours ...string) *Names {
	n := &Names{ours: ours, given: map[string]string{}, owners: map[string]string{}, count: map[string]int{}}
	for _, name := range ours {
		n.owners[name] = us
	}
	return n
}

// Ours reports whether a name is that of one of our own tools.
func (n *Names) Ours(name string) bool { return n.owners[name] == us }

// Learn keeps the name that somebody else has given to a page's tool, unless one of them is taken.
func (n *Names) Learn(origin, tool, name string) {
	if key := origin + " " + tool; n.given[key] == "" && n.owners[name] == "" {
		n.given[key], n.owners[name] = name, key
	}
}

// maxNames is how many tools of an origin get a name. A name is kept for good, and an origin may have new tools all the
// time: without a bound it takes 3 MB a second.
const maxNames = 10_000

// Of gives a page's tool the name by which agents know it, the same whenever it is asked; none if its origin has had
// maxNames.
func (n *Names) Of(origin, tool string) string {
	key := origin + " " + tool
	if name := n.given[key]; name != "" {
		return name
	}
	if n.count[origin] >= maxNames {
		return ""
	}
	n.count[origin]++
	name := Fit(tool, "")
	for i := 1; n.owners[name] != ""; i++ {
		host := origin
		if u, err := url.Parse(origin); err == nil {
			host = u.Host
		}
		suffix := "_" + host
		if n.LookLikeOurs(Fit(tool, suffix)) { // for its host's name
			suffix = "_site"
		}
		if i > 1 {
			suffix += "_" + strconv.Itoa(i)
		}
		name = Fit(tool, suffix)
	}
	n.given[key], n.owners[name] = name, key
	return name
}

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
	suffix = suffix[:min(len(suffix), 48)]
	name = clean(name)
	return name[:min(len(name), 64-len(suffix))] + suffix
}
