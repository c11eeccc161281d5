//go:build linux

package launched

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A process that is killed takes its browser along, even one that is stuck. The next process
// removes the profile.
func TestAKilledProcess(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"works": syscall.SIGCONT, "is stuck": syscall.SIGSTOP} {
		t.Run("its browser "+name, func(t *testing.T) {
			h := newHome(t)
			owner := testcmd.Command(os.Args[0], roleOwner)
			_, out := testkit.Pipes(t, owner)
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
				t.Fatal(line, err)
			}
			kill(t, h.browser(), signal)
			owner.Process.Kill()
			owner.Wait()
			testkit.Eventually(t, "no process is left", func() bool { return len(h.processes()) == 0 })
			if len(h.profiles()) != 1 {
				t.Errorf("the profiles are %v", h.profiles())
			}
			testkit.Eventually(t, "the profile is removed", func() bool {
				Sweep(slog.New(slog.DiscardHandler))
				return len(h.profiles()) == 0
			})
		})
	}
}

// The browser of a killed process may end only after the next one was started.
func TestProfileThatIsAbandonedLater(t *testing.T) {
	h := newHome(t)
	old := testkit.Must(newProfile())(t)
	s := testkit.Must(Start(t.Context(), Options{}))(t)
	defer s.Close()
	Sweep(slog.New(slog.DiscardHandler))
	if len(h.profiles()) != 2 {
		t.Errorf("the profiles are %v", h.profiles())
	}
	old.close()
	testkit.Eventually(t, "it is removed", func() bool { return len(h.profiles()) == 1 })
}

// Whether a browser has crashed is what decides over another one.
func TestCrashed(t *testing.T) {
	newHome(t)
	for name, c := range map[string]struct {
		end     func(s *Started, tab *tab)
		crashed bool
	}{
		"a person closes it": {func(_ *Started, tab *tab) { tab.call("Browser.close", "{}") }, false},
		"the system ends it": {func(s *Started, _ *tab) { kill(t, s.process.Pid, syscall.SIGTERM) }, false},
		"it is killed":       {func(s *Started, _ *tab) { s.Kill() }, true},
	} {
		s := testkit.Must(Start(t.Context(), Options{}))(t)
		tab := dialed(t, s.Pipe)
		if s.Ended() || s.Crashed() {
			t.Errorf("%s: it runs, and has ended", name)
		}
		c.end(s, tab)
		testkit.Ends(t, name, s.Exited())
		s.Close()
		if !s.Ended() || s.Crashed() != c.crashed {
			t.Errorf("%s: it has ended: %v, by a crash: %v", name, s.Ended(), s.Crashed())
		}
	}
}

// The end of a browser leaves other children of this process to their starters.
func TestOtherChildrenAreNotReaped(t *testing.T) {
	newHome(t)
	s := testkit.Must(Start(t.Context(), Options{}))(t)
	other := testcmd.Command("true")
	testkit.OK(t, other.Start())
	testkit.Eventually(t, "it has ended", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", other.Process.Pid))
		return strings.Contains(string(text), ") Z ")
	})
	s.Close()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}

// The debugging address is found after other output.
func TestListeningIsFoundBehindErrors(t *testing.T) {
	o := output{url: make(chan string, 1)}
	for range 100 {
		fmt.Fprintf(&o, "[1:2:ERROR:dbus/bus.cc:405] %s\n", strings.Repeat("x", 100))
	}
	fmt.Fprintln(&o, "DevTools listening on ws://127.0.0.1:1/devtools/browser/x")
	if got := testkit.Receive(t, "the URL", o.url); got != "ws://127.0.0.1:1/devtools/browser/x" {
		t.Errorf("it listens on %q", got)
	}
}

