// Package door decides what each agent may use. It is the only place that permits: whoever gives an
// agent something of a page asks a Pass at that moment, and who works for an agent over a time
// holds a Route, which only a Pass makes.
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
	// Only lists the only origins that can be in the scope, and, with ProfilePrefix, the only
	// profiles, by the user's names. A list without origins allows all origins, and one without
	// profiles all.
	Only []string
	// Front adds the tab in front of the user (FrontURI), and Debugging the tools that pages have
	// for their developers.
	Front, Debugging bool
	// NoPageTools removes the tools of all pages.
	NoPageTools bool
	// Shown lists origins whose pages the user shows (bridge.Owner.Shown), besides what these
	// offer, and Opened such origins of browsers that Pagewire launched.
	Shown, Opened []string
	// Transport is how the agent connects, one of the constants below.
	Transport string
}

const (
	// TransportStdio is the transport of the agent that started this process.
	TransportStdio = "stdio"
	// TransportHTTP is the transport of a session over Streamable HTTP.
	TransportHTTP = "http"
	// TransportRequest is the transport of an agent that lasts for one request, because the modern
	// era has no sessions over HTTP.
	TransportRequest = "http request"
	// TransportCommand is the transport of the user's own commands, which also get what the user
	// shows to anybody.
	TransportCommand = "command"
)

// A rule hides pages of some kind from agents of some kind. A page must pass all rules.
//
// For example, this rule hides pages of private windows from agents over HTTP, once an Owner has
// Private:
//
//	{
//		concerns: func(s *scope) bool {
//			return s.Transport == TransportHTTP || s.Transport == TransportRequest
//		},
//		permits:  func(_ *scope, o bridge.Owner) bool { return !o.Private },
//	}
type rule struct {
	// concerns reports whether the rule may hide a page from the agents of a scope.
	concerns func(*scope) bool
	// permits reports whether such an agent may use the pages of an owner.
	permits func(*scope, bridge.Owner) bool
	// ofShown means that the rule hides only what pages show. Their URIs tell that, so no page has
	// to be found for other URIs, and a wish can be judged before there is a page.
	ofShown bool
}

var rules = []rule{
	{ // Profiles that the agent's user has not named.
		concerns: func(s *scope) bool { return len(s.profiles) > 0 },
		permits: func(s *scope,
			o bridge.Owner) bool {
			return slices.Contains(s.profiles, o.Profile)
		},
	},
	{ // What a page shows, unless the user has granted it to all agents, or has named its origin.
		concerns: func(s *scope) bool { return s.Transport != TransportCommand },
		permits: func(s *scope, o bridge.Owner) bool {
			return !o.Shown || o.Granted || matches(s.Shown, o.Origin) ||
				o.Launched && matches(s.Opened, o.Origin)
		},
		ofShown: true,
	},
}

// ProfilePrefix begins a profile in Scope.Only.
const ProfilePrefix = "profile="

// FrontURI is the URI of the tab in front of the user. It is no page's.
const FrontURI = "pagewire://front"

// Admits reports whether a scope has an owner's pages. It has none of an opaque origin.
func Admits(s Scope, o bridge.Owner) bool {
	c := s.compile()
	return c.admits(o.Origin) && c.permits(o)
}

// A scope is a Scope whose Only is split, and the rules that concern it.
type scope struct {
	Scope
	origins, profiles []string
	rules             []rule
	asksPages         bool // one of the rules is not ofShown
}

func (s Scope) compile() scope {
	c := scope{Scope: s}
	for _, one := range s.Only {
		if profile, is := strings.CutPrefix(one, ProfilePrefix); is {
			c.profiles = append(c.profiles, profile)
		} else {
			c.origins = append(c.origins, one)
		}
	}
	for _, r := range rules {
		if r.concerns(&c) {
			c.rules = append(c.rules, r)
			c.asksPages = c.asksPages || !r.ofShown
		}
	}
	return c
}

// permits reports whether all rules do.
func (s *scope) permits(o bridge.Owner) bool {
	for _, r := range s.rules {
		if !r.permits(s, o) {
			return false
		}
	}
	return true
}

func (s *scope) admits(origin string) bool {
	if origin == "" || origin == "null" {
		return false
	}
	return !matches(s.Deny, origin) && (len(s.origins) == 0 || matches(s.origins, origin)) &&
		(len(s.Allow) == 0 || matches(s.Allow, origin) || weborigin.IsLoopback(origin))
}

func matches(patterns []string, origin string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return weborigin.Match(pattern, origin)
	})
}

// everything reports whether the scope has pages of all origins and profiles.
func (s *scope) everything() bool { return len(s.Allow)+len(s.Deny)+len(s.Only) == 0 }

// A Page is a page behind a Door.
type Page interface {
	comparable
	// Owner is whose the page is now: its origin, and the user's name for its profile.
	Owner() bridge.Owner
}

// A Door leads to pages. Make it with New.
type Door[P Page] struct {
	served scope
	find   func(uri string) (page P, ok bool)
}

// New returns a Door to the pages of a scope. find returns the page to which a URI, or a template
// in the list, leads now.
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
	scope scope
	// all, if it is set, has the passes that must all permit instead.
	all iter.Seq[*Pass[P]]
	// last is the origin that was asked for last, because a list has a page's URIs one after the
	// other: 10,000 URIs take 0.5 ms instead of 8.
	last     string
	admitted bool
}

