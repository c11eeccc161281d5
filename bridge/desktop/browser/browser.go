// Package browser finds the user's Chromium-based browser and runs it under our own flags.
//
// It never uses a person's profile, never downloads a browser (the command in ensure may ask apt-get for one), and
// keeps a browser's normal behaviour: chromedp's default flags disable the throttling of timers in hidden tabs, the
// renderer's back-grounding and extensions, and a test of Pagewire under them proves little.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// ErrNone is the error of Find if there is no browser. It says what to do.
var ErrNone = errors.New("no Chromium or Chrome found: install one (Debian: apt-get install chromium), or set " +
	"PAGEWIRE_BROWSER to its path")

// Find returns the path of a Chromium, Chrome, Edge or Brave: the value of PAGEWIRE_BROWSER, or else the first on PATH,
// or else the first at the usual places of installers. A PAGEWIRE_BROWSER that cannot be run is an error.
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

// candidates lists names on PATH, and absolute paths: Chromium first, since people use Chrome for other purposes.
func candidates(goos string, env func(string) string) []string {
	names := []string{
		"chromium", "chromium-browser",
		"google-chrome", "google-chrome-stable", "google-chrome-beta", "google-chrome-unstable", "chrome",
		"microsoft-edge", "microsoft-edge-stable", "msedge",
		"brave-browser", "brave",
	}
	switch goos {
	case "darwin":
		for _, root := range []string{"/Applications", filepath.Join(env("HOME"), "Applications")} {
			for _, app := range []string{"Chromium", "Google Chrome", "Microsoft Edge", "Brave Browser"} {
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

// Options configure Launch. The zero value is a headless browser, found by Find.
type Options struct {
	// Flags are added to ours, such as "--lang=de". A flag with the name of one of ours replaces ours.
	Flags []string
	// Env is added to the environment of this process, as NAME=value.
	Env []string
}

// closeTimeout is how long a browser may take to close by itself before it is killed. It takes about 0.1 s.
const closeTimeout = 5 * time.Second

// Launch runs a browser with a new, empty profile. ctx is chromedp's context of the first tab; chromedp.NewContext(ctx)
// makes further tabs. It ends when parent does or when the browser dies.
//
// close ends the browser, waits until the process is gone, and removes the profile. It is safe to call twice. It must
// be called: after a cancelled parent, the browser's processes may outlive this one by a moment.
func Launch(parent context.Context, o Options) (ctx context.Context, close func(), err error) {
	path, err := Find()
	if err != nil {
		return nil, nil, err
	}
	// No flag sets the profile: chromedp makes a temporary one, and removes it after the last child process has ended.
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.Env(o.Env...)}
	for _, flag := range append(flags(false, os.Geteuid() == 0), o.Flags...) {
		name, value, hasValue := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if hasValue {
			options = append(options, chromedp.Flag(name, value))
		} else {
			options = append(options, chromedp.Flag(name, true))
		}
	}
	allocator, stop := chromedp.NewExecAllocator(parent, options...)
	tab, cancelTab := chromedp.NewContext(allocator)
	close = func() {
		limited, cancel := context.WithTimeout(tab, closeTimeout)
		defer cancel()
		if tab.Err() == nil {
			chromedp.Cancel(limited) // its error changes nothing: stop kills the rest
		}
		cancelTab()
		stop()
	}
	if err := chromedp.Do(tab); err != nil {
		close()
		return nil, nil, fmt.Errorf("start %s: %w", path, err)
	}
	return tab, close, nil
}

// Command returns a browser's command line: the browser that Find finds, our flags, others, and the first URL.
func Command(window bool, others []string, first string) (*exec.Cmd, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	return exec.Command(path, append(merge(flags(window, os.Geteuid() == 0), others), first)...), nil
}

// flags returns our flags, without the caller's and without --remote-debugging-pipe.
func flags(window, root bool) []string {
	list := []string{
		// These keep a first start from asking questions and fetching data, which would disturb a test.
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
		list = append(list, "--headless=new") // the same browser without a window; the old mode was another browser
	}
	if root {
		list = append(list, "--no-sandbox") // the sandbox refuses to start for root, as in most containers
	}
	return list
}

// merge adds further flags to ours. A flag replaces ours of the same name; the values of --enable-features are joined.
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
