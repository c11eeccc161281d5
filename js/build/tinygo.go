package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tinyGoVersion is the version of TinyGo that compiles the core that ships. No other version is
// taken, since its core would differ from the tested one.
const tinyGoVersion = "0.41.1"

// tinyGoHome is where this version is installed: below the user's cache directory, for all clones
// of the repository.
func tinyGoHome() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "pagewire", "tinygo", tinyGoVersion), err
}

// findTinyGo returns the path of that version's command, which make tinygo has installed or which
// is on PATH, or "" without one.
func findTinyGo() string {
	if home, err := tinyGoHome(); err == nil {
		path := filepath.Join(home, "bin", "tinygo")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	path, err := exec.LookPath("tinygo")
	if err != nil || !strings.HasPrefix(tinyGoName(path), "tinygo version "+tinyGoVersion+" ") {
		return ""
	}
	return path
}

// tinyGoName returns the versions of a TinyGo, its Go and its LLVM, as it prints them, and of its
// wasm-opt.
func tinyGoName(path string) string {
	out, _ := exec.Command(path, "version").Output()
	optimizer := filepath.Join(filepath.Dir(path), "wasm-opt") // as TinyGo finds it
	if _, err := os.Stat(optimizer); err != nil {
		optimizer = "wasm-opt"
	}
	version, _ := exec.Command(optimizer, "--version").Output()
	return strings.TrimSpace(strings.TrimSpace(string(out)) + " " + string(version))
}

// installTinyGo installs TinyGo unless it is there.
func installTinyGo(w io.Writer, root string) error {
	if path := findTinyGo(); path != "" {
		fmt.Fprintln(w, "tinygo:", path)
		return nil
	}
	home, err := tinyGoHome()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(root, ".ci", "tinygo"), tinyGoVersion, home)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", cmd.Path, err)
	}
	fmt.Fprintln(w, "tinygo:", tinyGoName(findTinyGo()))
	return nil
}
