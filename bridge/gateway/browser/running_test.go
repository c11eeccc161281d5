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
