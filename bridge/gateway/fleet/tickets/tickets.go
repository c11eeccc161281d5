// Package tickets says whose a page or an agent is: it verifies the tickets that a service gives to its pages, and the
// OAuth access tokens of agents. Both are JWTs of an issuer that the node's configuration lists.
//
// A ticket is for pages: it has a claim origin, and lives for an hour at most. An access token is for agents: it has
// scopes, and no origin. Neither is good for the other.
//
// The package never takes a token whose issuer, algorithm or audience is not listed, never says to the other end why a
// signature is wrong, and keeps no token. It looks for keys in files and at URLs of the configuration alone, never at
// what a token names.
package tickets

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/pagewire/pagewire/bridge/gateway/weborigin"
)

// What an issuer's tokens are good for.
const (
	ForPages  = "pages"
	ForAgents = "agents"
)

// An Issuer is one whose tokens are taken.
type Issuer struct {
	// Issuer is the claim iss.
	Issuer string `json:"issuer"`
	// Tenant names whose users these are. Issuers of one tenant have the same users. Default Issuer.
	Tenant string `json:"tenant"`
	// JWKS is where its public keys are: a file, or a URL of https, or of http on loopback.
	JWKS string `json:"jwks"`
	// Algorithms are those that it signs with, of those with a public key. Default ES256, ES384, RS256, PS256 and EdDSA.
	Algorithms []string `json:"algorithms"`
	// For says what its tokens are good for: ForPages, ForAgents. Default both.
	For []string `json:"for"`
	// Origins are those of its pages: patterns as in gateway.Options.Allow. Default any that a ticket names.
	Origins []string `json:"origins"`
}

var (
	usual      = []string{"ES256", "ES384", "RS256", "PS256", "EdDSA"}
	publicKeys = append([]string{"ES512", "RS384", "RS512", "PS384", "PS512"}, usual...)
)

// Options say what is taken.
type Options struct {
	Issuers []Issuer
	// Audience is what tokens must be for: the URL of the fleet. Access tokens may be for its /mcp alone.
	Audience string
	// Client fetches keys. Default one that waits for 5 s.
	Client *http.Client
	// Log receives what happens. Default none.
	Log *slog.Logger

	now func() time.Time // of tests
}

const (
	// maxToken bounds a token, in bytes: a header of HTTP has 8 KiB with most servers.
	maxToken = 8 << 10
	// maxTicketLife is how long a ticket may be good for, and maxTokenLife how long an access token may: Auth0 gives
	// them for 24 h, and for 30 days at most.
	maxTicketLife, maxTokenLife = time.Hour, 30 * 24 * time.Hour
)

// Skew is by how much clocks may differ: a token is good for so long past its end.
const Skew = 30 * time.Second

// A Refusal is why a token is not taken.
type Refusal struct {
	// Reason is one of few words, for counting.
	Reason string
	// Sentence says it to the token's issuer, and nothing of the token's contents.
	Sentence string
}

func (r *Refusal) Error() string { return r.Sentence }

func refusal(reason, sentence string) error { return &Refusal{reason, sentence} }

// ReasonOf is the reason of a Refusal, "error" for any other error.
func ReasonOf(err error) string {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return r.Reason
	}
	return "error"
}

// UserOf is how a user is known in the fleet: 43 characters of base64url.
func UserOf(tenant, subject string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + subject))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A Verifier verifies tokens. Its methods may be called concurrently.
type Verifier struct {
	o       Options
	issuers map[string]*issuer
}

type issuer struct {
	Issuer
	keys *keys
}

// New returns a Verifier, with the keys that are there: those at URLs that do not answer are fetched later. An error
// says what is wrong with Options, or with a file.
func New(o Options) (*Verifier, error) {
	o.Client = cmp.Or(o.Client, &http.Client{Timeout: 5 * time.Second, CheckRedirect: stay})
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.now == nil {
		o.now = time.Now
	}
	if o.Audience == "" {
		return nil, errors.New("tokens must be for an audience: name the fleet's public URL")
	}
	v := &Verifier{o: o, issuers: map[string]*issuer{}}
	for _, i := range o.Issuers {
		if v.issuers[i.Issuer] != nil {
			return nil, fmt.Errorf("issuer %q is there twice", i.Issuer)
		}
		i.Tenant = cmp.Or(i.Tenant, i.Issuer)
		if err := i.check(); err != nil {
			return nil, fmt.Errorf("issuer %q: %w", i.Issuer, err)
		}
		if len(i.Algorithms) == 0 {
			i.Algorithms = usual
		}
		if len(i.For) == 0 {
			i.For = uses
		}
		k, err := newKeys(i.JWKS, o)
		if err != nil {
			return nil, fmt.Errorf("issuer %q: %w", i.Issuer, err)
		}
		v.issuers[i.Issuer] = &issuer{i, k}
	}
	return v, nil
}

