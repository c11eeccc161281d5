//go:build !js && linux

package keeper

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestNothingListens(t *testing.T) {
	h := newHome(t)
	hold := h.launch(h.options())
	d := dialed(t, hold)
	if d.evaluate(d.page(`"waitForDebuggerOnStart":false`), "6*7") != "42" {
		t.Error("the browser does not work")
	}
	for pid, line := range h.processes() {
		if n := len(testkit.Listens(t, pid)); n > 0 {
			t.Errorf("%d listens on %d ports: %s", pid, n, line)
		}
	}
	if hold.URL != "" {
		t.Errorf("it says that it listens at %s", hold.URL)
	}
	// The count sees what there is: a browser that is started by TCP has a port.
	old, err := browser.Start(t.Context(), browser.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if len(testkit.Listens(t, old.Process.Pid)) == 0 {
		t.Error("a browser that listens is not seen to: this test proves nothing")
	}
}

func TestDebugPortIsOpenedOnPurpose(t *testing.T) {
	h := newHome(t)
	o := h.options()
	o.DebugPort = "0"
	hold := h.launch(o)
	text, err := os.ReadFile(filepath.Join(h.profiles()[0], "DevToolsActivePort"))
	port, path, _ := strings.Cut(string(text), "\n")
	if err != nil || hold.URL != "ws://127.0.0.1:"+port+path {
		t.Errorf("it listens at %q, and its file says %q, %v", hold.URL, text, err)
	}
	if len(testkit.Listens(t, h.browser())) == 0 {
		t.Error("it does not listen")
	}
	if d := dialed(t, hold); d.evaluate(d.page(`"waitForDebuggerOnStart":false`), "6*7") != "42" {
		t.Error("the pipe does not work")
	}
}

func TestTheLastGatewayEndsTheBrowser(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, h *Hold){
		"by leaving":    func(t *testing.T, h *Hold) { leaves(t, h) },
		"by its end":    func(t *testing.T, h *Hold) { h.to.Close() },
		"some by each":  nil,
		"all at a time": nil,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			first := h.launch(h.options())
			holds := []*Hold{first}
			for range 3 {
				hold, launched, err := Launch(t.Context(), h.dir, h.options())
				if err != nil || launched || hold.Name != first.Name {
					t.Fatalf("a second gateway: launched %v, %v", launched, err)
				}
				holds = append(holds, hold)
			}
			d := dialed(t, first)
			browser := h.browser()
			if name == "all at a time" {
				var all sync.WaitGroup
				for _, hold := range holds {
					all.Go(func() { leaves(t, hold) })
				}
				all.Wait()
			} else {
				for i, hold := range holds {
					if h.browser() != browser || d.conn == nil {
						t.Fatalf("the browser is another one when %d of %d have gone", i, len(holds))
					}
					d.call("", "Browser.getVersion", "")
					switch {
					case end != nil:
						end(t, hold)
					case i%2 == 0:
						hold.to.Close()
					default:
						leaves(t, hold)
					}
				}
			}
			testkit.Ends(t, "the keeper has gone", first.gone)
			h.nothingLeft()
		})
	}
}

