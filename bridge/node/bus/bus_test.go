package bus

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/pagewire/pagewire/bridge/testkit"
)

func open(t *testing.T, o Options) *Bus {
	t.Helper()
	if o.Secret == "" && o.TLS == nil {
		o.Secret = "secret"
	}
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func subscribe(t *testing.T, b *Bus, subject string) chan string {
	t.Helper()
	got := make(chan string, 1000)
	if _, err := b.Subscribe(subject, func(m []byte) { got <- string(m) }); err != nil {
		t.Fatal(err)
	}
	return got
}

// reach sends until a message arrives: another node needs a moment to learn of a subscription.
func reach(t *testing.T, from *Bus, subject string, got chan string) {
	t.Helper()
	testkit.Eventually(t, subject+" is heard", func() bool {
		if err := from.Publish(subject, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		return len(got) > 0
	})
	from.Publish(subject, []byte("last"))
	for testkit.Receive(t, "the last hello", got) != "last" {
	}
}

func TestLargeMessagesTravelInParts(t *testing.T) {
	a := open(t, Options{Name: "a", Cluster: "127.0.0.1:0"})
	b := open(t, Options{Name: "b", Cluster: "127.0.0.1:0", Join: []string{a.ClusterAddr()}})
	got := subscribe(t, b, "x")
	reach(t, a, "x", got)
	for _, size := range []int{1<<20 - 2, 1<<20 - 1, 1 << 20, 1<<20 + 1, 17 << 20} {
		message := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
		if err := a.Publish("x", message); err != nil {
			t.Fatal(err)
		}
		a.Publish("x", []byte("behind"))
		if m := testkit.Receive(t, "a large message", got); m != string(message) {
			t.Fatalf("of %d bytes %d have come", size, len(m))
		}
		if m := testkit.Receive(t, "what is behind", got); m != "behind" {
			t.Fatalf("behind it is %q", m)
		}
	}
	if err := a.Publish("x", make([]byte, maxMessage+1)); err == nil {
		t.Error("a message above the limit was sent")
	}
}

// A message with a missing part is lost as a whole.
func TestPartsThatAreMissing(t *testing.T) {
	piece := func(number, index, count byte, text string) []byte {
		return append([]byte{part, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, number, 0, index, 0, count}, text...)
	}
	for name, c := range map[string]struct {
		pieces [][]byte
		want   string
	}{
		"all there":        {[][]byte{piece(1, 0, 2, "a"), piece(1, 1, 2, "b")}, "ab"},
		"two at a time":    {[][]byte{piece(1, 0, 2, "a"), piece(2, 0, 2, "x"), piece(1, 1, 2, "b")}, "ab"},
		"first is missing": {[][]byte{piece(1, 1, 2, "b")}, ""},
		"one is missing":   {[][]byte{piece(1, 0, 3, "a"), piece(1, 2, 3, "c")}, ""},
		"twice":            {[][]byte{piece(1, 0, 2, "a"), piece(1, 0, 2, "a"), piece(1, 1, 2, "b")}, ""},
		"count changes":    {[][]byte{piece(1, 0, 2, "a"), piece(1, 1, 3, "b")}, ""},
		"none":             {[][]byte{piece(1, 0, 0, "a")}, ""},
		"empty":            {[][]byte{{}, {part}, {9, 9}}, ""},
	} {
		var a assembly
		got := ""
		for _, p := range c.pieces {
			got += string(a.add(p))
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var a assembly
		for i := range byte(200) {
			a.add(piece(i, 0, 2, "a"))
		}
		if len(a.partial) > maxPartial || len(a.order) != len(a.partial) {
			t.Errorf("%d partial messages are kept, and %d in order", len(a.partial), len(a.order))
		}
		time.Sleep(2 * maxPause)
		if a.add([]byte{whole}); len(a.partial) != 0 || len(a.order) != 0 {
			t.Errorf("of dead senders %d messages are kept, and %d in order", len(a.partial), len(a.order))
		}
	})
}

// A node does not look for ever for one that has ended. The second server of a store hears of that one by the first.
func TestEndedNodesAreForgotten(t *testing.T) {
	store := t.TempDir()
	testkit.OK(t, os.Mkdir(filepath.Join(store, "second"), 0o700)) // it has been there: the second server starts at once
	a := open(t, Options{Name: "a", Cluster: testkit.Addr(t), Store: store, tries: 1})
	a.seconding.Wait()
	testkit.Eventually(t, "its servers know each other", func() bool { return a.Peers() == 1 })
	b := open(t, Options{Name: "b", Cluster: "127.0.0.1:0", Join: []string{a.ClusterAddr()}})
	testkit.Eventually(t, "both servers know the node", func() bool { return b.Peers() == 2 })
	b.Close()
	testkit.Eventually(t, "nobody looks for the node", func() bool {
		gone := a.second.NumRoutes() == 1
		var stacks bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2)
		return gone && !strings.Contains(stacks.String(), "onnectToRoute")
	})
}

func TestOptionsThatAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no secret":                     {Cluster: "127.0.0.1:0"},
		"no address":                    {Cluster: "here", Secret: "s"},
		"join and no home":              {Join: []string{"127.0.0.1:1"}, Secret: "s"},
		"no TLS":                        {Cluster: "0.0.0.0:0", Secret: "s"},
		"no TLS elsewhere":              {Cluster: "127.0.0.1:0", Join: []string{"10.0.0.1:1"}, Secret: "s"},
		"no TLS behind another address": {Cluster: "127.0.0.1:0", Advertise: "10.0.0.1:1", Secret: "s"},
		"a bad peer": {Cluster: "127.0.0.1:0", Join: []string{"there"}, Secret: "s",
			TLS: &tls.Config{}},
	} {
		if b, err := Open(o); err == nil {
			b.Close()
			t.Errorf("%s is taken", name)
		}
	}
}