var uses = []string{ForPages, ForAgents}

// check finds values that are none: each would refuse all tokens, or take none of the restrictions that it is for.
func (i *Issuer) check() error {
	switch {
	case i.Issuer == "" || i.JWKS == "":
		return errors.New("an issuer has a name and jwks, a file or a URL")
	case strings.Contains(i.Tenant, "\x00"):
		return errors.New("a tenant's name has no zero byte: UserOf sets it off from the subject with one")
	}
	for _, a := range i.Algorithms {
		if !slices.Contains(publicKeys, a) {
			return fmt.Errorf("%q is no algorithm with a public key: name some of %s", a, strings.Join(publicKeys, ", "))
		}
	}
	for _, use := range i.For {
		if !slices.Contains(uses, use) {
			return fmt.Errorf("its tokens cannot be for %q: name some of %s", use, strings.Join(uses, ", "))
		}
	}
	for _, origin := range i.Origins {
		if origin != weborigin.Loopback && !weborigin.IsPattern(origin) {
			return fmt.Errorf("%q is no origin: it must be like https://example.com, or https://*.example.com", origin)
		}
	}
	return nil
}

// Keys says of how many issuers there are no keys, and whether those that there are suffice: for pages some, and for
// agents some, as far as issuers are for them. It has missing ones looked for, which it does not wait for.
func (v *Verifier) Keys() (missing int, suffice bool) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	have := map[string]bool{} // by use: whether an issuer has keys
	for _, i := range v.issuers {
		_, err := i.keys.get(ended, false)
		if err != nil {
			missing++
		}
		for _, use := range i.For {
			have[use] = have[use] || err == nil
		}
	}
	return missing, !slices.Contains(slices.Collect(maps.Values(have)), false)
}

// KeyTimes says when the keys of each issuer were had last, of those that have any.
func (v *Verifier) KeyTimes() map[string]time.Time {
	all := map[string]time.Time{}
	for name, i := range v.issuers {
		i.keys.mu.Lock()
		if i.keys.set != nil {
			all[name] = i.keys.of
		}
		i.keys.mu.Unlock()
	}
	return all
}

// AgentIssuers are those of access tokens.
func (v *Verifier) AgentIssuers() (list []string) {
	for _, i := range v.o.Issuers {
		if len(i.For) == 0 || slices.Contains(i.For, ForAgents) {
			list = append(list, i.Issuer)
		}
	}
	return list
}

// A Claim is what a token says, when it has been verified.
type Claim struct {
	// User is the fleet's name for the user: UserOf(Tenant, Subject).
	User, Tenant, Subject string
	// Issuer has signed the token.
	Issuer string
	// Origin is that of a page, of a ticket.
	Origin string
	// Scopes are those of an access token.
	Scopes []string
	// Until is when it ends.
	Until time.Time
}

// Ticket verifies the ticket of a page whose browser says that it is at an origin. Errors are Refusals.
func (v *Verifier) Ticket(ctx context.Context, text, origin string) (Claim, error) {
	c, token, err := v.verify(ctx, text, ForPages)
	if err != nil {
		return c, err
	}
	_ = token.Get("origin", &c.Origin) // "" where it is none
	switch {
	case c.Origin == "":
		return c, refusal("no ticket", "the ticket names no origin")
	case c.Origin != origin:
		return c, refusal("origin", "the ticket is for pages of another origin than "+origin)
	case !v.issuers[c.Issuer].serves(origin):
		return c, refusal("origin", "the ticket's issuer has no pages at "+origin)
	case c.Until.Sub(v.o.now()) > maxTicketLife+Skew:
		return c, refusal("life", "the ticket is good for too long; the limit is an hour")
	}
	return c, nil
}

// Token verifies the access token of an agent. Errors are Refusals.
func (v *Verifier) Token(ctx context.Context, text string) (Claim, error) {
	c, token, err := v.verify(ctx, text, ForAgents)
	if err != nil {
		return c, err
	}
	var scope string
	switch {
	case token.Has("origin"):
		return c, refusal("no token", "this is a ticket for a page, and no access token")
	case c.Until.Sub(v.o.now()) > maxTokenLife+Skew:
		return c, refusal("life", "the token is good for too long; the limit is 30 days")
	}
	if token.Get("scope", &scope) == nil {
		c.Scopes = strings.Fields(scope)
	} else {
		c.Scopes = scp(token)
	}
	return c, nil
}

