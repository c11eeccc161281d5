//go:build !js

package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
)

// onlyPath makes a directory of scripts the whole of PATH and returns it.
func onlyPath(t *testing.T, scripts map[string]string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a browser is found by its absolute path too, and there is no apt-get")
	}
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("PAGEWIRE_BROWSER", "")
	return dir
}

func TestAFoundBrowserIsEnough(t *testing.T) {
	dir := onlyPath(t, map[string]string{"chromium": "exit 0\n", "apt-get": "echo called > \"${0%/*}\"/called\n"})
	if err := ensure(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "called")); err == nil {
		t.Error("apt-get was called though there is a browser")
	}
}

func TestAptGetIsAskedByRootOnly(t *testing.T) {
	dir := onlyPath(t, map[string]string{"apt-get": `
echo "$*" >> "${0%/*}"/called
case $1 in install) printf '#!/bin/sh\n' > "${0%/*}"/chromium; /bin/chmod +x "${0%/*}"/chromium;; esac
`})
	err := ensure()
	called, _ := os.ReadFile(filepath.Join(dir, "called"))
	if os.Geteuid() != 0 {
		if !errors.Is(err, browser.ErrNone) || len(called) > 0 {
			t.Errorf("not root: %v, and apt-get %q", err, called)
		}
		return
	}
	if want := "update -q\ninstall -q -y --no-install-recommends chromium\n"; err != nil || string(called) != want {
		t.Errorf("%v, and apt-get %q; want %q", err, called, want)
	}
}

func TestWithoutAptGetOneLineSaysWhatToDo(t *testing.T) {
	onlyPath(t, nil)
	if err := ensure(); !errors.Is(err, browser.ErrNone) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestAFailingAptGetIsNamed(t *testing.T) {
	onlyPath(t, map[string]string{"apt-get": "exit 100\n"})
	if os.Geteuid() != 0 {
		t.Skip("apt-get is asked by root only")
	}
	if err := ensure(); !errors.Is(err, browser.ErrNone) || !strings.Contains(err.Error(), "apt-get update") {
		t.Errorf("got %v", err)
	}
}

func TestAStubIsNotABrowser(t *testing.T) {
	dir := onlyPath(t, map[string]string{"chromium-browser": "echo 'needs the snap'\necho more\nexit 1\n"})
	want := filepath.Join(dir, "chromium-browser") + " does not run (exit status 1): needs the snap"
	if err := ensure(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestProgramsAreInstalledByTheirPackages(t *testing.T) {
	dir := onlyPath(t, map[string]string{"firefox-esr": "", "apt-get": "echo \"$*\" >> \"${0%/*}\"/called\n"})
	err := ensurePrograms([]string{"firefox-esr=firefox-esr", "Xvfb=xvfb"})
	called, _ := os.ReadFile(filepath.Join(dir, "called"))
	if os.Geteuid() != 0 {
		if err == nil || !strings.Contains(err.Error(), "not found: Xvfb; install Debian's xvfb") || len(called) > 0 {
			t.Errorf("not root: %v, and apt-get %q", err, called)
		}
		return
	}
	if want := "update -q\ninstall -q -y --no-install-recommends xvfb\n"; err != nil || string(called) != want {
		t.Errorf("%v, and apt-get %q; want %q", err, called, want)
	}
}
