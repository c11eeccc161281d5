package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const manyTabs = 10

// plain is a page that offers nothing.
var plain = rival{name: "plain pages", kind: floor, ready: nothing}

func nothing(context.Context, *rig) error { return nil }

// renderers measure what pages whose agents are programs of their own cost the processes that run
// them. Every tab has been read once. Each measurement has new browsers.
func (b *bench) renderers() family {
	f := family{
		name: "renderers: 10 tabs", limit: 2 * time.Minute,
		rows: []row{
			{"added", "renderer memory added per tab, by CDP", "MB", goal{most: 1.1}, byCDP},
			{"added", "renderer memory added per tab, by WebSocket", "MB", goal{most: 1.1}, bySocket},
		},
	}
	measured := []rival{overCDP, overSocket,
		{name: mcpb, kind: peer, html: mcpbTag + inline("offer"), ready: nothing}, socketFloor}
	if b.short {
		f.rounds, measured = 1, measured[:2]
	}
	// Each is compared with plain pages of the same minute: a browser's own memory varies more than
	// the addition.
	for _, r := range measured {
		f.contenders = append(f.contenders,
			contender{r.name, r.kind, func(ctx context.Context) (got figures, err error) {
				var both sync.WaitGroup
				var without figures
				var failed error
				both.Go(func() { without, failed = (&rig{rival: plain, b: b}).tenTabs(ctx) })
				both.Go(func() { got, err = (&rig{rival: r, b: b}).tenTabs(ctx) })
				both.Wait()
				if err == nil && failed == nil {
					got["added"] = (got["mb"] - without["mb"]) / manyTabs
				}
				return got, errors.Join(err, failed)
			}})
	}
	return f
}

// tenTabs opens the rig with ten tabs, reads each, measures, and ends the browser.
func (r *rig) tenTabs(ctx context.Context) (figures, error) {
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	defer r.browser.Close()
	if err := r.open10(ctx); err != nil {
		return nil, err
	}
	for i := range manyTabs {
		if r.agent == nil {
			break
		}
		uri := r.site.URL + "/state"
		if i > 0 {
			uri += "/" + strconv.Itoa(i)
		}
		if err := until(ctx, 50*time.Millisecond,
			func() error { _, err := r.agent.read(ctx, uri); return err }); err != nil {
			return nil, err
		}
	}
	time.Sleep(time.Second) // for work that the reads have begun
	sum, err := r.renderers(ctx)
	return figures{"mb": sum / 1e6}, err
}

// A process runs the browser's pages. CPUTime is what it has taken, in seconds.
type process struct {
	Type    string
	ID      int
	CPUTime float64
}

// processes lists all processes that run the browser's pages.
func (r *rig) processes(ctx context.Context) ([]process, error) {
	text, err := r.command(ctx, "SystemInfo.getProcessInfo", nil)
	if err != nil {
		return nil, err
	}
	var list struct{ ProcessInfo []process }
	err = json.Unmarshal(text, &list)
	return slices.DeleteFunc(list.ProcessInfo,
		func(p process) bool { return p.Type != "renderer" }), err
}

// renderers returns the memory in bytes of all processes that run the browser's pages. Shared
// memory counts in part for each.
func (r *rig) renderers(ctx context.Context) (sum float64, err error) {
	processes, err := r.processes(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range processes {
		bytes, err := proportional(p.ID)
		if err != nil {
			return 0, err
		}
		sum += bytes
	}
	if sum == 0 {
		return 0, errors.New("the browser has no renderers")
	}
	return sum, nil
}

// proportional returns a process's memory in bytes, with its part of shared memory.
func proportional(pid int) (float64, error) {
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0, fmt.Errorf("memory is measured on Linux alone: %w", err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024, err
		}
	}
	return 0, errors.New("smaps_rollup has no Pss")
}
