package browser

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

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
