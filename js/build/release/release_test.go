//go:build release

package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/js/build/commands"
)

// A made release: the files that make release wrote, and the integrities in SRI.json.
type made struct {
	dir, version string
	integrity    map[string]string
}

// file is the path of a file of the release. name has a star for the version.
func (m made) file(name string) string {
	return filepath.Join(m.dir, strings.Replace(name, "*", m.version, 1))
}

// The release that make release has made, in RELEASE: the tests run on the files that people
// install.
func TestRelease(t *testing.T) {
	m := made{dir: os.Getenv("RELEASE")}
	var sri struct {
		Version   string
		Integrity map[string]string
	}
	readInto(t, m.file("SRI.json"), &sri)
	m.version, m.integrity = sri.Version, sri.Integrity
	t.Run("made again", func(t *testing.T) { m.again(t) })
	t.Run("archives", func(t *testing.T) { m.archives(t) })
	t.Run("parts list", func(t *testing.T) { m.bill(t) })
	t.Run("registry", func(t *testing.T) { m.registry(t) })
	t.Run("npx", func(t *testing.T) { m.npx(t) })
	t.Run("install.sh", func(t *testing.T) { m.install(t) })
}

// again makes the release of the same commit in another directory: each byte must be the same.
func (m made) again(t *testing.T) {
	from, to := root(t), filepath.Join(t.TempDir(), "a-clone")
	output(t, from, "git", "clone", "-q", from, to)
	if err := errors.Join(os.WriteFile(filepath.Join(to, ".git/info/exclude"), []byte("node_modules\n"), 0o644),
		os.Symlink(filepath.Join(from, "js/node_modules"), filepath.Join(to, "js/node_modules"))); err != nil {
		t.Fatal(err)
	}
	// Without the rule for npm's packages, which would install them again through the link.
	t.Log(output(t, to, "make", "release", "NPM=", "VERSION="+m.version))
	output(t, to, "diff", "-r", m.dir, filepath.Join(to, "dist/release"))
}

// archives looks into each archive for the licences, the stamped version, and a key, which only one
// extension may have. A store gives an extension its own key, and refuses one with another key.
func (m made) archives(t *testing.T) {
	output(t, m.dir, "sha256sum", "--check", "--strict", "SHA256SUMS")
	number, _, _ := strings.Cut(m.version, "-")
	of := map[string]string{
		"pagewire-*.tgz":                   `"version": "` + m.version + `"`,
		"pagewire-extension-*.zip":         `"key"`,
		"pagewire-extension-chrome-*.zip":  `"version": "` + number + `"`,
		"pagewire-extension-edge-*.zip":    `"version": "` + number + `"`,
		"pagewire-extension-firefox-*.zip": `"version": "` + number + `"`,
	}
	for _, p := range commands.Platforms {
		system, cpu := p.NPM()
		of["pagewire-cli-"+system+"-"+cpu+"-*.tgz"] = `"name": "` + p.Package() + `"`
		ending := ".tar.gz"
		if p.OS == "windows" {
			ending = ".zip"
		}
		of["pagewire-*-"+p.OS+"-"+p.Arch+ending] = ""
		of["pagewire-mcp-*-"+p.OS+"-"+p.Arch+".mcpb"] = `"version": "` + m.version + `"`
	}
	for _, cpu := range []string{"amd64", "arm64"} {
		list := output(t, m.dir, "dpkg-deb", "-c", m.file("pagewire-*-linux-"+cpu+".deb"))
		for _, file := range []string{"bin/pagewire", "bin/pagewire-node", "share/doc/pagewire/copyright",
			"share/doc/pagewire/THIRD-PARTY-LICENSES.txt"} {
			if !strings.Contains(list, " ./usr/"+file+"\n") {
				t.Errorf("the Debian package for %s has no %s:\n%s", cpu, file, list)
			}
		}
	}
	for name, want := range of {
		files := m.unpacked(t, name)
		for file, least := range map[string]int{"LICENSE": 500, "THIRD-PARTY-LICENSES.txt": 10_000} {
			if text, err := fs.ReadFile(files, file); err != nil || len(text) < least {
				t.Errorf("%s: %s has %d bytes, %v", name, file, len(text), err)
			}
		}
		manifest := "package.json"
		if strings.Contains(name, "extension") || strings.HasSuffix(name, ".mcpb") {
			manifest = "manifest.json"
		}
		text, _ := fs.ReadFile(files, manifest)
		if !bytes.Contains(text, []byte(want)) || bytes.Contains(text, []byte(`"key"`)) != (want == `"key"`) {
			t.Errorf("%s: %s lacks %s, or has a key: %s", name, manifest, want, text)
		}
	}
	// And two Debian packages, Gemini CLI's three, install.sh, SRI.json, server.json, NOTES.md, SHA256SUMS, the parts list.
	if list, err := os.ReadDir(m.dir); err != nil || len(list) != len(of)+11 {
		t.Errorf("the release has %d files, and %d archives are known: %v", len(list), len(of), err)
	}
}

