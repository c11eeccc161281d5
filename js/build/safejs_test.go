package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The part of safejs that TinyGo links imports only TinyGo's own syscall/js. Other packages of Go
// would make it large.
func TestSafejsIsCompiledWithoutFmt(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	flags, err := patchSafejs(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"GOOS=js", "GOARCH=wasm", "GOFLAGS=" + flags}
	for _, pkg := range []string{safejs, safejs + "/internal/catch", safejs + "/internal/stackerr"} {
		imports := output(t, root, env, "go", "list", "-tags=tinygo", "-f", "{{join .Imports \" \"}}", pkg)
		for _, name := range strings.Fields(imports) {
			if name != "syscall/js" && !strings.HasPrefix(name, safejs) {
				t.Errorf("%s imports %s", pkg, name)
			}
		}
	}
}

// On a fresh machine no module is there before the core is built.
func TestSafejsIsPatchedWhereNoModuleIsYet(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	output(t, root, nil, "go", "mod", "download", safejs)
	known := strings.TrimSpace(output(t, root, nil, "go", "env", "GOMODCACHE"))
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(filepath.Join(known, "cache", "download")))
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw") // so that the test can remove it
	if _, err := patchSafejs(root, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}
