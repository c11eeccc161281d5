package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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
	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets/issuertest"

	"github.com/nats-io/nats-server/v2/server"
)

// idleClients connects pages that offer one resource each and then say nothing, and waits. It is a process of its own,
// so that its memory is not the node's.
func idleClients(ctx context.Context, url string, count int) error {
	tickets := os.Getenv("BENCH_TICKET")
	for i := range count {
		tab := "tab-" + strconv.Itoa(10_000_000+i)
		var ws *websocket.Conn
		var err error
		if tickets == "" {
			ws, _, err = websocket.Dial(ctx, url, nil)
		} else if ws, err = dialPage(ctx, url, tickets, tab); err == nil {
			err = ws.Write(ctx, websocket.MessageText, []byte(`[["register","{\"uri\":\"https://app.example/cart\",`+
				`\"name\":\"Cart\",\"description\":\"What is in the cart\",\"mimeType\":\"application/json\"}"]]`))
		}
		if err != nil {
			return err
		}
		go func() {
			for {
				if _, _, err := ws.Read(ctx); err != nil {
					return
				}
			}
		}()
	}
	fmt.Println("connected")
	<-ctx.Done()
	return nil
}

// weigh is the memory of this process in use while so many clients are connected to a handler, for each.
func weigh(ctx context.Context, h http.Handler, ticket string, count int, connected func() int) (float64, error) {
	s := httptest.NewServer(h)
	defer s.Close()
	before := inUse()
	clients := exec.CommandContext(ctx, os.Args[0], "-idle", "ws"+s.URL[len("http"):], "-pages", strconv.Itoa(count))
	clients.Env = append(os.Environ(), "BENCH_TICKET="+ticket)
	clients.Stderr = os.Stderr
	if err := clients.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = clients.Process.Kill() // it is to end
		_ = clients.Wait()
	}()
	if err := eventually("all are connected", func() bool { return connected() == count }); err != nil {
		return 0, err
	}
	time.Sleep(500 * time.Millisecond) // what is due within milliseconds is over
	return float64(inUse()-before) / float64(count), nil
}

