//go:build !js && unix

package hub

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// Three agents, each with its own process, see the same pages; the hub is killed; the others go on, subscriptions
// intact.
func TestTakeover(t *testing.T) {
	doc, other, own := app+"/doc", app+"/other", app+"/own"
	m := newMachine(t, map[string][]string{"a": {doc, own}, "b": {doc, other}})
	nodes := []*node{m.start(), m.start(), m.start()}
	listed := []string{app + "/.pagewire/tab/1/doc", doc, other, own}
	for _, n := range nodes {
		n.Shows(listed...)
		n.Watch(app+"/.pagewire/tab/1/doc", other)
	}
	m.pages.set("b", other, "1")
	for _, n := range nodes {
		n.Told(other)
		n.Reads(other, "1")
	}
	for round := 2; len(nodes) > 1; round++ {
		hub, joiners := one(t, nodes)
		nodes = joiners
		hub.kill()
		killed := time.Now()
		// Nobody is connected to hear it: who goes on must find out by itself.
		value := fmt.Sprint(round)
		m.pages.set("b", other, value)
		for _, n := range nodes {
			if got := n.URIs(); !slices.Equal(got, listed) {
				t.Errorf("%v are listed while the hub is being replaced", got)
			}
		}
		for _, n := range nodes {
			n.Reads(other, value)
			n.Reads(app+"/.pagewire/tab/1/doc", "0")
			t.Logf("an agent has the last state %v after the kill", time.Since(killed).Round(time.Millisecond))
		}
		for _, n := range nodes {
			n.toldAgain(app+"/.pagewire/tab/1/doc", other)
		}
		one(t, nodes)
		m.pages.set("b", other, value+"'")
		for _, n := range nodes {
			n.Told(other)
			n.Reads(other, value+"'")
		}
		// What was kept for the absent hub is dropped after 2 s, and must take nothing of the pages' with it.
		time.Sleep(2200 * time.Millisecond)
		for _, n := range nodes {
			if got := n.URIs(); !slices.Equal(got, listed) {
				t.Errorf("%v are listed when the dead hub is forgotten", got)
			}
			n.Silent()
			n.Reads(app+"/.pagewire/tab/1/doc", "0")
		}
	}
}

func TestTakeoverWhileAReadIsUnderWay(t *testing.T) {
	doc := app + "/doc"
	m := newMachine(t, map[string][]string{"a": {doc}})
	hub := m.shows(doc)
	joiner := m.shows(doc)
	hub.kill()
	for range 20 {
		if got, err := joiner.Read(doc); err != nil && !strings.Contains(err.Error(), "went away") || err == nil &&
			got != "0" {
			t.Fatalf("a read during the takeover: %q, %v", got, err)
		}
	}
	one(t, []*node{joiner})
	if got := joiner.Text(doc); got != "0" {
		t.Fatalf("a read after the takeover: %q", got)
	}
}

func TestHubThatEndsInOrder(t *testing.T) {
	doc := app + "/doc"
	m := newMachine(t, map[string][]string{"a": {doc}})
	hub := m.shows(doc)
	joiner := m.shows(doc)
	testkit.Eventually(t, "the joiner has learned what it needs as a successor", func() bool {
		return joiner.log.Has("browser=ws://" + m.pages.addr)
	})
	joiner.Watch(doc)
	began := time.Now()
	hub.in.Close()
	testkit.Ends(t, "the hub ends", hub.exited)
	t.Logf("the hub took %v to end", time.Since(began).Round(time.Millisecond))
	if code := hub.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	joiner.toldAgain(doc)
	one(t, []*node{joiner})
	if n := joiner.log.Count("learned"); n != 1 {
		t.Errorf("it was told %d times what is shared, and that has not changed", n)
	}
}

