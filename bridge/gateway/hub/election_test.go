//go:build !js && unix

package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// Of processes that start at the same instant exactly one is the hub, and the others have joined it.
func TestManyStartsAtOnce(t *testing.T) {
	const many = 64
	m := newMachine(t, map[string][]string{"a": {app + "/doc"}})
	var logs []*testkit.Log
	var ins []io.Closer
	var cmds []*exec.Cmd
	for range many {
		cmd, log := m.command(t)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		logs, ins, cmds = append(logs, log), append(ins, in), append(cmds, cmd)
	}
	var all sync.WaitGroup
	for _, cmd := range cmds {
		all.Go(func() {
			if err := cmd.Start(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	count := func(what string) (n int) {
		for _, log := range logs {
			n += log.Count(what)
		}
		return n
	}
	tab := m.pages.tabs["a"]
	sessions := func() int {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		return tab.sessions
	}
	testkit.Eventually(t, "one is the hub, which has the page, and the others have joined", func() bool {
		return count(isHub) > 0 && count(isJoined) >= many-1 && sessions() > 0
	})
	if hubs, joined, alone := count(isHub), count(isJoined), count(isAlone); hubs != 1 || joined != many-1 ||
		alone != 0 {
		t.Errorf("%d hubs, %d that have joined, %d alone", hubs, joined, alone)
	}
	if n := sessions(); n != 1 {
		t.Errorf("the page was brought in %d times", n)
	}
	// its own agent, too
	if s, err := Ask(t.Context(), m.addr); err != nil || s.Generation != 1 || s.Agents != many-1+1 {
		t.Errorf("the hub says %+v, %v", s, err)
	}
	for _, in := range ins {
		in.Close()
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process ends with %v", err)
		}
	}
	// The last one leaves nothing, unless there was somebody to take its place, who then ended too.
	if got := m.files(); len(got) > 0 && !slices.Equal(got, []string{"hub-1.lock"}) {
		t.Errorf("left: %v", got)
	}
}

// The hub changes fifty times, by all the ways in which a process ends, while agents read and are subscribed: each time
// there is one, and who is left holds the last state.
func TestFiftyHubs(t *testing.T) {
	const changes = 50
	doc := app + "/doc"
	m := newMachine(t, map[string][]string{"a": {doc}})
	nodes := []*node{m.shows(doc), m.shows(doc), m.shows(doc)}
	for _, n := range nodes {
		n.Watch(doc)
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	read := func(n *node) {
		load.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-n.exited:
					return
				default:
					n.Read(doc) // it may fail while there is no hub
				}
			}
		})
	}
	for _, n := range nodes {
		read(n)
	}
	var longest time.Duration
	for round := range changes {
		hub, joiners := one(t, nodes)
		switch round % 3 {
		case 0:
			hub.signal(syscall.SIGKILL)
		case 1:
			hub.in.Close()
		case 2:
			hub.signal(syscall.SIGTERM)
		}
		began := time.Now()
		value := fmt.Sprint(round + 1)
		m.pages.set("a", doc, value)
		for _, n := range joiners {
			n.Reads(doc, value)
		}
		longest = max(longest, time.Since(began))
		testkit.Ends(t, "it ends", hub.exited)
		one(t, joiners)
		for _, n := range joiners {
			testkit.Receive(t, "who is subscribed is told", n.Updates)
		}
		fresh := m.shows(doc)
		fresh.Watch(doc)
		read(fresh)
		nodes = append(joiners, fresh)
	}
	t.Logf("%d changes; the longest time until all agents had the last state, on a machine that reads all the time: %v",
		changes, longest.Round(time.Millisecond))
	for _, n := range nodes {
		if n.log.Has(isAlone) || n.log.Has("hangs") {
			t.Error("a process serves alone, or takes a hub to hang")
		}
	}
}

// unusable is what makes a directory one that cannot be used, and what is said then.
type unusable struct {
	make func(m *machine) error
	says string
}

// disks are those that only root can arrange, on a system of which the test knows how.
var disks = map[string]unusable{}

