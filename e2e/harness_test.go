// Package e2e tests Pagewire in a real browser with clients that others wrote. Only real parts are
// used: pages are served over HTTP on loopback, the core is the built wasm, the agents are the
// official SDKs, and a missing browser is a failure, not a skip. It never uses a mock, and never
// waits for time.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/e2e/engine"
)

// A mode is a way to run the browser.
type mode struct {
	name  string
	flags []string
	// without is set if pages must have no WebMCP, whatever the flags say.
	without bool
}

func (m mode) String() string { return m.name }

var (
	noFlag = mode{name: "no flag"}
	native = mode{name: "WebMCP", flags: []string{withWebMCP}} // only Chromium has it
	modes  = inThisEngine([]mode{noFlag, native}, func(m mode) mode { return m })
)

// dist is the output of make build.
const dist = "../dist"

// agentScript is e2e/agent, bundled.
var agentScript []byte

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if _, err := os.Stat(filepath.Join(dist, "pagewire.wasm")); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: dist/ is not built: run make build")
			return 1
		}
		var err error
		if agentScript,
			err = bundled("agent/agent.ts", "../js/node_modules",
			api.BuildOptions{Format: api.FormatIIFE,
				GlobalName: "agent"}); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		defer closeBrowsers()
		return m.Run()
	}())
}

// bundled returns a script with its imports from a directory of modules.
func bundled(entry, modules string, o api.BuildOptions) ([]byte, error) {
	modules, err := filepath.Abs(modules)
	o.EntryPoints, o.Bundle, o.Target, o.NodePaths = []string{entry}, true, api.ES2022,
		[]string{modules}
	result := api.Build(o)
	if len(result.Errors) > 0 {
		return nil, fmt.Errorf("bundle %s: %s", entry, result.Errors[0].Text)
	}
	return result.OutputFiles[0].Contents, err
}

// A site is an origin of its own with dist/ and one page.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

// A page is the document of a site at /.
type page struct {
	// head precedes the script tag of Pagewire, and script follows it immediately, inline.
	head, script string
	// tag replaces the script tag.
	tag string
	// headers are those of the page, or of every response if all is set.
	headers map[string]string
	all     bool
	// nonce is given to every script of the page.
	nonce string
	// also has further documents, by path.
	also map[string]string
	// scripts has further scripts, by path.
	scripts map[string]string
	// hold is called before a file is served, and may wait.
	hold func(*http.Request)
}

func serve(t *testing.T, p page) *site {
	t.Helper()
	s := &site{}
	files := http.FileServer(http.Dir(dist))
	if p.tag == "" {
		p.tag = `<script src="/pagewire.js"></script>`
	}
	if thisEngine == "webkit" {
		p.head = `<script src="/recorder.js"></script>` + p.head
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL.Path)
		s.mu.Unlock()
		w.Header().Set("Origin-Agent-Cluster", "?1")
		if r.URL.Path == "/" || p.all {
			for name, value := range p.headers {
				w.Header().Set(name, value)
			}
		}
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			text := fmt.Sprintf("<!doctype html><title>e2e</title><link rel=icon "+
				"href=data:,>%s%s<script>%s</script><script src=/agent.js></script><body><input id=field>", p.head,
				p.tag, p.script)
			if p.nonce != "" {
				text = strings.ReplaceAll(text, "<script", "<script nonce="+p.nonce)
			}
			fmt.Fprint(w, text)
		case "/recorder.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, engine.Recorder)
		case "/agent.js":
			w.Header().Set("Content-Type", "text/javascript")
			w.Write(agentScript)
		default:
			if text, ok := p.also[r.URL.Path]; ok {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprint(w, "<!doctype html><title>e2e</title><link rel=icon href=data:,>", text)
				return
			}
			if text, ok := p.scripts[r.URL.Path]; ok {
				w.Header().Set("Content-Type", "text/javascript")
				fmt.Fprint(w, text)
				return
			}
			if p.hold != nil {
				p.hold(r)
			}
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) fetched(path string) bool { return s.fetches(path) > 0 }

func (s *site) fetches(path string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r == path {
			n++
		}
	}
	return n
}

// An era is an era of the protocol.
type era string

func (e era) String() string { return string(e) }

var eras = []era{"legacy", "modern"}

// each runs a test in parallel for each of several modes or eras.
func each[M fmt.Stringer](t *testing.T, all []M, test func(t *testing.T, m M)) {
	for _, m := range all {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			test(t, m)
		})
	}
}

// A userHome has the files that the processes of one user share. It is empty when the test begins.
type userHome struct {
	dir, hub string
	ctx      context.Context // bounds its processes, if set
}

// newHome makes a user with a hub of its own. All processes of that user must end with the test. A
// daemon ends by itself, a moment after its last agent.
func newHome(t *testing.T) userHome {
	h := userHome{dir: testkit.ShortDir(t), hub: testkit.Addr(t)}
	testkit.State(t, "the user's processes and pages", func() string {
		ls, err := h.ls()
		files := h.left(t)
		return fmt.Sprintf("%v\n%s%v\n%d files: %.1000q", h.belongings(), ls, err, len(files),
			files[:min(len(files), 20)])
	})
	testkit.State(t, "the daemon said", h.log)
	t.Cleanup(func() {
		testkit.Eventually(t, "no process of the user is left",
			func() bool { return len(h.belongings()) == 0 })
	})
	return h
}

