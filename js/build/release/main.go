// Command release makes what a release of Pagewire consists of, into dist/release/, and checks what it has made:
//
//	pagewire-VERSION.tgz                      the npm package
//	pagewire-cli-SYSTEM-CPU-VERSION.tgz       the program of a platform, as the npm package @pagewire/cli-SYSTEM-CPU
//	pagewire-VERSION-SYSTEM-CPU.tar.gz, .zip  both programs of a platform
//	pagewire-extension-VERSION.zip            the extension, to be loaded unpacked
//	pagewire-extension-BROWSER-VERSION.zip    the same for the stores of Chrome, Edge and Firefox
//	install.sh                                installs a platform's programs, whose sums it checks
//	pagewire-VERSION.cdx.json                 what of others is in which file: a CycloneDX parts list (SBOM)
//	SRI.json                                  subresource integrity of the files that a site hosts
//	NOTES.md                                  the section of CHANGELOG.md, and what compiled the core
//	SHA256SUMS                                of all but NOTES.md
//
// Usage, from anywhere in the repository:
//
//	go run ./js/build/release -version 0.2.0-rc.1
//
// It builds what is committed, and refuses a tree that differs from it, a version that is none, and one that
// CHANGELOG.md does not know. The version is stamped on everything, and no file of the tree is written but those that
// git ignores: bin/, and dist/ and bridge/gateway/assets/dist/, which are emptied first. The same commit gives the same
// bytes wherever it is built, with the same versions of Go and TinyGo. It publishes nothing:
// .github/workflows/release.yml does.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pagewire/pagewire/js/build/commands"
)

func main() {
	version := flag.String("version", "", "the version to release, such as 0.2.0 or 0.2.0-rc.1")
	only := flag.String("platforms", "", "make these alone, such as linux/amd64,windows/arm64; without it, all")
	flag.Parse()
	root, err := gomod()
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if err == nil {
		err = release(os.Stdout, root, *version, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// gomod returns the directory of go.mod.
func gomod() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	mod := strings.TrimSpace(string(out))
	if err != nil || mod == "" || mod == os.DevNull {
		return "", errors.New("no go.mod here or above: run it inside the repository")
	}
	return filepath.Dir(mod), nil
}

// A maker makes one release.
type maker struct {
	plan
	root, out string
	platforms []commands.Platform
	core      string // what compiled the wasm
}

// release makes and checks the release of the repository at root, and writes its list to w.
func release(w io.Writer, root, version, only string) error {
	began := time.Now()
	m := maker{root: root, out: filepath.Join(root, "dist", "release"), platforms: commands.Platforms}
	if only != "" {
		m.platforms = nil
		for text := range strings.SplitSeq(only, ",") {
			platform, err := commands.Parse(text)
			if err != nil {
				return err
			}
			m.platforms = append(m.platforms, platform)
		}
	}
	var err error
	if m.plan, err = planned(root, version); err != nil {
		return err
	}
	if err := m.build(); err != nil {
		return err
	}
	if err := m.write(); err != nil {
		return err
	}
	if err := verify(m.out, m.root); err != nil {
		return fmt.Errorf("what was made is not right: %w", err)
	}
	fmt.Fprintf(w, "release: pagewire %s of commit %.12s in %.0f s, core compiled by %s\n", m.version, m.commit,
		time.Since(began).Seconds(), m.compiler())
	return list(w, m.out)
}

// build runs js/build from nothing, and links the programs of each platform into dist/platforms.
func (m *maker) build() error {
	dist := filepath.Join(m.root, "dist")
	for _, dir := range []string{dist, filepath.Join(m.root, "bridge", "gateway", "assets", "dist")} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	// As on every machine: what go env -w or the environment asks for otherwise does not count.
	for name, value := range map[string]string{"GOFLAGS": "-buildvcs=true", "GOAMD64": "v1", "GOARM64": "v8.0"} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	build := exec.Command("go", "run", "./js/build", "-version", m.version)
	build.Dir = m.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	core, err := os.ReadFile(filepath.Join(dist, "meta", "core"))
	m.core = string(core)
	for _, platform := range m.platforms {
		fmt.Fprintln(os.Stderr, "release: building for", platform) // each takes a minute where nothing is cached
		err = errors.Join(err, commands.Link(m.root, m.version, platform, m.linked(platform)))
	}
	return err
}

// compiler says what compiled the core.
func (m *maker) compiler() string {
	if strings.HasPrefix(m.core, "tinygo") {
		return m.core
	}
	return m.core + " (make tinygo installs what it should be)"
}

// linked is where the programs of a platform are.
func (m *maker) linked(p commands.Platform) string {
	return filepath.Join(m.root, "dist", "platforms", p.OS+"-"+p.Arch)
}

// list writes what is in a directory, with the sizes.
func list(w io.Writer, dir string) error {
	entries, err := os.ReadDir(dir)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%d\t  %s\n", info.Size(), entry.Name())
	}
	return errors.Join(err, table.Flush())
}
