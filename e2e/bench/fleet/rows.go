package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"

	"github.com/pagewire/pagewire/bridge/gateway/fleet"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/dial"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"

	"github.com/nats-io/nats-server/v2/server"
)

// idleClients connects pages that offer one resource each and are then idle, and waits. It runs in a process of its
// own, so that its memory is not counted as the node's.
func idleClients(ctx context.Context, url string, count int) {
	tickets := os.Getenv("BENCH_TICKET")
	for i := range count {
		tab := "tab-" + strconv.Itoa(10_000_000+i)
		var ws *websocket.Conn
		if tickets == "" {
			var err error
			ws, _, err = websocket.Dial(ctx, url, nil)
			check(err)
		} else {
			ws = dialPage(ctx, url, tickets, tab)
			check(ws.Write(ctx, websocket.MessageText, []byte(`[["register","{\"uri\":\"https://app.example/cart\",`+
				`\"name\":\"Cart\",\"description\":\"What is in the cart\",\"mimeType\":\"application/json\"}"]]`)))
		}
		go func() {
			for {
				if _, _, err := ws.Read(ctx); err != nil {
					return
				}
			}
		}()
	}
	<-ctx.Done()
}

// weigh returns the memory in use of this process for each of `count` clients that are connected to a handler.
func weigh(ctx context.Context, h http.Handler, ticket string, count int, connected func() int) float64 {
	s := httptest.NewServer(h)
	defer s.Close()
	before := inUse()
	clients := testcmd.CommandContext(ctx, os.Args[0], "-idle", "ws"+s.URL[len("http"):], "-pages", strconv.Itoa(count))
	clients.Env = append(os.Environ(), "BENCH_TICKET="+ticket)
	clients.Stderr = os.Stderr
	check(clients.Start())
	defer func() {
		_ = clients.Process.Kill() // it ends only so
		_ = clients.Wait()
	}()
	eventually("all are connected", func() bool { return connected() == count })
	time.Sleep(500 * time.Millisecond) // for the work that is due within milliseconds
	return float64(inUse()-before) / float64(count)
}

// inUse returns the bytes in use after several garbage collections: each shrinks grown stacks by half.
func inUse() int64 {
	for range 5 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// memory weighs idle pages and bare WebSockets.
func memory(ctx context.Context, count int) {
	var bare atomic.Int64
	plain := weigh(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		bare.Add(1)
		defer ws.CloseNow()
		for {
			if _, _, err := ws.Read(context.Background()); err != nil {
				return
			}
		}
	}), "", count, func() int { return int(bare.Load()) })
	login := must(issuertest.New("https://login.example", public))
	dir := must(os.MkdirTemp("", "pagewire-bench-"))
	defer os.RemoveAll(dir)
	keys := filepath.Join(dir, "keys")
	check(os.WriteFile(keys, login.Keys(), 0o600))
	verifier := must(tickets.New(tickets.Options{Audience: public, Issuers: []tickets.Issuer{{Issuer: login.Name,
		JWKS: keys}}}))
	n := must(fleet.Open(fleet.Options{UserPages: count}))
	defer n.Close()
	ours := weigh(ctx, dial.New(dial.Options{Node: n, Tickets: verifier}), login.Ticket("alice", origin), count,
		func() int {
			if s := n.Stats(); s.OfferedBytes > 0 {
				return s.Pages
			}
			return 0
		})
	row(fmt.Sprintf("idle page, memory (%d of them)", count), fmt.Sprintf("%.1f KB", ours/1024),
		fmt.Sprintf("bare WebSocket %.1f KB", plain/1024), fmt.Sprintf("%.2fx", ours/plain))
}

// uris are the URIs of a page of the benchmark.
func uris(count int) (list []string) {
	for i := range count {
		list = append(list, fmt.Sprintf("%s/cart/%d", origin, i))
	}
	return list
}

// pair opens a page at one node, and an agent that watches all its URIs, at the same node or another.
func pair(ctx context.Context, c *cluster, user string, pageAt, agentAt, count int) (*page, *agent) {
	p := openPage(ctx, c.nodes[pageAt].listen, c.login.Ticket(user, origin), "tab-of-"+user, uris(count))
	a := openAgent(ctx, c.nodes[agentAt].listen, c.login.Token(user, "pages:read"))
	for _, uri := range uris(count) {
		a.subscribe(uri)
	}
	eventually("all is watched", func() bool { return p.watches(count) })
	return p, a
}