// stopped is a machine whose hub hangs, and what its joiners' agents have then.
func stopped(t *testing.T, hang, wake func(hub *node)) {
	doc, other := app+"/doc", app+"/other"
	m := newMachine(t, map[string][]string{"a": {doc}, "b": {other}})
	hub := m.shows(doc, other)
	nodes := []*node{hub, m.shows(doc, other), m.shows(doc, other)}
	for _, n := range nodes {
		n.Watch(doc, other)
	}
	hang(hub)
	began := time.Now()
	m.pages.set("a", doc, "1")
	for _, n := range nodes[1:] {
		n.Reads(doc, "1")
		t.Logf("an agent reads %v after the hub has begun to hang", time.Since(began).Round(time.Millisecond))
		n.toldAgain(doc, other)
		t.Logf("it is told by %v, the quarter of a second included in which nothing more may come",
			time.Since(began).Round(time.Millisecond))
	}
	one(t, nodes[1:])
	for _, n := range nodes[1:] {
		n.Shows(doc, other)
	}
	if wake == nil {
		return
	}
	wake(hub)
	testkit.Eventually(t, "the old hub steps aside", func() bool {
		return hub.log.Has("is no longer the hub") && hub.log.Count(isJoined) == 1
	})
	one(t, nodes)
	// Its agent heard of nothing while it was stopped, and has the last state.
	hub.Reads(doc, "1")
	hub.Shows(doc, other)
	testkit.Eventually(t, "what the old hub had is removed", func() bool {
		return slices.Equal(m.files(), []string{"hub-2", "hub-2.lock"})
	})
	for _, n := range nodes {
		n.quiet() // what waking up has made
	}
	m.pages.set("b", other, "2")
	for _, n := range nodes {
		n.Told(other)
		n.Reads(other, "2")
		n.Silent()
	}
	// The next one is of the same generation: it died, and did not hang.
	next, rest := one(t, nodes)
	next.kill()
	m.pages.set("b", other, "3")
	for _, n := range rest {
		n.Reads(other, "3")
	}
	one(t, rest)
	if got := m.files(); !slices.Equal(got, []string{"hub-2", "hub-2.lock"}) {
		t.Errorf("there is %v", got)
	}
	for i, n := range rest {
		hub, _ := one(t, rest[i:])
		gone := hub.log.Count(joinerGone)
		n.in.Close()
		testkit.Ends(t, "it ends", n.exited)
		// A hub that still believes in somebody who would take its place leaves the lock's file.
		testkit.Eventually(t, "its hub knows", func() bool { return n == hub || hub.log.Count(joinerGone) > gone })
	}
	if got := m.files(); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

func TestAStoppedHubIsReplacedAndStepsAside(t *testing.T) {
	stopped(t, func(hub *node) { hub.signal(syscall.SIGSTOP) }, func(hub *node) { hub.signal(syscall.SIGCONT) })
}

// A gateway whose lock is never released says nothing to its joiners.
func TestADeadlockedHubIsReplaced(t *testing.T) {
	stopped(t, func(hub *node) {
		hub.signal(syscall.SIGUSR1)
		t.Cleanup(func() { hub.signal(syscall.SIGKILL) })
	}, nil)
}

// A process that was itself stopped has heard nothing, and accuses nobody.
func TestAStoppedJoinerDoesNotBlameTheHub(t *testing.T) {
	doc := app + "/doc"
	m := newMachine(t, map[string][]string{"a": {doc}})
	hub := m.shows(doc)
	joiner := m.shows(doc)
	hub.signal(syscall.SIGSTOP)
	joiner.signal(syscall.SIGSTOP)
	time.Sleep(silence + silence/2)
	joiner.signal(syscall.SIGCONT)
	hub.signal(syscall.SIGCONT)
	joiner.Reads(doc, "0")
	if joiner.log.Has("hangs") || !hub.hub() || joiner.hub() {
		t.Error("the hub was replaced")
	}
}

// Joiners that end while the hub is killed leave nothing, and nobody behind.
func TestJoinersThatEndWhileTheHubIsKilled(t *testing.T) {
	doc := app + "/doc"
	m := newMachine(t, map[string][]string{"a": {doc}})
	for range 10 {
		hub := m.shows(doc)
		joiners := []*node{m.shows(doc), m.shows(doc)}
		hub.signal(syscall.SIGKILL)
		for _, j := range joiners {
			j.in.Close()
		}
		for _, j := range joiners {
			testkit.Ends(t, "the joiner ends", j.exited)
			if code := j.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		}
		testkit.Ends(t, "the hub is dead", hub.exited)
		// One that was killed leaves its socket, which is replaced; nobody else leaves more than the lock's file.
		for _, name := range m.files() {
			if name != "hub-1" && name != "hub-1.lock" {
				t.Errorf("left: %s", name)
			}
		}
	}
}
