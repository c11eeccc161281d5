//go:build unix

package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// asNode names the variable that has the setup of a node which the test's binary is to be, instead of testing.
const asNode = "PAGEWIRE_TEST_NODE"

func TestMain(m *testing.M) {
	text := os.Getenv(asNode)
	if text == "" {
		os.Exit(m.Run())
	}
	var s setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	o := s.options()
	o.Started = func(listen, admin, cluster net.Addr) { fmt.Println(listen, admin, cluster) }
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startOwn starts a node that is a process of its own.
func (f *place) startOwn() *member {
	f.t.Helper()
	text, err := json.Marshal(f.next())
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asNode+"="+string(text), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = testkit.LogOf(f.t, "a node's process")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n') // it is looked at
		line <- text
	}()
	at := strings.Fields(testkit.Receive(f.t, "the process listens", line))
	if len(at) != 3 {
		f.t.Fatalf("the process says %q", at)
	}
	m := &member{listen: at[0], admin: at[1], cluster: at[2], own: cmd.Process}
	f.nodes = append(f.nodes, m)
	f.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT) // it may run
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			f.t.Errorf("a node's process ends with %v", err)
		}
	})
	return m
}

func (f *place) signal(m *member, s os.Signal) {
	f.t.Helper()
	if err := m.own.Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// A node's process is stopped, with a page of one user and an agent of another, and goes on: others are served
// meanwhile, and every agent holds the last state then.
func TestProcessThatIsStopped(t *testing.T) {
	f := newFleet(t, 2)
	stopped := f.startOwn()
	knows := func(n int) {
		testkit.Eventually(t, fmt.Sprintf("%d nodes know each other", n), func() bool {
			return !slices.ContainsFunc(f.nodes[:2], func(m *member) bool {
				return !strings.Contains(get(t, m.admin, "/metrics"), fmt.Sprintf("pagewire_node_nodes %d\n", n))
			})
		})
	}
	knows(3)
	alices := testkit.NewPage(t, map[string]string{app + "/doc": "one"})
	bobs := testkit.NewPage(t, map[string]string{app + "/doc": "one"})
	f.page(stopped, alices, "alice")
	f.page(f.nodes[0], bobs, "bob")
	a, b, slow := f.agent(f.nodes[1], "alice"), f.agent(f.nodes[1], "bob"), f.agent(stopped, "bob")
	for _, one := range []*testkit.Agent{a, b, slow} {
		one.Shows(app + "/doc")
		one.Watch(app + "/doc")
	}
	f.signal(stopped, syscall.SIGSTOP)
	for i := range 3 {
		text := fmt.Sprint("change ", i)
		alices.Set(app+"/doc", "alice's "+text) // to a node that does not read
		bobs.Set(app+"/doc", "bob's "+text)
		b.Learns(app+"/doc", "bob's "+text)
	}
	knows(2)
	bobs.Set(app+"/doc", "bob's last")
	b.Learns(app+"/doc", "bob's last")
	f.signal(stopped, syscall.SIGCONT)
	knows(3)
	a.Learns(app+"/doc", "alice's change 2")
	slow.Learns(app+"/doc", "bob's last")
	testkit.Eventually(t, "all is watched again", func() bool {
		return strings.Contains(get(t, stopped.admin, "/metrics"), "pagewire_node_watched 1\n") &&
			strings.Contains(get(t, f.nodes[0].admin, "/metrics"), "pagewire_node_cores 2\n")
	})
	alices.Set(app+"/doc", "alice's own")
	a.Learns(app+"/doc", "alice's own")
	if got := b.Text(app + "/doc"); got != "bob's last" {
		t.Errorf("bob's agent reads %q", got)
	}
}