// inUse is what is in use when the garbage has been collected, several times: stacks that have grown shrink by half
// with each.
func inUse() int64 {
	for range 5 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// memory weighs idle pages beside bare WebSockets.
func memory(ctx context.Context, count int) error {
	var bare atomic.Int64
	plain, err := weigh(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	if err != nil {
		return err
	}
	login, err := issuertest.New("https://login.example", public)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pagewire-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, login.Keys(), 0o600); err != nil {
		return err
	}
	verifier, err := tickets.New(tickets.Options{Audience: public, Issuers: []tickets.Issuer{{Issuer: login.Name,
		JWKS: keys}}})
	if err != nil {
		return err
	}
	n, err := fleet.Open(fleet.Options{UserPages: count})
	if err != nil {
		return err
	}
	defer n.Close()
	ours, err := weigh(ctx, dial.New(dial.Options{Node: n, Tickets: verifier}), login.Ticket("alice", origin), count,
		func() int {
			if s := n.Stats(); s.OfferedBytes > 0 {
				return s.Pages
			}
			return 0
		})
	if err != nil {
		return err
	}
	row(fmt.Sprintf("idle page, memory (%d of them)", count), fmt.Sprintf("%.1f KB", ours/1024),
		fmt.Sprintf("bare WebSocket %.1f KB", plain/1024), fmt.Sprintf("%.2fx", ours/plain))
	return nil
}

// uris are what a page of the benchmark offers.
func uris(count int) (list []string) {
	for i := range count {
		list = append(list, fmt.Sprintf("%s/cart/%d", origin, i))
	}
	return list
}

// pair is a page at one node and an agent at another, or the same, that watches all of it.
func pair(ctx context.Context, c *cluster, user string, pageAt, agentAt, count int) (*page, *agent, error) {
	p, err := openPage(ctx, c.nodes[pageAt].listen, c.login.Ticket(user, origin), "tab-of-"+user, uris(count))
	if err != nil {
		return nil, nil, err
	}
	a, err := openAgent(ctx, c.nodes[agentAt].listen, c.login.Token(user, "pages:read"))
	if err != nil {
		return nil, nil, err
	}
	for _, uri := range uris(count) {
		if err := a.subscribe(uri); err != nil {
			return nil, nil, err
		}
	}
	return p, a, eventually("all is watched", func() bool { return p.watches(count) })
}

// pace is the pause between two changes: 500 a second, of which each URI has one in 400 ms, so that none is coalesced.
const pace = 2 * time.Millisecond

// latencies changes URIs one after the other, and takes how long until the agent is told.
func latencies(p *page, a *agent, count, samples int) ([]time.Duration, error) {
	for len(a.told) > 0 {
		<-a.told
	}
	var list []time.Duration
	for i := range samples {
		time.Sleep(pace)
		uri := fmt.Sprintf("%s/cart/%d", origin, i%count)
		began := time.Now()
		if err := p.change(uri); err != nil {
			return nil, err
		}
		select {
		case <-a.told:
			list = append(list, time.Since(began))
		case <-time.After(10 * time.Second):
			return nil, fmt.Errorf("the agent was not told of change %d", i)
		}
	}
	return list, nil
}

// changes measures a change from a page at one node to an agent at another, beside the bare thing.
func changes(ctx context.Context, program string) error {
	c, err := startCluster(ctx, program, 2)
	if c != nil {
		defer c.end()
	}
	if err != nil {
		return err
	}
	const count, samples = 200, 2000
	p, a, err := pair(ctx, c, "alice", 0, 1, count)
	if err != nil {
		return err
	}
	before := c.nodes[0].metric("pagewire_node_touches_total")
	for range 100 { // unwatched
		if err := p.say(`[["touch","https://app.example/other",1]]`); err != nil {
			return err
		}
	}
	ours, err := latencies(p, a, count, samples)
	if err != nil {
		return err
	}
	crossed := c.nodes[0].metric("pagewire_node_touches_total") - before - samples
	bare, err := bareNATS(ctx, samples)
	if err != nil {
		return err
	}
	ratios("change to an agent at another node", ours, "NATS and two WebSockets", bare)
	row("unwatched changes, crossing the bus", fmt.Sprint(crossed), "", "")
	return nil
}

// bareNATS sends a text from one WebSocket to another, between two servers of NATS, each a process of its own as a node
// is.
func bareNATS(ctx context.Context, samples int) (list []time.Duration, err error) {
	err = withBare(ctx, nil, func(from, to string) error {
		ws, _, err := websocket.Dial(ctx, to+"/out", nil)
		if err != nil {
			return err
		}
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
		list, err = barePing(ctx, from, told, samples)
		return err
	})
	return list, err
}

// withBare calls do with the URLs of two bare servers. The environment is the second one's.
func withBare(ctx context.Context, env []string, do func(from, to string) error) error {
	var at [2][2]string // where its WebSockets and its cluster are
	for i := range at {
		child := exec.CommandContext(ctx, os.Args[0], "-bare", "alone")
		if i > 0 {
			child.Args[2] = at[0][1]
			child.Env = append(os.Environ(), env...)
		}
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			return err
		}
		defer func() {
			_ = child.Process.Kill() // it is to end
			_ = child.Wait()
		}()
		if _, err := fmt.Fscan(out, &at[i][0], &at[i][1]); err != nil {
			return err
		}
	}
	return do("ws://"+at[0][0], "ws://"+at[1][0])
}

// bareServer is one of the two: what comes to /in is published, and what is published comes from /out.
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
		return fmt.Errorf("a bare server of NATS does not come up")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return err
	}
	if ca := os.Getenv("BENCH_CA"); ca != "" {
		post := poster([]byte(ca))
		if _, err := conn.Subscribe("x", func(m *nats.Msg) { post(os.Getenv("BENCH_HOOK"), m.Data) }); err != nil {
			return err
		}
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
	return nil
}

// barePing says a text to a bare server, and takes how long until it is told.
func barePing(ctx context.Context, server string, told chan struct{}, samples int) ([]time.Duration, error) {
	from, _, err := websocket.Dial(ctx, server+"/in", nil)
	if err != nil {
		return nil, err
	}
	defer from.CloseNow()
	text := []byte(`[["touch","https://app.example/cart/17",1234]]`)
	if err := eventually("the bare way is there", func() bool {
		_ = from.Write(ctx, websocket.MessageText, text) // it is tried again
		return len(told) > 0
	}); err != nil {
		return nil, err
	}
	time.Sleep(100 * time.Millisecond)
	for len(told) > 0 {
		<-told
	}
	var list []time.Duration
	for range samples {
		time.Sleep(pace)
		began := time.Now()
		if err := from.Write(ctx, websocket.MessageText, text); err != nil {
			return nil, err
		}
		<-told
		list = append(list, time.Since(began))
	}
	return list, nil
}

