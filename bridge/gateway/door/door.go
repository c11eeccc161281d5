// Package door decides what each agent may use. It is the only place that permits: whoever gives an
// agent something of a page asks a Pass at that moment, and who works for an agent over a time holds
// a Route, which only a Pass makes.
//
// An agent's Scope never changes, but what it permits does: a URI may lead to a page of another
// profile, and a page's profile may get another name. So nothing here remembers an answer about a
// URI or a page, and a caller that waits asks again before it gives.
//
// The package never reads a page, never talks to an agent, and does not decide to which page a URI
// leads. Its types are not safe for concurrent use: the gateway's lock guards them.
package door

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// A Scope describes pages, by origin and profile, and what else an agent may see. Each list has
// patterns as weborigin.Match takes them. The zero Scope has all pages, and nothing else.
type Scope struct {
	// Allow lists origins besides those of this machine. Empty means all.
	Allow []string
	// Deny lists origins that are outside the scope. It takes precedence over the other lists.
	Deny []string
	// Only lists the only origins that can be in the scope, and, with ProfilePrefix, the only profiles,
	// by the user's names. A list without origins allows all origins, and one without profiles all.
	Only []string
	// Front adds the tab in front of the user (FrontURI), and Debugging the tools that pages have for
	// their developers.
	Front, Debugging bool
	// Shown lists origins whose pages the user shows (bridge.Owner.Shown), besides what these offer,
	// and Opened such origins of browsers that Pagewire launched. AllShown is for the user's own
	// commands: it adds what the user shows to anybody.
	Shown, Opened []string
	AllShown      bool
}

// ProfilePrefix begins a profile in Scope.Only.
const ProfilePrefix = "profile="

// FrontURI is the URI of the tab in front of the user. It is no page's.
const FrontURI = "pagewire://front"

// Admits reports whether a scope has an owner's pages. It has none of an opaque origin.
func Admits(s Scope, o bridge.Owner) bool {
	r := s.compile()
	return r.admits(o.Origin) && r.hasProfile(o.Profile) && r.isShown(o)
}

// rules are a Scope whose Only is split.
type rules struct {
	Scope
	origins, profiles []string
}

func (s Scope) compile() rules {
	r := rules{Scope: s}
	for _, one := range s.Only {
		if profile, is := strings.CutPrefix(one, ProfilePrefix); is {
			r.profiles = append(r.profiles, profile)
		} else {
			r.origins = append(r.origins, one)
		}
	}
	return r
}

func (r *rules) hasProfile(name string) bool {
	return len(r.profiles) == 0 || slices.Contains(r.profiles, name)
}

func (r *rules) admits(origin string) bool {
	if origin == "" || origin == "null" {
		return false
	}
	return !matches(r.Deny, origin) && (len(r.origins) == 0 || matches(r.origins, origin)) &&
		(len(r.Allow) == 0 || matches(r.Allow, origin) || weborigin.IsLoopback(origin))
}

func matches(patterns []string, origin string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return weborigin.Match(pattern, origin)
	})
}

// isShown reports whether an owner's pages offer it themselves, or the user has granted it to all
// agents, or has named them.
func (r *rules) isShown(o bridge.Owner) bool {
	return !o.Shown || o.Granted || r.AllShown || matches(r.Shown, o.Origin) ||
		o.Launched && matches(r.Opened, o.Origin)
}

// everything reports whether the scope has all pages.
func (r *rules) everything() bool { return len(r.Allow)+len(r.Deny)+len(r.Only) == 0 }

// A Page is a page behind a Door.
type Page interface {
	comparable
	// Owner is whose the page is now: its origin, and the user's name for its profile.
	Owner() bridge.Owner
}

// A Door leads to pages. Make it with New.
type Door[P Page] struct {
	served rules
	find   func(uri string) (page P, ok bool)
}

// New returns a Door to the pages of a scope. find returns the page to which a URI, or a template in
// the list, leads now.
func New[P Page](served Scope, find func(uri string) (page P, ok bool)) *Door[P] {
	return &Door[P]{served.compile(), find}
}

// Serves reports whether pages of an origin are served to any agent.
func (d *Door[P]) Serves(origin string) bool { return d.served.admits(origin) }

// ServesAll reports whether pages of all origins are served.
func (d *Door[P]) ServesAll() bool { return d.served.everything() }

// A Pass lets an agent through a Door. It is a bridge.Sight.
type Pass[P Page] struct {
	door  *Door[P]
	rules rules
	// all, if it is set, has the passes that must all permit instead.
	all iter.Seq[*Pass[P]]
	// last is the origin that was asked for last, because a list has a page's URIs one after the
	// other: 10,000 URIs take 0.5 ms instead of 8.
	last     string
	admitted bool
}

// Pass returns a pass for a scope.
func (d *Door[P]) Pass(s Scope) *Pass[P] { return &Pass[P]{door: d, rules: s.compile()} }

