package tickets

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
)

const (
	app      = "https://app.example"
	audience = "https://live.example"
	login    = "https://login.example"
)

func newIssuer(t testing.TB, name string) *issuertest.Issuer {
	t.Helper()
	i, err := issuertest.New(name, audience)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func keysFile(t testing.TB, i *issuertest.Issuer) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(name, i.Keys(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func newVerifier(t testing.TB, issuers ...Issuer) *Verifier {
	t.Helper()
	v, err := New(Options{Audience: audience, Issuers: issuers})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sign(t testing.TB, i *issuertest.Issuer, subject string, claims map[string]any) string {
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

// A ticket and a token of one tenant and subject identify the same user.
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
	mac := hmac.New(sha256.New, ours.Keys()) // a public key must not work as a secret
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

// A token with an origin of any type is a ticket, even if it has scopes.
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

// Keys at a URL that were replaced are fetched again, within the limits. Keys that cannot be fetched at the start are
// fetched later.
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
	// The goroutine that fetches keys while old ones are in use reads the clock, too: the time passed is atomic.
	began := time.Now()
	var passed atomic.Int64
	wait := func(d time.Duration) { passed.Add(int64(d)) }
	log := testkit.LogOf(t, "the verifier")
	v, err := New(Options{Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: server.URL}},
		Log: slog.New(slog.NewTextHandler(log, nil)),
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
	for range 100 {
		check(first, "keys")
	}
	if n := log.Count("level="); n != 1 { // one line for each request to the issuer
		t.Errorf("the log has %d lines:\n%s", n, log)
	}
	if missing, suffice := v.Keys(); missing != 1 || suffice {
		t.Errorf("without keys of the issuer there are no keys of %d, and they suffice: %t", missing, suffice)
	}
	current.Store(first)
	check(first, "keys") // the last fetch was just now
	wait(retryAfter)
	testkit.Eventually(t, "a request for keys has them fetched", func() bool {
		missing, suffice := v.Keys()
		return missing == 0 && suffice
	})
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
	// Keys that cannot be fetched again are good for a day.
	current.Store(nil)
	for _, c := range []struct {
		after time.Duration
		there bool
	}{{goodFor - time.Minute, true}, {2 * time.Minute, false}} {
		wait(c.after)
		if _, err := v.issuers[login].keys.get(t.Context(), false); (err == nil) != c.there {
			t.Errorf("the keys of a day ago: %v", err)
		}
	}
}

// signedAs returns a token of a user with any header.
func signedAs(t *testing.T, header, subject string, sign func(text []byte) ([]byte, error)) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"iss": login, "aud": audience, "sub": subject,
		"exp": time.Now().Add(time.Minute).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	e := base64.RawURLEncoding.EncodeToString
	text := e([]byte(header)) + "." + e(claims)
	signature, err := sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + e(signature)
}

func byEC(key *ecdsa.PrivateKey) func([]byte) ([]byte, error) {
	return func(text []byte) ([]byte, error) {
		sum := sha256.Sum256(text)
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			return nil, err
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), nil
	}
}

// keySet returns a key set as an issuer publishes it. keys are pairs of a key and its further members.
func keySet(t *testing.T, keys ...any) []byte {
	t.Helper()
	set := jwk.NewSet()
	for i := 0; i < len(keys); i += 2 {
		key, err := jwk.Import(keys[i])
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range keys[i+1].(map[string]string) {
			if err := key.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := set.AddKey(key); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A token is verified by the algorithm of its header, which the configuration lists, and not by the key's algorithm. A
// token that insists on an unknown extension is refused.
func TestAlgorithms(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("a secret that the set of keys has by mistake")
	name := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(name, keySet(t, &ec.PublicKey, map[string]string{"kid": "ec"},
		&rsaKey.PublicKey, map[string]string{"kid": "rsa"},
		&rsaKey.PublicKey, map[string]string{"kid": "rs256", "alg": "RS256"},
		&ec.PublicKey, map[string]string{"kid": "enc", "use": "enc"},
		secret, map[string]string{"kid": "oct", "alg": "HS256"}), 0o600); err != nil {
		t.Fatal(err)
	}
	v := newVerifier(t, Issuer{Issuer: login, JWKS: name, Algorithms: []string{"ES256", "PS256"}})
	mac := func(text []byte) ([]byte, error) {
		h := hmac.New(sha256.New, secret)
		h.Write(text)
		return h.Sum(nil), nil
	}
	pkcs := func(text []byte) ([]byte, error) {
		sum := sha256.Sum256(text)
		return rsa.SignPKCS1v15(nil, rsaKey, crypto.SHA256, sum[:])
	}
	pss := func(text []byte) ([]byte, error) {
		sum := sha256.Sum256(text)
		return rsa.SignPSS(rand.Reader, rsaKey, crypto.SHA256, sum[:],
			&rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	}
	for name, c := range map[string]struct {
		header string
		sign   func([]byte) ([]byte, error)
		reason string
	}{
		"ES256":                   {`{"alg":"ES256","kid":"ec"}`, byEC(ec), ""},
		"PS256":                   {`{"alg":"PS256","kid":"rsa"}`, pss, ""},
		"HMAC that says ES256":    {`{"alg":"ES256","kid":"oct"}`, mac, "signature"},
		"RS256 that says PS256":   {`{"alg":"PS256","kid":"rs256"}`, pkcs, "signature"},
		"PS256 by a key of RS256": {`{"alg":"PS256","kid":"rs256"}`, pss, "signature"},
		"RS256":                   {`{"alg":"RS256","kid":"rs256"}`, pkcs, "algorithm"},
		"a key for encryption":    {`{"alg":"ES256","kid":"enc"}`, byEC(ec), "signature"},
		"an unknown extension":    {`{"alg":"ES256","kid":"ec","crit":["x"],"x":1}`, byEC(ec), "malformed"},
		"an extension, unnamed":   {`{"alg":"ES256","kid":"ec","crit":[]}`, byEC(ec), "malformed"},
		"no key's name":           {`{"alg":"ES256"}`, byEC(ec), "signature"},
	} {
		_, err := v.Token(t.Context(), signedAs(t, c.header, "alice", c.sign))
		if (err == nil) != (c.reason == "") || err != nil && ReasonOf(err) != c.reason {
			t.Errorf("%s: %v, want %q", name, err, c.reason)
		}
	}
}

// If a key without a name was replaced, the first signature that does not fit makes the verifier fetch the new one.
func TestKeyWithoutAName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	replace := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, keySet(t, &key.PublicKey, map[string]string{}), 0o600); err != nil {
			t.Fatal(err)
		}
		return key
	}
	first := replace()
	now := time.Now()
	v, err := New(Options{Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: file}},
		now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	second := replace()
	for _, c := range []struct {
		after  time.Duration
		key    *ecdsa.PrivateKey
		reason string
	}{{0, first, ""}, {0, second, "signature"}, {retryAfter, second, ""}, {0, first, "signature"}} {
		now = now.Add(c.after)
		_, err := v.Token(t.Context(), signedAs(t, `{"alg":"ES256"}`, "alice", byEC(c.key)))
		if (err == nil) != (c.reason == "") || err != nil && ReasonOf(err) != c.reason {
			t.Errorf("after %v: %v, want %q", c.after, err, c.reason)
		}
	}
}

// An access token of ten years is refused, because nobody could revoke it.
func TestTokensThatLiveForLong(t *testing.T) {
	ours := newIssuer(t, login)
	v := newVerifier(t, Issuer{Issuer: login, JWKS: keysFile(t, ours)})
	for days, reason := range map[int]string{29: "", 31: "life", 3650: "life"} {
		_, err := v.Token(t.Context(), sign(t, ours, "alice", map[string]any{"exp": time.Now().AddDate(0, 0, days)}))
		if (err == nil) != (reason == "") || err != nil && ReasonOf(err) != reason {
			t.Errorf("of %d days: %v", days, err)
		}
	}
}

// At least one issuer for pages and one for agents must have keys, if there are issuers for them.
func TestKeysThatSuffice(t *testing.T) {
	file, url := keysFile(t, newIssuer(t, login)), "http://"+testkit.Addr(t) // nobody listens
	for name, c := range map[string]struct {
		issuers []Issuer
		missing int
		suffice bool
	}{
		"all":           {[]Issuer{{Issuer: "a", JWKS: file}}, 0, true},
		"one of two":    {[]Issuer{{Issuer: "a", JWKS: file}, {Issuer: "b", JWKS: url}}, 1, true},
		"not for pages": {[]Issuer{{Issuer: "a", JWKS: file, For: []string{ForAgents}}, {Issuer: "b", JWKS: url}}, 1, false},
		"only agents":   {[]Issuer{{Issuer: "a", JWKS: file, For: []string{ForAgents}}}, 0, true},
	} {
		if missing, suffice := newVerifier(t, c.issuers...).Keys(); missing != c.missing || suffice != c.suffice {
			t.Errorf("%s: of %d issuers there are no keys, and they suffice: %t", name, missing, suffice)
		}
	}
}

// Scopes are in the claim scope, or with some issuers in scp, as a text or a list.
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
		// Its user "c" would equal the user "b\x00c" of the tenant "a".
		"a zero byte":    {Audience: audience, Issuers: []Issuer{{Issuer: login, Tenant: "a\x00b", JWKS: file}}},
		"HMAC":           {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: file, Algorithms: []string{"HS256"}}}},
		"small letters":  {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: file, Algorithms: []string{"es256"}}}},
		"another use":    {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: file, For: []string{"page"}}}},
		"a host":         {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: file, Origins: []string{"app.example"}}}},
		"another scheme": {Audience: audience, Issuers: []Issuer{{Issuer: login, JWKS: "ftp://login.example/keys"}}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Of all texts made from a good ticket, only the ticket itself is accepted.
func FuzzTicket(f *testing.F) {
	ours := newIssuer(f, login)
	v := newVerifier(f, Issuer{Issuer: login, JWKS: keysFile(f, ours)})
	good := strings.Split(ours.Ticket("alice", app), ".")
	for i, part := range good {
		text, _ := base64.RawURLEncoding.DecodeString(part)
		f.Add(i, text)
	}
	f.Add(0, []byte(`{"alg":"none"}`))
	f.Fuzz(func(t *testing.T, i int, text []byte) {
		parts := slices.Clone(good)
		part := &parts[uint(i)%3]
		*part = base64.RawURLEncoding.EncodeToString(text)
		_, err := v.Ticket(t.Context(), strings.Join(parts, "."), app)
		if taken, same := err == nil, slices.Equal(parts, good); taken != same || err != nil && ReasonOf(err) == "" {
			t.Errorf("%q as part %d: %v", text, uint(i)%3, err)
		}
	})
}
