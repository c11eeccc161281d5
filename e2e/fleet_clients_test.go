package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/node/process"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	clients "github.com/pagewire/pagewire/e2e/clients/page"
)

// agentsFleet starts two nodes, with the page of clients/page at the first, and a balancer that
// sends requests to them in turn. It calls made with the nodes' issuer before they start.
func agentsFleet(t *testing.T, issuer string, made func(*issuertest.Issuer)) meeting {
	t.Helper()
	var targets []*url.URL
	var turn atomic.Int64
	balancer := httptest.NewServer(passes(func(r *httputil.ProxyRequest) {
		r.SetURL(targets[turn.Add(1)%int64(len(targets))])
		r.Out.Host = r.In.Host
	}))
	t.Cleanup(balancer.Close)
	login, err := issuertest.New(issuer, balancer.URL)
	if err != nil {
		t.Fatal(err)
	}
	made(login)
	token := "Bearer " + login.Token("alice", "pages:read pages:act")
	file := filesIn(t, t.TempDir())
	o := process.Options{Listen: "127.0.0.1:0", PublicURL: balancer.URL, Cluster: "127.0.0.1:0",
		AnyScheme:  true,
		SecretFile: file("secret", []byte("the secret of the nodes")),
		Issuers:    []tickets.Issuer{{Issuer: login.Name, JWKS: file("keys", login.Keys())}}}
	for range 2 {
		listen, _, cluster := runNode(t, o)
		o.Join = []string{cluster.String()}
		targets = append(targets, &url.URL{Scheme: "http", Host: listen.String()})
	}
	clients.Connect(t, targets[0].Host, login.Ticket("alice", clients.Origin))
	at := meeting{url: balancer.URL + "/mcp", header: token, env: os.Environ()}
	for _, target := range targets { // at each, the user has a gateway, which has the page
		testkit.Eventually(t, "the page is there",
			func() bool { return lists(t, target.Host, at.header) })
	}
	return at
}

func filesIn(t *testing.T, dir string) func(name string, text []byte) string {
	return func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func runNode(t *testing.T, o process.Options) (listen, admin, cluster net.Addr) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended, started := make(chan error, 1), make(chan [3]net.Addr, 1)
	o.Drain, o.Log = time.Second, slog.New(slog.NewTextHandler(testkit.LogOf(t, "a node"), nil))
	o.Started = func(listen, admin,
		cluster net.Addr) {
		started <- [3]net.Addr{listen, admin, cluster}
	}
	go func() { ended <- process.Run(ctx, o) }()
	t.Cleanup(func() {
		stop()
		if err := testkit.Receive(t, "a node ends", ended); err != nil {
			t.Errorf("a node ends with %v", err)
		}
	})
	at := testkit.Receive(t, "a node listens", started)
	return at[0], at[1], at[2]
}

// passes returns a proxy that reads a request's body before it passes the request on.
// httputil.ReverseProxy cuts an answer off if it begins before the transport has read the end of
// the body.
func passes(rewrite func(*httputil.ProxyRequest)) http.Handler {
	proxy := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: rewrite}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the client has closed the connection
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	})
}

func lists(t *testing.T, host, token string) bool {
	t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
	r, err := http.NewRequest(http.MethodPost, "http://"+host+"/mcp", strings.NewReader(
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{%s}}`, meta)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": token, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "resources/list"} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && strings.Contains(string(text), clients.Origin+"/clock")
}

// The official TypeScript client, unmodified, with an access token, at two nodes that take its
// requests in turn.
func TestTypeScriptClientAtAFleet(t *testing.T) {
	t.Parallel()
	typeScriptClients(t, agentsFleet(t, "https://login.example", func(*issuertest.Issuer) {}))
}
