package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/js/build/commands"
)

// candidateOf is the version of the release that the tests make of the tree.
const candidateOf = "7.8.9-rc.1"

// root is the repository's.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// output runs a tool, which must succeed, and returns what it prints on standard output.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// tool runs a tool and returns all that it prints.
func tool(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// commit makes a directory a repository with one commit of all that is in it.
func commit(t *testing.T, dir string) {
	t.Helper()
	output(t, dir, "git", "init", "-q")
	// npm's packages are linked, and a link is no directory, which is all that .gitignore names.
	if err := os.WriteFile(filepath.Join(dir, ".git/info/exclude"), []byte("node_modules\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, dir, "git", "add", "-A")
	output(t, dir, "git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a")
}

// snapshot copies the tree, with what is not committed yet, to a repository of its own, where it is committed.
func snapshot(t *testing.T) string {
	t.Helper()
	from, to := root(t), t.TempDir()
	for name := range strings.SplitSeq(output(t, from, "git", "ls-files", "-co", "--exclude-standard", "-z"), "\x00") {
		text, err := os.ReadFile(filepath.Join(from, name))
		if name == "" || errors.Is(err, os.ErrNotExist) { // removed, and not committed
			continue
		}
		info, statErr := os.Stat(filepath.Join(from, name))
		at := filepath.Join(to, name)
		if err := errors.Join(err, statErr, os.MkdirAll(filepath.Dir(at), 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, text, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(from, "js/node_modules"), filepath.Join(to, "js/node_modules")); err != nil {
		t.Fatal(err)
	}
	commit(t, to)
	return to
}

// A made release: the files that make release wrote, by name.
type made struct {
	dir, version string
}

// file is one of the release's, whose name has a star for the version.
func (m made) file(name string) string {
	return filepath.Join(m.dir, strings.Replace(name, "*", m.version, 1))
}

func (m made) read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(m.file(name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A release of the tree as it is, for this platform; with RELEASE the one that make release has made, which is also
// made once more, elsewhere. What is tested here is what people install.
func TestRelease(t *testing.T) {
	m := made{dir: os.Getenv("RELEASE"), version: candidateOf}
	if m.dir == "" {
		tree := snapshot(t)
		t.Log(output(t, tree, "go", "run", "./js/build/release", "-version", m.version, "-platforms",
			commands.Host.String()))
		if changed := output(t, tree, "git", "status", "--porcelain"); changed != "" {
			t.Errorf("it has changed the tree: %s", changed)
		}
		m.dir = filepath.Join(tree, "dist/release")
	} else {
		var sri struct{ Version string }
		if err := json.Unmarshal(m.read(t, sriFile), &sri); err != nil {
			t.Fatal(err)
		}
		m.version = sri.Version
		t.Run("made again", func(t *testing.T) { m.again(t) })
	}
	if notes := m.read(t, notesFile); !bytes.Contains(notes, []byte("; the core is compiled by ")) {
		t.Errorf("the notes: %s", notes)
	}
	t.Run("parts list", func(t *testing.T) { m.bill(t) })
	t.Run("npm", func(t *testing.T) { m.npm(t) })
	t.Run("npx", func(t *testing.T) { m.npx(t) })
	t.Run("install.sh", func(t *testing.T) { m.install(t) })
	t.Run("stores", func(t *testing.T) { m.stores(t) })
}

// again makes the release of the same commit in another directory: each sum has to be the same.
func (m made) again(t *testing.T) {
	from, to := root(t), filepath.Join(t.TempDir(), "a-clone")
	output(t, from, "git", "clone", "-q", from, to)
	if err := errors.Join(os.WriteFile(filepath.Join(to, ".git/info/exclude"), []byte("node_modules\n"), 0o644),
		os.Symlink(filepath.Join(from, "js/node_modules"), filepath.Join(to, "js/node_modules"))); err != nil {
		t.Fatal(err)
	}
	t.Log(output(t, to, "go", "run", "./js/build/release", "-version", m.version))
	sums, err := os.ReadFile(filepath.Join(to, "dist/release", sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	if first := m.read(t, sumsFile); !bytes.Equal(sums, first) {
		t.Errorf("made twice, it has other sums:\n%s\n%s", first, sums)
	}
}

// bill compares the parts list with the schema of CycloneDX.
func (m made) bill(t *testing.T) {
	const library = "github.com/CycloneDX/cyclonedx-go"
	schemas := strings.TrimSpace(output(t, ".", "go", "list", "-m", "-f", "{{.Dir}}", library))
	load := func(uri *url.URL) (*jsonschema.Schema, error) {
		name := strings.Replace(filepath.Base(uri.Path), "jsf-0.82.schema.json", "jsf-0.82.schemax.json", 1)
		text, err := os.ReadFile(filepath.Join(schemas, "schema", name))
		if err != nil {
			return nil, err
		}
		schema := new(jsonschema.Schema)
		return schema, json.Unmarshal(text, schema)
	}
	schema, err := load(&url.URL{Path: "bom-1.6.schema.json"})
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{Loader: load})
	if err != nil {
		t.Fatal(err)
	}
	var bill map[string]any
	if err := json.Unmarshal(m.read(t, "pagewire-*.cdx.json"), &bill); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(bill); err != nil {
		t.Error(err)
	}
	bill["serialNumber"] = "none"
	if resolved.Validate(bill) == nil {
		t.Error("a parts list with a wrong serial number is taken for right: the test sees nothing")
	}
}

// npm unpacks the package and has npm pack it: it has to hold the same files.
func (m made) npm(t *testing.T) {
	files, err := unpacked("a.tgz", m.read(t, "pagewire-*.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var want, got []string
	for _, f := range files {
		name := strings.TrimPrefix(f.name, "package/")
		want = append(want, name)
		if err := os.WriteFile(filepath.Join(dir, name), f.text, f.mode); err != nil {
			t.Fatal(err)
		}
	}
	var packs []struct{ Files []struct{ Path string } }
	said := output(t, dir, "npm", "pack", "--dry-run", "--json", "--offline")
	if err := json.Unmarshal([]byte(said), &packs); err != nil {
		t.Fatal(err)
	}
	for _, f := range packs[0].Files {
		got = append(got, f.Path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("npm would pack %q, and the package holds %q", got, want)
	}
}

// npx installs the packages without a network, and runs what it has installed.
func (m made) npx(t *testing.T) {
	system, cpu := commands.Host.NPM()
	app := func(packages ...string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
			t.Fatal(err)
		}
		output(t, dir, "npm", append([]string{"install", "--offline", "--no-audit", "--no-fund"}, packages...)...)
		return dir
	}
	here := app(m.file("pagewire-*.tgz"), m.file("pagewire-cli-"+system+"-"+cpu+"-*.tgz"))
	if out := output(t, here, "npx", "--offline", "pagewire", "version"); !strings.HasPrefix(out,
		"pagewire "+m.version+"\n") {
		t.Errorf("npx pagewire version says %q", out)
	}
	out, err := tool(here, nil, "npx", "--offline", "pagewire", "nonsense")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("of a command that there is not npx makes %v: %s", err, out)
	}
	m.told(t, here)

	alone := app("--omit=optional", m.file("pagewire-*.tgz"))
	foreign := "data:text/javascript,Object.defineProperty(process,'arch',{value:'mips'})"
	for want, args := range map[string][]string{
		"without --omit=optional: npm install pagewire\n":                         nil,
		"there is no program for " + system + " on mips\npagewire: build it: go ": {"--import", foreign},
	} {
		out, err := tool(alone, nil, "node", append(args, "node_modules/pagewire/cli.js", "version")...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("without its program it says %q, %v; want %q", out, err, want)
		}
	}
}

// told has the launcher serve an agent on standard input and output, and ends it as a supervisor does.
func (m made) told(t *testing.T, app string) {
	cmd := exec.Command("node", "node_modules/pagewire/cli.js", "serve", "--hub", testkit.Addr(t))
	cmd.Dir = app
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	in, out := testkit.Pipes(t, cmd)
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"a","version":"1"}}}` + "\n"
	if _, err := io.WriteString(in, hello); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, m.version) {
		t.Errorf("it answers %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to end, it ends with %v", err)
	}
}

// stores says which packages have the key: a store gives an extension its own, and refuses one that has another.
func (m made) stores(t *testing.T) {
	for name, keyed := range map[string]bool{"": true, "chrome-": false, "edge-": false, "firefox-": false} {
		files, err := unpacked("a.zip", m.read(t, "pagewire-extension-"+name+"*.zip"))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(files, func(f file) bool { return f.name == "manifest.json" })
		if i < 0 || bytes.Contains(files[i].text, []byte(`"key"`)) != keyed {
			t.Errorf("the manifest of %q has a key, or none: %s", name, files[max(i, 0)].text)
		}
	}
}

// install runs install.sh against a server that has the release's files.
func (m made) install(t *testing.T) {
	var broken atomic.Bool
	files := http.FileServer(http.Dir(m.dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() && strings.HasSuffix(r.URL.Path, ".tar.gz") {
			fmt.Fprint(w, "something else")
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	run := func(env []string, more ...string) (dir, out string, err error) {
		dir = filepath.Join(t.TempDir(), "bin")
		args := append([]string{m.file("install.sh"), "--base-url", server.URL, "--dir", dir}, more...)
		out, err = tool(t.TempDir(), env, "sh", args...)
		return dir, out, err
	}
	installed := func(env ...string) {
		t.Helper()
		dir, out, err := run(env)
		if err != nil || !strings.HasPrefix(out, "pagewire "+m.version+" is in "+dir+"\nwhich is not on PATH") {
			t.Fatalf("it says %q, %v", out, err)
		}
		if its := output(t, dir, filepath.Join(dir, "pagewire"), "version"); !strings.Contains(its, m.version) {
			t.Errorf("it has installed %q", its)
		}
		its := output(t, dir, filepath.Join(dir, "pagewire"), "node", "--version")
		if !strings.Contains(its, m.version) {
			t.Errorf("of pagewire-node it has installed %q", its)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("it leaves %v, %v", entries, err)
		}
	}
	installed()
	installed("PATH=" + withoutCurl(t))
	refused := func(want string, env []string, more ...string) {
		t.Helper()
		dir, out, err := run(env, more...)
		if err == nil || !strings.Contains(out, want) || strings.Contains(out, "is in") {
			t.Errorf("it says %q, %v; want %q", out, err, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "pagewire")); err == nil {
			t.Errorf("%s: it has installed something all the same", want)
		}
	}
	refused("cannot be fetched: is there such a version", nil, "--version", "0.0.9")
	refused("unknown option --force", nil, "--force", "yes")
	refused("no program for SunOS", uname(t, "SunOS", "x86_64"))
	refused("no program for Linux on mips", uname(t, "Linux", "mips"))
	broken.Store(true)
	refused("and should have", nil)
}

// uname is an environment in which the system is another.
func uname(t *testing.T, system, processor string) []string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in -s) echo %s;; -m) echo %s;; esac\n", system, processor)
	if err := os.WriteFile(filepath.Join(dir, "uname"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH")}
}

// withoutCurl is a PATH with what install.sh needs, and wget for curl.
func withoutCurl(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range strings.Fields("sh uname wget sha256sum cut mktemp rm awk tar gzip mkdir cp chmod mv") {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The workflows say what they mean to the forge that runs them.
func TestWorkflows(t *testing.T) {
	if out, err := tool(root(t), nil, "go", "tool", "actionlint", "-shellcheck=", "-pyflakes="); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
