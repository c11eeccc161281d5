//go:build soak

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/bridge/testkit/webhooktest"
)

const fleetOrigin = "https://app.example"

// A soakFleet is two nodes. Agents and webhooks are at the first, which has the store. Pages are at
// the second, which gets SIGKILL or SIGTERM.
type soakFleet struct {
	s         *soak
	nodes     [2]*soakNode
	pages     []*testkit.Page
	last      []atomic.Pointer[string] // of each page
	agents    []*soakAgent
	assistant *webhooktest.Assistant
	woken     atomic.Pointer[string] // the assistant's last text of the first page
	refresh   time.Time              // when the assistant refreshes its subscription; live has it
	token     func() string          // a new access token of the assistant: one lasts 59 minutes
}

type soakNode struct {
	listen, admin string
	args          []string
	cmd           *exec.Cmd
	pid           atomic.Int64
}

func fleetURI(page int) string { return fmt.Sprint(fleetOrigin, "/doc", page) }

func (s *soak) openFleet() *soakFleet {
	t, dir := s.t, s.t.TempDir()
	f := &soakFleet{s: s, last: make([]atomic.Pointer[string], 5)}
	public := "https://live.example"
	login, err := issuertest.New("https://login.example", public)
	if err != nil {
		t.Fatal(err)
	}
	f.token = func() string { return login.Token("alice", "pages:read pages:events") }
	f.assistant = webhooktest.New("", "")
	t.Cleanup(f.assistant.Close)
	file, at := filesIn(t, dir), func(name string) string { return filepath.Join(dir, name) }
	config, _ := json.Marshal(map[string]any{"public-url": public, "secret-file": at("secret"),
		"drain":       "2s",
		"drain-delay": "100ms", "store-key": at("store-key"), "webhook-ca": at("ca"),
		"webhook-allow": []string{"127.0.0.1/32"},
		"issuers":       []any{map[string]any{"issuer": login.Name, "jwks": at("keys")}}})
	for name, text := range map[string][]byte{"keys": login.Keys(), "secret": []byte("the nodes of the soak\n"),
		"node.json": config, "store-key": []byte(strings.Repeat("k", 40)), "ca": f.assistant.CA} {
		file(name, text)
	}
	cluster := testkit.Addr(t)
	for i := range f.nodes {
		n := &soakNode{listen: testkit.Addr(t), admin: testkit.Addr(t)}
		n.args = []string{"--config", at("node.json"), "--listen", n.listen, "--admin", n.admin, "--log-level", "warn"}
		if i == 0 {
			n.args = append(n.args, "--cluster", cluster, "--name", "first", "--store", at("store"))
		} else {
			n.args = append(n.args, "--cluster", "127.0.0.1:0", "--join", cluster)
		}
		f.nodes[i] = n
		f.start(n)
	}
	t.Cleanup(func() {
		for _, n := range f.nodes {
			f.stop(n, syscall.SIGTERM)
		}
	})
	for _, n := range f.nodes {
		testkit.Eventually(t, "the nodes know each other", func() bool {
			return strings.Contains(testkit.Metrics(n.admin, ""), "pagewire_node_nodes 2\n")
		})
	}
	for i := range f.last {
		first := fmt.Sprintf("%s is 0 at %d", fleetURI(i), time.Now().UnixMilli())
		f.last[i].Store(&first)
		p := testkit.NewPage(t, map[string]string{fleetURI(i): first})
		p.Epoch(fmt.Sprint("page ", i))
		p.DialAny(func() string { return f.nodes[1].listen }, fleetOrigin,
			func() string { return login.Ticket("alice", fleetOrigin) }) // one lasts 59 minutes
		f.pages = append(f.pages, p)
	}
	// A listen ends with its token, and go-sdk's client does not listen again.
	token := testkit.Must(login.Sign(login.Claims("alice", map[string]any{"scope": "pages:read pages:act",
		"exp": time.Now().Add(24 * time.Hour)})))(t)
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	for _, era := range []string{testkit.Legacy, testkit.Modern} {
		a := s.follows(testkit.Connect(t, &mcp.StreamableClientTransport{Endpoint: "http://" + f.nodes[0].listen + "/mcp",
			HTTPClient: &http.Client{Transport: setting(bearer)}}, era))
		f.agents = append(f.agents, a)
		for i := range f.pages {
			testkit.Eventually(t, "a page is at the fleet", func() bool { return a.look(fleetURI(i), false) })
			a.Watch(fleetURI(i))
			a.watched[fleetURI(i)] = true
		}
	}
	f.assistant.Endpoint = "http://" + f.nodes[0].listen + "/mcp"
	testkit.Settles(t, "the assistant has subscribed", func() string {
		if err := f.subscribe(); err != nil {
			return err.Error()
		}
		return ""
	})
	go f.live()
	return f
}

