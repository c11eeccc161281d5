package serve

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A desktop is a user's site, daemons and launched browsers.
type desktop struct {
	t    *testing.T
	o    Options
	temp string
	site *httptest.Server
	log  *testkit.Log // of the agents' processes

	mu     sync.Mutex
	opened map[string]int // how often a tab has loaded a path of the site
}

func newDesktop(t *testing.T) *desktop {
	t.Helper()
	d := &desktop{t: t, o: options(t), temp: testkit.ShortDir(t), log: testkit.LogOf(t, "agents"),
		opened: map[string]int{}}
	t.Setenv("TMPDIR", d.temp)
	d.site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.opened[r.URL.Path]++
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<link rel="icon" href="data:,">`)
	}))
	t.Cleanup(d.site.Close)
	t.Cleanup(func() {
		testkit.Eventually(t, "no browser is left", func() bool { return len(d.left()) == 0 })
	})
	return d
}

// launch returns a request for a browser with these paths of the site.
func (d *desktop) launch(paths ...string) *daemon.Launch {
	l := new(daemon.Launch)
	for _, path := range paths {
		l.Open = append(l.Open, d.site.URL+path)
	}
	return l
}

// agent connects an agent of a version to the daemon, which is a process of its own.
func (d *desktop) agent(version string, launch *daemon.Launch) (a *testkit.Agent, leave func()) {
	d.t.Helper()
	o := d.o
	o.Version, o.Launch, o.Start = version, launch, []string{os.Args[0], roleDaemon, version, o.Hub}
	o.Log = slog.New(slog.NewTextHandler(d.log, nil))
	a, leave = connect(d.t, Agent, o)
	a.URIs() // it is served
	return a, leave
}

// hasOpened waits until each path was loaded that often.
func (d *desktop) hasOpened(times int, paths ...string) {
	d.t.Helper()
	testkit.Settles(d.t, "the addresses are open", func() string {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, path := range paths {
			if d.opened[path] != times {
				return fmt.Sprint(d.opened)
			}
		}
		return ""
	})
}

var profileOf = regexp.MustCompile(`--user-data-dir=([^\x00]+)`)

// browsers are the pids of the browsers, without their other processes, by profile. For a moment a
// child of a browser has the same command line.
func (d *desktop) browsers() map[string]int {
	pids := map[string]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line := readFile(file)
		of := profileOf.FindStringSubmatch(line)
		pid := strings.Split(file, "/")[2]
		if of == nil || !strings.HasPrefix(of[1], d.temp) || strings.Contains(line, "--type=") ||
			!strings.Contains(readFile("/proc/"+pid+"/status"), "\nNSsid:\t"+pid+"\n") {
			continue
		}
		pids[of[1]], _ = strconv.Atoi(pid)
	}
	return pids
}

// browser waits until there is one browser with a profile other than these, and no more.
func (d *desktop) browser(others ...string) (profile string, pid int) {
	d.t.Helper()
	testkit.Settles(d.t, "there is one browser", func() string {
		all := d.browsers()
		for profile, pid = range all {
		}
		if len(all) != 1 || slices.Contains(others, profile) {
			return fmt.Sprint(all)
		}
		return ""
	})
	return profile, pid
}

// left lists what is left of browsers.
func (d *desktop) left() (list []string) {
	list, _ = filepath.Glob(filepath.Join(d.temp, "pagewire-browser-*"))
	for profile := range d.browsers() {
		list = append(list, profile)
	}
	return list
}

// daemons are the pids of all daemons that there were.
func (d *desktop) daemons() []string {
	return strings.Fields(readFile(filepath.Join(os.Getenv("HOME"), daemonsFile)))
}

// isSaid waits until the daemon has one notice, and the log of an agent's process as well.
func (d *desktop) isSaid(sentence string) {
	d.t.Helper()
	testkit.Settles(d.t, "it is said", func() string {
		s, err := Ask(d.t.Context(), d.o.Hub, "1.0.0")
		if err != nil || !slices.Equal(s.Notices, []string{sentence}) || !d.log.Has(sentence) {
			return fmt.Sprint(s.Notices, err)
		}
		return ""
	})
}

// Agents that ask for a browser share one, with the addresses of all of them. It ends with the last
// of these agents.
func TestAgentsShareALaunchedBrowser(t *testing.T) {
	d := newDesktop(t)
	_, first := d.agent("1.0.0", d.launch("/a"))
	d.hasOpened(1, "/a")
	profile, _ := d.browser()
	_, second := d.agent("1.0.0", d.launch("/a", "/b", "/c"))
	d.hasOpened(1, "/a", "/b", "/c")
	_, without := d.agent("1.0.0", nil)
	first()
	_, third := d.agent("1.0.0", d.launch("/d"))
	d.hasOpened(1, "/a", "/b", "/c", "/d")
	if now, _ := d.browser(); now != profile {
		t.Errorf("the browser of %s is now that of %s", profile, now)
	}
	second()
	third()
	testkit.Eventually(t, "nothing is left", func() bool { return len(d.left()) == 0 })
	without()
	if n := d.daemons(); len(n) != 1 {
		t.Errorf("there were the daemons %v", n)
	}
}

// A daemon takes its browser along, however it ends. The next daemon opens another one with the
// addresses of all agents, and says what is lost.
func TestDaemonTakesItsBrowserAlong(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			d := newDesktop(t)
			d.agent("1.0.0", d.launch("/a"))
			d.agent("1.0.0", d.launch("/b"))
			d.hasOpened(1, "/a", "/b")
			profile, _ := d.browser()
			if s := testkit.Must(Ask(t.Context(), d.o.Hub, "1.0.0"))(t); len(s.Notices) > 0 {
				t.Errorf("of the first browser is said %q", s.Notices)
			}
			pid := testkit.Must(strconv.Atoi(d.daemons()[0]))(t)
			testkit.OK(t, syscall.Kill(pid, signal))
			d.hasOpened(2, "/a", "/b")
			d.browser(profile)
			d.isSaid(newNotice)
			if n := d.daemons(); len(n) != 2 {
				t.Errorf("there were the daemons %v", n)
			}
		})
	}
}

// A daemon that ends removes its browser's profile, even if one of the browser's processes holds the profile for longer
// than endTimeout.
func TestDaemonRemovesItsBrowsersProfile(t *testing.T) {
	d := newDesktop(t)
	program := filepath.Join(t.TempDir(), "chromium")
	const held = `sh -c 'while kill -0 $0; do sleep .1; done; sleep 3' $$ "$@" <&- >&- 2>&- 3>&- 4>&- &`
	testkit.OK(t, os.WriteFile(program, []byte("#!/bin/sh\n"+held+"\nexec chromium \"$@\"\n"), 0o700))
	t.Setenv("PAGEWIRE_BROWSER", program)
	_, leave := d.agent("1.0.0", d.launch("/a"))
	d.hasOpened(1, "/a")
	leave()
	pid := testkit.Must(strconv.Atoi(d.daemons()[0]))(t)
	testkit.OK(t, syscall.Kill(pid, syscall.SIGTERM))
	testkit.Settles(t, "nothing is left", func() string { return strings.Join(d.left(), " ") })
}

// A browser that crashes is replaced, with the addresses of all agents, but not without end.
func TestLaunchedBrowserCrashes(t *testing.T) {
	d := newDesktop(t)
	d.agent("1.0.0", d.launch("/a"))
	d.hasOpened(1, "/a")
	d.agent("1.0.0", d.launch("/b"))
	var profiles []string
	for n := range maxCrashes {
		d.hasOpened(n+1, "/a", "/b")
		profile, pid := d.browser(profiles...)
		profiles = append(profiles, profile)
		testkit.OK(t, syscall.Kill(pid, syscall.SIGKILL))
		d.isSaid(newNotice)
	}
	d.hasOpened(maxCrashes+1, "/a", "/b")
	_, pid := d.browser(profiles...)
	testkit.OK(t, syscall.Kill(pid, syscall.SIGKILL))
	d.isSaid(crashesNotice)
	testkit.Eventually(t, "nothing is left", func() bool { return len(d.left()) == 0 })
}

// However long each start takes on a busy machine, a browser that dies again and again is given up. One that dies at
// times is not.
func TestCrashesInARow(t *testing.T) {
	for want, lived := range [][]time.Duration{maxCrashes: {0, time.Second, crashTime, 0}, 8: {0, 0, 0, crashTime + 1, 0, 0, crashTime + 1, 0}} {
		var row crashes
		got := 0
		for got < len(lived) && !row.tooMany(lived[got]) {
			got++
		}
		if lived != nil && got != want {
			t.Errorf("with lives of %v it is given up at %d, want %d", lived, got, want)
		}
	}
}

// A browser that a person closes stays closed, at the next daemon too, until another agent asks for
// one.
func TestLaunchedBrowserIsClosed(t *testing.T) {
	d := newDesktop(t)
	first, _ := d.agent("1.0.0", d.launch("/a"))
	d.hasOpened(1, "/a")
	_, pid := d.browser()
	testkit.OK(t, syscall.Kill(pid, syscall.SIGTERM))
	d.isSaid(closedNotice)
	testkit.Eventually(t, "nothing is left", func() bool { return len(d.left()) == 0 })
	daemon := testkit.Must(strconv.Atoi(d.daemons()[0]))(t)
	testkit.OK(t, syscall.Kill(daemon, syscall.SIGKILL))
	testkit.Eventually(t, "there is another daemon", func() bool { return len(d.daemons()) == 2 })
	first.URIs()
	d.isSaid(closedNotice)
	d.agent("1.0.0", d.launch("/b"))
	d.hasOpened(2, "/a")
	d.hasOpened(1, "/b")
	d.browser()
	if s := testkit.Must(Ask(t.Context(), d.o.Hub, "1.0.0"))(t); len(s.Notices) > 0 {
		t.Errorf("of the browser that was asked for is said %q", s.Notices)
	}
}

const goesOn = "the daemon goes on until no agent uses the browser"

// A daemon with a browser that an agent wants retires neither for a newer build nor for serve
// --http, until no agent wants it.
func TestNewerBuildWaitsForTheBrowser(t *testing.T) {
	d := newDesktop(t)
	_, leave := d.agent("1.0.0", d.launch("/a"))
	d.hasOpened(1, "/a")
	newer, _ := d.agent("1.0.1", nil)
	testkit.Eventually(t, "it is said", func() bool { return d.log.Has(goesOn) })
	o := d.o
	o.HTTP = "127.0.0.1:0"
	err := Foreground(t.Context(), o)
	if !errors.Is(err, daemon.ErrOther) || !strings.Contains(err.Error(), "end them first") {
		t.Errorf("serve --http: %v", err)
	}
	if s, err := Ask(t.Context(), d.o.Hub, "1.0.0"); err != nil || s.Version != "1.0.0" || s.Agents != 2 {
		t.Errorf("the daemon says %+v, %v", s, err)
	}
	leave()
	testkit.Eventually(t, "the newer build has a daemon", func() bool {
		s, err := Ask(t.Context(), d.o.Hub, "1.0.0")
		return err == nil && s.Version == "1.0.1" && s.Agents == 1
	})
	newer.URIs()
}

// A daemon without a display retires when an agent with one asks for a window, but not while it has
// a browser that an agent wants.
func TestDaemonWithoutADisplay(t *testing.T) {
	for _, hasBrowser := range []bool{false, true} {
		t.Run(fmt.Sprint("it has a browser: ", hasBrowser), func(t *testing.T) {
			d := newDesktop(t)
			said := filepath.Join(t.TempDir(), "said")
			program := filepath.Join(t.TempDir(), "chromium")
			testkit.OK(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"display $DISPLAY $*\" >> "+said+
				"\nexec chromium --headless=new \"$@\"\n"), 0o700)) // there is no display
			t.Setenv("PAGEWIRE_BROWSER", program)
			for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY"} {
				t.Setenv(name, "")
			}
			window := func(path string) *daemon.Launch {
				l := d.launch(path)
				l.Window = true
				return l
			}
			other, _ := d.agent("1.0.0", nil)
			if hasBrowser {
				_, leave := d.agent("1.0.0", d.launch("/headless"))
				d.hasOpened(1, "/headless")
				t.Setenv("DISPLAY", ":77")
				_, second := d.agent("1.0.0", window("/shared"))
				d.hasOpened(1, "/shared")
				if n := d.daemons(); len(n) != 1 || !d.log.Has(goesOn) {
					t.Errorf("there were the daemons %v, and agents say\n%s", n, d.log)
				}
				leave()
				second()
				testkit.Settles(t, "another daemon takes its place", func() string {
					if n, left := d.daemons(), d.left(); len(n) != 2 || len(left) > 0 {
						return fmt.Sprint("the daemons are ", n, ", and left is ", left)
					}
					return ""
				})
				testkit.OK(t, os.Remove(said))
			}
			t.Setenv("DISPLAY", ":77")
			d.agent("1.0.0", window("/window"))
			d.hasOpened(1, "/window")
			d.agent("1.0.0", d.launch("/headless, too")) // an agent that asks for less
			other.URIs()
			if n := d.daemons(); len(n) != 2 {
				t.Errorf("there were the daemons %v", n)
			}
			line := readFile(said)
			if !strings.HasPrefix(line, "display :77 --") || strings.Contains(line, "--headless") ||
				strings.Count(line, "\n") != 1 {
				t.Errorf("the browser is started as %q", line)
			}
		})
	}
}

// A hello's addresses are no flags of the browser, and start no other program.
func TestAddressesThatAreNotOpened(t *testing.T) {
	o := options(t)
	p := newProcess(o, secretsOf(&o))
	defer p.close()
	for _, address := range []string{"", "--utility-cmd-prefix=sh", "-x", "shop.example", "/etc/passwd",
		"mailto:ada@shop.example", "javascript:alert(1)", "chrome://settings", "https:// \n",
		"view-source:https://shop.example", "vscode://file/x"} {
		h := daemon.Hello{As: daemon.AsAgent, Launch: &daemon.Launch{Open: []string{"https://shop.example", address}}}
		err := p.serve(t.Context(), h, strings.NewReader(""), io.Discard, func(daemon.Session) {})
		if err == nil || !strings.Contains(err.Error(), "want an address such as https://shop.example") {
			t.Errorf("%q: %v", address, err)
		}
		o := o
		o.Launch = h.Launch
		if err := Agent(t.Context(), o); !errors.Is(err, ErrUsage) {
			t.Errorf("%q as a flag: %v", address, err)
		}
	}
	for _, port := range []string{"-1", "65536", "80 --x"} {
		if _, err := p.launcher.want(daemon.Launch{DebugPort: port}); err == nil {
			t.Errorf("the port %q is taken", port)
		}
	}
	if p.launcher.isThere() {
		t.Error("a browser is launched")
	}
}

// Agents that leave at any moment of a launch leave nothing, and the next agent gets its browser.
func TestLaunchThatIsNotWaitedFor(t *testing.T) {
	d := newDesktop(t)
	testkit.OK(t, d.o.check())
	p := newProcess(d.o, secretsOf(&d.o))
	p.pages()
	for n := range 6 {
		release := testkit.Must(p.launcher.want(*d.launch("/a")))(t)
		for range n {
			p.launcher.isThere()
			d.left() // some milliseconds
		}
		release(false)
	}
	testkit.Must(p.launcher.want(*d.launch("/b")))(t)
	d.hasOpened(1, "/b")
	d.browser()
	if s := p.g.Notices(); len(s) > 0 {
		t.Errorf("it is said %q", s)
	}
	p.close() // waits for endTimeout at most
	testkit.Eventually(t, "the browser has ended", func() bool { return !p.launcher.isThere() })
}

// A browser ends with an agent that leaves: the next one gets another. An agent whose connection
// was lost finds its own.
func TestAgentsThatLeaveAndComeBack(t *testing.T) {
	d := newDesktop(t)
	testkit.OK(t, d.o.check())
	p := newProcess(d.o, secretsOf(&d.o))
	defer p.close()
	p.pages()
	release := testkit.Must(p.launcher.want(*d.launch("/a")))(t)
	d.hasOpened(1, "/a")
	first, _ := d.browser()
	release(false)
	release = testkit.Must(p.launcher.want(*d.launch("/a")))(t)
	d.hasOpened(2, "/a")
	second, _ := d.browser(first)
	release(true)
	again := testkit.Must(p.launcher.want(*d.launch("/a", "/b")))(t)
	if !p.launcher.isWanted() {
		t.Error("it is not waited for")
	}
	p.launcher.endUnwanted() // as after a moment
	d.hasOpened(1, "/b")
	d.hasOpened(2, "/a")
	if now, _ := d.browser(); now != second {
		t.Error("it is another browser")
	}
	again(true)
	testkit.Eventually(t, "nothing is left", func() bool { return len(d.left()) == 0 && !p.launcher.isThere() })
}