// pace is the pause between changes. Each of 200 URIs changes once in 400 ms, so that no change is coalesced.
const pace = 2 * time.Millisecond

// latencies changes URIs one after the other, and returns the times until the agent is notified.
func latencies(p *page, a *agent, count, samples int) (list []time.Duration) {
	for len(a.told) > 0 {
		<-a.told
	}
	for i := range samples {
		time.Sleep(pace)
		uri := fmt.Sprintf("%s/cart/%d", origin, i%count)
		began := time.Now()
		p.change(uri)
		select {
		case <-a.told:
			list = append(list, time.Since(began))
		case <-time.After(10 * time.Second):
			check(fmt.Errorf("the agent was not told of change %d", i))
		}
	}
	return list
}

// changes measures a change from a page at one node to an agent at another, and the same over bare NATS.
func changes(ctx context.Context, program string) {
	c := startCluster(ctx, program, 2, nil)
	defer c.close()
	const count, samples = 200, 2000
	p, a := pair(ctx, c, "alice", 0, 1, count)
	before := c.nodes[0].metric("pagewire_node_touches_total")
	for range 100 { // unwatched
		p.say(`[["touch","https://app.example/other",1]]`)
	}
	ours := latencies(p, a, count, samples)
	crossed := c.nodes[0].metric("pagewire_node_touches_total") - before - samples
	bare := bareNATS(ctx, samples)
	ratios("change to an agent at another node", ours, "NATS and two WebSockets", bare)
	row("unwatched changes, crossing the bus", fmt.Sprint(crossed), "", "")
}

// bareNATS sends a text from one WebSocket to another between two NATS servers. Each server is a process of its own, as
// a node is.
func bareNATS(ctx context.Context, samples int) (list []time.Duration) {
	withBare(ctx, nil, func(from, to string) {
		ws, _, err := websocket.Dial(ctx, to+"/out", nil)
		check(err)
		defer ws.CloseNow()
		told := make(chan struct{}, 100_000)
		go func() {
			for {
				if _, _, err := ws.Read(ctx); err != nil {
					return
				}
				told <- struct{}{}
			}
		}()
		list = barePing(ctx, from, told, samples)
	})
	return list
}

// withBare calls `do` with the URLs of two bare servers. The second one has env in its environment.
func withBare(ctx context.Context, env []string, do func(from, to string)) {
	var at [2][2]string // the addresses of its WebSockets and of its cluster
	for i := range at {
		child := testcmd.CommandContext(ctx, os.Args[0], "-bare", "alone")
		if i > 0 {
			child.Args[2] = at[0][1]
			child.Env = append(os.Environ(), env...)
		}
		child.Stderr = os.Stderr
		out := must(child.StdoutPipe())
		check(child.Start())
		defer func() {
			_ = child.Process.Kill() // it ends only so
			_ = child.Wait()
		}()
		must(fmt.Fscan(out, &at[i][0], &at[i][1]))
	}
	do("ws://"+at[0][0], "ws://"+at[1][0])
}