// reads measures a read across nodes beside the same at one, in turns.
func reads(ctx context.Context, program string) error {
	c, err := startCluster(ctx, program, 2)
	if c != nil {
		defer c.end()
	}
	if err != nil {
		return err
	}
	_, far, err := pair(ctx, c, "alice", 0, 1, 1)
	if err != nil {
		return err
	}
	_, near, err := pair(ctx, c, "bob", 0, 0, 1)
	if err != nil {
		return err
	}
	var across, same []time.Duration
	for i := range 3000 {
		a, list := far, &across
		if i%2 == 0 {
			a, list = near, &same
		}
		began := time.Now()
		if _, err := a.ask("resources/read", `{"uri":"https://app.example/cart/0"}`); err != nil {
			return err
		}
		*list = append(*list, time.Since(began))
	}
	x, y := quantile(across, 0.5), quantile(same, 0.5)
	row("read across nodes, p50", ms(x), "at one node "+ms(y), fmt.Sprintf("%.2fx", float64(x)/float64(y)))
	return nil
}

// A killing is a node with many pages that is killed, of which some are watched.
type killing struct {
	ctx    context.Context
	c      *cluster
	count  int
	agents []*agent
	failed atomic.Int64
}

// recovery kills a node with many pages, which dial another, as their page layers do, and says how soon their agents
// hold the last state.
func recovery(ctx context.Context, program string, count int) error {
	c, err := startCluster(ctx, program, 3)
	if c != nil {
		defer c.end()
	}
	if err != nil {
		return err
	}
	const watched = 50
	k := &killing{ctx: ctx, c: c, count: count}
	for i := range count {
		if err := k.open(i, 0, k.ticket(i)); err != nil {
			return err
		}
	}
	if err := k.watch(watched); err != nil {
		return err
	}
	fresh := make([]string, count) // the service's machines are others
	for i := range fresh {
		fresh[i] = k.ticket(i)
	}
	if err := c.nodes[0].cmd.Process.Kill(); err != nil {
		return err
	}
	killed := time.Now()
	var all sync.WaitGroup
	for i, ticket := range fresh {
		all.Go(func() {
			// As the page layer does, within 2 s.
			time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Second))))
			if k.open(i, 1, ticket) != nil {
				k.failed.Add(1)
			}
		})
	}
	untold, err := k.hold()
	took := time.Since(killed)
	all.Wait()
	row(fmt.Sprintf("a node with %d pages is killed: %d agents hold", count, watched),
		fmt.Sprintf("%.1f s", took.Seconds()),
		fmt.Sprintf("all pages are back after %.1f s", time.Since(killed).Seconds()),
		fmt.Sprintf("%d were not told, %d pages failed", untold, k.failed.Load()))
	return err
}

func (k *killing) ticket(i int) string { return k.c.login.Ticket("user"+strconv.Itoa(i), origin) }

func (k *killing) open(i, at int, ticket string) error {
	_, err := openPage(k.ctx, k.c.nodes[at].listen, ticket, "tab-of-user"+strconv.Itoa(i), uris(1))
	return err
}

// watch opens agents of the first users, at the third node.
func (k *killing) watch(count int) error {
	for i := range count {
		a, err := openAgent(k.ctx, k.c.nodes[2].listen, k.c.login.Token("user"+strconv.Itoa(i), "pages:read"))
		if err != nil {
			return err
		}
		if err := a.subscribe(uris(1)[0]); err != nil {
			return err
		}
		k.agents = append(k.agents, a)
	}
	for _, a := range k.agents {
		for len(a.told) > 0 {
			<-a.told
		}
	}
	return nil
}

// hold waits until each agent has been told and has read; it returns how many were not told.
func (k *killing) hold() (untold int, err error) {
	for i, a := range k.agents {
		select {
		case <-a.told:
		case <-time.After(30 * time.Second):
			untold++
			continue
		}
		if text, err := a.ask("resources/read", `{"uri":"https://app.example/cart/0"}`); err != nil {
			return untold, fmt.Errorf("agent %d: %w, %s", i, err, text)
		}
	}
	return untold, nil
}
