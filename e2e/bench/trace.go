package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// A tracing is what the kernel (tracefs) has recorded of some calls, in microseconds.
type tracing struct {
	role   map[int]string  // the process of a thread, if calls can pass through it
	key    map[int]int     // of a thread in causes: itself, or for Go programs -pid
	causes map[int][]cause // in the order of at
	calls  [][2]moment     // begin and end
}

type moment struct{ thread, at int }

// A cause is why a thread does what it does after at. It has run since from, and was woken at the
// moment of another thread. If no thread woke it, that is the moment when it last stopped itself.
type cause struct {
	at, from int
	woken    moment
}

// A hop is a part of a call's way in which a process works, or does not run yet.
type hop struct {
	role   string
	waits  bool
	micros int
}

var (
	event = regexp.MustCompile(`-(\d+) +\[(\d+)\] (\S+) +(\d+)\.(\d{6}): (?:sys_)?(\w+)` +
		`(?:: comm=.* pid=(\d+) |: .* next_pid=(\d+) |: (begin|end)$| -> 0x(\w+)$)`)
	reads  = strings.Fields("read recvfrom recvmsg splice")
	writes = strings.Fields("write sendto sendmsg splice")
	sleeps = strings.Fields("futex epoll_wait epoll_pwait poll ppoll nanosleep clock_nanosleep")
)

const (
	whole     = "the whole"
	traceHead = `# Where the time of a call goes

<!-- Written by make trace. -->

A step "→ pipe" lasts from the moment when the process before has given its message away until a
thread of the pipe runs. The pipe is the process that the agent has started, the daemon the one
that has the pages, and "renderer" includes Pagewire in the page. The relay is a bare program with
the same processes (relay.go). "One call" is the call with the median time. The medians of steps
do not add up to the median of the whole. Calls that took another way are left out.

Of %s, at commit %s; %s.
`
)

func number(s string) int { n, _ := strconv.Atoi(s); return n }

// parse finds the causes. Go's threads look for work before they sleep, and pass it on without
// system calls, so the cause of what a Go program does is the last message that it has read.
// Chromium's threads sleep until another wakes them, or a message arrives just before they sleep.
func (t *tracing) parse(text string) {
	on, since, stopped := map[string]int{}, map[int]int{}, map[int]moment{}
	sizes, written := map[int][]int{}, map[int]moment{}
	for line := range strings.Lines(text) {
		e := event.FindStringSubmatch(strings.TrimSpace(line))
		if e == nil {
			continue
		}
		now := moment{number(e[1]), number(e[4] + e[5])}
		wake := func(thread int, by moment) {
			if key := t.key[thread]; key > 0 {
				t.causes[key] = append(t.causes[key], cause{now.at, now.at, by})
			}
		}
		run := func(thread int) {
			if by, is := stopped[thread]; is {
				wake(thread, by)
			}
			delete(stopped, thread)
			on[e[2]], since[thread] = thread, now.at
		}
		if on[e[2]] != now.thread { // some idle processors do not record a switch
			run(now.thread)
		}
		switch size, err := strconv.ParseInt(e[10], 16, 32); {
		case e[8] != "":
			stopped[now.thread] = now
			run(number(e[8]))
		case e[7] != "" && !strings.ContainsAny(e[3], "hH"): // not by a clock
			who := number(e[7])
			if by, is := stopped[who]; !is { // it was about to sleep
				wake(who, now)
			} else if by.thread == who {
				stopped[who] = now
			}
		case e[9] == "begin":
			t.calls = append(t.calls, [2]moment{now})
		case e[9] == "end" && t.calls != nil:
			t.calls[len(t.calls)-1][1] = now
		case err == nil && size > 8: // 8 bytes are an eventfd's
			key, w := t.key[now.thread], written[int(size)]
			if slices.Contains(reads, e[6]) && t.role[w.thread] != t.role[now.thread] {
				by := t.before(now).woken
				if key < 0 || w.at > by.at && (by.thread == w.thread || by.thread == now.thread) {
					from := max(since[now.thread], w.at)
					t.causes[key] = append(t.causes[key], cause{now.at, from, w})
				}
			}
			if slices.Contains(writes, e[6]) {
				all, sum := append(sizes[now.thread], int(size)), 0
				sizes[now.thread] = all[max(0, len(all)-4):]
				for _, n := range slices.Backward(sizes[now.thread]) { // they may be read at once
					sum += n
					written[sum] = now
				}
			}
		}
	}
}

