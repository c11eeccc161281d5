// Package tickets identifies the user of a page or an agent. It verifies the tickets that a service
// gives to its pages, and the OAuth access tokens of agents. Both are JWTs of an issuer that the
// node's configuration lists.
//
// A ticket is for pages: it has a claim origin, and lives for an hour at most. An access token is
// for agents: it has scopes, and no origin. Neither is accepted in place of the other.
//
// The package never accepts a token whose issuer, algorithm or audience is not listed. It never
// tells the other end why a signature is wrong, and keeps no token. It fetches keys only from files
// and URLs of the configuration, never from a URL in a token.
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

	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Uses of an issuer's tokens.
const (
	ForPages  = "pages"
	ForAgents = "agents"
)

// An Issuer is an issuer whose tokens are accepted.
type Issuer struct {
	// Issuer is the claim iss.
	Issuer string `json:"issuer"`
	// Tenant names the tenant of the users. Issuers of one tenant have the same users. Default
	// Issuer.
	Tenant string `json:"tenant"`
	// JWKS is the place of its public keys: a file, or a URL with https, or with http on loopback.
	JWKS string `json:"jwks"`
	// Algorithms are its algorithms, all with public keys. Default ES256, ES384, RS256, PS256 and
	// EdDSA.
	Algorithms []string `json:"algorithms"`
	// For lists the uses of its tokens: ForPages, ForAgents. Default both.
	For []string `json:"for"`
	// Origins are the origins of its pages: patterns as in gateway.Options.Allow. Default any
	// origin in a ticket.
	Origins []string `json:"origins"`
}

var (
	usual      = []string{"ES256", "ES384", "RS256", "PS256", "EdDSA"}
	publicKeys = append([]string{"ES512", "RS384", "RS512", "PS384", "PS512"}, usual...)
)

// Options configure a Verifier.
type Options struct {
	Issuers []Issuer
	// Audience is the audience that tokens must have: the URL of the fleet. Access tokens may name
	// its /mcp instead.
	Audience string
	// Client fetches keys. Default a client with a timeout of 5 s.
	Client *http.Client
	// Log receives the log. Default none.
	Log *slog.Logger

	now func() time.Time // for tests
}

const (
	// maxToken bounds a token, in bytes: most servers take 8 KiB of HTTP header.
	maxToken = 8 << 10
	// maxTicketLife and maxTokenLife bound the life of a ticket and of an access token. Auth0's
	// tokens live for 24 h, and for 30 days at most.
	maxTicketLife, maxTokenLife = time.Hour, 30 * 24 * time.Hour
)

// Skew is the greatest difference of clocks: a token is good for so long past its end.
const Skew = 30 * time.Second

// A Refusal is the error for a token that is not accepted.
type Refusal struct {
	// Reason is one of a few words, for counting.
	Reason string
	// Sentence is the reason for the token's issuer, without any of the token's contents.
	Sentence string
}

func (r *Refusal) Error() string { return r.Sentence }

func refusal(reason, sentence string) error { return &Refusal{reason, sentence} }

// ReasonOf returns the reason of a Refusal, "error" for any other error.
func ReasonOf(err error) string {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return r.Reason
	}
	return "error"
}

// UserOf returns the fleet's name of a user: 43 characters of base64url.
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

// serves reports whether an issuer has pages at an origin.
func (i *issuer) serves(origin string) bool {
	return len(i.Origins) == 0 || slices.ContainsFunc(i.Origins, func(p string) bool {
		return weborigin.Match(p, origin)
	})
}

// New returns a Verifier. It fetches keys at once, and later those of URLs that do not answer. An
// error is about Options or a file.
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
		k, err := newKeys(i.JWKS, o.Client, o.Log, o.now)
		if err != nil {
			return nil, fmt.Errorf("issuer %q: %w", i.Issuer, err)
		}
		v.issuers[i.Issuer] = &issuer{i, k}
	}
	return v, nil
}

var uses = []string{ForPages, ForAgents}

// check refuses invalid values: with each the issuer would accept no token, or a restriction would
// have no effect.
func (i *Issuer) check() error {
	switch {
	case i.Issuer == "" || i.JWKS == "":
		return errors.New("an issuer has a name and jwks, a file or a URL")
	case strings.Contains(i.Tenant, "\x00"):
		return errors.New("a tenant's name has no zero byte: UserOf sets it off from the subject " +
			"with one")
	}
	for _, a := range i.Algorithms {
		if !slices.Contains(publicKeys, a) {
			return fmt.Errorf("%q is no algorithm with a public key: name some of %s", a,
				strings.Join(publicKeys, ", "))
		}
	}
	for _, use := range i.For {
		if !slices.Contains(uses, use) {
			return fmt.Errorf("its tokens cannot be for %q: name some of %s", use,
				strings.Join(uses, ", "))
		}
	}
	for _, origin := range i.Origins {
		if origin != weborigin.Loopback && !weborigin.IsPattern(origin) {
			return fmt.Errorf("%q is no origin: it must be like https://example.com, or "+
				"https://*.example.com", origin)
		}
	}
	return nil
}

