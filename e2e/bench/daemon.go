package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// counter is another resource of a page. It reads as the latest answer of /change.
const counter = `<script>{
	let shown = "0";
	const uri = location.origin + "/count", context = document.modelContext ?? navigator.modelContext;
	context.registerResource({ uri, name: "count", read: () => shown });
	(async () => { for (;;) { shown = await (await fetch("/change")).text(); context.notifyResourceUpdated(uri); } })();
}</script>`

// daemons measures how soon three agents go on after the end of the daemon that they share.
func (b *bench) daemons() family {
	f := family{name: "gateway: end of the daemon", limit: 2 * time.Minute}
	for _, rival := range []rival{overCDP, overSocket} {
		rival.html += counter
		r := &rig{rival: rival, b: b, changes: make(chan string)}
		most := map[string]float64{byCDP: 300, bySocket: 150}[r.name]
		f.rows = append(f.rows,
			row{"p99", "daemon killed until 3 agents that read have the last state, p99", "ms", goal{most: most}, r.name},
			row{"stopped", "daemon stopped until they have it", "ms", goal{most: 2500}, r.name})
		var agents []*agent
		f.contenders = append(f.contenders, contender{r.name, ours, func(ctx context.Context) (_ figures, err error) {
			if agents == nil {
				agents, err = r.watchers(ctx, 3)
			}
			if err != nil {
				return nil, err
			}
			var times []float64
			for range 8 {
				took, err := r.endDaemon(ctx, agents, syscall.SIGKILL)
				if err != nil {
					return nil, err
				}
				times = append(times, took)
			}
			stopped, err := r.endDaemon(ctx, agents, syscall.SIGSTOP)
			return figures{"p99": quantile(times, 0.99), "stopped": stopped}, err
		}})
	}
	return f
}

func (r *rig) watchers(ctx context.Context, n int) (agents []*agent, err error) {
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	for range n {
		a, err := r.serve(ctx, r, r.port)
		if err != nil {
			return nil, err
		}
		r.b.onClose(a.close)
		if _, err := a.ask(ctx, "resources/subscribe", map[string]any{"uri": r.site.URL + "/count"}); err != nil {
			return nil, err
		}
		agents = append(agents, a)
	}
	return agents, nil
}

// events measures how much later than `updated` an event reaches an agent, for a change of one page with both agents.
func (b *bench) events() family {
	const updated = "`updated`"
	f := family{name: "gateway: event", limit: time.Minute, rows: []row{
		{"p50", "change in a page to an event at an agent, beside `updated`", "ms", goal{most: 1.2, of: updated}, ""}}}
	rival := overSocket
	rival.html += counter
	r := &rig{rival: rival, b: b, changes: make(chan string)}
	var agents []*agent
	for i, name := range []string{"an event", updated} {
		f.contenders = append(f.contenders, contender{name, []kind{ours, floor}[i], func(ctx context.Context) (figures, error) {
			if agents == nil {
				watchers, err := r.watchers(ctx, 1)
				if err != nil {
					return nil, err
				}
				agents = append([]*agent{r.agent}, watchers...)
				go r.agent.ask(context.Background(), "events/stream", map[string]any{"name": "page.resource.updated",
					"arguments": map[string]any{"uri": r.site.URL + "/count"}})
			}
			var times []float64
			for range 20 {
				time.Sleep(400 * time.Millisecond) // so that no change is merged with the previous one
				select {
				case <-agents[i].told:
				default:
				}
				start := time.Now()
				r.nonce++
				r.changes <- strconv.Itoa(r.nonce)
				select {
				case <-agents[i].told:
					times = append(times, ms(start))
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return figures{"p50": quantile(times, 0.5)}, nil
		}})
	}
	return f
}

// endDaemon sends the daemon a signal while its agents read, and changes the page. It measures until each agent was
// notified of the change and has read it.
func (r *rig) endDaemon(ctx context.Context, agents []*agent, signal syscall.Signal) (float64, error) {
	time.Sleep(2500 * time.Millisecond) // a page takes a connection that ends within 2 s for a failed one
	r.nonce++
	want, uri := strconv.Itoa(r.nonce), r.site.URL+"/count"
	over := make(chan error, len(agents))
	began := time.Now()
	for _, a := range agents {
		busy, hold := context.WithCancel(ctx)
		go func() {
			for busy.Err() == nil {
				a.read(busy, uri)
			}
		}()
		go func() {
			defer hold()
			for text := ""; text != want; {
				select {
				case <-a.told:
					text, _ = a.read(ctx, uri) // the daemon may not have the page back yet
				case <-ctx.Done():
					over <- fmt.Errorf("after %v an agent has %q, and not %q", signal, text, want)
					return
				}
			}
			over <- nil
		}()
	}
	for _, pid := range testkit.Processes(r.entry()) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(line), "\x00daemon\x00") {
			syscall.Kill(pid, signal) // it may have ended
		}
	}
	r.changes <- want
	var err error
	for range agents {
		err = errors.Join(err, <-over)
	}
	return ms(began), err
}