// subscribe subscribes the assistant, or refreshes its subscription, which lasts for 30 minutes.
func (f *soakFleet) subscribe() error {
	f.assistant.Token = f.token()
	grant, err := f.assistant.Subscribe(f.s.t.Context(), "page.resource.updated",
		map[string]any{"uri": fleetURI(0), "minIntervalMs": 1000})
	if err == nil {
		f.refresh = time.Now().Add(time.Until(grant.RefreshBefore) / 2)
	}
	return err
}

// live changes the pages, ten times a second in all. When a webhook wakes the assistant, live reads
// as the assistant until it has an answer, since the page's node may have been replaced.
func (f *soakFleet) live() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	woken := false
	for n := 1; ; n++ {
		if time.Now().After(f.refresh) {
			_ = f.subscribe() // an error is followed by another attempt
		}
		if woken {
			if text, err := f.assistant.Read(f.s.t.Context(), fleetURI(0)); err == nil {
				f.woken.Store(&text)
				woken = false
			}
		}
		select {
		case <-f.s.t.Context().Done():
			return
		case <-f.assistant.Events:
			woken = true
		case what := <-f.assistant.Wrong:
			f.s.finds(&f.s.wrong, "a webhook: %s", what)
		case <-tick.C:
			f.s.mu.Lock()
			paused := f.s.paused
			f.s.mu.Unlock()
			if i := n % len(f.pages); !paused {
				text := fmt.Sprintf("%s is %d at %d", fleetURI(i), n, time.Now().UnixMilli())
				f.last[i].Store(&text)
				f.pages[i].Set(fleetURI(i), text)
			}
		}
	}
}

func (f *soakFleet) start(n *soakNode) {
	program, err := filepath.Abs("../bin/pagewire-node")
	if err != nil {
		f.s.t.Fatal(err)
	}
	n.cmd = testcmd.CommandContext(context.Background(), program, n.args...)
	n.cmd.Stderr = testkit.LogOf(f.s.t, "a node")
	if err := n.cmd.Start(); err != nil {
		f.s.t.Fatalf("%v (run make build first)", err)
	}
	n.pid.Store(int64(n.cmd.Process.Pid))
}

func (f *soakFleet) stop(n *soakNode, signal syscall.Signal) {
	_ = n.cmd.Process.Signal(signal) // it may have ended
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = n.cmd.Wait() // its status depends on the signal
	}()
	testkit.Ends(f.s.t, "a node ends", over)
}

func (f *soakFleet) step() {
	signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[f.s.pick(2)]
	f.s.did("node: " + signal.String())
	f.stop(f.nodes[1], signal)
	f.start(f.nodes[1])
}

func (f *soakFleet) lacks() string {
	for i := range f.last {
		want := *f.last[i].Load()
		for k, a := range f.agents {
			a.mu.Lock()
			held := a.held[fleetURI(i)]
			a.mu.Unlock()
			if held != want {
				return fmt.Sprintf("agent %d of the fleet holds %q of %q", k, held, want)
			}
		}
	}
	if got := f.woken.Load(); got == nil {
		return "no webhook has woken the assistant"
	} else if *got != *f.last[0].Load() {
		return fmt.Sprintf("the assistant that webhooks wake has read %q of %q", *got, *f.last[0].Load())
	}
	return ""
}
