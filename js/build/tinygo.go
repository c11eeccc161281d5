package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// tinyGoVersion is the TinyGo that compiles what ships. Another one gives another core than the one that is tested, so
// no other is taken.
const tinyGoVersion = "0.41.1"

// tinyGoArchives are the SHA-256 sums of the forge's archives, by system and processor.
var tinyGoArchives = map[string]string{
	"darwin-amd64": "1a8e62a234d3aea20793ada2c4a628de96ed7533384f0f5dc3c3f2ffa84f9bab",
	"darwin-arm64": "c684d154d89a452cc9c7fc5dc5fc80cb6a42445b3e44b3c12ed048692de0f341",
	"linux-amd64":  "e156d1d93a376eef639a4143d13be07e8c463fb6cf2d7d447698ed4474d23e91",
	"linux-arm64":  "789733bc3b5bace0bd1835a267b3ea267804a7ef1cfe69bc522c295f5226d624",
}

// TinyGo's Go module has its source without the parts that are other repositories. Debian brings those that the core
// needs: LLVM, the C library, and what clang calls where WebAssembly has no instruction.
const (
	tinyGoModule    = "github.com/tinygo-org/tinygo"
	tinyGoModuleSum = "h1:Hp1Frc4zQALL88t49XraSZEwkIYEjMOmmurlmsTigzE="
	llvm            = "19" // the newest that TinyGo takes and that Debian 12 and 13 have
	builtins        = "/usr/lib/llvm-" + llvm + "/lib/clang/" + llvm + "/lib/wasi/libclang_rt.builtins-wasm32.a"
	libc            = "/usr/lib/wasm32-wasi/libc.a"
)

// tinyGoPackages are Debian's.
var tinyGoPackages = []string{"llvm-" + llvm + "-dev", "libclang-" + llvm + "-dev", "lld-" + llvm, "clang-" + llvm,
	"wasi-libc", "libclang-rt-" + llvm + "-dev-wasm32", "binaryen"}

// tinyGoHome is where this version is installed: below the user's cache directory, for all clones of the repository.
func tinyGoHome() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "pagewire", "tinygo", tinyGoVersion), err
}

// findTinyGo returns the command of the version that is wanted, which make tinygo has installed or which is on PATH,
// or "" without one.
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

// tinyGoName is what a TinyGo says of itself: its version, Go's and LLVM's.
func tinyGoName(path string) string {
	out, _ := exec.Command(path, "version").Output()
	return strings.TrimSpace(string(out))
}

// installTinyGo makes sure that TinyGo is there. It takes the forge's archive; where that is out of reach, and on a
// Debian whose root asks, it builds TinyGo from its Go module.
func installTinyGo(w io.Writer) error {
	if path := findTinyGo(); path != "" {
		fmt.Fprintln(w, "tinygo:", path)
		return nil
	}
	home, err := tinyGoHome()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return err
	}
	// It is made beside its place, and moved there when it works: what is there is whole.
	dir, err := os.MkdirTemp(filepath.Dir(home), "installing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "tinygo") // as the archive calls it
	fmt.Fprintf(w, "tinygo: installing %s to %s (750 MB with what it needs)\n", tinyGoVersion, home)

	err = unpackTinyGo(dir)
	if errors.Is(err, errUnreachable) {
		fmt.Fprintf(w, "tinygo: %v; building it from its Go module\n", err)
		err = buildTinyGo(root)
	}
	if err != nil {
		return fmt.Errorf("not installed: %w. With TinyGo %s on PATH, make build takes that", err, tinyGoVersion)
	}
	if err := tryTinyGo(filepath.Join(root, "bin", "tinygo"), dir); err != nil {
		return err
	}
	if err := os.Rename(root, home); err != nil && findTinyGo() == "" { // another make may have been faster
		return err
	}
	fmt.Fprintln(w, "tinygo:", tinyGoName(findTinyGo()))
	return nil
}

