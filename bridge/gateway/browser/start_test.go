//go:build !js

package browser

import (
	"encoding/json"
	"errors"
	"fmt"
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

	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestStartListensAndLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	seen := make(chan string, 10)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen <- r.URL.Path }))
	defer site.Close()
	b, err := Start(t.Context(), StartOptions{Open: []string{site.URL + "/one", site.URL + "/two"}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for want := map[string]bool{"/one": true, "/two": true}; len(want) > 0; {
		delete(want, testkit.Receive(t, fmt.Sprintf("opened are %v", want), seen))
	}
	// Whoever has the URL's port has the browser: it says the same URL.
	host := strings.TrimPrefix(b.URL, "ws://")
	host = host[:strings.Index(host, "/")]
	r, err := http.Get("http://" + host + "/json/version")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var version map[string]string
	if json.NewDecoder(r.Body).Decode(&version); version["webSocketDebuggerUrl"] != b.URL {
		t.Errorf("it says %v, want %s", version, b.URL)
	}
	b.Close()
	b.Close()
	select {
	case <-b.Done():
	default:
		t.Error("closed, and not done")
	}
	if b.Crashed() {
		t.Error("what was closed counts as crashed")
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "pagewire-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestStartKeepsANamedProfile(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "mine")
	b, err := Start(t.Context(), StartOptions{Profile: profile})
	if err != nil {
		t.Fatal(err)
	}
	// The file by which Running finds a browser is in the profile, a moment after the browser has said where it
	// listens.
	testkit.Eventually(t, "the profile has "+b.URL, func() bool { return active(profile) == b.URL })
	b.Process.Kill()
	<-b.Done()
	if !b.Crashed() {
		t.Error("what was killed counts as closed")
	}
	b.Close()
	if _, err := os.Stat(profile); err != nil {
		t.Errorf("the profile has gone: %v", err)
	}
	if url := active(profile); url != "" {
		t.Errorf("a browser that was killed is found at %s", url)
	}
}

func TestStartSaysWhyNot(t *testing.T) {
	if _, err := Start(t.Context(), StartOptions{Options: Options{Path: program(t, "broken")}}); err == nil ||
		!strings.Contains(err.Error(), "ended before it listened") {
		t.Errorf("a program that ends: %v", err)
	}
	if _, err := Start(t.Context(),
		StartOptions{Options: Options{Path: filepath.Join(t.TempDir(), "none")}}); err == nil ||
		!strings.Contains(err.Error(), "none") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestMergeOfFlags(t *testing.T) {
	got := merge([]string{"--a", "--lang=en", "--enable-features=WebMCP"},
		[]string{"--lang=de", "--enable-features=Other", "--b"})
	want := []string{"--a", "--lang=de", "--enable-features=Other,WebMCP", "--b"}
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
