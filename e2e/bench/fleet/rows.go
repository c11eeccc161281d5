//go:build !js

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
	"runtime/pprof"
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
	if os.Getenv("BENCH_DETAIL") != "" {
		fmt.Fprintln(os.Stderr, "heap", m.HeapAlloc>>10, "KB, stacks", m.StackInuse>>10, "KB, goroutines", runtime.NumGoroutine())
		if f, err := os.Create(fmt.Sprintf("/tmp/w/heap-%d.pprof", runtime.NumGoroutine())); err == nil {
			pprof.WriteHeapProfile(f)
			f.Close()
		}
	}
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
	p, err := openPage(ctx, c.nodes[pageAt].listen, c.login, user, "tab-of-"+user, uris(count))
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

// latencies changes URIs one after the other, and takes how long until the agent is told.
func latencies(p *page, a *agent, count, samples int) ([]time.Duration, error) {
	for len(a.told) > 0 {
		<-a.told
	}
	var list []time.Duration
	for i := range samples {
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
	for range 100 { // what nobody watches
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
	for _, q := range []struct {
		name string
		of   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		x, y := quantile(ours, q.of), quantile(bare, q.of)
		row("change to an agent at another node, "+q.name, ms(x), "NATS and two WebSockets "+ms(y),
			fmt.Sprintf("%.2fx", float64(x)/float64(y)))
	}
	row("changes nobody watches, crossing the bus", fmt.Sprint(crossed), "", "")
	return nil
}

// bareNATS sends a text from one WebSocket to another, between two servers of NATS.
func bareNATS(ctx context.Context, samples int) ([]time.Duration, error) {
	var conns []*nats.Conn
	for i := range 2 {
		o := &server.Options{ServerName: strconv.Itoa(i), Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: "bare", Host: "127.0.0.1", Port: -1, PoolSize: -1}}
		if i > 0 {
			o.Routes = server.RoutesFromStr("nats://" + bareRoute)
		}
		s, err := server.NewServer(o)
		if err != nil {
			return nil, err
		}
		s.Start()
		defer s.Shutdown()
		if !s.ReadyForConnections(10 * time.Second) {
			return nil, fmt.Errorf("a bare server of NATS does not come up")
		}
		bareRoute = s.ClusterAddr().String()
		conn, err := nats.Connect(s.ClientURL())
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	in := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		for err == nil {
			var text []byte
			if _, text, err = ws.Read(ctx); err == nil {
				err = conns[0].Publish("x", text)
			}
		}
	}))
	defer in.Close()
	out := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		sub, err := conns[1].Subscribe("x", func(m *nats.Msg) { _ = ws.Write(ctx, websocket.MessageText, m.Data) })
		if err == nil {
			_, _, _ = ws.Read(ctx) // until it ends
			_ = sub.Unsubscribe()
		}
	}))
	defer out.Close()
	return barePing(ctx, "ws"+in.URL[4:], "ws"+out.URL[4:], samples)
}

var bareRoute string

func barePing(ctx context.Context, in, out string, samples int) ([]time.Duration, error) {
	from, _, err := websocket.Dial(ctx, in, nil)
	if err != nil {
		return nil, err
	}
	defer from.CloseNow()
	to, _, err := websocket.Dial(ctx, out, nil)
	if err != nil {
		return nil, err
	}
	defer to.CloseNow()
	told := make(chan struct{}, 100_000)
	go func() {
		for {
			if _, _, err := to.Read(ctx); err != nil {
				return
			}
			told <- struct{}{}
		}
	}()
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

// processor measures what nodes' processors do for a change that is watched, at two nodes and at one, in turns.
func processor(ctx context.Context, program string) error {
	c, err := startCluster(ctx, program, 2)
	if c != nil {
		defer c.end()
	}
	if err != nil {
		return err
	}
	const count, samples, rounds = 200, 1000, 6
	pFar, far, err := pair(ctx, c, "alice", 0, 1, count)
	if err != nil {
		return err
	}
	pNear, near, err := pair(ctx, c, "bob", 0, 0, count)
	if err != nil {
		return err
	}
	work := func(p *page, a *agent) (int64, error) {
		before := c.nodes[0].worked() + c.nodes[1].worked()
		_, err := latencies(p, a, count, samples)
		return c.nodes[0].worked() + c.nodes[1].worked() - before, err
	}
	var two, one int64
	for range rounds {
		x, err := work(pFar, far)
		if err != nil {
			return err
		}
		y, err := work(pNear, near)
		if err != nil {
			return err
		}
		two, one = two+x, one+y
	}
	per := func(ns int64) string { return fmt.Sprintf("%.0f us", float64(ns)/1000/samples/rounds) }
	row("processor time per watched change, two nodes", per(two), "one node "+per(one),
		fmt.Sprintf("%.2fx", float64(two)/float64(one)))
	return nil
}

// recovery kills a node with many pages, of which some are watched: those dial another, as their page layer does, and
// change meanwhile.
func recovery(ctx context.Context, program string, count int) error {
	c, err := startCluster(ctx, program, 3)
	if c != nil {
		defer c.end()
	}
	if err != nil {
		return err
	}
	const watched = 50
	var agents []*agent
	open := func(i, at int) (*page, error) {
		user := "user" + strconv.Itoa(i)
		return openPage(ctx, c.nodes[at].listen, c.login, user, "tab-of-"+user, uris(1))
	}
	for i := range count {
		if _, err := open(i, 0); err != nil {
			return err
		}
	}
	for i := range watched {
		a, err := openAgent(ctx, c.nodes[2].listen, c.login.Token("user"+strconv.Itoa(i), "pages:read"))
		if err != nil {
			return err
		}
		if err := a.subscribe(uris(1)[0]); err != nil {
			return err
		}
		agents = append(agents, a)
	}
	for _, a := range agents {
		for len(a.told) > 0 {
			<-a.told
		}
	}
	if err := c.nodes[0].cmd.Process.Kill(); err != nil {
		return err
	}
	killed := time.Now()
	var all sync.WaitGroup
	var failed atomic.Int64
	pages := make([]*page, count)
	for i := range count {
		all.Go(func() {
			// With the jitter of the page layer, over a second.
			time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
			p, err := open(i, 1)
			if err != nil {
				failed.Add(1)
				return
			}
			pages[i] = p
		})
	}
	wrong := 0
	for i, a := range agents {
		select {
		case <-a.told:
		case <-time.After(30 * time.Second):
			wrong++
			continue
		}
		if text, err := a.ask("resources/read", `{"uri":"https://app.example/cart/0"}`); err != nil {
			return fmt.Errorf("agent %d: %w, %s", i, err, text)
		}
	}
	took := time.Since(killed)
	all.Wait()
	row(fmt.Sprintf("a node with %d pages is killed: %d agents hold", count, watched), fmt.Sprintf("%.1f s", took.Seconds()),
		fmt.Sprintf("all pages are back after %.1f s", time.Since(killed).Seconds()),
		fmt.Sprintf("%d were not told, %d pages failed", wrong, failed.Load()))
	return nil
}
