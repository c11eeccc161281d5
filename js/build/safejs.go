package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const safejs = "github.com/hack-pad/safejs"

// patchSafejs makes a copy of safejs in dir that TinyGo compiles without package fmt, which is 27
// KB of brotli, and a go.mod that names it. It returns the GOFLAGS that select that go.mod. The
// patch is offered upstream; when a release of safejs has it, this function can go.
func patchSafejs(root, dir string) (string, error) {
	output := func(args ...string) (string, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		text, err := cmd.Output()
		return strings.TrimSpace(string(text)), err
	}
	flags, err := output("env", "GOFLAGS")
	if err != nil {
		return "", err
	}
	// On a machine where Go has built nothing yet the module is missing, and `go list -m` gives "".
	if _, err := output("mod", "download", safejs); err != nil {
		return "", err
	}
	from, err := output("list", "-m", "-f", "{{.Dir}}", safejs)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "safejs")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return "", err
	}
	patch := filepath.Join(root, "idl", "upstream", "safejs", "no-fmt.patch")
	_, err = run(to, []string{"GIT_CEILING_DIRECTORIES=" + dir}, "git", "apply", patch)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyFile(filepath.Join(dir, name), filepath.Join(root, name)); err != nil {
			return "", err
		}
	}
	mod := filepath.Join(dir, "go.mod")
	if _, err := run(root, nil, "go", "mod", "edit", "-replace="+safejs+"="+to, mod); err != nil {
		return "", err
	}
	return strings.TrimSpace(flags + " -modfile=" + mod), nil
}