// Pass returns a pass for a scope.
func (d *Door[P]) Pass(s Scope) *Pass[P] { return &Pass[P]{door: d, scope: s.compile()} }

// Joint returns a pass that permits what all others permit at that moment: nothing if there are none.
func (d *Door[P]) Joint(all iter.Seq[*Pass[P]]) *Pass[P] { return &Pass[P]{door: d, all: all} }

// String is the same for passes with equal scopes.
func (p *Pass[P]) String() string { return fmt.Sprintf("%#v", p.scope.Scope) }

// Restricts reports whether there may be something that the pass does not permit. Besides the pages
// that is the tab in front, once it is offered, and what the user shows to others.
func (p *Pass[P]) Restricts(front, shown bool) bool {
	return !p.scope.everything() || p.scope.asksPages || front && !p.scope.Front ||
		shown && p.scope.Transport != TransportCommand
}

// Names reports whether the agent's user has named an owner's pages, to show them to this agent.
func (p *Pass[P]) Names(o bridge.Owner) bool {
	o.Shown = true
	return p.scope.Transport != TransportCommand && p.Permits(o)
}

// NamesAny reports whether there may be owners for which Names is true.
func (p *Pass[P]) NamesAny() bool { return len(p.scope.Shown)+len(p.scope.Opened) > 0 }

// Allowed are the patterns of the origins that the agent's user lets connect.
func (p *Pass[P]) Allowed() []string { return p.scope.Allow }

// SeesDebugging reports whether the agent sees the tools that pages have for their developers.
func (p *Pass[P]) SeesDebugging() bool { return p.scope.Debugging }

func (p *Pass[P]) every(permits func(*Pass[P]) bool) (all bool) {
	for other := range p.all {
		if all = permits(other); !all {
			break
		}
	}
	return all
}

// Sees reports whether a URI or a template exists for the agent now. One to which no page leads
// does if its origin is in a scope without profiles, since the agent may wait for it.
//
// Why do an agent's lists go by the origin of a URI alone? A function of the URI needs no page, so
// an open page of a denied origin changes no answer, and an agent cannot find it out. A list of
// 10,000 resources takes 0.5 ms more with three patterns; 8 if the origin is not kept between URIs.
func (p *Pass[P]) Sees(uri string) bool {
	switch {
	case p.all != nil:
		return p.every(func(other *Pass[P]) bool { return other.Sees(uri) })
	case uri == FrontURI:
		return p.scope.Front
	case taburi.Shown(uri):
		// A template of a page may match it, and does not answer for it.
		if page, ok := p.door.find(uri); ok && page.Owner().Shown {
			return p.Permits(page.Owner())
		}
		return len(p.scope.profiles) == 0 && p.MayWish(uri)
	case !p.scope.everything() && !p.admitsURI(uri):
		return false
	case !p.scope.asksPages:
		return true
	}
	page, ok := p.door.find(uri)
	return ok && p.scope.permits(page.Owner()) || !ok && len(p.scope.profiles) == 0
}

// MayWish reports whether the agent may wait for a URI, or for any at an origin: the scope has
// pages of that origin. Whether the page that has the URI is one of them is another question, which
// has other answers later.
func (p *Pass[P]) MayWish(uri string) bool {
	if p.all != nil {
		return p.every(func(other *Pass[P]) bool { return other.MayWish(uri) })
	}
	origin := weborigin.Of(uri)
	later := bridge.Owner{Origin: origin, Shown: taburi.Shown(uri), Launched: true}
	for _, r := range p.scope.rules {
		if r.ofShown && !r.permits(&p.scope, later) {
			return false
		}
	}
	return uri != FrontURI && (p.scope.everything() || p.admitsURI(uri)) &&
		(origin == "" || p.door.Serves(origin))
}

// Permits reports whether the agent may see what is an owner's.
func (p *Pass[P]) Permits(o bridge.Owner) bool {
	if p.all != nil {
		return p.every(func(other *Pass[P]) bool { return other.Permits(o) })
	}
	return p.door.Serves(o.Origin) && p.scope.permits(o) &&
		(p.scope.everything() || p.admitsURI(o.Origin))
}

// admitsURI compares text, because all URIs of a page begin with the same text of its origin. A URI
// at no web origin is outside.
func (p *Pass[P]) admitsURI(uri string) bool {
	rest, ok := strings.CutPrefix(uri, p.last)
	if p.last == "" || !ok || rest != "" && rest[0] != '/' {
		p.last = weborigin.Of(uri)
		p.admitted = p.scope.admits(p.last)
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

// HidesTools says why no page's tool exists for the agent, or "". An agent may pass the remedy on to
// its user.
func (p *Pass[P]) HidesTools() (why string) {
	if p.scope.NoPageTools {
		why = "Tools of pages are switched off for you. Only your user can change that: by " +
			"leaving --no-page-tools of pagewire serve out of your configuration"
	}
	return why
}

// To returns the route to a page whose tool an agent calls, or nil. debugging means that the tool
// is for the page's developers.
func (p *Pass[P]) To(page P, debugging bool) *Route[P] {
	if p.HidesTools() != "" || debugging && !p.SeesDebugging() || !p.Permits(page.Owner()) {
		return nil
	}
	return &Route[P]{p, page}
}

// Page is the page to which the route leads.
func (r *Route[P]) Page() P { return r.page }

// Holds reports whether the agent may still use the page. If not, nothing of the page may reach it.
func (r *Route[P]) Holds() bool { return r.pass.Permits(r.page.Owner()) }
