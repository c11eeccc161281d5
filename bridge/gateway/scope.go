//go:build !js

package gateway

import (
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/weborigin"
)

// A Scope says of which origins a gateway serves the pages, or one agent sees them. Each list has patterns as
// weborigin.Match takes them. The zero Scope is all.
type Scope struct {
	// Allow lists origins besides those of this machine. Empty means all.
	Allow []string
	// Deny lists origins that are not in the scope, whatever the other lists say.
	Deny []string
	// Only lists all origins that can be in the scope. Empty means no bound.
	Only []string
}

// Admits reports whether an origin is in the scope. An opaque one never is.
func (s *Scope) Admits(origin string) bool {
	if origin == "" || origin == "null" {
		return false
	}
	in := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool { return weborigin.Match(pattern, origin) })
	}
	return !in(s.Deny) && (len(s.Only) == 0 || in(s.Only)) &&
		(len(s.Allow) == 0 || in(s.Allow) || weborigin.IsLoopback(origin))
}

// sees returns what reports whether the origin of a URI is in the scope, nil for a scope that is all. What is at no web
// origin is not in it. The function is not safe for concurrent use.
//
// All pages' URIs begin with their own text of the page's origin, so that is what is compared. It is kept from one URI
// to the next, since a list has those of a page one behind the other: without that 10,000 URIs take 8 ms instead of 0.5.
func (s *Scope) sees() func(uri string) bool {
	if len(s.Allow)+len(s.Deny)+len(s.Only) == 0 {
		return nil
	}
	last, admitted := "", false
	return func(uri string) bool {
		rest, ok := strings.CutPrefix(uri, last)
		if last == "" || !ok || rest != "" && rest[0] != '/' {
			last = webOriginOf(uri)
			admitted = s.Admits(last)
		}
		return admitted
	}
}

// webOriginOf is the web origin that a URI, or template, begins with, or "".
func webOriginOf(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	if scheme != "http" && scheme != "https" {
		return ""
	}
	return uri[:len(scheme)+len("://")+strings.IndexAny(rest+"/", "/?#{")]
}

// AllowedOrigins are the patterns of the origins that Options.Allow or a connected agent allows: whose pages may connect
// by themselves, besides those of this machine.
func (g *Gateway) AllowedOrigins() []string {
	g.mu.Lock()
	defer g.mu.Release()
	all := slices.Concat(g.opt.Allow, g.opt.AllowPages)
	for _, a := range g.agents {
		all = append(all, a.scope.Allow...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