// A browser that goes on after its pipe is closed is killed.
func TestABrowserThatIsStuck(t *testing.T) {
	h := newHome(t)
	s := testkit.Must(Start(t.Context(), Options{}))(t)
	kill(t, h.browser(), syscall.SIGSTOP)
	s.Close()
	if left := h.profiles(); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

func TestABrowserThatCannotBeStarted(t *testing.T) {
	h := newHome(t)
	for _, program := range []string{"/bin/false", "/nowhere/chromium"} {
		t.Setenv("PAGEWIRE_BROWSER", program)
		if _, err := Start(t.Context(), Options{}); err == nil {
			t.Errorf("%s is started", program)
		}
		if left := h.profiles(); len(left) > 0 {
			t.Errorf("%s leaves %v", program, left)
		}
	}
}

// All agents may read why a browser could not be launched, and the addresses are those of one agent.
func TestAnErrorNamesNoAddress(t *testing.T) {
	h := newHome(t)
	program := filepath.Join(t.TempDir(), "browser")
	testkit.OK(t, os.WriteFile(program, []byte(`#!/bin/bash
		read -r -d "" -u 3; read -r -d "" -u 3 command # it answers the first command, and ends
		id=${command#*:}; printf '{"id":%s,"result":{}}\0' "${id%%,*}" >&4
	`), 0o700))
	t.Setenv("PAGEWIRE_BROWSER", program)
	_, err := Start(t.Context(), Options{Open: []string{"https://shop.example", "https://ada.example/secret"}})
	if err == nil || !strings.Contains(err.Error(), "open address 2") || strings.Contains(err.Error(), "ada.example") {
		t.Errorf("the browser is not started: %v", err)
	}
	h.nothingLeft()
}

// A Conn that is closed leaves half a command, half a message, commands without an answer, and
// sessions with domains that it enabled.
func TestWhatAClosedConnLeaves(t *testing.T) {
	newHome(t)
	s := testkit.Must(Start(t.Context(), Options{Open: []string{document}}))(t)
	defer s.Close()
	first := dialed(t, s.Pipe)
	first.loaded(t)
	for _, c := range [][2]string{
		{"Runtime.enable", "{}"},
		{"Runtime.addBinding", `{"name":"bound"}`},
		{"Page.enable", "{}"},
		{"Page.addScriptToEvaluateOnNewDocument", `{"source":"globalThis.added = true","runImmediately":true}`},
		{"Runtime.evaluate", `{"expression":"globalThis.state = added && typeof bound"}`},
	} {
		if _, err := first.call(c[0], c[1]); err != nil {
			t.Fatal(c[0], err)
		}
	}
	first.conn.Close()
	testkit.Ends(t, "the reader is interrupted", first.over)
	second := testkit.Must(s.Pipe.Dial(t.Context()))(t)
	testkit.OK(t, second.Write([]byte(`{"id":1,"method":"Target.setAutoAttach","params":`+attachParams+`}`)))
	var session string
	for session == "" {
		var m devtoolsMessage
		testkit.OK(t, json.NewDecoder(testkit.Must(second.Next())(t)).Decode(&m))
		session = m.Params.SessionID
	}
	evaluate := `,"sessionId":"` + session + `","method":"Runtime.evaluate","params":{"awaitPromise":true,"expression":`
	for _, command := range []string{
		`{"id":1000` + evaluate + `"'x'.repeat(3e5)"}}` + "\x00",
		`{"id":1001` + evaluate + `"new Promise(() => 0)"}}` + "\x00",
		`{"id":1002,"method":"Target.createTarget","params":{"url":"about:bl`,
	} {
		if _, err := io.WriteString(s.Pipe.to, command); err != nil {
			t.Fatal(err)
		}
	}
	for size := 0; size < 100_000; { // half of a message that is longer than all others
		n, err := io.ReadFull(testkit.Must(second.Next())(t), make([]byte, 100_000))
		if size = n; err != nil && err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
	}
	second.Close()
	tab := dialed(t, s.Pipe)
	if got := tab.evaluate("state"); got != "function" {
		t.Errorf("the state is %q", got)
	}
	if _, err := tab.call("Page.reload", "{}"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the tab is as new", func() bool {
		return tab.evaluate("typeof state + typeof bound + typeof added + document.readyState") ==
			"undefinedundefinedundefinedcomplete"
	})
	// An old Conn's Close is not the present one's.
	first.conn.Close()
	if got := tab.evaluate("6*7"); got != "42" {
		t.Errorf("it says %q", got)
	}
	// An address that is opened meanwhile disturbs nobody.
	testkit.OK(t, s.Open("data:text/html,<title>&quot;</title>"))
	testkit.Receive(t, "it is open", tab.further)
	if got := tab.evaluate("6*7"); got != "42" {
		t.Errorf("then it says %q", got)
	}
}

func TestNothingListens(t *testing.T) {
	for port, listens := range map[string]bool{"": false, "0": true} {
		t.Run("port "+port, func(t *testing.T) {
			h := newHome(t)
			s := testkit.Must(Start(t.Context(), Options{DebugPort: port, Open: []string{"data:,a", "data:,b"}}))(t)
			defer s.Close()
			any := false
			for pid := range h.processes() {
				any = any || len(testkit.Listens(t, pid)) > 0
			}
			if any != listens || strings.HasPrefix(s.URL, "ws://127.0.0.1:") != listens {
				t.Errorf("it listens: %v, at %q", any, s.URL)
			}
		})
	}
}
