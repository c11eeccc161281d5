//go:build !js

package serve

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway"
)

// GuardOptions say what a Guard admits besides this machine itself.
type GuardOptions struct {
	// Hosts are further names in the Host header, without port. Whoever listens off loopback names there what it is called.
	Hosts []string
	// Origins are further origins in the Origin header, such as "https://inspector.example" or "chrome-extension://ID".
	Origins []string
}

// Guard wraps a handler so that only requests meant for this machine's own services reach it. A page that a person visits
// can make the browser send requests here, and by DNS rebinding read the answers; what it cannot do is choose the Host
// header, which then names its own host, or the Origin header. So Host must be 127.0.0.0/8, ::1 or localhost, at any port,
// or one of Hosts; and Origin, where there is one, must be at this machine too, be the request's own, or be one of Origins.
// All else is answered with 403 and a JSON-RPC error that says what to do.
func Guard(next http.Handler, o GuardOptions) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.admitsHost(r.Host) {
			refuse(w, http.StatusForbidden, nil, codeInvalidRequest, "The host "+strconv.Quote(r.Host)+" is not served here: use localhost, or allow the name", nil)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !o.admitsOrigin(origin, r.Host) {
			refuse(w, http.StatusForbidden, nil, codeInvalidRequest, "Pages at "+strconv.Quote(origin)+" are not served here: allow the origin if they should be", nil)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (o GuardOptions) admitsHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if ip := net.ParseIP(name); name == "localhost" || ip != nil && ip.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(o.Hosts, func(admitted string) bool { return strings.EqualFold(admitted, name) })
}

func (o GuardOptions) admitsOrigin(origin, host string) bool {
	if gateway.IsLoopback(origin) {
		return true
	}
	if u, err := url.Parse(origin); err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host) {
		return true
	}
	return slices.ContainsFunc(o.Origins, func(admitted string) bool {
		return strings.EqualFold(strings.TrimSuffix(admitted, "/"), origin)
	})
}
