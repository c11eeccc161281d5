package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// standIn is a program that claims to be a version of TinyGo, and records the arguments of its
// build command.
func standIn(version string) string {
	return `#!/bin/sh
case $1 in
version) echo tinygo version ` + version + ` linux/amd64;;
build)
	echo "$@" > "${0%/*}"/built
	while [ "$1" != -o ]; do shift; done
	printf '\0asm\1\0\0\0\0\1n' > "$2"
	;;
esac
`
}

// machine is a machine with these programs, by path below its PATH ("bin/") and its user's cache
// ("cache/").
func machine(t *testing.T, programs map[string]string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the stand-ins are shell scripts, and the cache's place is that of Linux")
	}
	root := write(t, programs)
	for name := range programs {
		if err := os.Chmod(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(root, "cache"))
	path := os.Getenv("PATH")
	if tinygo, err := exec.LookPath("tinygo"); err == nil {
		path = strings.ReplaceAll(path, filepath.Dir(tinygo), "")
	}
	t.Setenv("PATH", filepath.Join(root, "bin")+":"+path)
	return root
}

const installed = "cache/pagewire/tinygo/" + tinyGoVersion + "/bin/tinygo"

func TestTinyGoIsFoundInTheCacheAndOnPath(t *testing.T) {
	for _, c := range []struct {
		programs map[string]string
		want     string
	}{
		{map[string]string{installed: standIn(tinyGoVersion), "bin/tinygo": standIn(tinyGoVersion)}, installed},
		{map[string]string{"bin/tinygo": standIn(tinyGoVersion)}, "bin/tinygo"},
		{map[string]string{"bin/tinygo": standIn("0.39.0")}, ""},
		{map[string]string{"bin/other": ""}, ""},
	} {
		root := machine(t, c.programs)
		got := strings.TrimPrefix(findTinyGo(), root+"/")
		if got != c.want {
			t.Errorf("of %d programs, %q is found, want %q", len(c.programs), got, c.want)
		}
		if _, err := findToolchain("tinygo"); (err == nil) != (c.want != "") || err != nil &&
			!strings.Contains(err.Error(), "make tinygo installs it") {
			t.Errorf("-core=tinygo: %v", err)
		}
	}
}

func TestTinyGoIsNotInstalledTwice(t *testing.T) {
	root := machine(t, map[string]string{installed: standIn(tinyGoVersion)})
	var said strings.Builder
	if err := installTinyGo(&said, ""); err != nil || said.String() != "tinygo: "+filepath.Join(root, installed)+"\n" {
		t.Errorf("it says %q, %v", &said, err)
	}
}

func TestTinyGoCompilesTheCore(t *testing.T) {
	root := machine(t, map[string]string{installed: standIn(tinyGoVersion),
		filepath.Join(filepath.Dir(installed), "wasm-opt"): "#!/bin/sh\necho wasm-opt version 123\n"})
	tc, err := findToolchain("")
	if err != nil {
		t.Fatal(err)
	}
	if want := "tinygo version " + tinyGoVersion + " linux/amd64 wasm-opt version 123"; tc.name != want {
		t.Errorf("the toolchain is called %q, want %q", tc.name, want)
	}
	repository, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(root, "out.wasm")
	if err := tc.compile(repository, out, "./wasm"); err != nil {
		t.Fatal(err)
	}
	built, _ := os.ReadFile(filepath.Join(root, filepath.Dir(installed), "built"))
	if want := "build -target=wasm -scheduler=none -gc=conservative -opt=z -no-debug -buildmode=c-shared -o " + out +
		" ./wasm\n"; string(built) != want {
		t.Errorf("it ran with %q, want %q", built, want)
	}
	if module, err := os.ReadFile(out); err != nil || !bytes.Equal(module, wasmHeader) {
		t.Errorf("%q is left, %v; want no custom section", module, err)
	}
}