// Keys returns the number of issuers without keys. suffice is whether at least one issuer for pages
// has keys, and one for agents, as far as there are issuers for them. Keys begins to fetch missing
// keys, and does not wait for them.
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

// KeyTimes returns the time of the last successful fetch, by issuer, for issuers with keys.
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

// AgentIssuers returns the issuers of access tokens.
func (v *Verifier) AgentIssuers() (list []string) {
	for _, i := range v.o.Issuers {
		if len(i.For) == 0 || slices.Contains(i.For, ForAgents) {
			list = append(list, i.Issuer)
		}
	}
	return list
}

// A Claim is the content of a verified token.
type Claim struct {
	// User is the fleet's name for the user: UserOf(Tenant, Subject).
	User, Tenant, Subject string
	// Issuer signed the token.
	Issuer string
	// Origin is the page's origin, in a ticket.
	Origin string
	// Scopes are the scopes of an access token.
	Scopes []string
	// Until is the end of the token.
	Until time.Time
}

// Ticket verifies the ticket of a page at an origin, which the browser reports. Errors are
// Refusals.
func (v *Verifier) Ticket(ctx context.Context, text, origin string) (Claim, error) {
	c, token, err := v.verify(ctx, text, ForPages)
	if err != nil {
		return c, err
	}
	_ = token.Get("origin", &c.Origin) // "" if it is not a string
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

// scp returns the claim scp, which some issuers use for scopes: a text or a list. Any other value
// gives none.
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

// verify does the checks that tickets and access tokens share.
func (v *Verifier) verify(ctx context.Context, text, use string) (c Claim, token jwt.Token,
	err error) {
	i, header, err := v.issuerOf(text, use)
	if err != nil {
		return c, nil, err
	}
	if token, err = i.signed(ctx, text, header); err != nil {
		return c, nil, err
	}
	// The name that chose the keys was not verified.
	if name, _ := token.Issuer(); name != i.Issuer.Issuer {
		return c, nil, refusal("issuer", "the token's issuer is not the one whose keys it was "+
			"verified with")
	}
	c = Claim{Issuer: i.Issuer.Issuer, Tenant: i.Tenant}
	c.Subject, _ = token.Subject()
	c.Until, _ = token.Expiration()
	c.User = UserOf(c.Tenant, c.Subject)
	return c, token, v.valid(token, use)
}

// signed verifies a token's signature. If no key here has made it, it tries newer keys.
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

// signedBy verifies the signature by the key that the header names, or by the only key if the
// header names none. It uses the header's algorithm, which the issuer's configuration lists; the
// algorithm in the key set need not be listed.
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
	// valid checks the default claims, each with its own reason.
	return jwt.Parse([]byte(text), jwt.WithKey(alg, key), jwt.WithValidate(false))
}

// issuerOf returns the issuer that the token claims, and the token's header. Neither is verified
// yet.
func (v *Verifier) issuerOf(text, use string) (i *issuer, header jws.Headers, err error) {
	if len(text) > maxToken {
		return nil, nil, refusal("size", fmt.Sprintf("the token has %d bytes; the limit is %d",
			len(text), maxToken))
	}
	var claimed struct{ Iss string }
	message, err := jws.Parse([]byte(text), jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 || json.Unmarshal(message.Payload(),
		&claimed) != nil {
		return nil, nil, refusal("malformed", "this is no token")
	}
	if i = v.issuers[claimed.Iss]; i == nil || !slices.Contains(i.For, use) {
		return nil, nil, refusal("issuer", "the token's issuer is not one whose tokens "+
			"for "+use+" are taken")
	}
	header = message.Signatures()[0].ProtectedHeaders()
	if alg, _ := header.Algorithm(); !slices.Contains(i.Algorithms, alg.String()) {
		return nil, nil, refusal("algorithm", "the token is signed in a way that is not taken "+
			"from its issuer")
	}
	if header.Has(jws.CriticalKey) { // no extension is known here
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

// isUs reports whether an audience is the fleet. A client that has parsed the URL of an origin
// appends a slash.
func (v *Verifier) isUs(audience, use string) bool {
	audience, us := strings.TrimSuffix(audience, "/"), strings.TrimSuffix(v.o.Audience, "/")
	return audience == us || use == ForAgents && audience == us+"/mcp"
}
