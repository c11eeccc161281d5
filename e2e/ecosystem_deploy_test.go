//go:build ecosystem

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/pagewire/pagewire/bridge/node/process"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
)

// Kubernetes', Prometheus' and the container builder's own parsers read the files that deploy
// nodes. Alerts and the dashboard query two nodes, one of which has neither peers nor keys.
func TestEcosystemDeploy(t *testing.T) {
	login, err := issuertest.New("https://login.example", "https://live.example")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	keys, secret := filepath.Join(dir, "keys"), filepath.Join(dir, "secret")
	for name, text := range map[string]string{keys: string(login.Keys()), secret: "the secret of the nodes"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := process.Options{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", PublicURL: "https://live.example",
		Issuers: []tickets.Issuer{{Issuer: login.Name, JWKS: keys}}}
	at, well, _ := runNode(t, o)
	answer, err := http.Post("http://"+at.String()+"/mcp", "application/json", nil) // a request, and a refusal
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	o.Cluster, o.Join, o.SecretFile = "127.0.0.1:0", []string{testkit.Addr(t)}, secret
	o.Issuers = []tickets.Issuer{{Issuer: login.Name, JWKS: "http://" + testkit.Addr(t)}}
	_, sick, _ := runNode(t, o)
	t.Setenv("PAGEWIRE_NODE", "http://"+well.String()+"/metrics")
	t.Setenv("PAGEWIRE_SICK_NODE", "http://"+sick.String()+"/metrics")
	command(t, "ecosystem/deploy", "go", "test", "-count=1", "./...")
}