// Whatever is in place of what a process needs, it says so in one sentence and serves its agents alone; it changes
// nothing.
func TestADirectoryThatCannotBeUsed(t *testing.T) {
	other := func(path string) error {
		if os.Geteuid() != 0 {
			t.Skip("not shown: only root can give something to another user")
		}
		return os.Chown(path, testkit.OtherUID, testkit.OtherUID)
	}
	at := func(name string, make func(path string) error) func(m *machine) error {
		return func(m *machine) error {
			d, err := userdir.Open(m.addr, nil)
			if err != nil {
				return err
			}
			defer d.Close()
			// The name that it gives to a file, which nobody else knows.
			if err := d.WriteFile(name, nil); err != nil {
				return err
			}
			all, err := filepath.Glob(filepath.Join(d.String(), "*-"+name))
			if err != nil || len(all) != 1 {
				return fmt.Errorf("%v, %w", all, err)
			}
			return errors.Join(os.Remove(all[0]), make(all[0]))
		}
	}
	directory := func(m *machine) string { return filepath.Join(m.config, "pagewire") }
	cases := map[string]unusable{
		"the directory is a file": {func(m *machine) error { return os.WriteFile(directory(m), nil, 0o600) },
			"is a file and not a directory"},
		"the directory is another user's": {
			func(m *machine) error { return errors.Join(os.Mkdir(directory(m), 0o700), other(directory(m))) },
			"belongs to another user"},
		"the directory is open to others": {func(m *machine) error {
			return errors.Join(os.Mkdir(directory(m), 0o700), os.Chmod(directory(m), 0o777))
		}, "others may write to"},
		"its path is too long": {longer, "and this system takes"},
		"the lock is a FIFO": {
			at("hub-1.lock", func(p string) error { return syscall.Mkfifo(p, 0o600) }), "is a FIFO and not a file"},
		"the lock is a directory": {at("hub-1.lock", func(p string) error { return os.Mkdir(p, 0o700) }),
			"is a directory and not a file"},
		"the lock is a link": {
			at("hub-1.lock", func(p string) error { return os.Symlink("/dev/null", p) }),
			"is a symbolic link and not a file"},
		"the lock is open to others": {
			at("hub-1.lock",
				func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Chmod(p, 0o622)) }),
			"others may write to"},
		"the lock is another user's": {
			at("hub-1.lock", func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), other(p)) }),
			"belongs to another user"},
		"the socket is a file": {
			at("hub-1", func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) }),
			"is a file and not a socket"},
		"the socket is a FIFO": {at("hub-1", func(p string) error { return syscall.Mkfifo(p, 0o600) }),
			"is a FIFO and not a socket"},
		"the socket is a directory": {at("hub-1", func(p string) error { return os.Mkdir(p, 0o700) }),
			"is a directory and not a socket"},
		"the socket is a link": {
			at("hub-1", func(p string) error { return os.Symlink("/nowhere", p) }),
			"is a symbolic link and not a socket"},
		"the lock of a later generation is one": {
			at("hub-7.lock",
				func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Chmod(p, 0o622)) }),
			"others may write to"},
	}
	maps.Copy(cases, disks)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, nil)
			if err := c.make(m); err != nil {
				t.Fatal(err)
			}
			before := listing(m)
			leads := make(chan bool, 1)
			log, _ := takePart(t, Options{Addr: m.addr, Lead: func(ctx context.Context) error {
				leads <- true
				<-ctx.Done()
				return nil
			}})
			testkit.Receive(t, "it brings its own pages in", leads)
			if n := log.Count("level=WARN"); n != 1 || !log.Has(isAlone) || !log.Has(c.says) {
				t.Errorf("%d sentences, and one that says %q is wanted", n, c.says)
			}
			if after := listing(m); !slices.Equal(before, after) {
				t.Errorf("before %v, after %v", before, after)
			}
		})
	}
}

// listing says what is in the directory, and how.
func listing(m *machine) (list []string) {
	filepath.Walk(filepath.Join(m.config, "pagewire"), func(path string, info os.FileInfo, err error) error {
		// A lock that was free was taken, and stays as an empty file.
		if err == nil && !strings.HasSuffix(path, ".lock") {
			list = append(list, fmt.Sprint(path, info.Mode(), info.Size()))
		}
		return nil
	})
	return list
}

