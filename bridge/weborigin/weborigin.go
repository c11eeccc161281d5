// Package weborigin compares web origins with a user's patterns and with this machine.
//
// It resolves no name: only localhost, names that end in .localhost, and loopback addresses are
// this machine's.
package weborigin

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
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
	// A host with a dot at its end is the same host.
	origin = strings.TrimSuffix(strings.Replace(origin, ".:", ":", 1), ".")
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

// IsPattern reports whether a text is a valid pattern for Match, other than Loopback: an origin as
// browsers write it, also one of an extension or an app. Any other spelling, as with the usual port,
// matches no page, and would deny none.
func IsPattern(pattern string) bool {
	u, err := url.Parse(strings.ToLower(strings.TrimSuffix(pattern, "/")))
	if err != nil || *u != (url.URL{Scheme: u.Scheme, Host: u.Host}) {
		return false
	}
	host := strings.TrimPrefix(u.Hostname(), "*.")
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if u.Scheme == "" || u.Scheme == "ws" || u.Scheme == "wss" || u.Scheme == "ftp" ||
		usual != "" && u.Port() == usual || strings.HasSuffix(u.Host, ":") ||
		u.Port() != "" && (err != nil || strconv.FormatUint(port, 10) != u.Port()) {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String() == host && !ip.Is4In6() && ip.Zone() == ""
	}
	_, err = strconv.ParseUint(host[strings.LastIndexByte(host, '.')+1:], 0, 64)
	return err != nil && strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" &&
		!strings.HasSuffix(host, ".") && host != ""
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
