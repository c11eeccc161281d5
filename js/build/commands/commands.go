// Package commands links Pagewire's programs, for a developer's machine and for a release by the same line, and names
// the platforms that a release has. It writes nothing but the programs, and downloads nothing but modules of go.mod.
package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A Platform is what a program runs on, in the words of Go.
type Platform struct{ OS, Arch string }

// Host is the platform that this runs on.
var Host = Platform{runtime.GOOS, runtime.GOARCH}

// Platforms are those of a release.
var Platforms = []Platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// Parse reads a platform as String writes it; it must be one of Platforms.
func Parse(text string) (Platform, error) {
	var names []string
	for _, p := range Platforms {
		if p.String() == text {
			return p, nil
		}
		names = append(names, p.String())
	}
	return Platform{}, fmt.Errorf("no release is made for platform %q: take one of %s", text, strings.Join(names, ", "))
}

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// npm's words where they differ from Go's.
var npmWords = map[string]string{"windows": "win32", "amd64": "x64"}

// NPM returns the operating system and the processor as npm and Node name them.
func (p Platform) NPM() (system, cpu string) {
	word := func(of string) string {
		if its := npmWords[of]; its != "" {
			return its
		}
		return of
	}
	return word(p.OS), word(p.Arch)
}

// Package is the npm package that holds the platform's program.
func (p Platform) Package() string {
	system, cpu := p.NPM()
	return "@pagewire/cli-" + system + "-" + cpu
}

// File is what a program is called on the platform.
func (p Platform) File(program string) string {
	if p.OS == "windows" {
		return program + ".exe"
	}
	return program
}

// Programs are Pagewire's, with the tags that each is built with.
var Programs = map[string]string{"pagewire": "pagewire_assets", "pagewire-node": ""}

// Link builds every program for a platform into dir. What pagewire embeds must be in bridge/gateway/assets/dist.
func Link(root, version string, p Platform, dir string) error {
	for name, tags := range Programs {
		// Without cgo they are static files, and 1.5 MB of libc are not in their memory.
		cmd := exec.Command("go", "build", "-trimpath", "-tags", tags, "-ldflags", "-s -w -X main.version="+version,
			"-o", filepath.Join(dir, p.File(name)), "./bridge/cmd/"+name)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s for %s: %w\n%s", name, p, err, out)
		}
	}
	return nil
}