// unpacked has the files of an archive, without the one directory that holds them.
func (m made) unpacked(t *testing.T, name string) fs.FS {
	t.Helper()
	var files fs.FS
	if !strings.HasSuffix(name, "gz") {
		z, err := zip.OpenReader(m.file(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { z.Close() })
		files = z
	} else {
		dir := t.TempDir()
		output(t, dir, "tar", "-xzf", m.file(name))
		files = os.DirFS(dir)
	}
	if list, err := fs.ReadDir(files, "."); err == nil && len(list) == 1 {
		files, _ = fs.Sub(files, list[0].Name())
	}
	return files
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
	readInto(t, m.file("pagewire-*.cdx.json"), &bill)
	if err := resolved.Validate(bill); err != nil {
		t.Error(err)
	}
	bill["serialNumber"] = "none"
	if resolved.Validate(bill) == nil {
		t.Error("a parts list with a wrong serial number is taken for right: the test sees nothing")
	}
}

// registry compares server.json with the schema in the MCP Registry's own module, and validates a
// manifest with MCP Bundles' own program. Neither is a dependency: go and npx fetch the versions
// that are named here.
func (m made) registry(t *testing.T) {
	var module struct{ Dir string }
	var schema jsonschema.Schema
	var entry map[string]any
	text := output(t, t.TempDir(), "go", "mod", "download", "-json", "github.com/modelcontextprotocol/registry@v1.5.0")
	if err := json.Unmarshal([]byte(text), &module); err != nil {
		t.Fatal(err)
	}
	readInto(t, filepath.Join(module.Dir, "internal/validators/schemas/2025-12-11.json"), &schema)
	readInto(t, m.file("server.json"), &entry)
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(entry); err != nil || entry["$schema"] != schema.ID {
		t.Errorf("server.json is of %v, and the schema %s: %v", entry["$schema"], schema.ID, err)
	}
	entry["description"] = strings.Repeat("a", 101)
	if resolved.Validate(entry) == nil {
		t.Error("a description of 101 characters is taken for right: the test sees nothing")
	}
	dir := t.TempDir()
	unzip(t, m.file("pagewire-mcp-*-"+commands.Host.OS+"-"+commands.Host.Arch+".mcpb"), dir)
	output(t, dir, "npx", "--yes", "@anthropic-ai/mcpb@2.1.2", "validate", "manifest.json")
}

// npx installs the packages without a network, and runs the installed command.
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
	held := output(t, here, "npx", "--offline", "pagewire", "assets", "list")
	for name, want := range m.integrity {
		if !strings.Contains(held, want) {
			t.Errorf("the program holds another %s than that of SRI.json", name)
		}
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

// told lets the launcher serve an agent on standard input and output, and ends it as a supervisor
// does.
func (m made) told(t *testing.T, app string) {
	cmd := testcmd.Command("node", "node_modules/pagewire/cli.js", "serve", "--hub", testkit.Addr(t))
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
	refused("no program for SunOS", uname(t, "SunOS x86_64"))
	refused("no program for Linux mips", uname(t, "Linux mips"))
	for _, name := range []string{"pagewire", "pagewire-node"} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		_, out, err := run(nil, "--dir", dir)
		if err == nil || !strings.Contains(out, name+" is a directory") || strings.Contains(out, "is in") {
			t.Errorf("it says %q, %v", out, err)
		}
		for in, want := range map[string]int{dir: 1, filepath.Join(dir, name): 0} {
			if entries, err := os.ReadDir(in); err != nil || len(entries) != want {
				t.Errorf("it has installed %v in %s, %v", entries, in, err)
			}
		}
	}
	broken.Store(true)
	refused("and should have", nil)
}

// withoutCurl is a PATH with the programs that install.sh needs, but with wget in place of curl.
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
