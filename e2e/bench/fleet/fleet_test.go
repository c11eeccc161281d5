// Package fleet measures nodes of a fleet (make bench FLEET=1). It compares the memory of an idle
// page with that of a bare WebSocket, and changes and reads across nodes with bare NATS. It
// measures how soon all agents hold the last state after a node with many pages was killed. Agents
// are raw HTTP, nodes processes of bin/pagewire-node. All is on loopback. A figure never makes a
// benchmark fail.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/dial"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/nodekit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

const (
	origin = "https://app.example"
	// pages is the number of idle pages, and of those of the node that is killed.
	pages = 5000
	// pace is the pause between changes. Each of 200 URIs changes once in 400 ms, so that no change
	// is coalesced.
	pace = 2 * time.Millisecond
)

// The variables make this program a process of the benchmark, instead of the benchmark: clients of
// idle pages at a URL, or a bare server of NATS that joins another, or none.
const idleVariable, bareVariable = "BENCH_IDLE", "BENCH_BARE"

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	url, join := os.Getenv(idleVariable), os.Getenv(bareVariable)
	err := error(nil)
	switch {
	case url != "":
		err = idleClients(ctx, url, os.Getenv("BENCH_TICKET"))
	case join != "":
		err = bareServer(ctx, join)
	default:
		m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// itself starts this program as another process of the benchmark.
func itself(b *testing.B, env ...string) *exec.Cmd {
	cmd := testcmd.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // it ends only so
		_ = cmd.Wait()
	})
	return cmd
}

// quantiles reports the median and the 99th percentile of some times.
func quantiles(b *testing.B, name string, list []time.Duration) {
	slices.Sort(list)
	for _, q := range []int{50, 99} {
		b.ReportMetric(float64(list[len(list)*q/100].Microseconds())/1000,
			fmt.Sprintf("%s-p%d-ms", name, q))
	}
	b.ReportMetric(0, "ns/op") // the benchmark is one measurement
}

// idleClients connects pages that offer one resource each and are then idle, and waits. Without a
// ticket they are bare WebSockets. It runs in a process of its own, so that its memory is not
// counted as the node's.
func idleClients(ctx context.Context, url, ticket string) error {
	options := &websocket.DialOptions{}
	if ticket != "" {
		options = &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}},
			Subprotocols: []string{"pagewire.v1"}}
	}
	for i := range pages {
		ws, _, err := websocket.Dial(ctx, url, options)
		if err != nil {
			return err
		}
		if ticket != "" {
			for _, text := range []string{fmt.Sprintf(`{"type":"pagewire:ticket","ticket":%q}`,
				ticket),
				fmt.Sprintf(
					`[["hello",1,"0",{"epoch":"e%d","tab":"tab-%d","title":"Cart","url":"https://app.example/"}]]`,
					i, 10_000_000+i),
				`[["register","{\"uri\":\"https://app.example/cart\",\"name\":\"Cart\",` +
					`\"description\":\"What is in the cart\",\"mimeType\":\"application/json\"}"]]`} {
				if err := ws.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
					return err
				}
			}
		}
		go func() {
			for err := error(nil); err == nil; {
				_, _, err = ws.Read(ctx)
			}
		}()
	}
	<-ctx.Done()
	return nil
}

// weigh returns the memory in use of this process for each client that is connected to a handler.
func weigh(b *testing.B, h http.Handler, ticket string, connected func() int) float64 {
	s := httptest.NewServer(h)
	defer s.Close()
	before := inUse()
	clients := itself(b, idleVariable+"=ws"+strings.TrimPrefix(s.URL, "http"), "BENCH_TICKET="+
		ticket)
	testkit.OK(b, clients.Start())
	testkit.Eventually(b, "all are connected", func() bool { return connected() == pages })
	time.Sleep(500 * time.Millisecond) // for the work that is due within milliseconds
	used := float64(inUse()-before) / pages / 1024
	testkit.OK(b, clients.Process.Kill())
	return used
}