// before returns the last cause of what a thread does at a moment.
func (t *tracing) before(m moment) (c cause) {
	all := t.causes[t.key[m.thread]]
	if n := sort.Search(len(all), func(i int) bool { return all[i].at > m.at }); n > 0 {
		c = all[n-1]
	}
	return c
}

// way follows the causes from a call's end to its begin. It returns nil where one is missing.
func (t *tracing) way(begin, now moment) (hops []hop) {
	pipes, role := 0, ""
	for now.at > begin.at && len(hops) < 500 {
		before := role
		if role = t.role[now.thread]; role == "pipe" && before != role {
			pipes++
		} else if role == "agent" && pipes == 1 {
			role = "daemon" // a relay's is in this process
		}
		c := t.before(now)
		from, woken := max(c.from, begin.at), max(c.woken.at, begin.at)
		hops = append(hops, hop{role, false, now.at - from}, hop{role, true, from - woken})
		now = moment{c.woken.thread, woken}
	}
	if role != "agent" {
		return nil
	}
	slices.Reverse(hops)
	return hops
}

// roles finds the threads of a rig's processes.
func (t *tracing) roles(r *rig) {
	marks := [][2]string{{"\x00daemon\x00", "daemon"}, {"--type=renderer", "renderer"},
		{"network.mojom", "network service"}, {"--type=", ""}, {"--remote-", "browser process"}}
	files, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file)
		path, mark := strings.Split(file, "/"), [2]string{}
		for _, m := range slices.Backward(marks) {
			if strings.Contains(string(line), m[0]) {
				mark = m
			}
		}
		pid, thread := number(path[2]), number(path[4])
		if pid == os.Getpid() {
			mark[1] = "agent"
		} else if pid == r.agent.cmd.Process.Pid {
			mark[1] = "pipe"
		}
		t.role[thread], t.key[thread] = mark[1], thread
		if strings.Contains("agent pipe daemon", mark[1]) {
			t.key[thread] = -pid
		}
	}
}

// steps returns the steps of the calls that take the most common way, in order, and what each call
// took for each. The call with the median time is in the middle.
func (t *tracing) steps() (names []string, calls []map[string]int) {
	ways := map[string][]map[string]int{}
	for _, c := range t.calls {
		way, last, name, visits, took := []string{}, "", "", map[string]int{}, map[string]int{}
		for _, h := range t.way(c[0], c[1]) {
			part := name + ", from thread to thread"
			if h.role != last {
				visits[h.role]++
				name = fmt.Sprint(h.role, " ", visits[h.role])
				part = "→ " + name
				way = append(way, part, name, name+", from thread to thread")
			}
			if last = h.role; !h.waits {
				part = name
			}
			took[part] += h.micros
			took[whole] += h.micros
		}
		key := strings.Join(way, "")
		if ways[key] = append(ways[key], took); key != "" && len(ways[key]) > len(calls) {
			names, calls = append(way, whole), ways[key]
		}
	}
	slices.SortFunc(calls, func(a, b map[string]int) int { return a[whole] - b[whole] })
	return names, calls
}

