package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// Contents above the bus's limit for one message arrive whole, and so do a tool's arguments.
func TestLargeContents(t *testing.T) {
	nodes := openFleetOf(t, 2, 5*time.Second) // no node is given up on a busy machine
	large := strings.Repeat("0123456789abcdef", 3<<16)
	b := openTab(t, nodes[0], alice, map[string]string{app + "/large": large})
	b.SetTool("count", testkit.Tool{})
	a := openAgent(t, nodes[1], alice)
	if got := a.Text(app + "/large"); got != large {
		t.Errorf("%d of %d bytes have come", len(got), len(large))
	}
	testkit.Eventually(t, "the tool is there", func() bool { return slices.Contains(a.ToolNames(), "count") })
	res, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "count",
		Arguments: map[string]any{"x": large[:2<<20]}})
	if err != nil || res.IsError {
		t.Errorf("a tool with large arguments: %v, %v", res, err)
	}
}

// A core cannot open the page of another user, even with the page's number.
func TestForeignSession(t *testing.T) {
	nodes := openFleet(t, 2)
	b := openTab(t, nodes[0], alice, map[string]string{app + "/doc": "one"})
	r := openReader(t, nodes[1], bob)
	done := make(chan struct{})
	r.mailbox.post(func() {
		r.open(pageKey{nodes[0].id, b.page.id})
		close(done)
	})
	<-done
	testkit.Eventually(t, "it is refused", func() bool {
		return nodes[0].Stats().Refused["user"] == 1 && nodes[1].Stats().Sessions == 0
	})
	if got := agentOf(t, r.Gateway).URIs(); len(got) != 0 {
		t.Errorf("another user is shown %v", got)
	}
}

// Nodes that the bus connects know each other at once, before their next beats.
func TestNodesThatAreConnected(t *testing.T) {
	openFleetOf(t, 3, 2*testkit.Patience)
}

// A node of another version shares nothing with this one, which logs it once and counts it. The younger of the two is
// not ready. All of that ends when the other node ends.
func TestNodeOfAnotherVersion(t *testing.T) {
	log := testkit.LogOf(t, "the node")
	n := openNode(t, Options{Log: slog.New(slog.NewTextHandler(log, nil)), Interval: testkit.Patience}) // none is given up
	says := func(text string, unlike int, mismatch bool) {
		t.Helper()
		n.publish("pagewire.nodes", []byte(text))
		testkit.Eventually(t, text+" is heard", func() bool { return n.Stats().Unlike == unlike })
		if n.Mismatch() != mismatch || n.Stats().Nodes > 1 {
			t.Errorf("after %q its mismatch is %v, and it knows %d nodes", text, n.Mismatch(), n.Stats().Nodes)
		}
	}
	n.members.mu.Lock()
	n.beats = 1000
	n.members.mu.Unlock()
	says("beat 2 younger 7 - what another version says too", 1, false)
	says("beat 2 older 5000 -", 2, true)
	says("beat 3 as-old 1000", 3, true)
	says("bye 2 older", 2, true)
	says("bye 3 as-old", 1, false)
	logs := func(times int) { // the log may lag behind the count
		t.Helper()
		testkit.Settles(t, "it says so", func() string {
			if got := log.Count("a node of another version"); got != times {
				return fmt.Sprintf("%d times, and not %d", got, times)
			}
			return ""
		})
	}
	logs(1)
	says("bye 2 younger", 0, false)
	says("beat 2 next 7 -", 1, false)
	logs(2)
}

