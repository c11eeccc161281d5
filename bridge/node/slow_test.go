package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// hang makes a node receive and send nothing, as without a processor, until the test wakes it.
func hang(t *testing.T, n *Node) (wake func()) {
	t.Helper()
	locks := []sync.Locker{&n.readers.mu, &n.served.mu, &n.cores.mu, &n.sessions.mu, &n.members.mu}
	for _, l := range locks {
		l.Lock()
	}
	wake = sync.OnceFunc(func() {
		for _, l := range locks {
			l.Unlock()
		}
	})
	t.Cleanup(wake) // before the node is closed
	return wake
}

// A page answers a read long after its reader has gone. Nobody gets the answer, and others are served meanwhile.
func TestPageThatAnswersLate(t *testing.T) {
	testkit.NoLeak(t)
	nodes := openFleet(t, 2)
	late, reading := make(chan struct{}), make(chan struct{}, 100)
	slow := openTab(t, nodes[0], alice, map[string]string{app + "/doc": "one"})
	slow.Add(app+"/late", func(context.Context, string) (string, error) {
		reading <- struct{}{}
		<-late
		return "late", nil
	})
	other := openTab(t, nodes[0], alice, map[string]string{app + "/other": "one"})
	a, second := openAgent(t, nodes[1], alice), openAgent(t, nodes[1], alice)
	a.Shows(app+"/doc", app+"/late", app+"/other")
	second.Watch(app+"/doc", app+"/other")
	const gaveUp = 80 // above the limit of open calls of a page
	ended := make(chan error, gaveUp)
	ctx, giveUp := context.WithCancel(t.Context())
	for range gaveUp {
		go func() {
			_, err := a.ReadResource(ctx, &mcp.ReadResourceParams{URI: app + "/late"})
			ended <- err
		}()
	}
	testkit.Receive(t, "the page is asked", reading)
	for i := range 3 {
		text := fmt.Sprint("change ", i)
		slow.Set(app+"/doc", text)
		other.Set(app+"/other", text)
		second.Told(app+"/doc", app+"/other")
		if got := second.Text(app + "/other"); got != text {
			t.Errorf("the other page reads %q", got)
		}
	}
	giveUp()
	for range gaveUp {
		if err := testkit.Receive(t, "a read is given up", ended); err == nil {
			t.Error("a read that was given up has an answer")
		}
	}
	close(late)
	for _, one := range []*testkit.Agent{a, second} {
		if got := one.Text(app + "/late"); got != "late" {
			t.Errorf("then it reads %q", got)
		}
		if got := one.Text(app + "/doc"); got != "change 2" {
			t.Errorf("the page reads %q", got)
		}
	}
}

// Agents of many users that ask and read nothing share one bound. Only the agent with the most queued bytes ends.
func TestAgentsThatReadNothing(t *testing.T) {
	const most = 4 << 20
	nodes := openFleet(t, 1)
	n := openNode(t, Options{WaitingBytes: most,
		Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{nodes[0].ClusterAddr()}}})
	meet(t, nodes[0], n)
	large := strings.Repeat("x", 600<<10)
	open := func(user string) (*tab, *gateway.Gateway) {
		return openTab(t, nodes[0], user, map[string]string{app + "/large": large}), openReader(t, n, user).Gateway
	}
	_, of := open(alice)
	_, ofBob := open(bob)
	honest := agentOf(t, ofBob)
	honest.Shows(app + "/large")
	greedy, err := of.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	agentOf(t, of).Shows(app + "/large")
	asked := 0
	// Some reads have errors as answers, while the nodes of a busy machine take each other for silent.
	testkit.Eventually(t, "who reads nothing has ended", func() bool {
		asked++
		ask := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"%s/large",`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`, asked, app)
		if got := n.Stats().WaitingBytes; got > most+most/2 {
			t.Errorf("%d bytes wait", got)
		}
		return greedy.Write(t.Context(), []byte(ask)) != nil
	})
	testkit.Ends(t, "it has ended", greedy.Done())
	if got := honest.Text(app + "/large"); got != large {
		t.Errorf("another user's agent reads %d bytes", len(got))
	}
	testkit.Eventually(t, "nothing waits", func() bool { return n.Stats().WaitingBytes == 0 })
	if got := n.Stats().Refused["agent: reads nothing"]; got != 1 {
		t.Errorf("it is counted %d times", got)
	}
}