// inUse returns the bytes in use after several garbage collections: each shrinks grown stacks by
// half.
func inUse() int64 {
	for range 5 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func BenchmarkIdlePage(b *testing.B) {
	var bare atomic.Int64
	plain := weigh(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		bare.Add(1)
		defer ws.CloseNow()
		for err == nil {
			_, _, err = ws.Read(context.Background())
		}
	}), "", func() int { return int(bare.Load()) })
	login := nodekit.NewLogin(b)
	n := testkit.Must(node.Open(node.Options{UserPages: pages}))(b)
	defer n.Close()
	ours := weigh(b, dial.New(dial.Options{Node: n, Tickets: login.Verifier()}),
		login.Ticket("alice", origin), func() int {
			if s := n.Stats(); s.OfferedBytes > 0 {
				return s.Pages
			}
			return 0
		})
	b.ReportMetric(ours, "KB")
	b.ReportMetric(plain, "bare-KB")
	b.ReportMetric(0, "ns/op")
}

// uris are the URIs of a page of an origin, with their first texts.
func uris(origin string, count int) map[string]string {
	all := map[string]string{}
	for i := range count {
		all[fmt.Sprintf("%s/cart/%d", origin, i)] = "0"
	}
	return all
}

// pair opens a page at one node, and an agent that watches all its URIs, at the same node or
// another.
func pair(b *testing.B, c *cluster, user string, pageAt, agentAt, count int) (*testkit.Page,
	*agent) {
	p := testkit.NewPage(b, uris(origin, count))
	p.Dial(c.nodes[pageAt].listen, origin, c.login.Ticket(user, origin))
	a := openAgent(b, c.nodes[agentAt].listen, c.login.Token(user, "pages:read"))
	for uri := range uris(origin, count) {
		a.watch(uri)
		testkit.Eventually(b, "it is watched", func() bool { return p.Watches(uri) })
	}
	return p, a
}

// BenchmarkChange is a change from a page at one node to an agent at another, and the same over
// bare NATS.
func BenchmarkChange(b *testing.B) {
	c := startCluster(b, 2)
	const count, samples = 200, 2000
	p, a := pair(b, c, "alice", 0, 1, count)
	before := c.nodes[0].metric("touches_total")
	for range 100 {
		p.Post(`[["touch","https://app.example/other",1]]`) // unwatched
	}
	drain(a.told)
	var ours []time.Duration
	for i := range samples {
		time.Sleep(pace)
		began := time.Now()
		p.Touch(fmt.Sprintf("%s/cart/%d", origin, i%count))
		testkit.Receive(b, "the agent is told of a change", a.told)
		ours = append(ours, time.Since(began))
	}
	quantiles(b, "change", ours)
	quantiles(b, "bare-NATS", bareNATS(b, samples))
	b.ReportMetric(c.nodes[0].metric("touches_total")-before-samples, "unwatched-on-the-bus")
}

func drain[T any](channel chan T) {
	for len(channel) > 0 {
		<-channel
	}
}

// bareNATS sends a text from one WebSocket to another between two NATS servers, again and again,
// and returns the times until it arrives. Each server is a process of its own, as a node is.
func bareNATS(b *testing.B, samples int) (list []time.Duration) {
	var at [2][2]string // the addresses of its WebSockets and of its cluster
	for i, join := range []*string{new("alone"), &at[0][1]} {
		child := itself(b, bareVariable+"="+*join)
		out := testkit.Must(child.StdoutPipe())(b)
		testkit.OK(b, child.Start())
		_, err := fmt.Fscan(out, &at[i][0], &at[i][1])
		testkit.OK(b, err)
	}
	dialed := func(i int, path string) *websocket.Conn {
		ws, _, err := websocket.Dial(b.Context(), "ws://"+at[i][0]+path, nil)
		testkit.OK(b, err)
		b.Cleanup(func() { ws.CloseNow() })
		return ws
	}
	from, to := dialed(0, "/in"), dialed(1, "/out")
	told := make(chan struct{}, 100_000)
	go func() {
		for {
			if _, _, err := to.Read(b.Context()); err != nil {
				return
			}
			told <- struct{}{}
		}
	}()
	text := []byte(`[["touch","https://app.example/cart/17",1234]]`)
	testkit.Eventually(b, "the bare way is there", func() bool {
		_ = from.Write(b.Context(), websocket.MessageText, text) // the next round tries again
		return len(told) > 0
	})
	time.Sleep(100 * time.Millisecond)
	drain(told)
	for range samples {
		time.Sleep(pace)
		began := time.Now()
		testkit.OK(b, from.Write(b.Context(), websocket.MessageText, text))
		testkit.Receive(b, "the text arrives", told)
		list = append(list, time.Since(began))
	}
	return list
}

