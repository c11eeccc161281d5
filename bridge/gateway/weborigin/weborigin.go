// Package weborigin compares web origins with a user's patterns and with this machine.
//
// It resolves no name: a host is this machine's if its name says so.
package weborigin

import (
	"net"
	"net/url"
	"strings"
)

// Loopback stands, in a list of origins, for localhost, 127.0.0.0/8 and ::1 at every port.
const Loopback = "loopback"

// Match reports whether an origin fits a pattern: an origin, one with "*." before the host for all hosts below it, or
// Loopback.
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

// IsPattern reports whether a pattern, which is not Loopback, is one that Match can fit an origin to.
func IsPattern(pattern string) bool {
	u, err := url.Parse(strings.TrimSuffix(pattern, "/"))
	return err == nil && u.Scheme != "" && u.Host != "" && !strings.Contains(strings.TrimPrefix(u.Host, "*."), "*") &&
		*u == (url.URL{Scheme: u.Scheme, Host: u.Host})
}

// IsLoopback reports whether an origin is this machine's: localhost, 127.0.0.0/8 or ::1, at any port.
func IsLoopback(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	name := u.Hostname()
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}
