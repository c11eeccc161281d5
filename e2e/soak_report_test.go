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

	guard                                                      sync.Mutex
	reads, failed, changes, settled, wrong, lost, stuck, leaks int
	ops                                                        map[string]int
	staleness                                                  []float64 // ms, since the last sample
	samplesOf                                                  []soakSample
}

// A soakSample is the state at a time. Staleness is in ms, of the changes that agents learned since
// the last sample.
type soakSample struct {
	Seconds                   float64
	Wrong, Lost, Stuck, Leaks int
	Reads, Changes            int
	StaleP50, StaleP99        float64
	Processes                 []soakProcess
}

type soakProcess struct {
	PID                     int
	Kind                    string
	MB                      float64
	Live                    float64 // MB of the heap; this and goroutines only of those that report them
	Descriptors, Goroutines int
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

func (s *soak) samples() (stop func()) {
	end, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			s.sample()
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

func (s *soak) sample() {
	one := soakSample{Seconds: time.Since(s.began).Seconds()}
	add := func(pid int, kind, metrics string) {
		one.Processes = append(one.Processes, soakProcess{PID: pid, Kind: kind,
			Goroutines: int(metric(metrics, "go_goroutines")), Live: liveHeap(metrics)})
	}
	for pid, line := range s.h.belongings() {
		kind, metrics := "browser", ""
		words := strings.Fields(line)
		if m := childKind.FindStringSubmatch(line); m != nil {
			kind = "browser's " + m[1]
		} else if len(words) > 1 && filepath.Base(words[0]) == "pagewire" {
			if kind = "pagewire " + words[1]; strings.Contains(kind, ":") {
				kind = "pagewire's native host"
			}
		}
		if kind == "pagewire daemon" {
			metrics = s.h.metrics()
		}
		add(pid, kind, metrics)
	}
	for pid := range s.web.h.belongings() {
		add(pid, "pagewire serve --http", s.web.h.metrics())
	}
	for i, n := range s.fleet.nodes {
		add(int(n.pid.Load()), fmt.Sprint("pagewire-node ", i), testkit.Metrics(n.admin, ""))
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
	one.Wrong, one.Lost, one.Stuck, one.Leaks = s.wrong, s.lost, s.stuck, s.leaks
	one.Reads, one.Changes = s.reads, s.changes
	one.StaleP50, one.StaleP99 = soakQuantile(s.staleness, 0.5), soakQuantile(s.staleness, 0.99)
	s.staleness = nil
	s.samplesOf = append(s.samplesOf, one)
}

// metric is the value of a metric without labels, or 0.
func metric(metrics, name string) (value float64) {
	if _, line, is := strings.Cut("\n"+metrics, "\n"+name+" "); is {
		line, _, _ = strings.Cut(line, "\n")
		value, _ = strconv.ParseFloat(line, 64)
	}
	return value
}

// liveHeap is what the last collection has left, in MB. The programs collect when the heap has grown
// by half of that and of the stacks.
func liveHeap(metrics string) float64 {
	return max(0, (metric(metrics, "go_memstats_next_gc_bytes")-metric(metrics, "go_memstats_stack_inuse_bytes")/2)/1.5/(1<<20))
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

// A life is what the samples say of one process.
type life struct{ hours, mb, live, fds, goroutines []float64 }

// write writes the table, the samples and the plot into bin/soak/: at the end, and before, since a
// long run may be stopped.
func (s *soak) write(seed uint64) string {
	s.guard.Lock()
	defer s.guard.Unlock()
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
			l.hours, l.mb, l.live = append(l.hours, one.Seconds/3600), append(l.mb, p.MB), append(l.live, p.Live)
			l.fds, l.goroutines = append(l.fds, float64(p.Descriptors)),
				append(l.goroutines, float64(p.Goroutines))
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%d changes, %d reads answered, %d that were not, %d times settled; %v\n",
		s.changes, s.reads,
		s.failed, s.settled, s.ops)
	fmt.Fprintf(&table, "%d wrong answers, %d lost last states, %d stuck requests, %d leaks\n", s.wrong,
		s.lost, s.stuck, s.leaks)
	fmt.Fprintf(&table, "%-24s %6s %8s %6s %6s   %s\n", "kind", "were", "most MB", "fds", "gorout",
		"of the longest lives: minutes, MB an hour behind the first third (of these in the live heap)")
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
			fmt.Fprintf(&table, " %.1f: %+.1f", (l.hours[len(l.hours)-1]-l.hours[0])*60,
				slope(l.hours[from:], l.mb[from:]))
			if slices.Max(l.live) > 0 {
				fmt.Fprintf(&table, " (%+.1f)", slope(l.hours[from:], l.live[from:]))
			}
			table.WriteString(";")
		}
		table.WriteString("\n")
	}
	fmt.Fprintf(&table,
		"staleness of 5 s each: median of p50 %.0f ms, median of p99 %.0f ms, worst p99 %.0f ms\n",
		soakQuantile(p50, 0.5), soakQuantile(p99, 0.5), soakQuantile(p99, 1))
	samples, err := json.MarshalIndent(map[string]any{"seed": seed, "operations": s.ops, "samples": s.samplesOf}, "", " ")
	testkit.OK(s.t, err, os.MkdirAll("../bin/soak", 0o755))
	for name, text := range map[string]string{"soak.json": string(samples), "soak.txt": fmt.Sprintln("seed", seed) + table.String(),
		"soak.svg": soakPlot(lives)} {
		testkit.OK(s.t, os.WriteFile(filepath.Join("../bin/soak", name), []byte(text), 0o644))
	}
	return table.String()
}

// soakPlot draws the memory of the longest life of each kind of Pagewire's processes over the time,
// and below it, dashed, the live heap of those that report it.
func soakPlot(lives map[string]map[int]*life) string {
	const width, height, left = 900, 480, 50
	longest, hours, mb := map[string]*life{}, 0.0, 1.0
	for kind, of := range lives {
		if strings.HasPrefix(kind, "pagewire") {
			l := slices.MaxFunc(slices.Collect(maps.Values(of)), func(a, b *life) int { return len(a.mb) - len(b.mb) })
			longest[kind], hours, mb = l, max(hours, l.hours[len(l.hours)-1]), max(mb, slices.Max(l.mb))
		}
	}
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/><text x="4" y="16">MB; %.0f minutes; dashed: live heap</text>
`, left+width+200, height+40, hours*60)
	y := func(v float64) float64 { return 20 + height*(1-v/mb) }
	for i := range 6 {
		v := mb * float64(i) / 5
		fmt.Fprintf(&svg, `<text x="4" y="%.0f">%.0f</text><path d="M%d %.0fh%d" stroke="#ddd"/>`+"\n", y(v)+4, v, left, y(v), width)
	}
	for i, kind := range slices.Sorted(maps.Keys(longest)) {
		l, colour := longest[kind], fmt.Sprintf("hsl(%d 70%% 40%%)", i*360/len(longest))
		for dash, values := range [][]float64{l.mb, l.live} {
			if slices.Max(values) == 0 {
				continue
			}
			fmt.Fprintf(&svg, `<polyline fill="none" stroke="%s" stroke-dasharray="%d" points="`, colour, dash*4)
			for k, v := range values {
				fmt.Fprintf(&svg, "%.1f,%.1f ", left+width*l.hours[k]/hours, y(v))
			}
			svg.WriteString("\"/>\n")
		}
		fmt.Fprintf(&svg, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", left+width+8, 40+i*18, colour, kind)
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}
