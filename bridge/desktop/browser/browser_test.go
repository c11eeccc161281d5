package browser

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// program puts an executable file called name into a new directory and returns its path.
func program(t *testing.T, name string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the executable bit is not what makes a program on Windows")
	}
	path := filepath.Join(t.TempDir(), name)
	testkit.OK(t, os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o755))
	return path
}

func TestFindTakesTheNamedBrowserBeforeAllAndChromiumOnPathBeforeChrome(t *testing.T) {
	named, chrome, chromium := program(t, "mine"), program(t, "google-chrome"), program(t, "chromium")
	gone := filepath.Join(t.TempDir(), "gone")
	for _, c := range []struct {
		named string
		path  []string
		want  string // "": an error that names the variable, and is not ErrNone
	}{{named, []string{chromium}, named}, {"", []string{chrome, chromium}, chromium}, {"", []string{chrome}, chrome},
		{gone, []string{chromium}, ""}} {
		t.Setenv("PAGEWIRE_BROWSER", c.named)
		var path []string
		for _, program := range c.path {
			path = append(path, filepath.Dir(program))
		}
		t.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator)))
		got, err := Find()
		if got != c.want || (err == nil) != (c.want != "") ||
			err != nil && (errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "PAGEWIRE_BROWSER")) {
			t.Errorf("%+v: Find() = %q, %v", c, got, err)
		}
	}
}

func TestFindSaysWhatToDoWhenThereIsNone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a browser is found by its absolute path too")
	}
	t.Setenv("PAGEWIRE_BROWSER", "")
	t.Setenv("PATH", t.TempDir())
	if got, err := Find(); err != ErrNone {
		t.Errorf("Find() = %q, %v; want ErrNone", got, err)
	}
	if _, _, err := Launch(context.Background(), Options{}); err != ErrNone {
		t.Errorf("Launch: %v; want ErrNone", err)
	}
}

func TestCandidatesKnowWhereInstallersPutBrowsers(t *testing.T) {
	env := map[string]string{"HOME": "/Users/ada", "ProgramFiles": `C:\Program Files`,
		"LocalAppData": `C:\Users\ada\AppData\Local`}
	for goos, want := range map[string][]string{
		"darwin": {"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
			"/Users/ada/Applications/Chromium.app/Contents/MacOS/Chromium"},
		"windows": {`C:\Program Files\Google\Chrome\Application\chrome.exe`,
			`C:\Users\ada\AppData\Local\Chromium\Application\chrome.exe`},
	} {
		if goos == "darwin" && runtime.GOOS == "windows" {
			continue // filepath.Join
		}
		got := candidates(goos, func(name string) string { return env[name] })
		for _, path := range want {
			if !slices.Contains(got, path) {
				t.Errorf("%s: %q is not among the candidates", goos, path)
			}
		}
	}
}

func TestFlagsLeaveRealPagesAlone(t *testing.T) {
	all := strings.Join(flags(false, true), " ")
	for _, refused := range []string{"throttling", "backgrounding", "renderer", "extensions", "popup", "ipc-flooding",
		"web-security", "enable-automation"} {
		if strings.Contains(all, refused) {
			t.Errorf("flags contain %q: what is tested under them is not what a person runs", refused)
		}
	}
	if slices.Contains(flags(true, false), "--headless=new") || slices.Contains(flags(true, false), "--no-sandbox") {
		t.Error("a window is headless, or runs without a sandbox though nobody is root")
	}
}

