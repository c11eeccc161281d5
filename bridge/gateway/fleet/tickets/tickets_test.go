//go:build !js

package tickets

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets/issuertest"
)

const (
	app      = "https://app.example"
	audience = "https://live.example"
	login    = "https://login.example"
)

func newIssuer(t *testing.T, name string) *issuertest.Issuer {
	t.Helper()
	i, err := issuertest.New(name, audience)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func keysFile(t *testing.T, i *issuertest.Issuer) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(name, i.Keys(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func newVerifier(t *testing.T, issuers ...Issuer) *Verifier {
	t.Helper()
	v, err := New(Options{Audience: audience, Issuers: issuers})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sign(t *testing.T, i *issuertest.Issuer, subject string, claims map[string]any) string {
	t.Helper()
	text, err := i.Sign(i.Claims(subject, claims))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func raw(header, claims, signature string) string {
	e := base64.RawURLEncoding.EncodeToString
	return e([]byte(header)) + "." + e([]byte(claims)) + "." + e([]byte(signature))
}

// A ticket says whose the page is, and a token whose the agent is: of one tenant they are the same.
func TestOneUser(t *testing.T) {
	pages, agents := newIssuer(t, login), newIssuer(t, "https://oauth.example")
	v := newVerifier(t,
		Issuer{Issuer: login, Tenant: "shop", JWKS: keysFile(t, pages), For: []string{ForPages}},
		Issuer{Issuer: agents.Name, Tenant: "shop", JWKS: keysFile(t, agents), For: []string{ForAgents}})
	page, err := v.Ticket(t.Context(), pages.Ticket("alice", app), app)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := v.Token(t.Context(), agents.Token("alice", "pages:read pages:act"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := v.Token(t.Context(), agents.Token("bob", "pages:read"))
	if err != nil {
		t.Fatal(err)
	}
	if page.User != agent.User || page.User == other.User || len(page.User) != 43 ||
		strings.Join(agent.Scopes, " ") != "pages:read pages:act" || page.Until.Before(time.Now()) {
		t.Errorf("%+v\n%+v\n%+v", page, agent, other)
	}
	if UserOf("a", "bc") == UserOf("ab", "c") || UserOf("a", "b\x00c") == UserOf("a", "b") {
		t.Error("two users are one")
	}
	if list := v.AgentIssuers(); len(list) != 1 || list[0] != agents.Name {
		t.Errorf("agents have their tokens of %v", list)
	}
}

func TestTicketsThatAreRefused(t *testing.T) {
	ours, theirs := newIssuer(t, login), newIssuer(t, login) // the same name, another key
	foreign := newIssuer(t, "https://elsewhere.example")
	file := keysFile(t, ours)
	v := newVerifier(t, Issuer{Issuer: login, JWKS: file, Origins: []string{app, "https://*.shop.example"}},
		Issuer{Issuer: "https://agents.example", JWKS: file, For: []string{ForAgents}})
	with := func(claims map[string]any) string {
		if _, ok := claims["origin"]; !ok {
			claims["origin"] = app
		}
		return sign(t, ours, "alice", claims)
	}
	good := ours.Ticket("alice", app)
	parts := strings.Split(good, ".")
	mac := hmac.New(sha256.New, ours.Keys()) // what is public is no secret
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`))
	mac.Write([]byte(header + "." + parts[1]))
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	for name, c := range map[string]struct{ text, reason string }{
		"good":                 {good, ""},
		"expired":              {with(map[string]any{"exp": time.Now().Add(-time.Hour)}), "expired"},
		"endless":              {with(map[string]any{"exp": nil}), "expired"},
		"for too long":         {with(map[string]any{"exp": time.Now().Add(2 * time.Hour)}), "life"},
		"of the future":        {with(map[string]any{"nbf": time.Now().Add(time.Hour)}), "future"},
		"issued in the future": {with(map[string]any{"iat": time.Now().Add(time.Hour)}), "future"},
		"for another":          {with(map[string]any{"aud": "https://other.example"}), "audience"},
		"for nobody":           {with(map[string]any{"aud": nil}), "audience"},
		"of nobody":            {with(map[string]any{"sub": nil}), "subject"},
		"of another origin":    {with(map[string]any{"origin": "https://evil.example"}), "origin"},
		"of no origin":         {with(map[string]any{"origin": 7}), "no ticket"},
		"an access token":      {ours.Token("alice", "pages:read"), "no ticket"},
		"another's key":        {theirs.Ticket("alice", app), "signature"},
		"a foreign issuer":     {foreign.Ticket("alice", app), "issuer"},
		"an agents' issuer":    {with(map[string]any{"iss": "https://agents.example"}), "issuer"},
		"no issuer":            {with(map[string]any{"iss": nil}), "issuer"},
		"alg none":             {none + "." + parts[1] + ".", "algorithm"},
		"alg none, signed":     {none + "." + parts[1] + "." + parts[2], "algorithm"},
		"the public key as a secret": {header + "." + parts[1] + "." +
			base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), "algorithm"},
		"changed": {parts[0] + "." + strings.Split(ours.Ticket("bob", app), ".")[1] + "." + parts[2],
			"signature"},
		"too long":       {with(map[string]any{"x": strings.Repeat("x", 9000)}), "size"},
		"nothing":        {"", "malformed"},
		"garbage":        {"a.b.c", "malformed"},
		"no claims":      {raw(`{"alg":"ES256"}`, `[]`, "x"), "malformed"},
		"JSON, not text": {`{"payload":"` + parts[1] + `","signatures":[]}`, "malformed"},
	} {
		_, err := v.Ticket(t.Context(), c.text, app)
		if (err == nil) != (c.reason == "") || err != nil && ReasonOf(err) != c.reason {
			t.Errorf("%s: %v (%v), want %q", name, err, ReasonOf(err), c.reason)
		}
	}
	if _, err := v.Ticket(t.Context(), ours.Ticket("alice", "https://www.shop.example"),
		"https://www.shop.example"); err != nil {
		t.Errorf("a pattern's origin: %v", err)
	}
	if _, err := v.Ticket(t.Context(), ours.Ticket("alice", "https://evil.example"),
		"https://evil.example"); ReasonOf(err) != "origin" {
		t.Errorf("an origin that the issuer has not: %v", err)
	}
}

// What has an origin, of whatever form, is a ticket, also where it has scopes.
func TestTicketAsAToken(t *testing.T) {
	ours := newIssuer(t, login)
	v := newVerifier(t, Issuer{Issuer: login, JWKS: keysFile(t, ours)})
	for _, origin := range []any{app, []string{app}, 7, true, map[string]any{}} {
		ticket := sign(t, ours, "alice", map[string]any{"origin": origin, "scope": "pages:read pages:act"})
		if _, err := v.Token(t.Context(), ticket); ReasonOf(err) != "no token" {
			t.Errorf("for %v: %v", origin, err)
		}
	}
}

// Keys at a URL: those that were replaced are fetched anew, not more often than they may be, and those that cannot be
// had at the start are had later.
func TestKeysAtAURL(t *testing.T) {
	var current atomic.Pointer[issuertest.Issuer]
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if i := current.Load(); i != nil {
			i.ServeHTTP(w, r)
			return
		}
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	// Keys that are old are asked for beside what they answer meanwhile: that looks at the clock, too.
	began := time.Now()
	var passed atomic.Int64
	wait := func(d time.Duration) { passed.Add(int64(d)) }
	v, err := New(Options{Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: server.URL}},
		now: func() time.Time { return began.Add(time.Duration(passed.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	check := func(i *issuertest.Issuer, want string) {
		t.Helper()
		_, err := v.Ticket(t.Context(), i.Ticket("alice", app), app)
		if (err == nil) != (want == "") || err != nil && ReasonOf(err) != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	first, second := newIssuer(t, login), newIssuer(t, login)
	check(first, "keys")
	current.Store(first)
	check(first, "keys") // it was asked just now
	wait(retryAfter)
	check(first, "")
	check(second, "signature")
	current.Store(second)
	for range 10 {
		check(second, "signature")
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the issuer was asked %d times", n)
	}
	wait(retryAfter)
	check(second, "")
	check(first, "signature")
	// Those that cannot be looked for again are good for a day.
	current.Store(nil)
	for _, c := range []struct {
		after time.Duration
		there bool
	}{{goodFor - time.Minute, true}, {2 * time.Minute, false}} {
		wait(c.after)
		if _, err := v.issuers[login].keys.get(t.Context(), ""); (err == nil) != c.there {
			t.Errorf("the keys of a day ago: %v", err)
		}
	}
}

// Scopes are in the claim scope, or, as some issuers have it, in scp, as a text or a list.
func TestScopes(t *testing.T) {
	ours := newIssuer(t, login)
	v := newVerifier(t, Issuer{Issuer: login, JWKS: keysFile(t, ours)})
	for name, claims := range map[string]map[string]any{
		"scope": {"scope": "pages:read pages:act"}, "a text": {"scp": "pages:read pages:act"},
		"a list": {"scp": []any{"pages:read", 7, "pages:act"}},
	} {
		claim, err := v.Token(t.Context(), sign(t, ours, "alice", claims))
		if err != nil || strings.Join(claim.Scopes, " ") != "pages:read pages:act" {
			t.Errorf("%s: %v, %v", name, claim.Scopes, err)
		}
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	file := keysFile(t, newIssuer(t, login))
	empty := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(empty, []byte(`{"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"no audience": {Issuers: []Issuer{{Issuer: login, JWKS: file}}},
		"no name":     {Audience: audience, Issuers: []Issuer{{JWKS: file}}},
		"no keys":     {Audience: audience, Issuers: []Issuer{{Issuer: login}}},
		"twice": {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: file},
			{Issuer: login, JWKS: file}}},
		"none":         {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: file, Algorithms: []string{"None"}}}},
		"no such file": {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: "/nowhere/keys.json"}}},
		"empty":        {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: empty}}},
		"an open line": {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: "http://login.example/keys"}}},
		// Its user "c" would be that of the tenant "a" whose subject is "b\x00c".
		"a zero byte":    {Audience: audience, Issuers: []Issuer{{Issuer: login, Tenant: "a\x00b", JWKS: file}}},
		"another scheme": {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: "ftp://login.example/keys"}}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