func longer(m *machine) error {
	m.config = filepath.Join(m.config, strings.Repeat("x", 100))
	m.t.Setenv("XDG_CONFIG_HOME", m.config)
	m.t.Setenv("HOME", m.config)
	return os.MkdirAll(filepath.Join(m.config, "pagewire"), 0o700)
}

// A stray file is a generation; what is left of older ones is removed, unless it is held or nothing of ours.
func TestWhatIsLeftOfOlderGenerations(t *testing.T) {
	m := newMachine(t, nil)
	d, err := userdir.Open(m.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range []string{"hub-3", "hub-3.lock", "hub-4.lock", "hub-5", "hub-007.lock", "hub-8.lock.new",
		"hub-x.lock", "keeper.lock", "hub-9.lock"} {
		if err := d.WriteFile(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	held, err := d.TryLock("hub-4.lock")
	if err != nil {
		t.Fatal(err)
	}
	lead(t, m, Options{})
	kept := []string{"hub-007.lock", "hub-4.lock", "hub-8.lock.new", "hub-9", "hub-9.lock", "hub-x.lock", "keeper.lock"}
	gone := func(what string) {
		t.Helper()
		testkit.Eventually(t, what, func() bool {
			got := m.files()
			slices.Sort(got)
			return slices.Equal(got, kept)
		})
	}
	gone("all that is old and free is removed")
	held.Unlock()
	kept = slices.DeleteFunc(kept, func(name string) bool { return name == "hub-4.lock" })
	gone("what was held is removed when it is free")
	if s, err := Ask(t.Context(), m.addr); err != nil || s.Generation != 9 {
		t.Errorf("the hub says %+v, %v", s, err)
	}
}

// Somebody removes the directory under those who run. There is one hub again, and nobody's agent notices.
func TestADirectoryThatIsRemoved(t *testing.T) {
	doc := app + "/doc"
	m := newMachine(t, map[string][]string{"a": {doc}})
	nodes := []*node{m.shows(doc), m.shows(doc)}
	if err := os.RemoveAll(filepath.Join(m.config, "pagewire")); err != nil {
		t.Fatal(err)
	}
	nodes = append(nodes, m.shows(doc))
	one(t, nodes)
	for _, n := range nodes {
		n.Shows(doc)
		n.Watch(doc)
	}
	m.pages.set("a", doc, "1")
	for _, n := range nodes {
		n.Reads(doc, "1")
		n.Told(doc)
	}
}

// Who has the lock, and hangs before it listens, is replaced as one that hangs later.
func TestALockWithoutAHub(t *testing.T) {
	doc := app + "/doc"
	m := newMachine(t, map[string][]string{"a": {doc}})
	d, err := userdir.Open(m.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	held, err := d.TryLock("hub-1.lock")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	if _, err := Dial(t.Context(), m.addr, "test"); !errors.Is(err, ErrNoHub) {
		t.Errorf("Dial: %v", err)
	}
	nodes := []*node{m.start(), m.start()}
	hub, _ := one(t, nodes)
	if !hub.log.Has("hangs, and is replaced") {
		t.Error("that is not said")
	}
	for _, n := range nodes {
		n.Shows(doc)
	}
	if s, err := Ask(t.Context(), m.addr); err != nil || s.Generation != 2 {
		t.Errorf("the hub says %+v, %v", s, err)
	}
}

func TestLeadThatFails(t *testing.T) {
	m := newMachine(t, nil)
	broken := errors.New("the browser is not there")
	for _, alone := range []bool{false, true} {
		if alone {
			if err := os.Chmod(filepath.Join(m.config, "pagewire"), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		g := gateway.New(gateway.Options{})
		defer g.Close()
		err := Run(t.Context(), Options{Addr: m.addr, Gateway: g, Lead: func(context.Context) error { return broken }})
		if !errors.Is(err, broken) {
			t.Errorf("alone %v: Run: %v", alone, err)
		}
	}
	if _, err := Ask(t.Context(), m.addr); err == nil {
		t.Error("it is still the hub")
	}
}
