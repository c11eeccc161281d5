package gateway

import (
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/weborigin"
)

// A Scope is the set of origins whose pages a gateway serves or an agent sees. Each list has patterns as
// weborigin.Match takes them. The zero Scope has all origins.
type Scope struct {
	// Allow lists origins besides those of this machine. Empty means all.
	Allow []string
	// Deny lists origins that are outside the scope. It takes precedence over the other lists.
	Deny []string
	// Only lists the only origins that can be in the scope, and, with ProfilePrefix, the only profiles, by the user's
	// names. A list without origins allows all origins, and one without profiles all profiles.
	Only []string
}

// ProfilePrefix begins a profile in Scope.Only.
const ProfilePrefix = "profile="

// profilePath is between origin and profile in the URI that a Scope sees for a page's tool. No page has such a URI.
const profilePath = bridge.GatewayPath + ProfilePrefix

// only splits Only.
func (s *Scope) only() (origins, profiles []string) {
	for _, one := range s.Only {
		if profile, is := strings.CutPrefix(one, ProfilePrefix); is {
			profiles = append(profiles, profile)
		} else {
			origins = append(origins, one)
		}
	}
	return origins, profiles
}

// Admits reports whether an origin is in the scope. An opaque origin never is.
func (s *Scope) Admits(origin string) bool {
	if origin == "" || origin == "null" {
		return false
	}
	in := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool { return weborigin.Match(pattern, origin) })
	}
	only, _ := s.only()
	return !in(s.Deny) && (len(only) == 0 || in(only)) &&
		(len(s.Allow) == 0 || in(s.Allow) || weborigin.IsLoopback(origin))
}

// sees returns a function that reports whether a URI's origin and the profile of its page are in the scope; nil if all
// are. A URI at no web origin is outside. profileOf gives the profile. The function is not safe for concurrent use.
//
// It compares text, because all URIs of a page begin with the same text of its origin. It keeps the last origin,
// because a list has a page's URIs one after the other: 10,000 URIs take 0.5 ms instead of 8.
func (s *Scope) sees(profileOf func(uri string) string) func(uri string) bool {
	if len(s.Allow)+len(s.Deny)+len(s.Only) == 0 {
		return nil
	}
	_, profiles := s.only()
	last, admitted := "", false
	return func(uri string) bool {
		rest, ok := strings.CutPrefix(uri, last)
		if last == "" || !ok || rest != "" && rest[0] != '/' {
			last = webOriginOf(uri)
			admitted = s.Admits(last)
		}
		if !admitted || len(profiles) == 0 {
			return admitted
		}
		_, profile, known := strings.Cut(uri, profilePath)
		if !known {
			profile = profileOf(uri)
		}
		return slices.Contains(profiles, profile)
	}
}

// webOriginOf is the web origin at the beginning of a URI or template, or "".
func webOriginOf(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	if scheme != "http" && scheme != "https" {
		return ""
	}
	return uri[:len(scheme)+len("://")+strings.IndexAny(rest+"/", "/?#{")]
}

// AllowedOrigins are the origin patterns in Options.Allow, Options.AllowPages and the Allow of connected agents. Pages
// of these origins may connect by themselves, as pages of this machine may.
func (g *Gateway) AllowedOrigins() []string {
	defer g.lock()()
	all := slices.Concat(g.opt.Allow, g.opt.AllowPages)
	for _, a := range g.agents {
		all = append(all, a.scope.Allow...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
