// Command build makes everything that Pagewire ships, into dist/ and bin/:
//
//	dist/                    the files that a site hosts (assets.Names), and those of the npm package;
//	                         bundled has the sources of scripts
//	dist/npm/                the npm package, ready for npm pack
//	dist/inspector/          the inspector page; only the command has it, and pagewire.inject.js
//	dist/extension/          the browser extension, as a browser loads it; dist/extension-firefox/ for Firefox
//	dist/demo/               the demo pages, which load the files above from the root
//	dist/test/               the modules that the tests under Node import
//	dist/core                the name and version of the core's compiler
//	bin/pagewire             the command, with the files above inside; and bin/pagewire-node
//
// Usage, from anywhere in the repository:
//
//	go run ./js/build          build; -core=go or -core=tinygo chooses the core's compiler, by default TinyGo if it is
//	                           installed; -version is stamped instead of the version in js/package.json
//	go run ./js/build -size    print the sizes of dist/'s files and of the core's packages; exit 1 above a budget
//
//	go run ./js/build -install-tinygo   install TinyGo, unless it is there
//
// js/build/release makes a release of these files.
//
// It needs Go and the packages of js/package-lock.json (make installs them). Without
// -install-tinygo it downloads only Go modules. It keeps no cache of its own: go build has one, and
// esbuild needs none.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/js/build/commands"
)

// inspector are the files of the inspector page, and the page to try.
var inspector = []string{"inspector/index.html", "inspector/demo.html",
	"inspector/inspector.js", "inspector/inspector.css", "inspector/logo.svg"}

func main() {
	core := flag.String("core", "",
		"compile the core by `go` or tinygo; without it by TinyGo where it is installed")
	tinygo := flag.Bool("install-tinygo", false,
		"install TinyGo below the user's cache directory, and build nothing")
	size := flag.Bool("size", false,
		"print what dist/ weighs raw, by gzip and by brotli, and each package in the core; fail above a budget")
	flag.StringVar(&stamped, "version", "",
		"stamp this version on everything, instead of the one in js/package.json")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "build: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	root, err := findRoot()
	switch {
	case err != nil:
	case *tinygo:
		err = installTinyGo(os.Stdout, root)
	default:
		err = do(root, *core, *size)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func do(root, core string, size bool) error {
	tc, err := findToolchain(core)
	if err != nil {
		return err
	}
	if size {
		return sizes(os.Stdout, root, tc)
	}
	err = build(root, tc)
	if err == nil && core == "" && !tc.tiny {
		fmt.Printf(
			"build: without TinyGo %s the core is 14 times as large as what ships; make tinygo installs it (750 MB)\n",
			tinyGoVersion)
	}
	return err
}

// sizes prints the weights of dist/'s files, and of the Go packages in them. It also writes the
// weights into dist/sizes.json, which make bench reads. A core that Go has compiled does not ship:
// it is weighed only as a whole, and has no budget.
func sizes(w io.Writer, root string, tc toolchain) error {
	dist := filepath.Join(root, "dist")
	list := slices.Clone(artefacts)
	for i, a := range list {
		if !tc.tiny && strings.HasSuffix(a.name, ".wasm") {
			list[i].budget = 0
		}
	}
	weights, err := weigh(dist, list)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(sizesFile{tc.name, weights}, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join(dist, "sizes.json"), append(text, '\n'), 0o644)
	}
	err = errors.Join(err, printWeights(w, weights))
	if !tc.tiny {
		return err
	}
	return errors.Join(err, tc.printPackages(w, root, "./wasm"))
}

// A sizesFile is dist/sizes.json.
type sizesFile struct {
	Core    string // the name and version of its compiler
	Weights []weight
}

// build makes dist/ and bin/ under root. The WebAssembly module is compiled while the scripts are
// bundled; neither needs the other.
func build(root string, tc toolchain) error {
	start := time.Now()
	dist := filepath.Join(root, "dist")

	compiled := make(chan error, 1)
	go func() {
		compiled <- tc.compile(root, filepath.Join(dist, "pagewire.wasm"), "./wasm")
	}()
	err := bundleAll(root, dist, tc)
	if err := errors.Join(err, <-compiled); err != nil {
		return err
	}

	version, err := readVersion(root)
	if err != nil {
		return err
	}
	err = errors.Join(writePackage(root, dist, version), buildExtension(root, dist, version),
		buildDemos(root, filepath.Join(dist, "demo")),
		os.WriteFile(filepath.Join(dist, "core"), []byte(tc.name), 0o644))
	if err != nil {
		return err
	}
	if err := buildCommands(root, dist, version); err != nil {
		return err
	}
	fmt.Printf("build: pagewire %s in %.1f s, core compiled by %s\n", version,
		time.Since(start).Seconds(), tc.name)
	return nil
}

// buildCommands copies the files that the assets package embeds to it, and links bin/pagewire and
// bin/pagewire-node.
func buildCommands(root, dist, version string) error {
	for _, name := range slices.Concat([]string{"core", "pagewire.inject.js", "pagewire.shown.js",
		"pagewire.pick.js"}, inspector, assets.Names) {
		err := copyFile(filepath.Join(root, "bridge/assets/dist", name), filepath.Join(dist, name))
		if err != nil {
			return err
		}
	}
	return commands.Link(root, version, filepath.Join(root, "bin"))
}

// findRoot returns the directory that holds go.mod, so that the build works from any directory of
// the repository.
func findRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	mod := strings.TrimSpace(string(out))
	if err != nil || mod == "" || mod == os.DevNull {
		return "", errors.New("no go.mod here or above: run it inside the repository")
	}
	return filepath.Dir(mod), nil
}

// run executes a tool in dir with extra environment, and returns what it printed.
func run(dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, text)
	}
	return text, nil
}

// copyFiles copies the files of a folder that match a pattern, which may name a folder in it.
func copyFiles(to, from, pattern string) error {
	names, err := fs.Glob(os.DirFS(from), pattern)
	for _, name := range names {
		err = errors.Join(err, copyFile(filepath.Join(to, name), filepath.Join(from, name)))
	}
	return err
}

// copyFile copies a file and makes the directories that it needs.
func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644))
}
