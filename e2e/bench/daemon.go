package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// daemons measures how soon three agents go on after the end of the daemon that they share.
func (b *bench) daemons() family {
	rival := overSocket
	rival.html += inline("counter")
	r := &rig{rival: rival, b: b, changes: make(chan string)}
	var agents []*agent
	return family{name: "gateway: end of the daemon", limit: 2 * time.Minute,
		rows: []row{
			{"p99", "daemon killed until 3 agents that read have the last state, p99", "ms",
				goal{most: 150}, ""},
			{"stopped", "daemon stopped until they have it", "ms", goal{most: 2500}, ""},
		},
		contenders: []contender{{r.name, ours, func(ctx context.Context) (_ figures, err error) {
			if agents == nil {
				if agents, err = r.watchers(ctx, 3); err != nil {
					return nil, err
				}
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
		}}},
	}
}

func (r *rig) watchers(ctx context.Context, n int) (agents []*agent, err error) {
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	for range n {
		a, err := r.serve(ctx, r)
		if err != nil {
			return nil, err
		}
		r.b.onClose(a.close)
		if err := a.subscribe(ctx, r.site.URL+"/count"); err != nil {
			return nil, err
		}
		agents = append(agents, a)
	}
	return agents, nil
}

// endDaemon sends the daemon a signal while its agents read, and changes the page. It measures
// until each agent was notified of the change and has read it.
func (r *rig) endDaemon(ctx context.Context, agents []*agent, signal syscall.Signal) (float64,
	error) {
	// a page takes a connection that ends within 2 s for a failed one
	time.Sleep(2500 * time.Millisecond)
	r.nonce++
	want, uri := strconv.Itoa(r.nonce), r.site.URL+"/count"
	over := make(chan error, len(agents))
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
	daemons := slices.DeleteFunc(testkit.Processes(r.entry()), func(pid int) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return !strings.Contains(string(line), "\x00daemon\x00")
	})
	began := time.Now() // after the search, which takes the longer the more processes run
	for _, pid := range daemons {
		syscall.Kill(pid, signal) // it may have ended
	}
	r.changes <- want
	var err error
	for range agents {
		err = errors.Join(err, <-over)
	}
	return ms(began), err
}
