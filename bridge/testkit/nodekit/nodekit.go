// Package nodekit is shared by the tests of a service's nodes: the service's login, and agents at a
// node. It never starts a node.
package nodekit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
)

// Public is the URL of the fleet.
const Public = "https://live.example"

// A Login is the service's issuer, whose public keys are in a file.
type Login struct {
	*issuertest.Issuer
	Keys string
	t    testing.TB
}

func NewLogin(t testing.TB) *Login {
	t.Helper()
	i, err := issuertest.New("https://login.example", Public)
	if err != nil {
		t.Fatal(err)
	}
	l := &Login{i, filepath.Join(t.TempDir(), "keys.json"), t}
	if err := os.WriteFile(l.Keys, i.Keys(), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// Verifier verifies its tickets and tokens.
func (l *Login) Verifier() *tickets.Verifier {
	l.t.Helper()
	v, err := tickets.New(
		tickets.Options{Audience: Public,
			Issuers: []tickets.Issuer{{Issuer: l.Name, JWKS: l.Keys}}})
	if err != nil {
		l.t.Fatal(err)
	}
	return v
}

// Signed returns a ticket or a token. claims replace the usual claims of the same names.
func (l *Login) Signed(subject string, claims map[string]any) string {
	l.t.Helper()
	text, err := l.Sign(l.Claims(subject, claims))
	if err != nil {
		l.t.Fatal(err)
	}
	return text
}

// Agent connects an agent of a user to a node.
func (l *Login) Agent(n *node.Node, subject string) *testkit.Agent {
	l.t.Helper()
	r, release, err := n.Reader("", tickets.UserOf(l.Name, subject), true, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(release)
	port, err := r.Gateway.Connect("test")
	if err != nil {
		l.t.Fatal(err)
	}
	return testkit.Connect(l.t, testkit.Transport(port), testkit.Legacy)
}
