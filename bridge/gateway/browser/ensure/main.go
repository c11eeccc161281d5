//go:build !js

// Command ensure makes sure that a Chromium or Chrome is there: silently when one is found; by apt-get when none is and
// that is possible (root on a Debian-like system, and only then); else it exits 1 with one line that says what to do.
//
//	ensure                            a Chromium or Chrome
//	ensure firefox-esr=firefox-esr    programs, each with the package of Debian that has it
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
	err := ensurePrograms(os.Args[1:])
	if len(os.Args) == 1 {
		err = ensure()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

// ensurePrograms makes sure of programs, each named with its package.
func ensurePrograms(wanted []string) error {
	var missing, packages []string
	for _, pair := range wanted {
		program, name, _ := strings.Cut(pair, "=")
		if _, err := exec.LookPath(program); err != nil {
			missing, packages = append(missing, program), append(packages, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err := install(packages...)
	if errors.Is(err, errNoApt) {
		return fmt.Errorf("not found: %s; install Debian's %s, or what has them on this system",
			strings.Join(missing, ", "), strings.Join(packages, ", "))
	}
	return err
}

func ensure() error {
	path, err := browser.Find()
	if errors.Is(err, browser.ErrNone) {
		if err := install("chromium"); errors.Is(err, errNoApt) {
			return browser.ErrNone
		} else if err != nil {
			return fmt.Errorf("%w (%v)", browser.ErrNone, err)
		}
		path, err = browser.Find()
	}
	if err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return nil // on Windows --version opens a window
	}
	// Some files of the right name are no browser: Ubuntu's chromium-browser only asks for a snap.
	if out, err := exec.Command(path, "--version").CombinedOutput(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s does not run (%w): %s", path, err, line)
	}
	return nil
}

var errNoApt = errors.New("there is no apt-get, or not for this user")

// install gets packages by apt-get, or returns errNoApt if it cannot.
func install(packages ...string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return errNoApt
	}
	fmt.Fprintf(os.Stderr, "browser: none found, installing %s by apt-get (takes about a minute)\n",
		strings.Join(packages, ", "))
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...),
	} {
		cmd := exec.Command(apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			os.Stderr.Write(out)
			return fmt.Errorf("apt-get %s: %v", args[0], err)
		}
	}
	return nil
}