// bareServer is one of the two servers: it publishes the messages of /in, and sends the published
// ones to /out.
func bareServer(ctx context.Context, join string) error {
	o := &server.Options{DontListen: false, Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true,
		Cluster: server.ClusterOpts{Name: "bare", Host: "127.0.0.1", Port: -1, PoolSize: -1}}
	if join != "alone" {
		o.Routes = server.RoutesFromStr("nats://" + join)
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("a bare server of NATS does not come up")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return err
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		if r.URL.Path == "/out" {
			_, err = conn.Subscribe("x",
				func(m *nats.Msg) { _ = ws.Write(ctx, websocket.MessageText, m.Data) })
		}
		for err == nil {
			var text []byte
			if _, text, err = ws.Read(ctx); err == nil {
				err = conn.Publish("x", text)
			}
		}
	}))
	fmt.Println(h.Listener.Addr(), s.ClusterAddr())
	<-ctx.Done()
	return nil
}

// BenchmarkRead is reads across nodes and at one node, in turns.
func BenchmarkRead(b *testing.B) {
	c := startCluster(b, 2)
	_, far := pair(b, c, "alice", 0, 1, 1)
	_, near := pair(b, c, "bob", 0, 0, 1)
	times := map[*agent][]time.Duration{}
	for range 1500 {
		for _, a := range []*agent{near, far} {
			began := time.Now()
			a.ask("resources/read", `{"uri":"https://app.example/cart/0"}`)
			times[a] = append(times[a], time.Since(began))
		}
	}
	quantiles(b, "across-nodes", times[far])
	quantiles(b, "at-one-node", times[near])
}

// BenchmarkKill kills a node with many pages, some of which are watched. These dial another node
// within 2 s, as their page layers do. It measures how soon their agents hold the last state.
func BenchmarkKill(b *testing.B) {
	c := startCluster(b, 3)
	const watched = 50
	var killed atomic.Bool
	var list []*testkit.Page
	uri := origin + "/cart/0"
	for i := range pages {
		p := testkit.NewPage(b, uris(origin, 1))
		list = append(list, p)
		ticket := c.login.Ticket("user"+strconv.Itoa(i), origin)
		p.DialAny(func() string {
			if !killed.Load() {
				return c.nodes[0].listen
			}
			time.Sleep(rand.N(2 * time.Second))
			return c.nodes[1].listen
		}, origin, func() string { return ticket })
	}
	at := func(
		node int) func() bool {
		return func() bool { return c.nodes[node].metric("pages") == pages }
	}
	testkit.Eventually(b, "all pages are there", at(0))
	var agents []*agent
	for i := range watched {
		a := openAgent(b, c.nodes[2].listen, c.login.Token("user"+strconv.Itoa(i), "pages:read"))
		a.watch(uri)
		agents = append(agents, a)
	}
	for _, a := range agents {
		drain(a.told)
	}
	killed.Store(true)
	testkit.OK(b, c.nodes[0].cmd.Process.Kill())
	began := time.Now()
	for i := range agents {
		list[i].Edit(uri, "1")
	}
	for _, a := range agents {
		testkit.Receive(b, "an agent is told", a.told)
		if text := a.ask("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)); !strings.Contains(text,
			`"text":"1"`) {
			b.Errorf("an agent has read %s", text)
		}
	}
	b.ReportMetric(time.Since(began).Seconds(), "s-until-agents-hold-the-state")
	testkit.Eventually(b, "all pages are back", at(1))
	b.ReportMetric(time.Since(began).Seconds(), "s-until-pages-are-back")
	b.ReportMetric(0, "ns/op")
}
