//go:build soak

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A soakReport counts events, and samples each process. Its exported members are the JSON.
type soakReport struct {
	t     *testing.T
	began time.Time

	guard                                               sync.Mutex
	reads, failed, changes, settled, wrong, lost, stuck int
	ops                                                 map[string]int
	staleness                                           []float64 // ms, since the last sample
	samplesOf                                           []soakSample
}

// A soakSample is the state at a time. Staleness is in ms, of the changes that agents learned since
// the last sample.
type soakSample struct {
	Seconds            float64
	Wrong, Lost, Stuck int
	Reads, Changes     int
	StaleP50, StaleP99 float64
	Processes          []soakProcess
}

type soakProcess struct {
	PID                     int
	Kind                    string
	MB                      float64
	Descriptors, Goroutines int // goroutines only of those that report them
}

func (r *soakReport) count(what *int) {
	r.guard.Lock()
	defer r.guard.Unlock()
	*what++
}

func (r *soakReport) finds(what *int, format string, args ...any) {
	r.count(what)
	r.t.Errorf("after %v: "+format,
		append([]any{time.Since(r.began).Round(time.Second)}, args...)...)
}

func (r *soakReport) did(what string) {
	r.guard.Lock()
	defer r.guard.Unlock()
	r.ops[what]++
}

func (r *soakReport) stale(d time.Duration) {
	r.guard.Lock()
	defer r.guard.Unlock()
	r.staleness = append(r.staleness, float64(d)/1e6)
}

// soakQuantile returns a quantile of values, and sorts them; 0 without values.
func soakQuantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

func (s *soak) samples(h userHome) (stop func()) {
	end, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			s.sample(h)
			select {
			case <-end:
				return
			case <-time.After(5 * time.Second):
			}
		}
	}()
	return func() { close(end); <-over }
}

var childKind = regexp.MustCompile(`--type=([a-z-]+)`)

func (s *soak) sample(h userHome) {
	one := soakSample{Seconds: time.Since(s.began).Seconds()}
	for pid, line := range h.belongings() {
		kind := "browser"
		words := strings.Fields(line)
		if m := childKind.FindStringSubmatch(line); m != nil {
			kind = "browser's " + m[1]
		} else if len(words) > 1 && filepath.Base(words[0]) == "pagewire" {
			if kind = "pagewire " + words[1]; strings.Contains(kind, ":") {
				kind = "pagewire's native host"
			}
		}
		p := soakProcess{PID: pid, Kind: kind}
		if kind == "pagewire daemon" {
			p.Goroutines = goroutines(h.metrics())
		}
		one.Processes = append(one.Processes, p)
	}
	for i, n := range s.fleet.nodes {
		one.Processes = append(one.Processes,
			soakProcess{PID: int(n.pid.Load()), Kind: fmt.Sprint("pagewire-node ", i),
				Goroutines: goroutines(testkit.Metrics(n.admin, ""))})
	}
	one.Processes = slices.DeleteFunc(one.Processes,
		func(p soakProcess) bool { return !running(p.PID) })
	for i := range one.Processes {
		p := &one.Processes[i]
		statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID))
		if fields := strings.Fields(string(statm)); len(fields) > 1 {
			pages, _ := strconv.Atoi(fields[1])
			p.MB = float64(pages*os.Getpagesize()) / (1 << 20)
		}
		list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
		p.Descriptors = len(list)
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	one.Wrong, one.Lost, one.Stuck, one.Reads, one.Changes = s.wrong, s.lost, s.stuck, s.reads,
		s.changes
	one.StaleP50, one.StaleP99 = soakQuantile(s.staleness, 0.5), soakQuantile(s.staleness, 0.99)
	s.staleness = nil
	s.samplesOf = append(s.samplesOf, one)
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

func goroutines(metrics string) int {
	if m := goroutinesLine.FindStringSubmatch(metrics); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

// slope returns the slope of the least-squares line.
func slope(x, y []float64) float64 {
	var sx, sy, sxx, sxy float64
	n := float64(len(x))
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	if d := n*sxx - sx*sx; d != 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}

// write prints the table, and writes the samples into bin/soak/.
func (s *soak) write(seed uint64) {
	dir := "../bin/soak"
	text, err := json.MarshalIndent(map[string]any{"seed": seed, "operations": s.ops,
		"samples": s.samplesOf}, "", " ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "soak.json"), text, 0o644)
	}
	if err != nil {
		s.t.Error(err)
	}
	type life struct{ hours, mb, fds, goroutines []float64 }
	lives := map[string]map[int]*life{}
	var p50, p99 []float64
	for _, one := range s.samplesOf {
		p50, p99 = append(p50, one.StaleP50), append(p99, one.StaleP99)
		for _, p := range one.Processes {
			if lives[p.Kind] == nil {
				lives[p.Kind] = map[int]*life{}
			}
			l := lives[p.Kind][p.PID]
			if l == nil {
				l = &life{}
				lives[p.Kind][p.PID] = l
			}
			l.hours, l.mb = append(l.hours, one.Seconds/3600), append(l.mb, p.MB)
			l.fds, l.goroutines = append(l.fds, float64(p.Descriptors)),
				append(l.goroutines, float64(p.Goroutines))
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%d changes, %d reads answered, %d that were not, %d times settled; %v\n",
		s.changes, s.reads,
		s.failed, s.settled, s.ops)
	fmt.Fprintf(&table, "%d wrong answers, %d lost last states, %d stuck requests\n", s.wrong,
		s.lost, s.stuck)
	fmt.Fprintf(&table, "%-24s %6s %8s %6s %6s   %s\n", "kind", "were", "most MB", "fds", "gorout",
		"of the longest lives: minutes, MB an hour behind the first third")
	for _, kind := range slices.Sorted(maps.Keys(lives)) {
		var mb, fds, gor []float64
		longest := slices.SortedFunc(maps.Values(lives[kind]),
			func(a, b *life) int { return len(b.mb) - len(a.mb) })
		for _, l := range longest {
			mb, fds, gor = append(mb, slices.Max(l.mb)), append(fds, slices.Max(l.fds)),
				append(gor, slices.Max(l.goroutines))
		}
		fmt.Fprintf(&table, "%-24s %6d %8.1f %6.0f %6.0f  ", kind, len(longest), slices.Max(mb),
			slices.Max(fds),
			slices.Max(gor))
		for _, l := range longest[:min(3, len(longest))] {
			from := len(l.mb) / 3
			fmt.Fprintf(&table, " %.1f: %+.1f;", (l.hours[len(l.hours)-1]-l.hours[0])*60,
				slope(l.hours[from:], l.mb[from:]))
		}
		table.WriteString("\n")
	}
	fmt.Fprintf(&table,
		"staleness of 5 s each: median of p50 %.0f ms, median of p99 %.0f ms, worst p99 %.0f ms\n",
		soakQuantile(p50, 0.5), soakQuantile(p99, 0.5), soakQuantile(p99, 1))
	s.t.Log("\n" + table.String())
}