// The time between the end of the last gateway, if it was killed, and a successor's begin.
func TestAGatewayThatComesInTimeKeepsTheBrowser(t *testing.T) {
	h := newHome(t)
	first := h.launch(h.options())
	browser := h.browser()
	for range 5 {
		first.to.Close()
		next, err := Join(t.Context(), h.dir, first.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		first = next
	}
	if h.browser() != browser {
		t.Error("the browser is another one")
	}
	leaves(t, first)
}

func TestHowABrowserEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(t *testing.T, h *home, hold *Hold)
		want Ending
	}{
		"closed by its user": {
			func(t *testing.T, h *home, hold *Hold) { dialed(t, hold).send("", "Browser.close", "") }, Closed},
		"ended by the system": {func(t *testing.T, h *home, _ *Hold) { kill(t, h.browser(), syscall.SIGTERM) },
			Closed},
		"killed": {func(t *testing.T, h *home, _ *Hold) { kill(t, h.browser(), syscall.SIGKILL) },
			Crashed},
		"its keeper is terminated": {func(t *testing.T, h *home, _ *Hold) { kill(t, h.keeper(), syscall.SIGTERM) },
			Closed},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			hold := h.launch(h.options())
			other, err := Join(t.Context(), h.dir, hold.Name, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.end(t, h, hold)
			for i, hold := range []*Hold{hold, other} {
				testkit.Ends(t, "a gateway is told", hold.Done())
				if hold.How() != c.want {
					t.Errorf("gateway %d is told %q, want %q", i, hold.How(), c.want)
				}
			}
			if _, err := Join(t.Context(), h.dir, hold.Name, nil); !errors.Is(err, ErrGone) {
				t.Errorf("it is joined once more: %v", err)
			}
			if _, err := hold.Dial(t.Context()); !errors.Is(err, ErrGone) {
				t.Errorf("it is dialed once more: %v", err)
			}
			testkit.Ends(t, "the keeper has gone", hold.gone)
			h.nothingLeft()
		})
	}
}

// A keeper that is killed takes its browser along; what it leaves is the next one's to remove.
func TestAKeeperThatIsKilled(t *testing.T) {
	h := newHome(t)
	hold := h.launch(h.options())
	profile := h.profiles()[0]
	kill(t, h.keeper(), syscall.SIGKILL)
	testkit.Ends(t, "the gateway notices", hold.Done())
	if hold.How() != Crashed {
		t.Errorf("it is told %q", hold.How())
	}
	testkit.Eventually(t, "the browser has ended", func() bool { return len(h.processes()) == 0 })
	if names, err := h.dir.Names(); len(h.profiles()) == 0 || len(names) == 0 {
		t.Fatalf("nothing is left (%v): this test would prove nothing", err)
	}
	next := h.launch(h.options())
	testkit.Eventually(t, "the dead keeper's profile is removed", func() bool { return !there(profile) })
	if names, _ := Names(h.dir); len(names) != 1 || names[0] != next.Name {
		t.Errorf("keepers: %v, want %s", names, next.Name)
	}
}

func TestSignalsThatEndAGatewayAreNothingToTheKeeper(t *testing.T) {
	h := newHome(t)
	hold := h.launch(h.options())
	keeper := h.keeper()
	if group, err := syscall.Getpgid(keeper); err != nil || group == syscall.Getpgrp() {
		t.Errorf("it is in the group %d of the gateway, %v", group, err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE} {
		kill(t, keeper, signal)
	}
	dialed(t, hold).call("", "Browser.getVersion", "")
	// The browser has inherited nothing of that: SIGTERM, SIGHUP and SIGINT end it.
	kill(t, h.browser(), syscall.SIGHUP)
	testkit.Ends(t, "the browser has ended", hold.Done())
	if hold.How() != Closed {
		t.Errorf("it has %q", hold.How())
	}
}

// A gateway that reads nothing of what the keeper says, and one whose end of the connection is closed for reading.
func TestAGatewayThatReadsNothingDelaysNobody(t *testing.T) {
	h := newHome(t)
	hold := h.launch(h.options())
	conn, _, _, err := dial(t.Context(), h.dir, hold.Name, asGateway)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.(*net.UnixConn).CloseRead()
	kill(t, h.browser(), syscall.SIGKILL)
	testkit.Ends(t, "the other gateway is told", hold.Done())
	testkit.Ends(t, "the keeper has gone", hold.gone)
}

func TestLaunchesAtATimeMakeOneBrowser(t *testing.T) {
	h := newHome(t)
	var all sync.WaitGroup
	var launches atomic.Int32
	var mu sync.Mutex
	names := map[string]bool{}
	for range 6 {
		all.Go(func() {
			hold, launched, err := Launch(t.Context(), h.dir, h.options())
			if err != nil {
				t.Error(err)
				return
			}
			if launched {
				launches.Add(1)
			}
			mu.Lock()
			names[hold.Name] = true
			mu.Unlock()
			t.Cleanup(func() { leaves(t, hold) })
		})
	}
	all.Wait()
	if launches.Load() != 1 || len(names) != 1 {
		t.Errorf("%d launches of %v", launches.Load(), names)
	}
}

func TestLaunchThatFailsLeavesNothing(t *testing.T) {
	h := newHome(t)
	script := filepath.Join(h.config, "broken")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no display >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		browser string
		ctx     context.Context
		change  func(*Options)
		says    string
	}{
		"a browser that ends": {script, t.Context(), func(*Options) {}, "no display"},
		"no browser":          {filepath.Join(h.config, "none"), t.Context(), func(*Options) {}, "PAGEWIRE_BROWSER"},
		"an ended context":    {"", ended, func(*Options) {}, "context canceled"},
		"a keeper that is not": {"", t.Context(),
			func(o *Options) { o.Command = []string{filepath.Join(h.config, "none")} }, "keeps the browser"},
		"a keeper that ends": {"", t.Context(), func(o *Options) { o.Command = []string{script} },
			"keeps the browser"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.browser != "" {
				t.Setenv("PAGEWIRE_BROWSER", c.browser)
			}
			o := h.options()
			c.change(&o)
			_, _, err := Launch(c.ctx, h.dir, o)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q", err, c.says)
			}
			h.nothingLeft()
		})
	}
}

