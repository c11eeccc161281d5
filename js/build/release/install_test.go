//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// release serves a release of two programs with the text "new", and returns its URL and an
// install.sh for it.
func release(t *testing.T) (url, script string) {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	for _, name := range []string{"pagewire", "pagewire-node"} {
		testkit.OK(t, files.WriteHeader(&tar.Header{Name: "pagewire-1.0.0-linux-amd64/" + name, Mode: 0o755, Size: 3}))
		_, err := files.Write([]byte("new"))
		testkit.OK(t, err)
	}
	testkit.OK(t, files.Close())
	testkit.OK(t, zipped.Close())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/SHA256SUMS") {
			fmt.Fprintf(w, "%x  pagewire-1.0.0-linux-amd64.tar.gz\n", sha256.Sum256(archive.Bytes()))
			return
		}
		w.Write(archive.Bytes())
	}))
	t.Cleanup(server.Close)
	text, err := os.ReadFile("install.sh")
	testkit.OK(t, err)
	script = filepath.Join(t.TempDir(), "install.sh")
	testkit.OK(t, os.WriteFile(script, bytes.ReplaceAll(text, []byte("@VERSION@"), []byte("1.0.0")), 0o755))
	return server.URL, script
}

// state has a line for each entry of a directory: its name, and its text or the target of a link.
func state(t *testing.T, dir string) (lines string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.OK(t, err)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		text, err := os.Readlink(path)
		if err != nil {
			read, _ := os.ReadFile(path) // a directory has none
			text = string(read)
		}
		lines += e.Name() + "=" + text + "\n"
	}
	return lines
}

// Whichever step of install.sh fails, or is interrupted, the directory is as it was before.
func TestInstallsAllOrNothing(t *testing.T) {
	url, script := release(t)
	for before, programs := range map[string]map[string]string{"both": {"pagewire": "old", "pagewire-node": "old"},
		"one": {"pagewire-node": "old"}} {
		for _, how := range []string{"exit 1", "kill -INT 0; exit 1", `"$real" "$@"; kill -TERM 0; exit 0`} {
			for _, tool := range []string{"mktemp", "mkdir", "cp", "chmod", "ln", "mv"} {
				real, err := exec.LookPath(tool)
				testkit.OK(t, err)
				for failing, failed := 1, true; failed; failing++ {
					dir, fakes := t.TempDir(), t.TempDir()
					for name, text := range programs {
						testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
					}
					was := state(t, dir)
					fake := fmt.Sprintf("#!/bin/sh\nreal=%s\necho x >>%s/calls\nif [ $(wc -l <%[2]s/calls) = %d ]; then %s; fi\n"+
						"exec \"$real\" \"$@\"\n", real, fakes, failing, how)
					testkit.OK(t, os.WriteFile(filepath.Join(fakes, tool), []byte(fake), 0o755))
					testkit.OK(t, os.WriteFile(filepath.Join(fakes, "uname"), []byte("#!/bin/sh\necho Linux x86_64\n"), 0o755))
					run := testcmd.Command("sh", script, "--base-url", url, "--dir", dir)
					run.Env = append(os.Environ(), "PATH="+fakes+":"+os.Getenv("PATH"), "TMPDIR="+t.TempDir())
					run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal reaches all of them, as from a terminal
					out, err := run.CombinedOutput()
					failed = err != nil
					want := "pagewire=new\npagewire-node=new\n"
					if failed {
						want = was
					}
					if got := state(t, dir); got != want {
						t.Errorf("with %s before, call %d of %s ends with %q, %v: %q is there, want %q\n%s", before, failing, tool,
							how, err, got, want, out)
					}
					if _, err := os.Stat(filepath.Join(fakes, "calls")); err != nil {
						t.Errorf("%s is not called", tool)
					}
				}
			}
		}
	}
}

// A directory that other users may write to can have links with names that they guess. They lead
// install.sh nowhere.
func TestInstallFollowsNoLink(t *testing.T) {
	url, script := release(t)
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	testkit.OK(t, os.WriteFile(outside, []byte("precious"), 0o644))
	for _, name := range []string{".pagewire.new", ".pagewire-node.new", "pagewire", "pagewire-node", "old"} {
		testkit.OK(t, os.Symlink(outside, filepath.Join(dir, name)))
	}
	run := testcmd.Command("sh", script, "--base-url", url, "--dir", dir)
	fakes := uname(t, "Linux x86_64")
	run.Env = append(os.Environ(), fakes...)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "precious" {
		t.Errorf("the link is written through: %q, %v", text, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "pagewire")); err != nil || string(got) != "new" {
		t.Errorf("it has installed %q, %v", got, err)
	}
}

// uname is an environment in which uname prints system.
func uname(t *testing.T, system string) []string {
	t.Helper()
	dir := t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "uname"), []byte("#!/bin/sh\necho "+system+"\n"), 0o755))
	return []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH")}
}
