package e2e

// How a launched browser ends, and what does not end it: gateways that are killed, in whatever order, and the browser's
// keeper, which none of them must leave behind.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// belongings lists the processes of a home's user, by the directory for temporary files that they were started with:
// gateways, keepers and browsers.
func (h userHome) belongings() map[int]string {
	all := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains("\x00"+string(text), "\x00TMPDIR="+h.dir) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if running(pid) {
			all[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return all
}

// browser is the one that the keeper has started. A child of it has its command line, too, for a moment.
func (h userHome) browser(t *testing.T) int {
	t.Helper()
	all := h.belongings()
	for pid, line := range all {
		if strings.Contains(line, "--remote-debugging-pipe") && !strings.Contains(line, "--type=") &&
			strings.HasSuffix(all[parent(pid)], "pagewire keeper ") {
			return pid
		}
	}
	t.Fatalf("there is no browser among %v", all)
	return 0
}

func parent(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	if fields := strings.Fields(rest); len(fields) > 1 {
		parent, _ := strconv.Atoi(fields[1])
		return parent
	}
	return 0
}

// keeper waits until there is one: another one, whose browser has died, may be about to end.
func (h userHome) keeper(t *testing.T) (keeper int) {
	t.Helper()
	testkit.Eventually(t, "there is one keeper", func() bool {
		keepers := 0
		for pid, line := range h.belongings() {
			if strings.HasSuffix(line, "pagewire keeper ") {
				keeper = pid
				keepers++
			}
		}
		return keepers == 1
	})
	return keeper
}

// hubFile is a lock or socket that a gateway leaves that was killed: the next one uses them, or removes them.
var hubFile = regexp.MustCompile(`^pagewire/[0-9a-f]+-(hub|agent)-[0-9]+(\.lock)?$`)

// nothingLeft waits until there is no process, no profile and no socket of a keeper.
func (h userHome) nothingLeft(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "no process is left", func() bool { return len(h.belongings()) == 0 })
	left := slices.DeleteFunc(h.left(t), hubFile.MatchString)
	if !slices.Equal(left, []string{"pagewire/token"}) || len(profiles(h)) > 0 {
		t.Errorf("left behind: %v, %v", left, profiles(h))
	}
}

// serveIdentity serves a page with the resource /id, which is another one whenever the page is loaded.
func serveIdentity(t *testing.T) *site {
	return serve(t,
		page{script: `const id = crypto.randomUUID(); navigator.modelContext.registerResource({ uri: location.origin + "/id", name: "id", read: () => id });`})
}

// reads waits until a gateway has a resource, and returns what it reads as.
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

// The hub is killed: the browser stays, with its tabs as they are, and the next hub has them.
func TestHubThatIsKilledLeavesTheTabs(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := serveIdentity(t)
	args := []string{"--launch", "--headless", "--open", s.URL}
	hub := h.serve(t, args...)
	id := hub.reads(s.URL + "/id")
	a, b := h.serve(t, args...), h.serve(t)
	for _, s2 := range []*started{a, b} {
		if got := s2.reads(s.URL + "/id"); got != id {
			t.Errorf("a joiner reads %s, the hub %s", got, id)
		}
	}
	browser, keeper := h.browser(t), h.keeper(t)
	for name, s2 := range map[string]*started{"the hub": hub, "another gateway": a} {
		ends["KILL"](s2)
		if got := b.reads(s.URL + "/id"); got != id {
			t.Errorf("after %s was killed it reads %s, before %s", name, got, id)
		}
		if h.browser(t) != browser || h.keeper(t) != keeper {
			t.Errorf("after %s was killed, the browser or its keeper is another one", name)
		}
	}
	// The last one has not launched it.
	b.Close()
	h.nothingLeft(t)
}

// All gateways end at a time, each in a way of its own: nothing is left. The first pair left browser and profile behind
// in one of seven.
func TestGatewaysThatEndTogether(t *testing.T) {
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

// They end one after the other, in any order: the browser is there until the last, and nothing behind it.
func TestGatewaysThatEndInAnyOrder(t *testing.T) {
	t.Parallel()
	s := serveIdentity(t)
	args := []string{"--launch", "--headless", "--open", s.URL}
	names := []string{"EOF", "TERM", "KILL", "HUP"}
	for round := range 4 {
		h := newHome(t)
		var all []*started
		for range 3 {
			all = append(all, h.serve(t, args...))
		}
		id := all[2].reads(s.URL + "/id")
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var ways []string
		for len(all) > 0 {
			if got := all[0].reads(s.URL + "/id"); got != id {
				t.Errorf("round %d, after %v: it reads %s, before %s", round, ways, got, id)
			}
			way := names[rand.IntN(len(names))]
			ways = append(ways, way)
			ends[way](all[0])
			all = all[1:]
		}
		h.nothingLeft(t)
	}
}

// A signal to the gateway's group, as a terminal sends it that is closed, and its agent's death with nobody at standard
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
			log := testkit.LogOf(t, "serve")
			read := make(chan struct{})
			go func() {
				defer close(read)
				for buf := make([]byte, 4096); ; {
					n, err := said.Read(buf)
					log.Write(buf[:n])
					if err != nil {
						return
					}
				}
			}()
			testkit.Eventually(t, "the page is there", func() bool { return log.Has("page attached") })
			end(t, h, cmd.Process.Pid, in, said)
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			h.nothingLeft(t)
			said.Close()
			testkit.Ends(t, "its error is read", read)
		})
	}
}