func (h userHome) command(t *testing.T, args ...string) (*exec.Cmd, *testkit.Log) {
	t.Helper()
	binary, err := gatewayBinary()
	if err != nil {
		t.Fatal(err)
	}
	log := testkit.LogOf(t, fmt.Sprint(args))
	cmd := testcmd.Command(binary, args...)
	if h.ctx != nil {
		cmd = testcmd.CommandContext(h.ctx, binary, args...)
	}
	cmd.Env = append(os.Environ(), h.env()...)
	cmd.Stderr = log
	return cmd, log
}

// ls lists the pages as pagewire ls does for a program.
func (h userHome) ls() (string, error) {
	binary, err := gatewayBinary()
	if err != nil {
		return "", err
	}
	return h.output(binary, "ls", "--hub", h.hub)
}

// lsAtTerminal is ls for a person: script, of util-linux, gives it a terminal.
func (h userHome) lsAtTerminal() (string, error) {
	binary, err := gatewayBinary()
	if err != nil {
		return "", err
	}
	return h.output("script", "-qec", fmt.Sprintf("'%s' ls --hub %s", binary, h.hub), "/dev/null")
}

// output runs a command to its end. 14 at once on two processors take up to 14 s for what takes 0.05 s alone.
func (h userHome) output(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	cmd := testcmd.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), h.env()...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h userHome) env() []string {
	return []string{"HOME=" + h.dir, "XDG_CONFIG_HOME=" + h.dir, "TMPDIR=" + h.dir,
		"PAGEWIRE_HUB=" + h.hub}
}

// metrics returns those of the daemon; "" if there is none.
func (h userHome) metrics() string {
	token, _ := os.ReadFile(filepath.Join(h.dir, "pagewire/token"))
	return testkit.Metrics(h.hub, string(token))
}

// waits reports whether so many calls of agents wait.
func (h userHome) waits(n int) bool {
	return strings.Contains(h.metrics(), fmt.Sprintf("pagewire_calls_waiting %d\n", n))
}

// belongings lists the processes with the user's home directory, with their command lines.
func (h userHome) belongings() map[int]string {
	all := map[int]string{}
	for _, pid := range testkit.Processes("HOME=" + h.dir) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if running(pid) {
			all[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return all
}

// daemons are the processes of daemons that have not ended yet.
func (h userHome) daemons() (pids []int) {
	for pid, line := range h.belongings() {
		if strings.Contains(line, "pagewire daemon ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (h userHome) daemon(t *testing.T) (pid int) {
	t.Helper()
	testkit.Eventually(t, "there is one daemon", func() bool {
		pids := h.daemons()
		if len(pids) == 1 {
			pid = pids[0]
		}
		return len(pids) == 1
	})
	return pid
}

func (h userHome) log() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(h.dir, "pagewire", "*.log*"))
	slices.Reverse(files) // HASH.log.1 has the older output
	for _, file := range files {
		text, _ := os.ReadFile(file)
		all.Write(text)
	}
	return all.String()
}

// isBrowser reports whether a command line is of a launched browser, or of a child of it.
func isBrowser(line string) bool {
	return strings.Contains(line, "--remote-debugging-pipe") || strings.Contains(line, "--type=")
}

// browser returns an agent's browser. For a moment, a child of the browser has the same command
// line.
func (h userHome) browser(t *testing.T) int {
	t.Helper()
	all := h.belongings()
	for pid, line := range all {
		if isBrowser(line) && !strings.Contains(line, "--type=") && !isBrowser(all[parent(pid)]) {
			return pid
		}
	}
	t.Fatalf("there is no browser among %v", all)
	return 0
}

func profiles(h userHome) []string {
	list, _ := filepath.Glob(filepath.Join(h.dir, "pagewire-browser-*"))
	return list
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	fields := stat(pid)
	return len(fields) > 0 && fields[0] != "Z"
}

func parent(pid int) int {
	if fields := stat(pid); len(fields) > 1 {
		parent, _ := strconv.Atoi(fields[1])
		return parent
	}
	return 0
}

// stat returns the fields of /proc/PID/stat after the name: state, parent and others; nothing if
// the process has ended.
func stat(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// left lists the files in the home directory, except the daemon's log.
func (h userHome) left(t *testing.T) (files []string) {
	filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(h.dir, path)
		// Chromium keeps the settings of its crash reporter per user, for any profile. It keeps a
		// cache for a profile in the user's configuration directory, as here.
		if err == nil && !d.IsDir() && !strings.HasPrefix(rel, "chromium/") &&
			!strings.HasPrefix(rel, ".cache/") &&
			!daemonLog.MatchString(rel) {
			files = append(files, rel)
		}
		return nil
	})
	return files
}

var daemonLog = regexp.MustCompile(`^pagewire/[0-9a-f]{8}\.log$`)

// nothingLeft waits until no process and no profile are left, and the user's directory has only the
// token and the log.
func (h userHome) nothingLeft(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "no process is left", func() bool { return len(h.belongings()) == 0 })
	if left := h.left(t); !slices.Equal(left, []string{"pagewire/token"}) || len(profiles(h)) > 0 {
		t.Errorf("left behind: %v, %v", left, profiles(h))
	}
}
