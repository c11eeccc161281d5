//go:build ecosystem

package e2e

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/fleet/process"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// The files that deploy nodes, as Kubernetes, Prometheus and the builder of containers themselves read them; alerts and
// the dashboard ask two nodes, one of which has neither peers nor keys.
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
	well, at := runNode(t, process.Options{Issuers: []tickets.Issuer{{Issuer: login.Name, JWKS: keys}}})
	answer, err := http.Post("http://"+at+"/mcp", "application/json", nil) // a request, and a refusal
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	sick, _ := runNode(t, process.Options{Cluster: "127.0.0.1:0", Join: []string{testkit.Addr(t)}, SecretFile: secret,
		Issuers: []tickets.Issuer{{Issuer: login.Name, JWKS: "http://" + testkit.Addr(t)}}})
	t.Setenv("PAGEWIRE_NODE", "http://"+well+"/metrics")
	t.Setenv("PAGEWIRE_SICK_NODE", "http://"+sick+"/metrics")
	command(t, "ecosystem/deploy", "go", "test", "-count=1", "./...")
}

// runNode runs a node until the test ends, and returns its addresses.
func runNode(t *testing.T, o process.Options) (admin, listen string) {
	t.Helper()
	o.Listen, o.Admin, o.PublicURL = "127.0.0.1:0", "127.0.0.1:0", "https://live.example"
	o.Log = slog.New(slog.NewTextHandler(testkit.LogOf(t, "a node"), nil))
	started, ended := make(chan [2]string, 1), make(chan error, 1)
	o.Started = func(listen, admin, _ net.Addr) { started <- [2]string{admin.String(), listen.String()} }
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- process.Run(ctx, o) }()
	t.Cleanup(func() {
		stop()
		if err := testkit.Receive(t, "a node ends", ended); err != nil {
			t.Errorf("a node ends with %v", err)
		}
	})
	at := testkit.Receive(t, "a node listens", started)
	return at[0], at[1]
}
