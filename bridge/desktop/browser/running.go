package browser

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/peer"
	"github.com/pagewire/pagewire/bridge/internal/secret"
)

// ErrNotRunning is the error of Running if no browser takes connections. It says what to do.
var ErrNotRunning = errors.New(
	"no running browser takes connections: allow it at chrome://inspect/#remote-debugging " +
		"(Chrome 144 and later), " +
		"or start one with chromium --remote-debugging-port=9222 --user-data-dir=DIR (a DIR of its own: browsers refuse " +
		"it for the usual profile), or let pagewire launch one")

// Running returns the URL of a browser that takes connections by the Chrome DevTools Protocol: a
// browser that the file DevToolsActivePort in its usual profile names, or else the listener on
// 127.0.0.1:9222.
//
// The browser must be this user's: otherwise agents would see another user's pages. So the file
// must not be a link, and the listener must be this user's if the kernel tells (Linux).
func Running() (string, error) {
	for _, dir := range profiles(runtime.GOOS, os.Getenv) {
		if url := active(dir); url != "" {
			return url, nil
		}
	}
	const usual = "127.0.0.1:9222"
	client := http.Client{Timeout: time.Second}
	r, err := client.Get("http://" + usual + "/json/version")
	if err != nil {
		return "", ErrNotRunning
	}
	r.Body.Close()
	switch {
	case !ourListener(usual):
		return "", fmt.Errorf("%w; what listens at %s is another user's", ErrNotRunning, usual)
	case r.StatusCode != http.StatusOK:
		return "", ErrNotRunning
	}
	return "http://" + usual, nil
}

// ourListener reports whether the listener at an address is this user's, as far as the kernel
// tells.
func ourListener(address string) bool {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return false
	}
	who := peer.OfListener(addr)
	return who == peer.Same || who == peer.Unknown && runtime.GOOS != "linux"
}

// active returns the WebSocket address of a profile's browser, or "". The file may outlive a killed
// browser.
func active(dir string) string {
	text, _, err := secret.ReadOwn(filepath.Join(dir, "DevToolsActivePort"))
	if err != nil {
		return ""
	}
	port, path, ok := strings.Cut(strings.TrimSpace(text), "\n")
	if path = strings.TrimSpace(path); !ok || !strings.HasPrefix(path, "/devtools/browser/") {
		return ""
	}
	address := net.JoinHostPort("127.0.0.1", strings.TrimSpace(port))
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return ""
	}
	conn.Close()
	if !ourListener(address) {
		return ""
	}
	return "ws://" + address + path
}

// profiles lists the directories of browsers' default profiles.
func profiles(goos string, env func(string) string) []string {
	var root string
	var names []string
	switch goos {
	case "darwin":
		root = filepath.Join(env("HOME"), "Library", "Application Support")
		names = []string{"Google/Chrome", "Chromium", "Microsoft Edge",
			"BraveSoftware/Brave-Browser", "Google/Chrome Beta", "Google/Chrome Canary"}
	case "windows":
		root = env("LocalAppData")
		names = []string{"Google/Chrome/User Data", "Chromium/User Data",
			"Microsoft/Edge/User Data", "BraveSoftware/Brave-Browser/User Data"}
	default:
		if root = env("XDG_CONFIG_HOME"); root == "" {
			root = filepath.Join(env("HOME"), ".config")
		}
		names = []string{"google-chrome", "chromium", "microsoft-edge",
			"BraveSoftware/Brave-Browser", "google-chrome-beta", "google-chrome-unstable"}
	}
	var dirs []string
	for _, name := range names {
		dirs = append(dirs, filepath.Join(root, filepath.FromSlash(name)))
	}
	return dirs
}