func TestAnotherSecretIsNotLetIn(t *testing.T) {
	a := open(t, Options{Name: "a", Cluster: "127.0.0.1:0"})
	b := open(t, Options{Name: "b", Cluster: "127.0.0.1:0", Join: []string{a.ClusterAddr()}, Secret: "another"})
	c := open(t, Options{Name: "c", Cluster: "127.0.0.1:0", Join: []string{a.ClusterAddr()}})
	got := subscribe(t, a, "x")
	reach(t, c, "x", got)
	b.Publish("x", []byte("let me in"))
	select {
	case m := <-got:
		t.Errorf("a stranger's message has come: %q", m)
	default:
	}
	if n := a.server.NumRoutes(); n != 1 {
		t.Errorf("%d nodes are connected", n)
	}
}

// Nodes with certificates need no secret. A node without a certificate of their authority cannot join by a secret.
func TestNodesShowCertificates(t *testing.T) {
	ours, theirs := testkit.Authority(t), testkit.Authority(t)
	a := open(t, Options{Name: "a", Cluster: "127.0.0.1:0", TLS: ours})
	b := open(t, Options{Name: "b", Cluster: "127.0.0.1:0", Join: []string{a.ClusterAddr()}, TLS: ours})
	open(t, Options{Name: "c", Cluster: "127.0.0.1:0", Join: []string{a.ClusterAddr()}, TLS: theirs})
	open(t, Options{Name: "d", Cluster: "127.0.0.1:0", Join: []string{a.ClusterAddr()}})
	got := subscribe(t, a, "x")
	reach(t, b, "x", got)
	if n := a.server.NumRoutes(); n != 1 {
		t.Errorf("%d nodes are connected", n)
	}
}

// Nodes give up their secret one by one. Nodes with the secret can join a node without one; it cannot join them.
func TestSecretThatIsGivenUp(t *testing.T) {
	ours, at := testkit.Authority(t), testkit.Addr(t)
	old := open(t, Options{Name: "old", Cluster: "127.0.0.1:0", Join: []string{at}, TLS: ours, Secret: "secret of all"})
	open(t, Options{Name: "alone", Cluster: "127.0.0.1:0", Join: []string{old.ClusterAddr()}, TLS: ours})
	next := open(t, Options{Name: "next", Cluster: at, Join: []string{old.ClusterAddr()}, TLS: ours})
	reach(t, next, "x", subscribe(t, old, "x"))
	reach(t, old, "y", subscribe(t, next, "y"))
	// At the node with the secret: the refused one counts each attempt, for the moment until it is refused.
	if n := old.server.NumRoutes(); n != 1 {
		t.Errorf("%d nodes are connected to the one with the secret, and not only the one that it joined", n)
	}
}

// cluster starts a server of an existing cluster.
func cluster(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoLog, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(testkit.Patience) {
		t.Fatal("the cluster does not come up")
	}
	return s
}

// A bus that reached its server on this machine without TLS connects to no other machine, even if the server names one.
func TestServersThatAreNotOfThisMachine(t *testing.T) {
	of := server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT}
	here := cluster(t, server.Options{Cluster: of})
	cluster(t, server.Options{Cluster: of, ClientAdvertise: "192.0.2.1:4222",
		Routes: []*url.URL{{Scheme: "nats", Host: here.ClusterAddr().String()}}})
	at := "nats://" + here.Addr().String()
	other, err := nats.Connect(at)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	testkit.Eventually(t, "its clients know of the second", func() bool { return len(other.DiscoveredServers()) > 0 })
	b := open(t, Options{Name: "a", URL: at})
	testkit.Eventually(t, "it is there", b.Up)
	if list := b.conn.DiscoveredServers(); len(list) != 0 {
		t.Errorf("without TLS it would go to %v", list)
	}
}

// A refusal by the cluster does not count as a lost message: a node that asked again would be refused again, and so on.
func TestWhatTheClusterRefuses(t *testing.T) {
	s := cluster(t, server.Options{Users: []*server.User{{Username: "u", Password: "p",
		Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"mine"}}}}}})
	var lost atomic.Int64
	log := testkit.LogOf(t, "the node")
	b := open(t, Options{URL: "nats://u:p@" + s.Addr().String(), Lost: func() { lost.Add(1) },
		Log: slog.New(slog.NewTextHandler(log, nil))})
	testkit.Eventually(t, "it is there", b.Up)
	if err := b.Publish("another", []byte("x")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the refusal is logged", func() bool { return strings.Contains(log.String(), "ermissions") })
	if lost.Load() != 0 {
		t.Error("it counts as lost")
	}
}

// Errors and logs contain no password.
func TestErrorsHaveNoPassword(t *testing.T) {
	_, err := Open(Options{URL: "nats://user:hunter2@127.0.0.1:1", Creds: "/nowhere"})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("the error is %v", err)
	}
}
