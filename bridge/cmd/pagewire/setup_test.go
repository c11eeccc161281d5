package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// lonely keeps the programs and the screen of this machine from setup and the doctor, and returns a new home.
func lonely(t *testing.T) (home string) {
	t.Helper()
	home = testkit.Home(t)
	for _, name := range []string{"PATH", "DISPLAY", "WAYLAND_DISPLAY", "PAGEWIRE_BROWSER", "CODEX_HOME"} {
		t.Setenv(name, "")
	}
	return home
}

// agentNamed connects an agent that calls itself so to the daemon, until the test ends.
func agentNamed(t *testing.T, addr, name string) {
	t.Helper()
	conn, err := daemon.Dialer{Hub: addr}.Dial(t.Context(), daemon.Hello{Version: versionName(), As: daemon.AsAgent})
	testkit.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	quoted := string(testkit.Must(json.Marshal(name))(t))
	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":`+quoted+`,"version":"1"}}}`)
}

// firstOf returns the doctor's first finding.
func firstOf(t *testing.T, args ...string) (check, says, do string) {
	t.Helper()
	_, out, _ := run(append([]string{"doctor", "--json"}, args...)...)
	var all []finding
	testkit.OK(t, json.Unmarshal([]byte(out), &all))
	return all[0].Check, all[0].Says, all[0].Do
}

// setup waits for an agent of that program and for a page, and says at each moment what is missing and what to do about
// it. The doctor says the same.
func TestSetupWaits(t *testing.T) {
	lonely(t)
	addr := testkit.Addr(t)
	serveAt(t, addr, addr)
	var out, errs testkit.Log
	ended := make(chan int, 1)
	go func() {
		ended <- pagewire(t.Context(), []string{"setup", "codex", "--yes", "--timeout", testkit.Patience.String(), "--",
			"--hub", addr}, strings.NewReader(""), &out, &errs)
	}()
	says := func(want, todo string) {
		t.Helper()
		testkit.Eventually(t, want, func() bool { return errs.Has("pagewire: " + want + "\npagewire: → " + todo + "\n") })
		if _, said, do := firstOf(t, "--hub", addr); said != want || do != todo {
			t.Errorf("the doctor says %q, %q, want %q, %q", said, do, want, todo)
		}
	}
	says("Codex is set up, but not connected", "start Codex; if it is running, restart it")
	agentNamed(t, addr, "codex-mcp-client")
	says("Codex is connected, but sees no page", "open http://"+addr+"/demo/ in a browser")
	testkit.NewPage(t, map[string]string{"http://localhost:3000/cart": "tea"}).Dial(addr, "http://localhost:3000", "")
	if status := testkit.Receive(t, "setup ends", ended); status != exitDone {
		t.Errorf("status %d, %s", status, &errs)
	}
	const done = "Codex is connected; it sees 1 page"
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); lines[len(lines)-1] != done {
		t.Errorf("it prints %q, and ends not with %q", lines, done)
	}
	if _, said, do := firstOf(t, "--hub", addr); said != done || do != "" {
		t.Errorf("the doctor says %q, %q", said, do)
	}
}

// An agent of another program does not count for setup. The doctor names it as it names itself, without effect on the
// terminal.
func TestSetupOfAnotherAgent(t *testing.T) {
	lonely(t)
	addr := testkit.Addr(t)
	serveAt(t, addr, addr)
	agentNamed(t, addr, "evil\x1b[2J\u202e")
	testkit.NewPage(t, map[string]string{"http://localhost:3000/cart": "tea"}).Dial(addr, "http://localhost:3000", "")
	testkit.Eventually(t, "the agent has a name and a page", func() bool {
		_, says, _ := firstOf(t, "--hub", addr)
		return strings.Contains(says, "evil")
	})
	_, out, _ := run("doctor", "--hub", addr)
	if line, _, _ := strings.Cut(out, "\n"); strings.Join(strings.Fields(line), " ") !=
		"ok connection evil\ufffd[2J\ufffd is connected; it sees 1 page" {
		t.Errorf("the doctor says %q", line)
	}
	status, _, errs := run("setup", "codex", "--yes", "--timeout", "1ms", "--", "--hub", addr)
	if status != exitFailed || !strings.HasSuffix(errs, "pagewire: gave up after 1ms; Codex is set up, but not connected\n"+
		"pagewire: start Codex; if it is running, restart it\n") {
		t.Errorf("status %d, %q", status, errs)
	}
}

// A signal ends the wait. What was written stays.
func TestSetupIsInterrupted(t *testing.T) {
	lonely(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs testkit.Log
	ended := make(chan int, 1)
	go func() {
		ended <- pagewire(ctx, []string{"setup", "codex", "--yes", "--timeout", time.Hour.String(), "--", "--hub",
			testkit.Addr(t)}, strings.NewReader(""), &out, &errs)
	}()
	testkit.Eventually(t, "it waits", func() bool { return errs.Has("not connected") })
	cancel()
	if status := testkit.Receive(t, "setup ends", ended); status != exitFailed ||
		!errs.Has("pagewire: interrupted; Codex is set up, but not connected\n") || out.Count("\n") != 2 {
		t.Errorf("status %d, %s, %s", status, &out, &errs)
	}
}
