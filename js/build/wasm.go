package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A toolchain compiles the core, and brings the wasm_exec.js that fits what it compiled. The two must never come
// from different toolchains, nor from different versions of one: the imports that they agree on are private.
type toolchain struct {
	name     string   // for people
	command  []string // build command, without output and package
	env      []string // what it needs in the environment
	wasmExec func() (string, error)
}

// findToolchain finds go or tinygo as they are named, or, for "", TinyGo when it is on PATH, else Go. TinyGo makes the
// core a tenth as large; Go is what everybody has who builds this.
func findToolchain(name string) (toolchain, error) {
	switch path, err := exec.LookPath("tinygo"); {
	case name != "" && name != "go" && name != "tinygo":
		return toolchain{}, fmt.Errorf("no toolchain is called %s: go and tinygo are", name)
	case name == "go", name == "" && err != nil:
		return findGo(), nil
	case err != nil:
		return toolchain{}, fmt.Errorf("tinygo is wanted, and is not on PATH: %w", err)
	default:
		return tinyGo(path), nil
	}
}

func tinyGo(path string) toolchain {
	name := "tinygo"
	if out, err := exec.Command(path, "version").Output(); err == nil {
		name = strings.TrimSpace(string(out))
	}
	return toolchain{
		name: name,
		command: []string{path, "build", "-target=wasm", "-scheduler=none", "-opt=z", "-no-debug",
			"-buildmode=c-shared"},
		wasmExec: func() (string, error) { return under(path, "env", "TINYGOROOT", "targets/wasm_exec.js") },
	}
}

// findGo is the toolchain that everybody has. With tags it builds something else than what is shipped.
//
// Under Go only the message codec is inlined into; -l switches that off for the rest, the runtime above all. That takes
// 46 KB (7 %) off the brotli size and leaves the codec as fast as it was; what allocates gets slower, up to twice as
// slow in a noisy run. Without inlining the codec too it would be 5 KB less, and decoding 1.6 times as slow: not worth
// it, since the core is fetched once and the codec runs for every message. No commit is stamped into it, so that it is
// the same file as long as its source is.
func findGo(tags ...string) toolchain {
	name := "go"
	if out, err := exec.Command("go", "env", "GOVERSION").Output(); err == nil {
		name = strings.TrimSpace(string(out))
	}
	return toolchain{
		name: name,
		command: []string{"go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
			"-tags=" + strings.Join(tags, ","), "-gcflags=all=-l",
			"-gcflags=github.com/pagewire/pagewire/bridge/wire="},
		env:      append([]string{"GOOS=js", "GOARCH=wasm"}, experiment("nogreenteagc")...),
		wasmExec: func() (string, error) { return under("go", "env", "GOROOT", "lib/wasm/wasm_exec.js") },
	}
}

// experiment is the environment of a GOEXPERIMENT, or nothing where Go has it no more.
//
// nogreenteagc is the collector that Go had up to 1.25. The new one takes 9 KB of brotli (1.6 %), and gives a page
// nothing: with 10,000 resources 20,000 reads took as long, and its longest pause was 233 ms instead of 159 (medians of
// 5 rounds in turns, under Node on a busy machine).
func experiment(name string) []string {
	set := "GOEXPERIMENT=" + name
	cmd := exec.Command("go", "env", "GOEXPERIMENT")
	cmd.Env = append(os.Environ(), set)
	if cmd.Run() != nil {
		return nil
	}
	return []string{set}
}

// compile builds a package of root, and writes its data as few segments.
func (tc toolchain) compile(root, out, pkg string) error {
	args := append(append([]string{}, tc.command[1:]...), "-o", out, pkg)
	if err := run(root, tc.env, tc.command[0], args...); err != nil {
		return err
	}
	module, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	module, err = mergeSegments(module)
	if err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return os.WriteFile(out, module, 0o644)
}

// wasmExecModule returns wasm_exec.js as the module "wasm_exec", which exports one function: load(globalThis)
// returns the class Go.
//
// As shipped, wasm_exec.js puts Go, fs, process and path onto the global object, and takes from there what the
// program sees as js.Global(). Those names belong to the page (an inline `var path` breaks the module, and a
// page's own `process` changes how it behaves), so here every name by which the file reaches the global object is a
// parameter or a local of load, and the loader decides what the program sees. What the file uses but does not
// define (console, crypto, performance, setTimeout, TextDecoder) still comes from the real global.
//
// `fs` needs a line of its own: Go's file defines globalThis.fs and then prints a panic's trace through plain fs.
// Without that line a panic would end in a ReferenceError and its trace be lost.
func (tc toolchain) wasmExecModule() (string, error) {
	path, err := tc.wasmExec()
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("wasm_exec.js of %s: %w", tc.name, err)
	}
	return wrapWasmExec(string(source)), nil
}

func wrapWasmExec(source string) string {
	return `export function load(globalThis) {
const global = globalThis, window = globalThis, self = globalThis;
const fs = { writeSync: (fd, bytes) => globalThis.fs.writeSync(fd, bytes) };
let require, module, process;
` + source + `
return globalThis.Go;
}
`
}

// under runs a command that prints a directory and returns a path below it.
func under(name, arg, variable, rel string) (string, error) {
	out, err := exec.Command(name, arg, variable).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", fmt.Errorf("%s %s %s printed nothing: is the installation complete?", name, arg, variable)
	}
	return filepath.Join(dir, filepath.FromSlash(rel)), nil
}