func TestLaunchLoadsAPageAndLeavesNothing(t *testing.T) {
	if _, err := Find(); err != nil {
		t.Fatal(err) // never skipped: make browser gets one
	}
	profiles := t.TempDir()
	t.Setenv("TMPDIR", profiles)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<!doctype html><title>here</title>"))
	}))
	defer site.Close()

	parent, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	ctx, close, err := Launch(parent, Options{Flags: []string{"--lang=de", "--user-agent=Pagewire/1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer close()
	process := chromedp.FromContext(ctx).Browser.Process()

	title, agent := visit(t, ctx, site.URL)
	if title != "here" || agent != "Pagewire/1" {
		t.Errorf("title %q, user agent %q; want the page's title and the agent of the extra flag", title, agent)
	}
	second, closeSecond := chromedp.NewContext(ctx)
	title, _ = visit(t, second, site.URL)
	if title != "here" || chromedp.FromContext(second).Browser.Process().Pid != process.Pid {
		t.Error("a context of the context is not a tab of the same browser")
	}
	closeSecond()
	if made := profilesIn(t, profiles); len(made) != 1 {
		t.Errorf("while it runs there are profiles %v; want one, under TMPDIR", made)
	}

	close()
	close()
	if left := profilesIn(t, profiles); len(left) > 0 {
		t.Errorf("after close the profile is still there: %v", left)
	}
	if ctx.Err() == nil {
		t.Error("after close the context lives on")
	}
	testkit.Eventually(t, "after close no process is left", func() bool {
		return len(processesUsing(t, profiles)) == 0
	})
}

func TestLaunchReportsABrowserThatDoesNotStart(t *testing.T) {
	path := program(t, "chromium")
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("PAGEWIRE_BROWSER", path)
	_, _, err := Launch(t.Context(), Options{})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Launch of a program that exits at once: %v; want an error that names it", err)
	}
}

// visit loads a page and returns its title and its navigator.userAgent.
func visit(t *testing.T, ctx context.Context, url string) (title, agent string) {
	t.Helper()
	testkit.OK(t, chromedp.Do(ctx, chromedp.Navigate(url)))
	title = testkit.Must(chromedp.Run(ctx, chromedp.Title()))(t)
	agent = testkit.Must(chromedp.Run(ctx, chromedp.Evaluate[string]("navigator.userAgent")))(t)
	return title, agent
}

// profilesIn lists the browser profiles under a directory for temporary files.
func profilesIn(t *testing.T, dir string) []string {
	t.Helper()
	return testkit.Must(filepath.Glob(filepath.Join(dir, "chromedp-runner*")))(t)
}

// processesUsing lists the command lines that name dir. It is empty on systems other than Linux.
func processesUsing(t *testing.T, dir string) []string {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), dir) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func TestMergeOfFlags(t *testing.T) {
	got := merge([]string{"--a", "--lang=en", "--enable-features=WebMCP"},
		[]string{"--lang=de", "--enable-features=Other", "--b"})
	want := []string{"--a", "--lang=de", "--enable-features=WebMCP,Other", "--b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRunningLooksIntoProfilesAndSaysWhatToDo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("profiles are elsewhere: TestProfiles")
	}
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	url, err := Running()
	if conn, dialed := net.DialTimeout("tcp", "127.0.0.1:9222", time.Second); dialed == nil {
		conn.Close() // somebody's browser, or something else
	} else if url != "" || !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "--remote-debugging-port") {
		t.Errorf("Running() = %q, %v; want ErrNotRunning", url, err)
	}
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	dir := filepath.Join(config, "chromium")
	os.MkdirAll(dir, 0o755)
	for text, want := range map[string]string{
		port + "\n/devtools/browser/abc": "ws://127.0.0.1:" + port + "/devtools/browser/abc",
		port:                             "",
		port + "\n/elsewhere":            "",
		"":                               "",
	} {
		os.WriteFile(filepath.Join(dir, "DevToolsActivePort"), []byte(text), 0o644)
		if got := active(dir); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	os.WriteFile(filepath.Join(dir, "DevToolsActivePort"), []byte(port+"\n/devtools/browser/abc"), 0o644)
	if url, err := Running(); err != nil || url != "ws://127.0.0.1:"+port+"/devtools/browser/abc" {
		t.Errorf("Running() = %q, %v", url, err)
	}
}

func TestProfiles(t *testing.T) {
	env := map[string]string{"HOME": "/home/ada", "LocalAppData": `C:\Local`}
	for goos, want := range map[string]string{
		"linux":   "/home/ada/.config/google-chrome",
		"darwin":  "/home/ada/Library/Application Support/Google/Chrome",
		"windows": `C:\Local/Google/Chrome/User Data`,
	} {
		if goos != runtime.GOOS && (goos == "windows" || runtime.GOOS == "windows") && filepath.Separator != '/' {
			continue
		}
		if got := profiles(goos, func(name string) string { return env[name] }); !slices.Contains(got, want) {
			t.Errorf("%s: %q is not among %q", goos, want, got)
		}
	}
}
