package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// scales are families whose figures are curves: what grows with what, and how.
func (b *bench) scales() []family {
	n := func(full, short int) string {
		if b.short {
			return strconv.Itoa(short)
		}
		return strconv.Itoa(full)
	}
	resources, clients, tabs := "[1, 10, 100, 1000]", "[1, 5, 10, 25, 50, 100]", []int{1, 10, 50, 100, 200}
	if b.short {
		clients, tabs = "[1, 10, 50]", []int{1, 10}
	}
	rounds := 3 // each has many points
	if b.short {
		rounds = 1
	}
	in := func(name string, k kind, l library, job, wire, n, sizes string) contender {
		expression := fmt.Sprintf("bench.%s(bench.%s, %s, %s)", job, wire, n, sizes)
		return contender{name, k, func(ctx context.Context) (figures, error) {
			return b.visit(ctx, `<script src="`+l.path+`"></script>`, expression)
		}}
	}
	we, they := libraries[0], libraries[1]
	families := []family{
		{
			name: "scale: resources of a page", rounds: rounds,
			rows: []row{{"p50", "read, p50, by resources of the page", "us", goal{}, ""}},
			contenders: []contender{
				in("Pagewire, by ports", ours, we, "readByResources", "overPort", n(600, 300), resources),
				in(mcpb, peer, they, "readByResources", "overWindow", n(600, 300), resources),
			},
		},
		{
			name: "scale: clients in a page", rounds: rounds, limit: time.Minute,
			rows: []row{
				{"last told", "change until the last client is told, by clients", "us", goal{}, ""},
				{"read", "read, p50, by clients", "us", goal{}, ""},
			},
			contenders: []contender{
				in("Pagewire, by ports", ours, we, "notifyByClients", "overPort", n(20, 5), clients),
				in(mcpb, peer, they, "notifyByClients", "overWindow", n(20, 5), clients),
			},
		},
		{
			name:   "scale: memory of the engine",
			rounds: 1,
			rows: []row{
				{"resource", "engine: memory of a resource", "B", goal{}, ""},
				{"subscription", "engine: memory of a subscription", "B", goal{}, ""},
				{"session", "engine: memory of a session", "B", goal{}, ""},
			},
			contenders: []contender{{"Pagewire", ours, engineMemory}},
		},
	}
	atGateway := family{
		name:   "scale: tabs at the gateway",
		limit:  5 * time.Minute,
		rounds: 1,
		rows: []row{
			{"read", "gateway: read, p50, by tabs", "ms", goal{}, ""},
			{"mb", "gateway: resident memory, by tabs", "MB", goal{}, ""},
			{"mb@10", "gateway: resident memory with 10 tabs, by CDP", "MB", goal{most: 20}, byCDP},
			{"mb@10", "gateway: resident memory with 10 tabs, by WebSocket", "MB", goal{most: 20}, bySocket},
		},
	}
	if !b.short {
		atGateway.rows = append(atGateway.rows,
			row{"mb@200", "gateway: resident memory with 200 tabs, by CDP", "MB", goal{most: 25}, byCDP},
			row{"mb@200", "gateway: resident memory with 200 tabs, by WebSocket", "MB", goal{most: 33}, bySocket})
	}
	for _, r := range []rival{overCDP, overSocket} {
		rig := &rig{rival: r, b: b}
		atGateway.contenders = append(atGateway.contenders,
			contender{r.name, ours, func(ctx context.Context) (figures, error) {
				if err := rig.open(ctx); err != nil {
					return nil, err
				}
				defer rig.browser.Close() // 200 tabs take gigabytes
				return rig.tabs(ctx, tabs)
			}})
	}
	return append(families, atGateway)
}

// tabs opens more and more tabs, each with a resource of its own.
func (r *rig) tabs(ctx context.Context, sizes []int) (figures, error) {
	got := figures{}
	have := 1
	for _, size := range sizes {
		for ; have < size; have++ {
			if _, err := r.command(ctx, "Target.createTarget",
				map[string]any{"url": r.site.URL + "/page?" + strconv.Itoa(have), "background": true}); err != nil {
				return nil, err
			}
		}
		last := r.site.URL + "/state"
		if size > 1 {
			last += "/" + strconv.Itoa(size-1)
		}
		if err := until(ctx, 50*time.Millisecond,
			func() error { _, err := r.agent.read(ctx, last); return err }); err != nil {
			return nil, fmt.Errorf("the tab with %s: %w", last, err)
		}
		trips, err := r.trips(ctx, 100, &r.warmReads, func(ctx context.Context, r *rig) (string, error) {
			return r.agent.read(ctx, last)
		})
		if err != nil {
			return nil, err
		}
		sum, err := resident(r.entry())
		if err != nil {
			return nil, err
		}
		at := "@" + strconv.Itoa(size)
		got["read"+at], got["mb"+at] = trips["p50"], sum/1e6
	}
	return got, nil
}

// nobody is a home that does nothing.
type nobody struct{}

func (nobody) Send(bridge.PortID, bridge.Message)  {}
func (nobody) Read(bridge.CallID, bridge.Request)  {}
func (nobody) End(bridge.CallID)                   {}
func (nobody) Watched(string, bool)                {}
func (nobody) CallTool(bridge.CallID, bridge.Tool) {}

// engineMemory fills an engine and looks at the heap.
func engineMemory(context.Context) (figures, error) {
	const resources, sessions, each = 10_000, 100, 100
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	uri := func(i int) string { return fmt.Sprintf("https://x.test/state/%d", i) }
	e := bridge.New(bridge.Options{Rule: bridge.Rule{Origin: "https://x.test"},
		Limits: bridge.Limits{Resources: -1, Ports: -1, Subscriptions: -1}}, nobody{})
	before := heap()
	for i := range resources {
		if err := e.Register(0, bridge.Resource{URI: uri(i), Name: "state", MIMEType: "text/plain",
			Size: -1}); err != nil {
			return nil, err
		}
	}
	registered := heap()
	say := func(p bridge.PortID, id int, method, params string) error {
		return e.Receive(0, p,
			[]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)))
	}
	for p := range bridge.PortID(sessions) {
		if err := e.Open(0, p+1); err != nil {
			return nil, err
		}
		if err := say(p+1, 0, "initialize",
			`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`); err != nil {
			return nil, err
		}
	}
	opened := heap()
	for p := range bridge.PortID(sessions) {
		for i := range each {
			if err := say(p+1, i+1, "resources/subscribe", `{"uri":"`+uri(int(p)*each+i)+`"}`); err != nil {
				return nil, err
			}
		}
	}
	subscribed := heap()
	if got := e.Stats().Subscriptions; got != sessions*each {
		return nil, fmt.Errorf("the engine has %d subscriptions", got)
	}
	runtime.KeepAlive(e)
	return figures{
		"resource":     (registered - before) / resources,
		"session":      (opened - registered) / sessions,
		"subscription": (subscribed - opened) / (sessions * each),
	}, nil
}