// trace writes e2e/bench/trace.md: where the time of a call goes, beside that of a relay's.
func (b *bench) trace(ctx context.Context) (failed error) {
	root := "/sys/kernel/tracing"
	if _, err := os.Stat(root + "/instances"); err != nil { // else, Mkdir says what is missing
		testcmd.Command("mount", "-t", "tracefs", "nodev", root).Run()
	}
	dir := filepath.Join(root, "instances", "pagewire-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("a trace needs Linux, root and tracefs: %w", err)
	}
	defer os.Remove(dir)
	set := func(file, value string) {
		failed = cmp.Or(failed, os.WriteFile(filepath.Join(dir, file), []byte(value), 0))
	}
	set("tracing_on", "0")
	set("trace_clock", "mono")
	set("buffer_size_kb", "16384")
	set("events/sched/sched_switch/enable", "1")
	set("events/sched/sched_waking/enable", "1")
	for _, call := range slices.Concat(reads, writes, sleeps) {
		file := "events/syscalls/sys_exit_" + call + "/enable"
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil || call == "read" {
			set(file, "1") // not every processor has each of the others
		}
	}
	out := fmt.Sprintf(traceHead, time.Now().Format(time.DateOnly), figure.Commit(),
		machine(b.chromium))
	for _, way := range []struct {
		name string
		who  [2]rival
		work func(context.Context, *rig) (string, error)
	}{
		{"A read by CDP", [2]rival{overCDP, relays[1]}, readState},
		{"A read by WebSocket", [2]rival{overSocket, relays[0]}, readState},
		{"A tool call by CDP, WebMCP on", [2]rival{overCDP, relays[3]}, callState},
		{"A tool call by WebSocket, WebMCP on", [2]rival{overSocket, relays[2]}, callState},
	} {
		out += "\n## " + way.name + "\n\n"
		var names [2][]string
		var calls [2][]map[string]int
		for i, who := range way.who {
			t := &tracing{map[int]string{}, map[int]int{}, map[int][]cause{}, nil}
			r := &rig{rival: who, b: b}
			if err := r.open(ctx); err != nil {
				return err
			}
			set("trace", "")
			var times [2][]float64
			for n := range 6 { // they take turns
				set("tracing_on", strconv.Itoa(n%2))
				work := func(ctx context.Context, r *rig) (string, error) {
					if n%2 == 1 {
						set("trace_marker", "begin")
						defer set("trace_marker", "end")
					}
					return way.work(ctx, r)
				}
				got, err := r.trips(ctx, 100, &r.warmCalls, work)
				if err = cmp.Or(err, failed); err != nil {
					return err
				}
				times[n%2] = append(times[n%2], got["p50"])
			}
			set("tracing_on", "0")
			text, err := os.ReadFile(filepath.Join(dir, "trace"))
			if err != nil {
				return err
			}
			t.roles(r)
			r.browser.Close()
			t.parse(string(text))
			if names[i], calls[i] = t.steps(); names[i] == nil {
				return fmt.Errorf("%s, %s: no call could be followed", way.name, who.name)
			}
			out += fmt.Sprintf("* %s: %.2f ms, %.2f ms with the trace; %d of %d calls took this way\n",
				who.name, quantile(times[0], 0.5), quantile(times[1], 0.5), len(calls[i]), len(t.calls))
		}
		out += "\n| step | one call, µs | median, µs | share | relay, µs | share |\n" +
			"|---|---|---|---|---|---|\n"
		for _, name := range names[0] {
			row, sum := fmt.Sprintf("| %s | %d |", name, calls[0][len(calls[0])/2][name]), 0.0
			for _, list := range calls {
				var took, shares []float64
				for _, c := range list {
					took = append(took, float64(c[name]))
					shares = append(shares, 100*float64(c[name])/float64(c[whole]))
				}
				sum += quantile(took, 0.5)
				row += fmt.Sprintf(" %.0f | %.1f %% |", quantile(took, 0.5), quantile(shares, 0.5))
			}
			if sum > 0 {
				out += row + "\n"
			}
		}
	}
	fmt.Print(out)
	return os.WriteFile("e2e/bench/trace.md", []byte(out), 0o644)
}
