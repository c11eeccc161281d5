package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// examine runs the doctor and returns its findings by check.
func examine(t *testing.T, args ...string) (status int, all map[string]finding, stderr string) {
	t.Helper()
	status, out, stderr := run(append([]string{"doctor", "--json"}, args...)...)
	var list []finding
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v in %q, stderr %q", err, out, stderr)
	}
	all = map[string]finding{}
	for _, f := range list {
		if f.Status != "ok" && f.Do == "" {
			t.Errorf("%s is %s, and nothing is to be done: %s", f.Check, f.Status, f.Says)
		}
		all[f.Check] = f
	}
	if len(all) != len(checks) {
		t.Errorf("%d findings of %d checks", len(all), len(checks))
	}
	return status, all, stderr
}

// devtools answers like a browser's debugging port.
func devtools(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/json/version" {
			w.Write([]byte(`{"Browser": "Chrome/150.0"}`))
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// patient sets up a machine where only the page files may be missing.
func patient(t *testing.T) (args []string, addr string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the browser is a shell script")
	}
	path := filepath.Join(t.TempDir(), "chromium")
	testkit.OK(t, os.WriteFile(path, []byte("#!/bin/sh\necho Chromium 150.0\n"), 0o755))
	t.Setenv("PATH", "") // agent programs of this machine
	t.Setenv("PAGEWIRE_BROWSER", path)
	addr, _ = serving(t)
	token := tokenFile(t)
	if _, err := access.Token(token); err != nil {
		t.Fatal(err)
	}
	return []string{"--hub", addr, "--token-file", token, "--chrome", devtools(t)}, addr
}

func tokenFile(t *testing.T) string { return filepath.Join(t.TempDir(), "token") }

func TestDoctorOfAWellMachine(t *testing.T) {
	args, addr := patient(t)
	status, all, errs := examine(t, args...)
	if status != exitDone || errs != "" {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	for check, want := range map[string]string{"browser": "Chromium 150.0, ", "debugging": "Chrome/150.0 at ",
		"token": args[3], "daemon": versionName() + " runs, pages: 0, agents: 0, pages find it at " + addr} {
		if f := all[check]; f.Status != "ok" || !strings.Contains(f.Says, want) {
			t.Errorf("%s: %+v, want %q", check, f, want)
		}
	}
	status, out, _ := run(append([]string{"doctor"}, args...)...)
	if status != exitDone || !strings.HasPrefix(strings.Join(strings.Fields(out), " "),
		"warn connection no agent program is set up → pagewire setup ok browser Chromium 150.0") {
		t.Errorf("status %d, %s", status, out)
	}
}

// hung makes a daemon that takes connections and never answers, like a suspended one. dir is the socket's directory.
func hung(t *testing.T) (addr, dir string) {
	t.Helper()
	config := testkit.Must(os.UserConfigDir())(t)
	dir = filepath.Join(config, "pagewire")
	locks := func() []string {
		return testkit.Must(filepath.Glob(filepath.Join(dir, "*-daemon.lock")))(t)
	}
	before := locks()
	was := start(t, testkit.Addr(t), "x")
	made := slices.DeleteFunc(locks(), func(path string) bool { return slices.Contains(before, path) })
	if len(made) != 1 {
		t.Fatalf("it has made %v", made)
	}
	was.stop()
	l := testkit.Must(net.Listen("unix", strings.TrimSuffix(made[0], ".lock")))(t)
	t.Cleanup(func() { l.Close() })
	return was.addr, dir
}

// If the system has refused the port, the doctor blames no other program.
func TestDoctorOfADaemonWithoutItsPort(t *testing.T) {
	testkit.Home(t)
	const addr = "127.0.0.1:99999" // no port
	serveAt(t, addr, "")
	if f := checkDaemon(t.Context(), checkup{hubFlags: hubFlags{addr}}); f.Status != "warn" ||
		!strings.Contains(f.Says, "cannot listen on "+addr) || !strings.Contains(f.Do, "its log says why") {
		t.Errorf("it says %+v", f)
	}
}

// ls and the doctor tell a person that no browser answers at the address of --chrome.
func TestBrowserThatIsNotThere(t *testing.T) {
	testkit.Home(t)
	addr, url := testkit.Addr(t), "http://"+testkit.Addr(t)
	serveWith(t, addr, serve.Options{Hub: addr, Flags: daemon.Flags{Chrome: url}})
	want := "no browser answers at " + url
	for _, args := range [][]string{{"ls"}, {"ls", "--json"}} {
		if status, _, errs := run(append(args, "--hub", addr)...); status != exitDone || !strings.Contains(errs, want) {
			t.Errorf("%v: status %d, stderr %q", args, status, errs)
		}
	}
	if f := checkDaemon(t.Context(), checkup{hubFlags: hubFlags{addr}}); f.Status != "warn" ||
		!strings.Contains(f.Says, want) || f.Do == "" {
		t.Errorf("it says %+v", f)
	}
}

func TestDoctorSaysWhatFails(t *testing.T) {
	args, _ := patient(t)
	// The last of equal flags wins.
	with := func(changed ...string) []string { return append(append([]string{}, args...), changed...) }
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	silent, dir := hung(t)
	for _, c := range []struct {
		name, check, status, says, do string
		args                          []string
	}{
		{"no daemon", "daemon", "ok", "is free", "", with("--hub", testkit.Addr(t))},
		{"another program", "daemon", "warn", "no pagewire serve runs, and another program has", "--hub 127.0.0.1:PORT",
			with("--hub", strings.TrimPrefix(other.URL, "http://"))},
		{"a daemon that hangs", "daemon", "fail", "the daemon does not answer", "takes its place", with("--hub", silent)},
		{"no DevTools", "debugging", "fail", "is no browser's DevTools", "--remote-debugging-port",
			with("--chrome", other.URL)},
		{"a WebSocket", "debugging", "ok", "asks you", "", with("--chrome", "ws://127.0.0.1:1/devtools/browser/x")},
	} {
		status, all, errs := examine(t, c.args...)
		f := all[c.check]
		if f.Status != c.status || !strings.Contains(f.Says, c.says) || !strings.Contains(f.Do, c.do) {
			t.Errorf("%s: %+v", c.name, f)
		}
		if first, _, _ := firstOf(t, c.args...); c.status == "fail" && first != c.check {
			t.Errorf("%s: the first finding is that of %s", c.name, first)
		}
		if failed := c.status == "fail"; failed != (status == exitFailed) ||
			failed != strings.Contains(errs, "checks failed") {
			t.Errorf("%s: status %d, stderr %q, %v", c.name, status, errs, all)
		}
	}
	testkit.OK(t, os.Chmod(dir, 0o777))
	if _, all, _ := examine(t, args...); all["daemon"].Status != "fail" ||
		!strings.Contains(all["daemon"].Says, "others may write to") || !strings.Contains(all["daemon"].Do, "works alone") {
		t.Errorf("a directory that cannot be used: %+v", all["daemon"])
	}
	testkit.OK(t, os.Chmod(dir, 0o700))
}