// Joint returns a pass that permits what all others permit at that moment.
func (d *Door[P]) Joint(all iter.Seq[*Pass[P]]) *Pass[P] { return &Pass[P]{door: d, all: all} }

// String is the same for passes with equal scopes.
func (p *Pass[P]) String() string { return fmt.Sprintf("%#v", p.rules.Scope) }

// Restricts reports whether there may be something that the pass does not permit. Besides the pages
// that is the tab in front, once it is offered, and what the user shows to others.
func (p *Pass[P]) Restricts(front, shown bool) bool {
	return !p.rules.everything() || front && !p.rules.Front || shown && !p.rules.AllShown
}

// Names reports whether the agent's user has named an owner's pages, to show them to this agent.
func (p *Pass[P]) Names(o bridge.Owner) bool {
	o.Shown = true
	return !p.rules.AllShown && p.Permits(o)
}

// NamesAny reports whether there may be owners for which Names is true.
func (p *Pass[P]) NamesAny() bool { return len(p.rules.Shown)+len(p.rules.Opened) > 0 }

// Allowed are the patterns of the origins that the agent's user lets connect.
func (p *Pass[P]) Allowed() []string { return p.rules.Allow }

// SeesDebugging reports whether the agent sees the tools that pages have for their developers.
func (p *Pass[P]) SeesDebugging() bool { return p.rules.Debugging }

func (p *Pass[P]) every(permits func(*Pass[P]) bool) bool {
	for other := range p.all {
		if !permits(other) {
			return false
		}
	}
	return true
}

// Sees reports whether a URI or a template exists for the agent now. One to which no page leads does
// if its origin is in a scope without profiles, since the agent may wait for it.
func (p *Pass[P]) Sees(uri string) bool {
	switch {
	case p.all != nil:
		return p.every(func(other *Pass[P]) bool { return other.Sees(uri) })
	case uri == FrontURI:
		return p.rules.Front
	case taburi.Shown(uri):
		// A template of a page may match it, and does not answer for it.
		if page, ok := p.door.find(uri); ok && page.Owner().Shown {
			return p.Permits(page.Owner())
		}
		return len(p.rules.profiles) == 0 && p.MayWish(uri)
	case p.rules.everything():
		return true
	case !p.admitsURI(uri):
		return false
	case len(p.rules.profiles) == 0:
		return true
	}
	page, ok := p.door.find(uri)
	return ok && p.rules.hasProfile(page.Owner().Profile)
}

// MayWish reports whether the agent may wait for a URI, or for any at an origin: the scope has pages
// of that origin. Whether the page that has the URI is one of them is another question, which has
// other answers later.
func (p *Pass[P]) MayWish(uri string) bool {
	if p.all != nil {
		return p.every(func(other *Pass[P]) bool { return other.MayWish(uri) })
	}
	origin := weborigin.Of(uri)
	later := bridge.Owner{Origin: origin, Shown: taburi.Shown(uri), Launched: true}
	return uri != FrontURI && p.rules.isShown(later) &&
		(p.rules.everything() || p.admitsURI(uri)) && (origin == "" || p.door.Serves(origin))
}

// Permits reports whether the agent may see what is an owner's.
func (p *Pass[P]) Permits(o bridge.Owner) bool {
	if p.all != nil {
		return p.every(func(other *Pass[P]) bool { return other.Permits(o) })
	}
	return p.door.Serves(o.Origin) && p.rules.isShown(o) &&
		(p.rules.everything() || p.admitsURI(o.Origin) && p.rules.hasProfile(o.Profile))
}

// admitsURI compares text, because all URIs of a page begin with the same text of its origin. A URI
// at no web origin is outside.
func (p *Pass[P]) admitsURI(uri string) bool {
	rest, ok := strings.CutPrefix(uri, p.last)
	if p.last == "" || !ok || rest != "" && rest[0] != '/' {
		p.last = weborigin.Of(uri)
		p.admitted = p.rules.admits(p.last)
	}
	return p.admitted
}

// A Route leads an agent to a page. Its holder may use the page for the agent while Holds.
type Route[P Page] struct {
	pass *Pass[P]
	page P
}

// Resolve returns the route to the page that has a URI now, or nil.
func (p *Pass[P]) Resolve(uri string) *Route[P] {
	if page, ok := p.door.find(uri); ok && p.Sees(uri) {
		return &Route[P]{p, page}
	}
	return nil
}

// To returns the route to a page whose tool an agent calls, or nil. debugging means that the tool is
// for the page's developers.
func (p *Pass[P]) To(page P, debugging bool) *Route[P] {
	if debugging && !p.SeesDebugging() || !p.Permits(page.Owner()) {
		return nil
	}
	return &Route[P]{p, page}
}

// Page is the page to which the route leads.
func (r *Route[P]) Page() P { return r.page }

// Holds reports whether the agent may still use the page. If not, nothing of the page may reach it.
func (r *Route[P]) Holds() bool { return r.pass.Permits(r.page.Owner()) }