// What dies is launched again by who has launched it; what its user has closed stays closed, until another agent
// launches one.
func TestABrowserThatDiesAndOneThatIsClosed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := serveIdentity(t)
	args := []string{"--launch", "--headless", "--open", s.URL}
	hub := h.serve(t, args...)
	joiner := h.serve(t, args...)
	id := joiner.reads(s.URL + "/id")
	for name, kill := range map[string]func(){
		"the browser": func() { syscall.Kill(h.browser(t), syscall.SIGKILL) },
		"its keeper":  func() { syscall.Kill(h.keeper(t), syscall.SIGKILL) },
		"its keeper, while it waits": func() {
			k := h.keeper(t)
			syscall.Kill(k, syscall.SIGSTOP)
			syscall.Kill(k, syscall.SIGKILL)
		},
	} {
		old := profiles(h)
		kill()
		testkit.Eventually(t, name+" was killed, and another browser has the page", func() bool {
			got, err := joiner.Read(s.URL + "/id")
			return err == nil && got != id
		})
		id = joiner.reads(s.URL + "/id")
		testkit.Eventually(t, "what was killed has left nothing, and there is one browser", func() bool {
			now := profiles(h)
			return len(now) == 1 && !slices.Equal(now, old)
		})
	}
	// By its user: as a window that is closed.
	browser := h.browser(t)
	syscall.Kill(browser, syscall.SIGTERM)
	testkit.Eventually(t, "the page is gone", func() bool { return !hub.Offers(s.URL + "/id") })
	testkit.Eventually(t, "the browser has left nothing", func() bool { return len(profiles(h)) == 0 })
	time.Sleep(testkit.Moment) // for what must not come
	if len(profiles(h)) > 0 {
		t.Error("what its user has closed is launched again")
	}
	next := h.serve(t, args...)
	next.reads(s.URL + "/id")
	for _, a := range []*started{hub, next, joiner} {
		a.Close()
	}
	h.nothingLeft(t)
}

// One that dies whenever it is launched is left alone, which is said.
func TestABrowserThatDiesAgainAndAgain(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := serveIdentity(t)
	hub := h.serve(t, "--launch", "--headless", "--open", s.URL)
	said := func(text string) int { return hub.log.Count(text) }
	given := func() bool { return said("dies again and again") > 0 }
	for range 10 {
		ended := said("a launched browser has ended")
		testkit.Eventually(t, "the page is there, or it was given up", func() bool {
			return given() || said("page attached") > ended
		})
		if given() {
			break
		}
		syscall.Kill(h.browser(t), syscall.SIGKILL)
		testkit.Eventually(t, "that is noticed", func() bool { return said("a launched browser has ended") > ended })
	}
	if launched := said("a browser has been launched"); !given() || launched != 4 {
		t.Errorf("it was launched %d times, and given up: %v", launched, given())
	}
	hub.Close()
	h.nothingLeft(t)
}

// A hub that is stopped for a while has its pages when it goes on, and nobody has lost the browser.
func TestHubThatIsStoppedForAWhile(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := serveCounter(t)
	hub := h.serve(t, "--launch", "--headless", "--open", c.URL)
	hub.reads(c.uri())
	hub.Watch(c.uri())
	browser := h.browser(t)
	pid := hub.cmd.Process.Pid
	syscall.Kill(pid, syscall.SIGSTOP)
	for n := 1; n <= 50; n++ {
		c.set(n)
	}
	time.Sleep(time.Second) // longer than a browser waits for a gateway
	syscall.Kill(pid, syscall.SIGCONT)
	hub.holds(c.uri(), "50")
	if h.browser(t) != browser {
		t.Error("the browser is another one")
	}
	hub.Close()
	h.nothingLeft(t)
}

// No process of a launched browser listens, but one that was told to: another user of the machine could control it.
func TestLaunchedBrowserListensNowhere(t *testing.T) {
	t.Parallel()
	s := serveIdentity(t)
	for name, c := range map[string]struct {
		args    []string
		listens bool
	}{"launched": {nil, false}, "with --debug-port": {[]string{"--debug-port", "0"}, true}} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			a := h.serve(t, append([]string{"--launch", "--headless", "--open", s.URL}, c.args...)...)
			a.reads(s.URL + "/id")
			if c.listens {
				browserURL(t, h) // the file comes a moment after the browser listens
			}
			listens := false
			for _, pid := range children(a.cmd.Process.Pid) {
				listens = listens || len(testkit.Listens(t, pid)) > 0
			}
			if listens != c.listens || (browserURLOrNone(h) != "") != c.listens {
				t.Errorf("listens %v, and says so %v; want %v", listens, browserURLOrNone(h) != "", c.listens)
			}
			if len(testkit.Listens(t, a.cmd.Process.Pid)) == 0 {
				t.Error("not even the hub is seen to listen: this test proves nothing")
			}
			a.Close()
			h.nothingLeft(t)
		})
	}
}
