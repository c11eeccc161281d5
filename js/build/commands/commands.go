// Package commands links Pagewire's programs for a developer's machine, as .goreleaser.yaml does
// for a release, and names the platforms of a release. It writes only the programs, and downloads
// only modules of go.mod.
package commands

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// A Platform is an operating system and a processor, as Go names them.
type Platform struct{ OS, Arch string }

// Host is the platform of this process.
var Host = Platform{runtime.GOOS, runtime.GOARCH}

// Platforms are the platforms of a release.
var Platforms = []Platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// npmWords replaces Go's words by npm's, where they differ.
var npmWords = strings.NewReplacer("windows", "win32", "amd64", "x64")

// NPM returns the operating system and the processor as npm and Node name them.
func (p Platform) NPM() (system, cpu string) {
	return npmWords.Replace(p.OS), npmWords.Replace(p.Arch)
}

// Package is the npm package that holds the platform's program.
func (p Platform) Package() string {
	system, cpu := p.NPM()
	return "@pagewire/cli-" + system + "-" + cpu
}

// RegistryName is Pagewire's name in the MCP Registry. The npm package has it as mcpName, which
// proves the publisher.
const RegistryName = "io.github.pagewire/pagewire"

// Programs has the build tags of each program, by its name.
var Programs = map[string]string{"pagewire": "pagewire_assets", "pagewire-node": ""}

// Link builds every program for this machine into dir. The files for pagewire must be in
// bridge/assets/dist.
func Link(root, version, dir string) error {
	for name, tags := range Programs {
		// Without cgo the programs are static, and do not have 1.5 MB of libc in memory.
		cmd := exec.Command("go", "build", "-trimpath", "-tags", tags, "-ldflags",
			"-s -w -X main.version="+version, "-o", dir+"/", "./bridge/cmd/"+name)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, out)
		}
	}
	return nil
}
