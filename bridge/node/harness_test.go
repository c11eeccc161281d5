package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/testkit"
)

const app = "https://app.example"

// alice and bob have the form of a user's hash.
var alice, bob = strings.Repeat("A", 43), strings.Repeat("B", 43)

// interval is short, so that a test sees many.
const interval = 200 * time.Millisecond

func openNode(t *testing.T, o Options) *Node {
	t.Helper()
	if o.Interval == 0 {
		o.Interval = interval
	}
	o.Bus.Secret = "secret"
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(testkit.LogOf(t, "a node"), nil))
	}
	n, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// openFleet opens nodes, and waits until they know each other.
func openFleet(t *testing.T, size int) (nodes []*Node) {
	t.Helper()
	return openFleetOf(t, size, interval)
}

func openFleetOf(t *testing.T, size int, interval time.Duration) (nodes []*Node) {
	t.Helper()
	var join []string
	for range size {
		n := openNode(t, Options{Interval: interval, Bus: bus.Options{Cluster: "127.0.0.1:0", Join: join}})
		join = []string{n.ClusterAddr()}
		if len(nodes) > 0 {
			join = []string{nodes[0].ClusterAddr()}
		}
		nodes = append(nodes, n)
	}
	meet(t, nodes...)
	return nodes
}

func meet(t *testing.T, nodes ...*Node) {
	t.Helper()
	testkit.Eventually(t, "the nodes know each other", func() bool {
		for _, n := range nodes {
			if n.Stats().Nodes != len(nodes) {
				return false
			}
		}
		return true
	})
}

// A tab is a page whose transport can be cut, and dialed again to another node.
type tab struct {
	*testkit.Page
	t     *testing.T
	user  string
	name  string
	dials int

	mu   sync.Mutex
	page *Page
}

var tabs atomic.Int64

func openTab(t *testing.T, n *Node, user string, state map[string]string) *tab {
	t.Helper()
	b := &tab{Page: testkit.NewPage(t, state), t: t, user: user, name: fmt.Sprintf("tab-%05d", tabs.Add(1))}
	b.Epoch("epoch of " + b.name)
	b.dial(n)
	return b
}

// dial connects the tab to a node: its frames go there from now on.
func (b *tab) dial(n *Node) {
	b.t.Helper()
	out := make(chan []byte, 10_000)
	page, err := n.Attach(b.user, app, func(frame []byte) {
		if frame == nil {
			close(out)
			return
		}
		out <- frame
	})
	if err != nil {
		b.t.Fatal(err)
	}
	go func() {
		for frame := range out {
			b.mu.Lock()
			if b.page == page { // a testkit.Page has one link, and this may be an old one
				b.Hear(frame)
			}
			b.mu.Unlock()
		}
	}()
	b.mu.Lock()
	b.page = page
	b.dials++
	dials := b.dials
	b.mu.Unlock()
	b.Connect(func(frame []byte) { _ = page.Receive(frame) }, // the page gets the reason
		map[string]any{"tab": b.name, "title": "Doc", "url": app + "/", "dial": dials})
}

// cut ends the tab's transport.
func (b *tab) cut() {
	b.mu.Lock()
	page := b.page
	b.mu.Unlock()
	page.Lost()
}

func openReader(t *testing.T, n *Node, user string) *Reader {
	t.Helper()
	r, release, err := n.Reader("", user, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	testkit.Ends(t, "the reader is ready", r.Ready())
	return r
}

func agentOf(t *testing.T, g *gateway.Gateway) *testkit.Agent {
	t.Helper()
	return agentBy(t, g, "test")
}

func agentBy(t *testing.T, g *gateway.Gateway, transport string) *testkit.Agent {
	t.Helper()
	port, err := g.Connect(transport)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Connect(t, testkit.Transport(port), testkit.Legacy)
}

func openAgent(t *testing.T, n *Node, user string) *testkit.Agent {
	t.Helper()
	return agentOf(t, openReader(t, n, user).Gateway)
}

// kill ends a node like a power cut: no other node is notified.
func kill(n *Node) {
	all := func(string, []byte) bool { return true }
	n.drops.Store(&all)
	n.bus.Close()
}

func kindOf(text []byte) string {
	m, _ := parse(text)
	return m.kind
}

// A roamer is a modern agent behind a balancer: it listens at one gateway, and each read may go to another. It reads
// only when it is notified of a change.
type roamer struct {
	t     *testing.T
	reads func() *gateway.Gateway // the gateway of the next read
	told  chan string             // texts that it has read after notifications
	asks  atomic.Int64            // reads that a gateway has accepted

	mu   sync.Mutex
	held map[string]string // the last text of each URI, or the error
}

// ask sends a gateway a request of the modern era, calls asked when the gateway has it, and passes each answer to take
// until take returns true.
func ask(ctx context.Context, g *gateway.Gateway, method, params string, asked func(),
	take func(message string) (last bool)) {
	a, err := g.Connect(gateway.TransportRequest)
	if err != nil {
		return // the node has gone
	}
	defer a.Close()
	if a.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		method, params, testkit.Modern)) != nil {
		return
	}
	asked()
	for {
		message, err := a.Read(ctx)
		if err != nil || take(string(message)) {
			return
		}
	}
}

// roam begins to listen, and returns when the URIs are watched.
func roam(t *testing.T, listens *gateway.Gateway, reads func() *gateway.Gateway, uris ...string) *roamer {
	t.Helper()
	m, _ := roamUntil(t, listens, reads, uris...)
	return m
}

// roamUntil is roam for a caller that ends it before the test does.
func roamUntil(t *testing.T, listens *gateway.Gateway, reads func() *gateway.Gateway,
	uris ...string) (m *roamer, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	m = &roamer{t: t, reads: reads, told: make(chan string, 100_000), held: map[string]string{}}
	listening := make(chan bool, 1)
	updates := make(chan string, 100_000)
	take := func(message string) bool {
		switch {
		case strings.Contains(message, "subscriptions/acknowledged"):
			listening <- true
		case strings.Contains(message, "resources/updated"):
			_, uri, _ := strings.Cut(message, `"uri":"`)
			uri, _, _ = strings.Cut(uri, `"`)
			updates <- uri
		}
		return false
	}
	filter := `"notifications":{"resourceSubscriptions":["` + strings.Join(uris, `","`) + `"]}`
	running.Go(func() { ask(ctx, listens, "subscriptions/listen", filter, func() {}, take) })
	testkit.Receive(t, "the listen is acknowledged", listening)
	running.Go(func() {
		for {
			select {
			case uri := <-updates:
				m.told <- m.look(uri)
			case <-ctx.Done():
				return
			}
		}
	})
	return m, func() { cancel(); running.Wait() }
}

// look reads a URI once.
func (m *roamer) look(uri string) (text string) {
	asked := func() { m.asks.Add(1) }
	ask(m.t.Context(), m.reads(), "resources/read", `"uri":"`+uri+`"`, asked, func(message string) bool {
		var answer struct {
			Result struct{ Contents []struct{ Text string } }
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(message), &answer); err != nil {
			m.t.Error(err)
		}
		if answer.Error != nil {
			text = answer.Error.Message
		} else if len(answer.Result.Contents) > 0 {
			text = answer.Result.Contents[0].Text
		}
		return true
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[uri] = text
	return text
}

// holds waits until the roamer holds a text, as the result of notifications alone.
func (m *roamer) holds(uri, want string) {
	m.t.Helper()
	testkit.Settles(m.t, fmt.Sprintf("it holds %q", want), func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		if got := m.held[uri]; got != want {
			return fmt.Sprintf("it holds %q", got)
		}
		return ""
	})
}
