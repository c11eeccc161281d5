package e2e

// How a launched browser ends, and what does not end it: it goes on as long as one of the agents that asked for it does,
// whatever happens to the daemon and to the process that has started it.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// serveIdentity serves a page with the resource /id, which is another one whenever the page is loaded.
func serveIdentity(t *testing.T) *site {
	return serve(t,
		page{script: `const id = crypto.randomUUID(); navigator.modelContext.registerResource({ uri: location.origin + "/id", name: "id", read: () => id });`})
}

// reads waits until an agent has a resource, and returns what it reads as.
func (s *started) reads(uri string) (text string) {
	s.t.Helper()
	testkit.Eventually(s.t, uri+" is read", func() bool {
		var err error
		text, err = s.Read(uri)
		return err == nil
	})
	return text
}

// The ways in which agents end what they have started.
var ends = map[string]func(s *started){
	"EOF":  func(s *started) { s.Close() },
	"TERM": func(s *started) { s.cmd.Process.Signal(syscall.SIGTERM); s.Wait() },
	"KILL": func(s *started) { s.cmd.Process.Kill(); s.Wait() },
	"HUP":  func(s *started) { s.cmd.Process.Signal(syscall.SIGHUP); s.Wait() },
}

// The daemon is killed, hangs, or is told to end, and who started the browser is killed: the browser stays, with its
// tabs as they are, and all agents have them. It ends with the last of those that asked for it.
func TestBrowserOutlivesDaemons(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := serveIdentity(t)
	args := []string{"--launch", "--headless", "--open", s.URL}
	starter := h.serve(t, args...)
	id := starter.reads(s.URL + "/id")
	a, other := h.serve(t, args...), h.serve(t)
	browser := h.browser(t)
	read := func(what string, by ...*started) {
		t.Helper()
		for _, agent := range by {
			if got := agent.reads(s.URL + "/id"); got != id {
				t.Errorf("%s: an agent reads %s, before %s", what, got, id)
			}
		}
		if h.browser(t) != browser {
			t.Errorf("%s: the browser is another one", what)
		}
	}
	read("at the beginning", starter, a, other)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM} {
		syscall.Kill(h.daemon(t), signal)
		read(fmt.Sprint("the daemon got ", signal), starter, a, other)
	}
	ends["KILL"](starter)
	read("who started it was killed", a, other)
	a.Close()
	testkit.Eventually(t, "the browser is gone", func() bool { return len(profiles(h)) == 0 })
	testkit.Eventually(t, "its page is gone", func() bool { return !other.Offers(s.URL + "/id") })
	other.Close()
	h.nothingLeft(t)
}

// All agents end at a time, each in a way of its own: nothing is left.
func TestAgentsThatEndTogether(t *testing.T) {
	t.Parallel()
	s := serveIdentity(t)
	args := []string{"--launch", "--headless", "--open", s.URL}
	names := []string{"EOF", "TERM", "KILL", "HUP"}
	rounds := [][]string{{"KILL", "TERM"}, {"KILL", "TERM"}, {"TERM", "KILL"}, {"KILL", "KILL", "KILL"},
		{"EOF", "EOF", "EOF"}, {"TERM", "TERM", "TERM"}}
	for range 4 {
		round := make([]string, 3)
		for i := range round {
			round[i] = names[rand.IntN(len(names))]
		}
		rounds = append(rounds, round)
	}
	for _, round := range rounds {
		t.Run(strings.Join(round, ","), func(t *testing.T) {
			h := newHome(t)
			var all []*started
			for range round {
				a := h.serve(t, args...)
				a.reads(s.URL + "/id")
				all = append(all, a)
			}
			var ended sync.WaitGroup
			for i, a := range all {
				ended.Go(func() { ends[round[i]](a) })
			}
			ended.Wait()
			h.nothingLeft(t)
		})
	}
}

// A signal to the agent's group, as a terminal sends it that is closed, and its agent's death with nobody at standard
// error.
func TestWhatEndsAnAgentEndsItsBrowserToo(t *testing.T) {
	t.Parallel()
	s := serveIdentity(t)
	for name, end := range map[string]func(t *testing.T, h userHome, pid int, in, said *os.File){
		"SIGHUP to the group": func(t *testing.T, h userHome, pid int, in, said *os.File) {
			syscall.Kill(-pid, syscall.SIGHUP)
		},
		"SIGINT to the group": func(t *testing.T, h userHome, pid int, in, said *os.File) {
			syscall.Kill(-pid, syscall.SIGINT)
		},
		"nobody at its error": func(t *testing.T, h userHome, pid int, in, said *os.File) { said.Close(); in.Close() },
		"SIGPIPE": func(t *testing.T, h userHome, pid int, in, said *os.File) {
			syscall.Kill(pid, syscall.SIGPIPE)
			in.Close()
		},
		"the browser hears": func(t *testing.T, h userHome, pid int, in, said *os.File) {
			syscall.Kill(h.browser(t), syscall.SIGTERM)
			in.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			cmd, _ := h.command(t, "serve", "--hub", h.hub, "--log-level", "debug", "--launch", "--headless", "--open",
				s.URL)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			said, stderr, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			stdin, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			out, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { in.Close(); said.Close() }()
			cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			stdin.Close()
			stdout.Close()
			stderr.Close()
			out.Close() // an agent that is gone reads neither
			testkit.Eventually(t, "the page is there", func() bool { return strings.Contains(h.log(), "page attached") })
			end(t, h, cmd.Process.Pid, in, said)
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			h.nothingLeft(t)
		})
	}
}