// Where there is no directory for a socket, the gateway that launches has the browser for itself.
func TestAlone(t *testing.T) {
	t.Run("no directory", func(t *testing.T) {
		h := newHome(t)
		hold, launched, err := Launch(t.Context(), nil, h.options())
		if err != nil || !launched || hold.Name != "" {
			t.Fatalf("%v, %v", launched, err)
		}
		d := dialed(t, hold)
		if d.evaluate(d.page(`"waitForDebuggerOnStart":false`), "6*7") != "42" {
			t.Error("the browser does not work")
		}
		if _, err := hold.Dial(t.Context()); !errors.Is(err, ErrGone) {
			t.Errorf("dialed twice: %v", err)
		}
		leaves(t, hold)
		if hold.How() != Closed {
			t.Errorf("it has %q", hold.How())
		}
		h.nothingLeft()
	})
	t.Run("the path is too long", func(t *testing.T) {
		h := newHome(t)
		long := filepath.Join(h.config, strings.Repeat("long", 30))
		if err := os.Mkdir(long, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("XDG_CONFIG_HOME", long)
		hold, _, err := Launch(t.Context(), h.dir, h.options())
		if err != nil || hold.Name != "" || !h.log.Has("of no use to other agents") || !h.log.Has("XDG_CONFIG_HOME") {
			t.Fatal(hold, err)
		}
		d := dialed(t, hold)
		d.call("", "Browser.getVersion", "")
		// The browser is nobody's when its one client is gone.
		d.conn.Close()
		testkit.Ends(t, "the browser has ended", hold.Done())
		testkit.Ends(t, "the keeper has gone", hold.gone)
		h.nothingLeft()
	})
}

func TestWhatIsSaidOfAProfileThatStays(t *testing.T) {
	h := newHome(t)
	hold := h.launch(h.options())
	path := h.profiles()[0]
	// At once: the browser makes its directory anew if it is gone for a moment.
	if err := os.Symlink(precious(t), path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, path+".moved", unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	leaves(t, hold)
	if !there(path) || h.log.Count("stays: something else has its name now") != 1 {
		t.Error("nothing is said, or the link is gone")
	}
	os.Remove(path) // for what looks for leftovers
	if err := os.RemoveAll(path + ".moved"); err != nil {
		t.Fatal(err)
	}
}

func TestNamesThatAreNone(t *testing.T) {
	h := newHome(t)
	for _, name := range []string{
		"", "browser-", "browser-abc", "../browser-abcdefghijkl", "browser-abcdefghijkl/..", "browser-ABCDEFGHIJKL",
		"browser-abcdefghijkl.lock",
		"browser-abcdefghijkl\n", "browser-abcdefghijk0", "/etc/passwd", "browser-abcdefghijkl\x00",
		" browser-abcdefghijkl",
	} {
		if _, err := Join(t.Context(), h.dir, name, nil); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Join(t.Context(), h.dir, "browser-abcdefghijkl", nil); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}