// A silent node of another version is forgotten, like any other.
func TestSilentNodeOfAnotherVersion(t *testing.T) {
	log := testkit.LogOf(t, "the node")
	n := openNode(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	n.publish("pagewire.nodes", []byte("beat 2 other 1000 -"))
	testkit.Eventually(t, "it is heard", func() bool { return log.Has("a node of another version") })
	testkit.Eventually(t, "it is forgotten", func() bool { return n.Stats().Unlike == 0 && !n.Mismatch() })
}

// A node's bye is its last message: a beat after it would keep the node in the fleet until it is given up.
func TestLastWordOfANode(t *testing.T) {
	n := openNode(t, Options{})
	looks := func(_ string, text []byte) bool {
		select {
		case <-n.stop:
		default:
			if kindOf(text) == kindBye {
				t.Error("a beat may follow")
			}
		}
		return false
	}
	n.drops.Store(&looks)
	n.Close()
}

// Malformed messages do no harm.
func TestMessagesThatAreNone(t *testing.T) {
	n := openNode(t, Options{})
	b := openTab(t, n, alice, map[string]string{app + "/doc": "one"})
	a := openAgent(t, n, alice)
	a.Shows(app + "/doc")
	for _, text := range []string{"", "x", "beat", "open", "open x", "open x 1", "open x y z", "page x 1 1\nx",
		"page x 99999999999999999999 1\n", "core x 1\n", "core " + n.id + " 1 1\n", "gone x\n", "has x",
		"has x\ny z", "has x\n" + alice + " 0 x 7",
		"pages x\n1 2 3\nx\n\n", "cores x\n1\n", "ask x\n\n\n", "\n\n", "bye 1 x"} {
		n.sendTo(n.id, []byte(text))
		n.publish("pagewire.nodes", []byte(text))
	}
	b.Set(app+"/doc", "two")
	a.Reads(app+"/doc", "two")
	// The sessions of a node that never existed end soon.
	n.sendTo(n.id, fmt.Appendf(nil, "open ghost 1 %d %s 1\n", b.page.id, alice))
	testkit.Eventually(t, "only what is real is left", func() bool {
		s := n.Stats()
		return s.Cores == 1 && s.Sessions == 1 && s.Nodes == 1
	})
}

// A space is a name without wildcards: with one, a node would get the messages of all other fleets of its cluster.
func TestSpacesThatAreNone(t *testing.T) {
	for _, space := range []string{"*", ">", "a.>", "a.*.b", "a b", ".a", "a.", "a..b", "a\n", "\xff", "$SYS",
		strings.Repeat("x", 300)} {
		if n, err := Open(Options{Space: space}); err == nil {
			n.Close()
			t.Errorf("%q is taken", space)
		}
	}
}

// An epoch identifies a document only within its origin: a page of another origin cannot take over the link.
func TestEpochOfAnotherOrigin(t *testing.T) {
	n := openNode(t, Options{})
	b := openTab(t, n, alice, map[string]string{app + "/doc": "one"})
	a := openAgent(t, n, alice)
	a.Shows(app + "/doc")
	other := "https://other.example"
	page, err := n.Attach(alice, other, func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range []string{
		`[["hello",1,"0",{"epoch":"epoch of ` + b.name + `","tab":"` + b.name + `","dial":9}]]`,
		`[["register","{\"uri\":\"` + other + `/x\",\"name\":\"x\"}"]]`} {
		if err := page.Receive([]byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	a.Shows(app+"/doc", other+"/x")
	if got := a.Text(app + "/doc"); got != "one" {
		t.Errorf("read %q", got)
	}
}

// Logs contain no URL and no version that a page sends.
func TestLogsHaveNothingOfPages(t *testing.T) {
	log := testkit.LogOf(t, "the node")
	n := openNode(t, Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	a := openAgent(t, n, alice)
	for _, frames := range [][]string{
		{`[["hello",1,"0",{"epoch":"e","tab":"tab-tab-1","url":"` + app + `/?hunter2"}]]`,
			`[["register","{\"uri\":\"` + app + `/doc\",\"name\":\"x\"}"]]`, `[["dance"]]`},
		{`[["hello",9,"hunter2",{"epoch":"f","tab":"tab-tab-2"}]]`},
	} {
		page, err := n.Attach(alice, app, func([]byte) {})
		if err != nil {
			t.Fatal(err)
		}
		for i, frame := range frames {
			_ = page.Receive([]byte(frame)) // the last frame of each page is refused
			if i == 1 {
				a.Shows(app + "/doc")
			}
		}
	}
	testkit.Eventually(t, "both are gone", func() bool { return n.Stats().Pages+n.Stats().Sessions == 0 })
	if strings.Contains(log.String(), "hunter2") {
		t.Error("the log has what a page has said")
	}
}

func TestLimits(t *testing.T) {
	n := openNode(t, Options{Pages: 3, UserPages: 2, Users: 1})
	openTab(t, n, alice, nil)
	openTab(t, n, alice, nil)
	if _, err := n.Attach(alice, app, func([]byte) {}); err == nil || !strings.Contains(err.Error(), "of this user") {
		t.Errorf("a third page of a user: %v", err)
	}
	openTab(t, n, bob, nil)
	if _, err := n.Attach(bob, app, func([]byte) {}); err == nil || !strings.Contains(err.Error(), "3 pages") {
		t.Errorf("a fourth page: %v", err)
	}
	openReader(t, n, alice)
	if _, _, err := n.Reader("", bob, true, nil); err == nil {
		t.Error("agents of a second user are taken")
	}
}

// The offers of one user's pages are bounded, so that others have room. Silent pages count like any other.
func TestOneUserTakesNoneOfOthersRoom(t *testing.T) {
	n := openNode(t, Options{UserPages: 2, OfferedBytes: 100_000, UserBytes: 60_000})
	for _, user := range []string{alice, bob} {
		b := openTab(t, n, user, nil)
		for _, uri := range []string{app + "/one", app + "/two"} {
			b.Describe(uri, map[string]any{"description": strings.Repeat("x", 40_000)})
			b.Offer(uri, "x")
		}
		testkit.Eventually(t, "its second is refused", func() bool { return len(b.Reports()) == 1 })
		if why := b.Reports()[0]; !strings.Contains(why, app+"/two") || !strings.Contains(why, "of this user") {
			t.Errorf("it is told %q", why)
		}
	}
	if got := n.Stats().OfferedBytes; got < 80_000 {
		t.Errorf("%d bytes are kept of both", got)
	}
	if _, err := n.Attach(alice, app, func([]byte) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Attach(alice, app, func([]byte) {}); err == nil {
		t.Error("a third page of a user is taken before the second has said a word")
	}
}

// Memory and goroutines are freed, and gateways without users are closed.
func TestNothingIsLeft(t *testing.T) {
	testkit.NoLeak(t)
	n := openNode(t, Options{Idle: interval})
	b := openTab(t, n, alice, map[string]string{app + "/doc": "one"})
	r, release, err := n.Reader("", alice, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := agentOf(t, r.Gateway)
	a.Shows(app + "/doc")
	a.Watch(app + "/doc")
	a.Close()
	release()
	testkit.Eventually(t, "the gateway has gone", func() bool {
		s := n.Stats()
		return s.Readers+s.Cores+s.Sessions+s.Watched == 0
	})
	b.cut()
	if s := n.Stats(); s.Pages+s.Users != 0 || s.OfferedBytes != 0 {
		t.Errorf("%+v is left", s)
	}
	n.Close()
}

// A cluster is down at the start, and is restarted. Pages can connect meanwhile, and agents are notified of the changes
// when it is back.
func TestBusThatIsRestarted(t *testing.T) {
	addr := testkit.Addr(t)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	start := func() *server.Server {
		s, err := server.NewServer(&server.Options{Host: host, Port: number, NoLog: true, NoSigs: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(s.Shutdown)
		return s
	}
	nodes := []*Node{openNode(t, Options{Bus: bus.Options{URL: "nats://" + addr}}),
		openNode(t, Options{Bus: bus.Options{URL: "nats://" + addr}})}
	b := openTab(t, nodes[0], alice, map[string]string{app + "/doc": "one"})
	if nodes[0].Up() {
		t.Error("a bus that is down is up")
	}
	cluster := start()
	meet(t, nodes...)
	a := openAgent(t, nodes[1], alice)
	testkit.Eventually(t, "the page is there", func() bool { return len(a.URIs()) == 1 })
	a.Watch(app + "/doc")
	cluster.Shutdown()
	cluster.WaitForShutdown()
	b.Set(app+"/doc", "two")
	testkit.Eventually(t, "the nodes know that it is gone", func() bool { return !nodes[0].Up() && !nodes[1].Up() })
	start()
	a.Reads(app+"/doc", "two")
	for len(a.Updates) > 0 {
		<-a.Updates
	}
	b.Set(app+"/doc", "three")
	a.Reads(app+"/doc", "three")
	testkit.Receive(t, "the agent is told", a.Updates)
}

// The pages of one user share a budget; another user has a separate one.
func TestBudgetOfAUser(t *testing.T) {
	n := openNode(t, Options{})
	openReader(t, n, alice)
	tabs := []*tab{openTab(t, n, alice, nil), openTab(t, n, alice, nil), openTab(t, n, bob, nil)}
	for range 20_000 {
		tabs[0].page.user.messages.Reserve()
	}
	if pause := tabs[1].page.Pause(); pause == 0 || pause > maxPause || tabs[2].page.Pause() != 0 {
		t.Errorf("pauses of %v and %v", pause, tabs[2].page.Pause())
	}
}

// A used-up budget is not full again when the user's last page goes and another comes. It fills with time.
func TestBudgetOutlivesPages(t *testing.T) {
	n := openNode(t, Options{})
	b := openTab(t, n, alice, nil)
	for range 20_000 {
		b.page.user.messages.Reserve()
	}
	b.cut()
	b = openTab(t, n, alice, nil)
	if b.page.Pause() == 0 {
		t.Error("the budget is whole")
	}
	b.page.user.messages.SetLimit(rate.Inf) // as if ten seconds had passed
	b.cut()
	testkit.Eventually(t, "the budget is forgotten", func() bool {
		n.served.mu.Lock()
		defer n.served.mu.Unlock()
		return len(n.spent) == 0
	})
}

// A node with Join has met the others after the first beat of one. If none comes, it logs that once.
func TestNodeThatHearsNobody(t *testing.T) {
	log := testkit.LogOf(t, "the node")
	n := openNode(t, Options{Interval: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil)),
		Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{testkit.Addr(t)}}})
	testkit.Eventually(t, "it says that it hears nobody", func() bool { return log.Has("no other node has been heard") })
	if n.Met() {
		t.Error("a node that has heard nobody has met others")
	}
	if alone := openNode(t, Options{}); !alone.Met() {
		t.Error("a node that is to join nobody waits for others")
	}
	n.publish("pagewire.nodes", []byte("beat "+version+" other 1 -\n"))
	testkit.Eventually(t, "it has heard one", n.Met)
	if got := log.Count("no other node has been heard"); got != 1 {
		t.Errorf("it says so %d times", got)
	}
}

// Tokens are sent only to URLs that a node may have for itself.
func TestURLsOfOtherNodes(t *testing.T) {
	for name, c := range map[string]struct {
		url      string
		insecure bool
		want     string
	}{
		"loopback":   {"http://127.0.0.1:1", false, "http://127.0.0.1:1"},
		"with TLS":   {"https://10.0.0.7:8443", false, "https://10.0.0.7:8443"},
		"without":    {"http://10.0.0.7:8443", false, ""},
		"insecure":   {"http://10.0.0.7:8443", true, "http://10.0.0.7:8443"},
		"a path":     {"https://10.0.0.7/x", false, ""},
		"no origin":  {"file:///etc", true, ""},
		"not a name": {"%", true, ""},
	} {
		n := openNode(t, Options{InsecureHTTP: c.insecure, Interval: testkit.Patience}) // the other node is not given up
		n.publish("pagewire.nodes", []byte("beat "+version+" other 1 "+c.url+"\n"))
		testkit.Eventually(t, "it is heard", func() bool { return n.Stats().Nodes == 2 })
		if url, _, _ := n.URLOf(t.Context(), "other"); url != c.want {
			t.Errorf("%s: %q", name, url)
		}
		if got := n.Stats().Refused["node: URL"]; (got != 0) != (c.want == "") {
			t.Errorf("%s: it is refused %d times", name, got)
		}
	}
}

// A node that has just begun waits for the others' URLs, and no longer than their beats take.
func TestNewNodeWaitsForTheOthers(t *testing.T) {
	old := openNode(t, Options{URL: "http://127.0.0.1:1", Interval: 50 * time.Millisecond,
		Bus: bus.Options{Cluster: "127.0.0.1:0"}})
	if url, _, ok := old.URLOf(t.Context(), "none"); ok {
		t.Errorf("a node that is not there is at %q", url)
	}
	// A node that stays new for as long as the bus may take to connect the two.
	begun := openNode(t, Options{Interval: testkit.Patience,
		Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{old.ClusterAddr()}}})
	if url, _, ok := begun.URLOf(t.Context(), old.ID()); !ok || url != "http://127.0.0.1:1" {
		t.Errorf("a node that is there is at %q: %v", url, ok)
	}
	if begun.Met() {
		t.Error("a node that may not know all others yet has met them")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, ok := begun.URLOf(ended, "none"); ok {
		t.Error("a node that is not there is found")
	}
}

// A node, or a program with a node's rights, may send any bytes.
func FuzzMessage(f *testing.F) {
	f.Add([]byte("read n1 7 9\nhttps://a.example/x\n1 2 3"))
	f.Add([]byte(" \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, ok := parse(text)
		if !ok {
			return
		}
		for i := range len(m.words) + 1 {
			if n := m.number(i); n > 0 && m.word(i) == "" {
				t.Errorf("%q has the number %d at %d, and no word", text, n, i)
			}
		}
		for _, line := range m.lines() {
			if strings.Contains(line, "\n") {
				t.Errorf("%q has the line %q", text, line)
			}
			numbers(line)
		}
	})
}

// Nodes of one machine that stands still take each other for alive afterwards, wherever in their work it has caught them.
func TestNodesThatStandStill(t *testing.T) {
	for name, within := range map[string]string{"before it gives up nodes": kindBeat, "after that": kindCores} {
		t.Run(name, func(t *testing.T) {
			log := testkit.LogOf(t, "the nodes")
			a := openNode(t, Options{Log: slog.New(slog.NewTextHandler(log, nil)), Bus: bus.Options{Cluster: "127.0.0.1:0"}})
			b := openNode(t, Options{Log: slog.New(slog.NewTextHandler(log, nil)),
				Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{a.ClusterAddr()}}})
			openTab(t, a, alice, map[string]string{app + "/doc": "one"})
			openTab(t, b, alice, map[string]string{app + "/other": "two"})
			openAgent(t, a, alice).Shows(app+"/doc", app+"/other")
			openAgent(t, b, alice).Shows(app+"/doc", app+"/other")
			var both, stood sync.WaitGroup
			both.Add(2)
			stood.Add(2)
			for _, n := range []*Node{a, b} {
				var once sync.Once
				stand := func(_ string, text []byte) bool {
					if kindOf(text) == within {
						once.Do(func() {
							both.Done()
							both.Wait()
							time.Sleep(5 * interval)
							stood.Done()
						})
					}
					return false
				}
				n.drops.Store(&stand)
			}
			stood.Wait()
			for _, n := range []*Node{a, b} {
				beats := n.Stats().Heard
				testkit.Eventually(t, "it goes on", func() bool { return n.Stats().Heard > beats+20 })
			}
			if log.Has("a node is silent") {
				t.Error("a node takes another for silent")
			}
		})
	}
}
