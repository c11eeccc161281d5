//go:build !js

package browser

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ErrNotRunning is what Running returns when no browser takes connections, and says what to do.
var ErrNotRunning = errors.New("no running browser takes connections: allow it at chrome://inspect/#remote-debugging (Chrome 144 and later), " +
	"or start one with chromium --remote-debugging-port=9222 --user-data-dir=DIR (a DIR of its own: browsers refuse it for the usual profile), or let pagewire launch one")

// Running looks for a browser that takes connections by the Chrome DevTools Protocol, and returns its URL: one whose usual profile
// says so (the file DevToolsActivePort), else what listens on 127.0.0.1:9222. The browser may still ask its user.
func Running() (string, error) {
	for _, dir := range profiles(runtime.GOOS, os.Getenv) {
		if url := active(dir); url != "" {
			return url, nil
		}
	}
	const usual = "http://127.0.0.1:9222"
	client := http.Client{Timeout: time.Second}
	if r, err := client.Get(usual + "/json/version"); err == nil {
		r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return usual, nil
		}
	}
	return "", ErrNotRunning
}

// active returns the WebSocket that a profile's browser listens on, or "". The file stays when a browser is killed, so that the
// port is tried.
func active(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
	if err != nil {
		return ""
	}
	port, path, ok := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if path = strings.TrimSpace(path); !ok || !strings.HasPrefix(path, "/devtools/browser/") {
		return ""
	}
	address := net.JoinHostPort("127.0.0.1", strings.TrimSpace(port))
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return ""
	}
	conn.Close()
	return "ws://" + address + path
}

// profiles lists where browsers keep the profile that is used when none is named.
func profiles(goos string, env func(string) string) []string {
	var root string
	var names []string
	switch goos {
	case "darwin":
		root = filepath.Join(env("HOME"), "Library", "Application Support")
		names = []string{"Google/Chrome", "Chromium", "Microsoft Edge", "BraveSoftware/Brave-Browser", "Google/Chrome Beta", "Google/Chrome Canary"}
	case "windows":
		root = env("LocalAppData")
		names = []string{"Google/Chrome/User Data", "Chromium/User Data", "Microsoft/Edge/User Data", "BraveSoftware/Brave-Browser/User Data"}
	default:
		if root = env("XDG_CONFIG_HOME"); root == "" {
			root = filepath.Join(env("HOME"), ".config")
		}
		names = []string{"google-chrome", "chromium", "microsoft-edge", "BraveSoftware/Brave-Browser", "google-chrome-beta", "google-chrome-unstable"}
	}
	var dirs []string
	for _, name := range names {
		dirs = append(dirs, filepath.Join(root, filepath.FromSlash(name)))
	}
	return dirs
}
