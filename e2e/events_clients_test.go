package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/node/process"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// The AI SDK's own client of MCP Events, unmodified, subscribes at a node, and its handler accepts
// a delivery with its challenge, signature, ids and data. It refreshes and unsubscribes.
func TestEventsOfTheAISDK(t *testing.T) {
	node, dir := node22(t), t.TempDir()
	addr := testkit.Addr(t)
	login, err := issuertest.New("https://login.example", "http://"+addr)
	if err != nil {
		t.Fatal(err)
	}
	var handler url.URL
	receiver := httptest.NewTLSServer(passes(func(r *httputil.ProxyRequest) { r.SetURL(&handler) }))
	t.Cleanup(receiver.Close)
	file := filesIn(t, dir)
	runNode(t, process.Options{
		Listen: addr, PublicURL: login.Audience, Name: "first", Store: filepath.Join(dir, "store"),
		Cluster: testkit.Addr(t), SecretFile: file("secret", []byte("the secret of the nodes")),
		StoreKey:     file("key", []byte(strings.Repeat("k", 64))),
		WebhookAllow: []string{"127.0.0.0/8"},
		WebhookCA: file("ca",
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: receiver.Certificate().Raw})),
		Issuers: []tickets.Issuer{{Issuer: login.Name, JWKS: file("keys", login.Keys())}},
	})
	const origin = "https://app.example"
	page := testkit.NewPage(t, map[string]string{origin + "/doc": "one"})
	page.Dial(addr, origin, login.Ticket("alice", origin))

	agent := testcmd.Command(node, "conformance/ai-sdk-events.mjs")
	agent.Env = append(os.Environ(), "MCP=http://"+addr+"/mcp", "URI="+origin+"/doc", "CALLBACK="+
		receiver.URL+"/callback",
		"TOKEN=Bearer "+login.Token("alice", "pages:read pages:events"))
	agent.Stderr = testkit.LogOf(t, "the agent")
	in, out := testkit.Pipes(t, agent)
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = agent.Wait() // it may have failed before
	})
	type line struct {
		Kind  string
		Value json.RawMessage
	}
	lines := make(chan line, 100)
	go func() {
		for said := json.NewDecoder(out); ; {
			var l line
			if said.Decode(&l) != nil {
				return
			}
			lines <- l
		}
	}()
	hears := func(kind string) string {
		t.Helper()
		l := testkit.Receive(t, kind, lines)
		if l.Kind != kind {
			t.Fatalf("%s %s, and not %s", l.Kind, l.Value, kind)
		}
		return string(l.Value)
	}
	ask := func(what, kind string) string {
		t.Helper()
		fmt.Fprintln(in, what)
		return hears(kind)
	}
	handler = url.URL{Scheme: "http", Host: "127.0.0.1:" + hears("listens")}
	if list := ask("list", "list"); strings.Count(list, `"webhook"`) != 3 {
		t.Errorf("it lists %s", list)
	}
	testkit.Settles(t, "it has subscribed, when the store answers", func() string {
		fmt.Fprintln(in, "subscribe")
		if l := testkit.Receive(t, "an answer", lines); l.Kind != "subscribed" {
			return string(l.Value)
		}
		return ""
	})
	testkit.Eventually(t, "the page is watched",
		func() bool { return page.Watches(origin + "/doc") })
	page.Set(origin+"/doc", "two")
	if event := hears("event"); !strings.Contains(event, `"uri":"`+origin+`/doc"`) {
		t.Errorf("it is woken by %s", event)
	}
	ask("refresh", "refreshed")
	ask("unsubscribe", "unsubscribed")
}
