package weborigin

import "testing"

func TestIsPattern(t *testing.T) {
	for pattern, want := range map[string]bool{
		"https://a.example": true, "https://a.example/": true, "http://a.example:8080": true, "https://*.a.example": true,
		"a.example": false, "": false, "https://": false, "https://a.example/x": false, "https://*.*.example": false,
		"https://u@a.example": false, Loopback: false,
		// Another spelling of an origin would match no page: a rule that denies it would deny nothing.
		"https://a.example:443": false, "http://*.a.example:80": false, "https://a.example:80": true, "HTTPS://A.example": true,
		"https://a.example:": false, "https://a.example:08443": false, "https://a.example:99999": false,
		"https://b\u00fccher.example": false, "https://xn--bcher-kva.example": true, "https://a%2eexample": false,
		"https://a.example.": false, "https://*.": false, "ws://a.example": false, "ftp://a.example": false,
		"chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai": true, "tauri://localhost": true, "://a.example": false,
		"http://127.1": false, "http://0x7f.0.0.1": false, "http://127.0.0.01": false, "http://2130706433": false,
		"http://127.0.0.1:8080": true, "http://[::1]:8080": true, "http://[0:0::1]": false, "http://[::ffff:127.0.0.1]": false,
		"http://[::1%25lo]": false, "http://localhost": true, "https://a_b.example": true, "https://a.example?": false,
	} {
		if got := IsPattern(pattern); got != want {
			t.Errorf("IsPattern(%q) = %t", pattern, got)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, origin string
		want            bool
	}{
		{"https://a.example", "https://a.example", true},
		{"https://a.example", "https://a.example:8443", false},
		{"https://*.a.example", "https://b.a.example", true},
		{"https://*.a.example", "https://a.example", false},
		{"https://*.a.example", "http://b.a.example", false},
		{"https://*.a.example", "https://ba.example", false},
		{"https://a.example", "https://a.example.", true},
		{"https://a.example:8443", "https://a.example.:8443", true},
		{"https://*.a.example", "https://b.a.example.", true},
		{"https://a.example", "https://a.example..", false},
		{Loopback, "http://localhost:3000", true},
		{Loopback, "http://app.localhost", true},
		{Loopback, "http://[::1]:80", true},
		{Loopback, "http://127.1.2.3", true},
		{Loopback, "https://127.0.0.1.example", false},
		{Loopback, "ws://127.0.0.1", false},
		{Loopback, "https://app.example", false},
		{Loopback, "null", false},
	} {
		if got := Match(c.pattern, c.origin); got != c.want {
			t.Errorf("Match(%q, %q) = %t", c.pattern, c.origin, got)
		}
	}
}

func TestIsLoopbackHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.255.0.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "app.localhost": false, "0.0.0.0": false, "::": false, "128.0.0.1": false, "[::1]": false,
		"127.0.0.1:80": false, "127.1": false, "shop.example": false,
	} {
		if got := IsLoopbackHost(host); got != want {
			t.Errorf("IsLoopbackHost(%q) = %t", host, got)
		}
	}
}

func TestOf(t *testing.T) {
	for uri, want := range map[string]string{
		"https://a.example/x": "https://a.example", "http://a.example:8080": "http://a.example:8080",
		"https://a.example?q": "https://a.example", "https://a.example#f": "https://a.example",
		"https://a.example{/x}": "https://a.example", "https://{host}/x": "", "https:///x": "", "http://": "", "": "", "null": "",
		"file:///x": "", "pagewire://front": "", "a:https://b.example": "", "HTTPS://a.example/": "",
	} {
		if got := Of(uri); got != want {
			t.Errorf("%q is at %q, want %q", uri, got, want)
		}
	}
}
