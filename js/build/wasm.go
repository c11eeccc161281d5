package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A toolchain compiles the core.
type toolchain struct {
	name    string   // for people
	command []string // build command, without output and package
	env     []string // its further environment
	tiny    bool     // TinyGo
}

// findToolchain finds the toolchain of a name, go or tinygo. For "" it takes TinyGo if that is
// installed, and otherwise Go. TinyGo's core ships, and is a fourteenth as large in brotli; Go is
// on every machine that builds this.
func findToolchain(name string) (toolchain, error) {
	path := ""
	if name != "go" {
		path = findTinyGo()
	}
	switch {
	case name != "" && name != "go" && name != "tinygo":
		return toolchain{}, fmt.Errorf("no toolchain is called %s: go and tinygo are", name)
	case path != "":
		return tinyGo(path), nil
	case name == "tinygo":
		return toolchain{}, fmt.Errorf(
			"TinyGo %s is wanted, and is not installed: make tinygo installs it", tinyGoVersion)
	default:
		return findGo(), nil
	}
}

func tinyGo(path string) toolchain {
	return toolchain{
		name: tinyGoName(path),
		tiny: true,
		command: []string{path, "build", "-target=wasm", "-scheduler=none", "-gc=conservative",
			"-opt=z", "-no-debug", "-buildmode=c-shared"},
	}
}

// findGo returns the toolchain that everybody has. Its core is for development, and is not made
// small at any price. -l forbids inlining, which takes 46 KB (7 %) off its brotli. The codec
// (bridge/wire) is built without -l, and is as fast as before. No commit is stamped into the core,
// so that the file stays the same as long as its source does.
func findGo() toolchain {
	name := "go"
	if out, err := exec.Command("go", "env", "GOVERSION").Output(); err == nil {
		name = strings.TrimSpace(string(out))
	}
	return toolchain{
		name: name,
		command: []string{"go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
			"-gcflags=all=-l", "-gcflags=github.com/pagewire/pagewire/bridge/wire="},
		env: append([]string{"GOOS=js", "GOARCH=wasm"}, experiment("nogreenteagc")...),
	}
}

// experiment returns the environment of a GOEXPERIMENT, or nil if Go no longer has it. nogreenteagc
// selects the collector that Go had up to 1.25: it saves 9 KB of brotli, and its pauses are not
// longer.
func experiment(name string) []string {
	set := "GOEXPERIMENT=" + name
	cmd := exec.Command("go", "env", "GOEXPERIMENT")
	cmd.Env = append(os.Environ(), set)
	if cmd.Run() != nil {
		return nil
	}
	return []string{set}
}

// compile builds a package of root, and removes the module's custom sections, which no engine
// needs. TinyGo keeps the names of functions under all its flags: 12.6 KB of the core, and 2.0 KB
// of its brotli.
func (tc toolchain) compile(root, out, pkg string) error {
	if _, err := tc.build(root, out, pkg); err != nil {
		return err
	}
	module, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	if module, err = strip(module); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return os.WriteFile(out, module, 0o644)
}

// build runs the build command with further flags, and returns its output.
func (tc toolchain) build(root, out, pkg string, flags ...string) ([]byte, error) {
	env := tc.env
	if tc.tiny {
		dir, err := os.MkdirTemp("", "pagewire-safejs-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		patched, err := patchSafejs(root, dir)
		if err != nil {
			return nil, fmt.Errorf("safejs without fmt: %w", err)
		}
		env = append(env, "GOFLAGS="+patched)
	}
	return run(root, env, tc.command[0], slices.Concat(tc.command[1:], flags,
		[]string{"-o", out, pkg})...)
}

// printPackages prints TinyGo's table of the code size of each package in a module. The figures are
// of a build with debug information, whose code is a tenth larger than the code that ships.
func (tc toolchain) printPackages(w io.Writer, root, pkg string) error {
	dir, err := os.MkdirTemp("", "pagewire-size-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	table, err := tc.build(root, filepath.Join(dir, "named.wasm"), pkg, "-no-debug=false",
		"-size=full")
	if err == nil {
		_, err = fmt.Fprintf(w, "\n%s\n%s", pkg, table)
	}
	return err
}

// wasmHeader begins a module's file. Sections follow: an id, which is 0 for custom ones, a length,
// and so many bytes.
var wasmHeader = []byte("\x00asm\x01\x00\x00\x00")

func strip(module []byte) ([]byte, error) {
	errModule := errors.New("not a WebAssembly module, or one that is cut off")
	rest, found := bytes.CutPrefix(module, wasmHeader)
	if !found {
		return nil, errModule
	}
	kept := slices.Clone(wasmHeader)
	for len(rest) > 0 {
		length, n := binary.Uvarint(rest[1:])
		if n <= 0 || length > uint64(len(rest)-1-n) {
			return nil, errModule
		}
		end := 1 + n + int(length)
		if rest[0] != 0 {
			kept = append(kept, rest[:end]...)
		}
		rest = rest[end:]
	}
	return kept, nil
}

// wasmExec returns the path of the module that scripts import as "wasm_exec". It exports one
// function, load(given), which returns the class Go of a program. The program sees the members of
// given in its global object. For TinyGo the module is js/core/tinygo.ts. For Go it is written to
// dist, of the same Go's wasm_exec.js, since the imports of the two are private.
//
// As shipped, that file puts Go, fs, process and path onto the global object, which the program
// sees as js.Global(). Those names belong to the page (an inline `var path` breaks the module, and
// a page's own `process` changes how it behaves). So here every name by which the file reaches the
// global object is a local of load, and the program sees only the names that Go's runtime and that
// file need. Names that the file uses but does not define (console, crypto, performance,
// setTimeout, TextDecoder) still come from the real global.
//
// `fs` needs a line of its own: Go's file defines globalThis.fs and then prints a panic's trace
// through plain fs. Without that line a panic would end in a ReferenceError, and its trace would be
// lost.
//
// Go's collector stops the program for a whole collection. The concurrent collector stops for good
// when the clock jumps by more than a second while it runs, as after a laptop's sleep, since
// nothing in a page starts it again. (Its limiter of processor time is reset by a thread that
// js/wasm does not have.) Memory then grew from 15 to 122 MB.
func (tc toolchain) wasmExec(root, dist string) (string, error) {
	if tc.tiny {
		return filepath.Join(root, "js", "core", "tinygo.ts"), nil
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "lib", "wasm",
		"wasm_exec.js"))
	if err != nil {
		return "", fmt.Errorf("%w: is the installation of Go complete?", err)
	}
	text := `export function load(given) {
const globalThis = { Object, Array, Uint8Array, Error, Date, console, crypto, performance, TextEncoder, TextDecoder, ...given };
const fs = { writeSync: (fd, bytes) => globalThis.fs.writeSync(fd, bytes) };
let process;
` + string(source) + `
return class extends globalThis.Go {
	env = { GODEBUG: "gcstoptheworld=1" };
	exit = (code) => this.ended("the core exited with status " + code);
	run(instance) {
		super.run(instance).then(() => this.ended("the core ended"), (cause) => this.ended("the core ended: " + cause));
	}
};
}
`
	path := filepath.Join(dist, "wasm_exec.mjs")
	return path, errors.Join(os.MkdirAll(dist, 0o755), os.WriteFile(path, []byte(text), 0o644))
}