// tryTinyGo compiles an empty program, for which all parts are needed.
func tryTinyGo(path, dir string) error {
	empty := map[string]string{"go.mod": "module empty\n", "main.go": "package main\n\nfunc main() {}\n"}
	for name, text := range empty {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	args := append(tinyGo(path).command[1:], "-o", "empty.wasm", ".")
	if err := run(dir, []string{"GOFLAGS="}, path, args...); err != nil {
		return fmt.Errorf("what was installed does not compile an empty program: %w", err)
	}
	return nil
}

var errUnreachable = errors.New("no archive")

// unpackTinyGo gets the forge's archive for this machine, and unpacks it below dir if its sum is right. It returns
// errUnreachable where there is none, or none to be had.
func unpackTinyGo(dir string) error {
	platform := runtime.GOOS + "-" + runtime.GOARCH
	sum, ok := tinyGoArchives[platform]
	if !ok {
		return fmt.Errorf("%w for %s", errUnreachable, platform)
	}
	url := fmt.Sprintf("https://github.com/tinygo-org/tinygo/releases/download/v%s/tinygo%[1]s.%s.tar.gz",
		tinyGoVersion, platform)
	archive := filepath.Join(dir, "archive")
	// A network that answers nothing is given up soon; one that is slow has its time.
	if err := run("", nil, "curl", "-fsSL", "--connect-timeout", "10", "--max-time", "1200", "-o", archive,
		url); err != nil {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return unpack(archive, sum, dir)
}

// unpack unpacks a .tar.gz below dir, if its sum is right.
func unpack(archive, sum, dir string) error {
	text, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != sum {
		return fmt.Errorf("the archive has the SHA-256 sum %s, want %s: it is not the one that was released", got, sum)
	}
	return run(dir, nil, "tar", "-xzf", archive)
}

// buildTinyGo builds TinyGo from its Go module with Debian's LLVM, into root.
func buildTinyGo(root string) error {
	repository, err := findRoot()
	if err == nil {
		err = run(repository, nil, ".ci/debian", tinyGoPackages...)
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	cmd := exec.Command("go", "mod", "download", "-json", tinyGoModule+"@v"+tinyGoVersion)
	cmd.Dir = root
	text, err := cmd.Output()
	var module struct{ Dir, Sum, Error string }
	if parsed := json.Unmarshal(text, &module); parsed != nil || err != nil {
		return fmt.Errorf("go mod download %s: %w: %s", tinyGoModule, errors.Join(err, parsed), module.Error)
	}
	if module.Sum != tinyGoModuleSum {
		return fmt.Errorf("the module %s has the sum %s, want %s", tinyGoModule, module.Sum, tinyGoModuleSum)
	}
	// Its own go.mod and go.sum decide about the modules that it needs. They are copied, since go build may add to
	// them.
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyFile(filepath.Join(root, name), filepath.Join(module.Dir, name)); err != nil {
			return err
		}
	}
	err = run(module.Dir, []string{"GOFLAGS=", "CGO_ENABLED=1"},
		"go", "build", "-mod=mod", "-modfile="+filepath.Join(root, "go.mod"),
		"-trimpath", "-ldflags=-s -w", "-tags=llvm"+llvm, "-o", filepath.Join(root, "bin", "tinygo"), ".")
	if err != nil {
		return err
	}
	for _, name := range []string{"src", "targets"} {
		if err := os.CopyFS(filepath.Join(root, name), os.DirFS(filepath.Join(module.Dir, name))); err != nil {
			return err
		}
	}
	// Package net is another repository. A program that does not import it needs the directory alone.
	if err := os.MkdirAll(filepath.Join(root, "src", "net"), 0o755); err != nil {
		return err
	}
	return linkDebian(filepath.Join(root, "targets", "wasm.json"))
}

// linkDebian has a target of TinyGo link Debian's libraries instead of those that TinyGo builds itself.
func linkDebian(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var target map[string]any
	if err := json.Unmarshal(text, &target); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	flags := func(name string, more ...string) {
		all, _ := target[name].([]any)
		for _, flag := range more {
			all = append(all, flag)
		}
		target[name] = all
	}
	delete(target, "libc")
	delete(target, "rtlib")
	flags("cflags", "-isystem", "/usr/include/wasm32-wasi")
	flags("ldflags", libc, builtins)
	// Two features that LLVM 19 does not know by name.
	features := strings.Split(fmt.Sprint(target["features"]), ",")
	target["features"] = strings.Join(slices.DeleteFunc(features, func(feature string) bool {
		return feature == "+bulk-memory-opt" || feature == "+call-indirect-overlong"
	}), ",")
	text, err = json.MarshalIndent(target, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