// scp are the scopes as some issuers call them, a text or a list; none where it is neither.
func scp(token jwt.Token) (scopes []string) {
	var text string
	if token.Get("scp", &text) == nil {
		return strings.Fields(text)
	}
	var list []any
	_ = token.Get("scp", &list)
	for _, one := range list {
		if s, ok := one.(string); ok {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// verify does what both have in common.
func (v *Verifier) verify(ctx context.Context, text, use string) (c Claim, token jwt.Token, err error) {
	i, header, err := v.issuerOf(text, use)
	if err != nil {
		return c, nil, err
	}
	if token, err = i.signed(ctx, text, header); err != nil {
		return c, nil, err
	}
	if name, _ := token.Issuer(); name != i.Issuer.Issuer { // what chose the keys was not verified
		return c, nil, refusal("issuer", "the token's issuer is not the one whose keys it was verified with")
	}
	c = Claim{Issuer: i.Issuer.Issuer, Tenant: i.Tenant}
	c.Subject, _ = token.Subject()
	c.Until, _ = token.Expiration()
	c.User = UserOf(c.Tenant, c.Subject)
	return c, token, v.valid(token, use)
}

// signed verifies a token's signature. Where it is not that of a key which is here, a newer key may have come.
func (i *issuer) signed(ctx context.Context, text string, header jws.Headers) (jwt.Token, error) {
	var tried jwk.Set
	for _, newer := range []bool{false, true} {
		set, err := i.keys.get(ctx, newer)
		if err != nil {
			return nil, refusal("keys", "there are no keys of the token's issuer at the moment")
		}
		if set == tried {
			break
		}
		if token, err := signedBy(set, text, header); err == nil {
			return token, nil
		}
		tried = set
	}
	return nil, refusal("signature", "the token's signature is not that of its issuer")
}

// signedBy verifies it by the one key that the header names, or that there is, and by the header's algorithm, which the
// issuer's configuration lists: by a key's own algorithm it would be whatever a set of keys says.
func signedBy(set jwk.Set, text string, header jws.Headers) (jwt.Token, error) {
	alg, _ := header.Algorithm()
	kid, named := header.KeyID()
	key, ok := set.LookupKeyID(kid)
	if !named && set.Len() == 1 {
		key, ok = set.Key(0)
	}
	if !ok {
		return nil, errors.New("there is no such key")
	}
	if of, has := key.Algorithm(); has && of.String() != alg.String() {
		return nil, errors.New("the key is for another algorithm")
	}
	if use, has := key.KeyUsage(); has && use != jwk.ForSignature.String() {
		return nil, errors.New("the key is not for signatures")
	}
	// The default claims are looked at by valid, each with a reason of its own.
	return jwt.Parse([]byte(text), jwt.WithKey(alg, key), jwt.WithValidate(false))
}

// issuerOf is the issuer whose token it claims to be, and the token's header: nothing of it is verified.
func (v *Verifier) issuerOf(text, use string) (i *issuer, header jws.Headers, err error) {
	if len(text) > maxToken {
		return nil, nil, refusal("size", fmt.Sprintf("the token has %d bytes; the limit is %d", len(text), maxToken))
	}
	var claimed struct{ Iss string }
	message, err := jws.Parse([]byte(text), jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 || json.Unmarshal(message.Payload(), &claimed) != nil {
		return nil, nil, refusal("malformed", "this is no token")
	}
	if i = v.issuers[claimed.Iss]; i == nil || !slices.Contains(i.For, use) {
		return nil, nil, refusal("issuer", "the token's issuer is not one whose tokens for "+use+" are taken")
	}
	header = message.Signatures()[0].ProtectedHeaders()
	if alg, _ := header.Algorithm(); !slices.Contains(i.Algorithms, alg.String()) {
		return nil, nil, refusal("algorithm", "the token is signed in a way that is not taken from its issuer")
	}
	if header.Has(jws.CriticalKey) { // of the extensions that a token may insist on none is known here
		return nil, nil, refusal("malformed", "the token insists on an extension that is not known")
	}
	return i, header, nil
}

func (v *Verifier) valid(token jwt.Token, use string) error {
	now := v.o.now()
	until, hasUntil := token.Expiration()
	from, hasFrom := token.NotBefore()
	issued, hasIssued := token.IssuedAt()
	audience, _ := token.Audience()
	subject, _ := token.Subject()
	switch {
	case !hasUntil:
		return refusal("expired", "the token never ends: it must have exp")
	case now.After(until.Add(Skew)):
		return refusal("expired", "the token has expired")
	case hasFrom && from.After(now.Add(Skew)), hasIssued && issued.After(now.Add(Skew)):
		return refusal("future", "the token is of the future: are the clocks set?")
	case !slices.ContainsFunc(audience, func(a string) bool { return v.isUs(a, use) }):
		return refusal("audience", "the token is not for "+v.o.Audience)
	case subject == "":
		return refusal("subject", "the token names no subject")
	}
	return nil
}

// isUs reports whether an audience is the fleet. URLs of an origin alone have a slash where a client has parsed them.
func (v *Verifier) isUs(audience, use string) bool {
	audience, us := strings.TrimSuffix(audience, "/"), strings.TrimSuffix(v.o.Audience, "/")
	return audience == us || use == ForAgents && audience == us+"/mcp"
}
