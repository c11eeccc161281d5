//go:build !js

// Command ensure makes sure that a Chromium or Chrome is there: silently when one is found; by apt-get when none is and
// that is possible (root on a Debian-like system, and only then); else it exits 1 with one line that says what to do.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
)

func main() {
	if err := ensure(); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

func ensure() error {
	path, err := browser.Find()
	if errors.Is(err, browser.ErrNone) {
		if err := install(); err != nil {
			return err
		}
		path, err = browser.Find()
	}
	if err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return nil // on Windows --version opens a window
	}
	// A file of the right name may be no browser: Ubuntu's chromium-browser only says that a snap is wanted.
	if out, err := exec.Command(path, "--version").CombinedOutput(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s does not run (%w): %s", path, err, line)
	}
	return nil
}

// install gets chromium by apt-get, or returns ErrNone where it cannot.
func install() error {
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return browser.ErrNone
	}
	fmt.Fprintln(os.Stderr, "browser: none found, installing chromium by apt-get (takes about a minute)")
	for _, args := range [][]string{
		{"update", "-q"},
		{"install", "-q", "-y", "--no-install-recommends", "chromium"},
	} {
		cmd := exec.Command(apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			os.Stderr.Write(out)
			return fmt.Errorf("%w (apt-get %s: %v)", browser.ErrNone, args[0], err)
		}
	}
	return nil
}
