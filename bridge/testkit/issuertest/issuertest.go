// Package issuertest is an issuer of tickets and access tokens, for tests and demos: it has a key,
// serves a key set, and gives a token to any caller in this process. It is no login.
package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// An Issuer signs with one key, by ES256.
type Issuer struct {
	// Name is the claim iss, Audience the claim aud.
	Name, Audience string
	key            jwk.Key
	public         []byte
}

// New makes an issuer and its key.
func New(name, audience string) (*Issuer, error) {
	raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	i := &Issuer{Name: name, Audience: audience}
	if i.key, err = jwk.Import(raw); err != nil {
		return nil, err
	}
	if err := i.key.Set(jwk.KeyIDKey, rand.Text()); err != nil {
		return nil, err
	}
	public, err := i.key.PublicKey()
	if err != nil {
		return nil, err
	}
	set := jwk.NewSet()
	if err := set.AddKey(public); err != nil {
		return nil, err
	}
	i.public, err = json.Marshal(set)
	return i, err
}

// Keys returns the public keys, as a JSON Web Key Set.
func (i *Issuer) Keys() []byte { return i.public }

// ServeHTTP serves the public keys.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/jwk-set+json")
	_, _ = w.Write(i.public) // the client may have gone
}

// Claims are the claims of a ticket or token. more replaces some of them; a nil value removes one.
// They are valid for 59 minutes, a minute below a ticket's maximum, and not for less, because a
// test may wait ten minutes for its turn.
func (i *Issuer) Claims(subject string, more map[string]any) map[string]any {
	all := map[string]any{"iss": i.Name, "aud": i.Audience, "sub": subject, "iat": time.Now(),
		"exp": time.Now().Add(59 * time.Minute)}
	for name, value := range more {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// Sign signs claims.
func (i *Issuer) Sign(claims map[string]any) (string, error) {
	token := jwt.New()
	for name, value := range claims {
		if err := token.Set(name, value); err != nil {
			return "", err
		}
	}
	text, err := jwt.Sign(token, jwt.WithKey(jwa.ES256(), i.key))
	return string(text), err
}

// Ticket returns a ticket for a user's page at an origin.
func (i *Issuer) Ticket(subject, origin string) string {
	return i.must(i.Claims(subject, map[string]any{"origin": origin}))
}

// Token returns an access token of a user's agent.
func (i *Issuer) Token(subject, scopes string) string {
	return i.must(i.Claims(subject, map[string]any{"scope": scopes}))
}

func (i *Issuer) must(claims map[string]any) string {
	text, err := i.Sign(claims)
	if err != nil {
		panic(err) // these claims are always valid
	}
	return text
}
