// Package weborigin compares web origins with a user's patterns and with this machine.
//
// It resolves no name: only localhost, names that end in .localhost, and loopback addresses are
// this machine's.
package weborigin

import (
	"net"
	"net/url"
	"strings"
)

// Loopback is the pattern for each origin for which IsLoopback is true.
const Loopback = "loopback"

// Of is the web origin at the beginning of a URI or a template, or "".
func Of(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	host := strings.IndexAny(rest+"/", "/?#{")
	if scheme != "http" && scheme != "https" || host == 0 {
		return ""
	}
	return uri[:len(scheme)+len("://")+host]
}

// Match reports whether an origin fits a pattern. A pattern is an origin, an origin with "*."
// before its host, which fits all hosts below that host, or Loopback.
func Match(pattern, origin string) bool {
	pattern = strings.TrimSuffix(strings.ToLower(pattern), "/")
	if pattern == Loopback {
		return IsLoopback(origin)
	}
	scheme, host, wild := strings.Cut(pattern, "://*.")
	if !wild {
		return pattern == origin
	}
	rest, ok := strings.CutPrefix(origin, scheme+"://")
	return ok && strings.HasSuffix(rest, "."+host)
}

// IsPattern reports whether a text is a valid pattern for Match, other than Loopback.
func IsPattern(pattern string) bool {
	u, err := url.Parse(strings.TrimSuffix(pattern, "/"))
	return err == nil && u.Scheme != "" && u.Host != "" &&
		!strings.Contains(strings.TrimPrefix(u.Host, "*."), "*") &&
		*u == (url.URL{Scheme: u.Scheme, Host: u.Host})
}

// IsLoopback reports whether an origin is http or https at localhost, *.localhost, 127.0.0.0/8 or
// ::1, at any port.
func IsLoopback(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return IsLoopbackHost(u.Hostname()) || strings.HasSuffix(u.Hostname(), ".localhost")
}

// IsLoopbackHost reports whether a host is localhost, or an address in 127.0.0.0/8 or ::1. Programs
// other than browsers may resolve a name below localhost to another machine.
func IsLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