// bareServer is one of the two servers: it publishes the messages of /in, and sends the published ones to /out.
func bareServer(ctx context.Context, join string) {
	o := &server.Options{DontListen: false, Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true,
		Cluster: server.ClusterOpts{Name: "bare", Host: "127.0.0.1", Port: -1, PoolSize: -1}}
	if join != "alone" {
		o.Routes = server.RoutesFromStr("nats://" + join)
	}
	s := must(server.NewServer(o))
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		check(errors.New("a bare server of NATS does not come up"))
	}
	conn := must(nats.Connect("", nats.InProcessServer(s)))
	if ca := os.Getenv("BENCH_CA"); ca != "" {
		post := poster([]byte(ca))
		must(conn.Subscribe("x", func(m *nats.Msg) { post(os.Getenv("BENCH_HOOK"), m.Data) }))
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		if r.URL.Path == "/out" {
			_, err = conn.Subscribe("x", func(m *nats.Msg) { _ = ws.Write(ctx, websocket.MessageText, m.Data) })
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
}

// barePing sends a text to a bare server again and again, and returns the times until it arrives.
func barePing(ctx context.Context, server string, told chan struct{}, samples int) (list []time.Duration) {
	from, _, err := websocket.Dial(ctx, server+"/in", nil)
	check(err)
	defer from.CloseNow()
	text := []byte(`[["touch","https://app.example/cart/17",1234]]`)
	eventually("the bare way is there", func() bool {
		_ = from.Write(ctx, websocket.MessageText, text) // the next round tries again
		return len(told) > 0
	})
	time.Sleep(100 * time.Millisecond)
	for len(told) > 0 {
		<-told
	}
	for range samples {
		time.Sleep(pace)
		began := time.Now()
		check(from.Write(ctx, websocket.MessageText, text))
		<-told
		list = append(list, time.Since(began))
	}
	return list
}

// reads measures reads across nodes and at one node, in turns.
func reads(ctx context.Context, program string) {
	c := startCluster(ctx, program, 2, nil)
	defer c.close()
	_, far := pair(ctx, c, "alice", 0, 1, 1)
	_, near := pair(ctx, c, "bob", 0, 0, 1)
	var across, same []time.Duration
	for i := range 3000 {
		a, list := far, &across
		if i%2 == 0 {
			a, list = near, &same
		}
		began := time.Now()
		a.ask("resources/read", `{"uri":"https://app.example/cart/0"}`)
		*list = append(*list, time.Since(began))
	}
	x, y := quantile(across, 0.5), quantile(same, 0.5)
	row("read across nodes, p50", ms(x), "at one node "+ms(y), fmt.Sprintf("%.2fx", float64(x)/float64(y)))
}

// A killing is the end of a node with many pages, some of which are watched.
type killing struct {
	ctx    context.Context
	c      *cluster
	count  int
	agents []*agent
	failed atomic.Int64
}

// recovery kills a node with many pages. These dial another node, as their page layers do. It measures how soon their
// agents hold the last state.
func recovery(ctx context.Context, program string, count int) {
	c := startCluster(ctx, program, 3, nil)
	defer c.close()
	const watched = 50
	k := &killing{ctx: ctx, c: c, count: count}
	for i := range count {
		k.open(i, 0, k.ticket(i))
	}
	k.watch(watched)
	fresh := make([]string, count) // made before; the service would use other machines
	for i := range fresh {
		fresh[i] = k.ticket(i)
	}
	check(c.nodes[0].cmd.Process.Kill())
	killed := time.Now()
	var all sync.WaitGroup
	for i, ticket := range fresh {
		all.Go(func() {
			// As the page layer does, within 2 s.
			time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Second))))
			if attempt(func() { k.open(i, 1, ticket) }) != nil {
				k.failed.Add(1)
			}
		})
	}
	untold := k.hold()
	took := time.Since(killed)
	all.Wait()
	row(fmt.Sprintf("a node with %d pages is killed: %d agents hold", count, watched),
		fmt.Sprintf("%.1f s", took.Seconds()),
		fmt.Sprintf("all pages are back after %.1f s", time.Since(killed).Seconds()),
		fmt.Sprintf("%d were not told, %d pages failed", untold, k.failed.Load()))
}

func (k *killing) ticket(i int) string { return k.c.login.Ticket("user"+strconv.Itoa(i), origin) }

func (k *killing) open(i, at int, ticket string) {
	openPage(k.ctx, k.c.nodes[at].listen, ticket, "tab-of-user"+strconv.Itoa(i), uris(1))
}

// watch opens agents of the first users, at the third node.
func (k *killing) watch(count int) {
	for i := range count {
		a := openAgent(k.ctx, k.c.nodes[2].listen, k.c.login.Token("user"+strconv.Itoa(i), "pages:read"))
		a.subscribe(uris(1)[0])
		k.agents = append(k.agents, a)
	}
	for _, a := range k.agents {
		for len(a.told) > 0 {
			<-a.told
		}
	}
}

// hold waits until each agent has been notified and has read. It returns the number of agents that were not notified.
func (k *killing) hold() (untold int) {
	for _, a := range k.agents {
		select {
		case <-a.told:
			a.ask("resources/read", `{"uri":"https://app.example/cart/0"}`)
		case <-time.After(30 * time.Second):
			untold++
		}
	}
	return untold
}
