package fleet

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// tick is the unit of /proc/PID/stat, on all of Linux's processors.
const tick = time.Second / 100

// BenchmarkPages is the memory and the processor time that a page costs its node, per second: when
// no agent watches it (its changes stay in the page), when an agent of its user watches it, and
// when it also changes once a second. Memory is PSS. Processor time is that of user and system, so
// a busy machine changes it little. The table of nodes.md has these figures.
//
// The watched pages are fewer, because each has a user, and an agent with a session and a stream.
func BenchmarkPages(b *testing.B) {
	const watched, window = 2000, 45 * time.Second // a node pings each page every 20 s
	c := startCluster(b, 1)
	n, uri := c.nodes[0], origin+"/cart/0"
	var list []*testkit.Page
	open := func(until int) {
		for i := len(list); i < until; i++ {
			p := testkit.NewPage(b, uris(origin, 1))
			p.Dial(n.listen, origin, c.login.Ticket("user"+strconv.Itoa(i), origin))
			list = append(list, p)
		}
		testkit.Eventually(b, "all pages are there",
			func() bool { return n.metric("pages") == float64(until) })
	}
	time.Sleep(5 * time.Second) // for the end of its start
	none, before := n.cost(b, window), n.pss(b)
	report := func(state string, count int, spent time.Duration, pss int64) {
		b.ReportMetric(float64((spent-none).Nanoseconds())/1000/float64(count)/window.Seconds(),
			state+"-µs/s")
		b.ReportMetric(float64(pss-before)/float64(count), state+"-KB")
	}
	open(watched)
	var told atomic.Int64
	for i := range list {
		a := openAgent(b, n.listen, c.login.Token("user"+strconv.Itoa(i), "pages:read"))
		a.watch(uri)
		go func() {
			for range a.told {
				told.Add(1)
			}
		}()
	}
	for _, p := range list {
		testkit.Eventually(b, "it is watched", func() bool { return p.Watches(uri) })
	}
	report("watched", watched, n.cost(b, window), n.pss(b))
	began, end := told.Load(), time.Now().Add(window)
	spent := n.spent(b)
	for round := time.Now(); time.Now().Before(end); round = round.Add(time.Second) {
		for i, p := range list {
			time.Sleep(time.Until(round.Add(time.Duration(i) * time.Second / watched)))
			p.Touch(uri)
		}
	}
	late := time.Since(end)
	report("changing", watched, n.spent(b)-spent, n.pss(b))
	b.ReportMetric(float64(told.Load()-began)/watched/(window+late).Seconds(), "told/s")

	c = startCluster(b, 1) // anew: memory that a process has used stays with it for a while
	n, list = c.nodes[0], nil
	time.Sleep(5 * time.Second)
	before = n.pss(b)
	open(pages)
	report("unwatched", pages, n.cost(b, window), n.pss(b))
	b.ReportMetric(float64(before), "empty-KB")
	b.ReportMetric(0, "ns/op")
}

// cost is the processor time that the node spends within a window.
func (n *process) cost(b *testing.B, window time.Duration) time.Duration {
	before := n.spent(b)
	time.Sleep(window)
	return n.spent(b) - before
}

// spent is the processor time of the node since its start.
func (n *process) spent(b *testing.B) time.Duration {
	text := testkit.Must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid)))(b)
	_, behindName, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(behindName)
	user := testkit.Must(strconv.Atoi(fields[11]))(b)
	system := testkit.Must(strconv.Atoi(fields[12]))(b)
	return time.Duration(user+system) * tick
}

// pss is the memory of the node, in KB.
func (n *process) pss(b *testing.B) int64 {
	text := testkit.Must(os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", n.cmd.Process.Pid)))(b)
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "Pss:"); is {
			return int64(testkit.Must(strconv.Atoi(strings.Fields(value)[0]))(b))
		}
	}
	b.Fatal("the system does not say how much memory the node has")
	return 0
}
