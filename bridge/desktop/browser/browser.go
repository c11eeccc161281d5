// Package browser finds the user's Chromium-based browser, one that runs or one to run, with our
// own flags.
//
// It never uses a person's profile, never downloads a browser (the command in ensure may ask
// apt-get for one), and keeps a browser's normal behaviour: chromedp's default flags disable the
// throttling of timers in hidden tabs, the renderer's back-grounding and extensions, and a test of
// Pagewire under them proves little.
package browser

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// ErrNone is the error of Find if there is no browser. It says what to do.
var ErrNone = errors.New(
	"no Chromium or Chrome found: install one (Debian: apt-get install chromium), or set " +
		"PAGEWIRE_BROWSER to its path")

// Find returns the path of a Chromium, Chrome, Edge or Brave: the value of PAGEWIRE_BROWSER, or
// else the first on PATH, or else the first at the usual places of installers. A PAGEWIRE_BROWSER
// that cannot be run is an error.
func Find() (string, error) {
	if path := os.Getenv("PAGEWIRE_BROWSER"); path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("PAGEWIRE_BROWSER: %w", err)
		}
		return found, nil
	}
	for _, candidate := range candidates(runtime.GOOS, os.Getenv) {
		if found, err := exec.LookPath(candidate); err == nil {
			return found, nil
		}
	}
	return "", ErrNone
}

// candidates lists names on PATH, and absolute paths: Chromium first, since people use Chrome for
// other purposes.
func candidates(goos string, env func(string) string) []string {
	names := []string{
		"chromium", "chromium-browser",
		"google-chrome", "google-chrome-stable", "google-chrome-beta", "google-chrome-unstable",
		"chrome",
		"microsoft-edge", "microsoft-edge-stable", "msedge",
		"brave-browser", "brave",
	}
	switch goos {
	case "darwin":
		for _, root := range []string{"/Applications", filepath.Join(env("HOME"), "Applications")} {
			for _, app := range []string{"Chromium", "Google Chrome", "Microsoft Edge",
				"Brave Browser"} {
				names = append(names, filepath.Join(root, app+".app", "Contents", "MacOS", app))
			}
		}
	case "windows":
		for _, variable := range []string{"ProgramFiles", "ProgramFiles(x86)", "LocalAppData"} {
			root := env(variable)
			if root == "" {
				continue
			}
			for _, path := range []string{
				`Chromium\Application\chrome.exe`,
				`Google\Chrome\Application\chrome.exe`,
				`Microsoft\Edge\Application\msedge.exe`,
				`BraveSoftware\Brave-Browser\Application\brave.exe`,
			} {
				names = append(names, root+`\`+path)
			}
		}
	}
	return names
}

// Command returns a browser's command line: the browser that Find finds, our flags, others, and the
// first URL.
func Command(window bool, others []string, first string) (*exec.Cmd, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	return exec.Command(path, append(merge(flags(window, os.Geteuid() == 0), others), first)...),
		nil
}

// flags returns our flags, without the caller's and without --remote-debugging-pipe.
func flags(window, root bool) []string {
	list := []string{
		// These keep a first start from asking questions and fetching data, which would disturb a
		// test.
		"--no-first-run",
		"--no-default-browser-check",
		"--disable-background-networking",
		"--disable-component-update",
		"--disable-sync",
		// GPU and QUIC do not matter to pages, and fail noisily in containers.
		"--disable-gpu",
		"--disable-quic",
	}
	if !window {
		// the same browser without a window; the old mode was another browser
		list = append(list, "--headless=new")
	}
	if root {
		// the sandbox refuses to start for root, as in most containers
		list = append(list, "--no-sandbox")
	}
	return list
}

// merge adds further flags to ours. A flag replaces ours of the same name; the values of
// --enable-features are joined.
func merge(ours, further []string) (all []string) {
	at := map[string]int{}
	for _, flag := range slices.Concat(ours, further) {
		flag = "--" + strings.TrimLeft(flag, "-")
		name, value, _ := strings.Cut(flag, "=")
		i, known := at[name]
		switch {
		case !known:
			at[name] = len(all)
			all = append(all, flag)
		case name == "--enable-features":
			all[i] += "," + value
		default:
			all[i] = flag
		}
	}
	return all
}
