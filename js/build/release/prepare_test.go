package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/js/build/commands"
)

// root is the root of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// output runs a tool, which must succeed, and returns its standard output.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := testcmd.Command(name, args...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// tool runs a tool and returns its standard output and error.
func tool(dir string, env []string, name string, args ...string) (string, error) {
	cmd := testcmd.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const changelog = "# Changelog\n\nWhat is noticed.\n\n## [0.2.0] - 2026-11-30\n\n* Two.\n\n  More of it.\n\n## [0.1.0] - 2026-10-30\n* One.\n"

func TestWhatIsNotReleased(t *testing.T) {
	tree := t.TempDir()
	t.Chdir(tree)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("CHANGELOG.md", changelog)
	write("js/package.json", `{"version":"0.2.0"}`)
	output(t, tree, "git", "init", "-q")
	output(t, tree, "git", "add", "-A")
	output(t, tree, "git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a")
	for version, want := range map[string]string{
		"":            `VERSION is "", which is no semantic version`,
		"v0.2.0":      "no semantic version",
		"0.2":         "no semantic version",
		"0.02.0":      "no semantic version",
		"0.2.0+build": "no semantic version",
		"0.2.0-":      "no semantic version",
		"0.2.0-rc.01": "no semantic version",
		"0.1.0":       `the newest section of CHANGELOG.md is "[0.2.0] - 2026-11-30": make it "[0.1.0] - DATE"`,
	} {
		if _, err := planned(version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", version, err, want)
		}
	}
	for _, version := range []string{"0.2.0", "0.3.0-rc.1"} {
		if p, err := planned(version); err != nil || len(p.commit) != 40 || p.at == "" ||
			p.notes != "* Two.\n\n  More of it." {
			t.Errorf("%s: %+v, %v", version, p, err)
		}
	}
	for name, text := range map[string]string{"CHANGELOG.md": strings.Replace(changelog, "2026-11-30", "not yet released", 1),
		"js/package.json": `{"version":"0.1.0"}`} {
		was, _ := os.ReadFile(name)
		write(name, text)
		if _, err := planned("0.2.0"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		write(name, string(was))
	}
	write("left-over", "")
	if _, err := planned("0.2.0"); err == nil || !strings.HasSuffix(err.Error(), "first:\n?? left-over") {
		t.Errorf("a tree with something that is not committed: %v", err)
	}
}

func TestLicencesAreHandedOnOnceAndNoneIsMissing(t *testing.T) {
	of := func(name string, files map[string]string) module {
		dir := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return module{"golang", name, "v1.0.0", dir}
	}
	t.Chdir(t.TempDir())
	err := licences("stage", []module{
		of("a", map[string]string{"LICENSE": "terms\r\n", "main.go": "code"}),
		{"generic", "compiler-rt", "19.1.7", ""},
		of("b", map[string]string{"LICENSE.md": "terms\n", "NOTICE": "a notice"}),
	})
	got, readErr := os.ReadFile("dist/stage/THIRD-PARTY-LICENSES.txt")
	text := string(got)
	if err != nil || readErr != nil || strings.Count(text, "terms") != 2 ||
		!strings.Contains(text, "a v1.0.0\nb v1.0.0\n") ||
		!strings.Contains(text, "a notice") || strings.Contains(text, "code") || !strings.Contains(text, "Apache-2.0 WITH LLVM") {
		t.Errorf("got %q, %v", text, err)
	}
	if err := licences("stage", []module{of("c", map[string]string{"main.go": ""})}); err == nil ||
		!strings.Contains(err.Error(), "c v1.0.0 is linked and has no licence file") {
		t.Errorf("without a licence: %v", err)
	}
}

func TestBundledPackagesAreThoseThatAreNotForDevelopmentAlone(t *testing.T) {
	of := func(version string, dev any) any { return map[string]any{"version": version, "dev": dev} }
	all := parts{"scripts": bundled(map[string]any{
		"":                                   of("0.1.0", nil),
		"node_modules/preact":                of("1.0.0", nil),
		"node_modules/@a/b":                  of("2.0.0", nil),
		"node_modules/preact/node_modules/c": of("3.0.0", nil),
		"node_modules/typescript":            of("4.0.0", true),
	})}
	got := ""
	for _, m := range all.modules("scripts") {
		got += m.purl() + " " + m.dir + "\n"
	}
	if want := "pkg:npm/%40a/b@2.0.0 js/node_modules/@a/b\npkg:npm/c@3.0.0 js/node_modules/preact/node_modules/c\n" +
		"pkg:npm/preact@1.0.0 js/node_modules/preact\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// GoReleaser would put the files of a folder beside the others if it strips their parents: the npm
// package had the manual's README.md in place of its own.
func TestArchivesKeepFolders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), ".goreleaser.yaml"))
	stripped := regexp.MustCompile(`src: (dist/[^/\s]+)/\*, strip_parent: true`).FindAllSubmatch(text, -1)
	if err != nil || len(stripped) < 2 {
		t.Fatalf("the recipe strips %q, %v: are the two extensions elsewhere?", stripped, err)
	}
	for _, match := range stripped {
		files, err := os.ReadDir(filepath.Join(root(t), string(match[1])))
		if err != nil || slices.ContainsFunc(files, os.DirEntry.IsDir) {
			t.Errorf("%s has folders, and loses them: %v, %v", match[1], files, err)
		}
	}
}

// The forge understands the workflows. They run actions of others as of one commit: a tag can be moved.
func TestWorkflows(t *testing.T) {
	if out, err := tool(root(t), nil, "go", "tool", "actionlint", "-shellcheck=", "-pyflakes="); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(root(t), ".github/workflows/*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("workflows: %q, %v", files, err)
	}
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	versions := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			_, action, is := strings.Cut(strings.TrimSpace(line), "uses: ")
			if !is {
				continue
			}
			name, version, _ := strings.Cut(action, "@")
			if before := versions[name]; !pinned.MatchString(action) || before != "" && before != version {
				t.Errorf("%s uses %s, and elsewhere %q: name one commit, with its version behind it", file, action, before)
			}
			versions[name] = version
		}
	}
}

// A bundle starts as its host starts it, and server.json keeps the rules of the MCP Registry.
func TestBundles(t *testing.T) {
	tree := root(t)
	built, icon := filepath.Join(tree, "bin/pagewire"), filepath.Join(tree, "js/extension/icon-128.png")
	t.Chdir(t.TempDir())
	link := func(to, name string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(to, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(icon, "js/extension/icon-128.png")
	link(filepath.Join(tree, "LICENSE"), "LICENSE")
	link(filepath.Join(tree, "js/gemini-extension"), "js/gemini-extension")
	link(icon, "dist/stage/programs/THIRD-PARTY-LICENSES.txt")
	for _, p := range commands.Platforms {
		name, program := "pagewire", icon // in place of programs that cannot run here: to compress one takes seconds
		if p.OS == "windows" {
			name += ".exe"
		}
		if p == commands.Host {
			program = built
		}
		link(program, filepath.Join("dist/goreleaser", "pagewire_"+p.OS+"_"+p.Arch+"_v1", "bin", name))
	}
	if err := (plan{version: "0.2.0-rc.1", at: "2026-11-30T10:00:00Z"}).bundles(); err != nil {
		t.Fatal(err)
	}
	checkServerJSON(t, tree)

	extension := t.TempDir()
	unzip(t, "dist/release/win32.pagewire-gemini-0.2.0-rc.1.zip", extension)
	for _, name := range []string{"gemini-extension.json", "hooks/hooks.json", "skills/live-pages/SKILL.md",
		"skills/add-live-state/SKILL.md"} {
		text, err := os.ReadFile(filepath.Join(extension, name))
		want, _ := os.ReadFile(filepath.Join(tree, "js/gemini-extension", name))
		if err != nil || len(text) == 0 || string(text) != string(want) {
			t.Errorf("Gemini CLI's extension has %d bytes of %s: %v", len(text), name, err)
		}
	}
	dir := t.TempDir()
	unzip(t, "dist/release/pagewire-mcp-0.2.0-rc.1-"+runtime.GOOS+"-"+runtime.GOARCH+".mcpb", dir)
	var manifest struct {
		Server struct {
			MCPConfig struct {
				Command string
				Args    []string
			} `json:"mcp_config"`
		}
		UserConfig map[string]struct{ Default any } `json:"user_config"`
	}
	readInto(t, filepath.Join(dir, "manifest.json"), &manifest)
	words := append([]string{manifest.Server.MCPConfig.Command}, manifest.Server.MCPConfig.Args...)
	for i, word := range words {
		word = strings.ReplaceAll(word, "${__dirname}", dir)
		for key, its := range manifest.UserConfig {
			text, _ := json.Marshal(its.Default)
			word = strings.ReplaceAll(word, "${user_config."+key+"}", strings.Trim(string(text), `"`))
		}
		words[i] = word
	}
	cmd := testcmd.Command(words[0], words[1:]...)
	cmd.Env = []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir}
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v: %v", words, err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(tools.Tools, func(tool *mcp.Tool) bool { return tool.Name == "read_page_resource" }) {
		t.Errorf("%v has the tools %v, %v", words, tools, err)
	}
}

// checkServerJSON compares server.json with the bundles and the publisher. TestRelease has the
// schema.
func checkServerJSON(t *testing.T, tree string) {
	t.Helper()
	var is struct {
		Name, Version string
		Packages      []struct {
			RegistryType, Identifier, Version, FileSha256 string
			Transport                                     struct{ Type string }
		}
	}
	readInto(t, "dist/release/server.json", &is)
	if is.Version != "0.2.0-rc.1" || len(is.Packages) != 1+len(commands.Platforms) {
		t.Errorf("server.json is %+v", is)
	}
	for _, p := range is.Packages[1:] {
		text, err := os.ReadFile(filepath.Join("dist/release", filepath.Base(p.Identifier)))
		sum := sha256.Sum256(text)
		if err != nil || p.FileSha256 != hex.EncodeToString(sum[:]) || p.Transport.Type != "stdio" ||
			!strings.HasPrefix(p.Identifier, repository+"/releases/download/v"+is.Version+"/") {
			t.Errorf("%+v is not what was made (%v)", p, err)
		}
	}
	var npm struct{ MCPName string }
	if readInto(t, filepath.Join(tree, "dist/npm/package.json"), &npm); npm.MCPName != is.Name {
		t.Errorf("the npm package proves %q, and server.json says %q", npm.MCPName, is.Name)
	}
}

func readInto(t *testing.T, file string, value any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// unzip unpacks an archive with the modes in it.
func unzip(t *testing.T, archive, to string) {
	t.Helper()
	from, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if err := os.CopyFS(to, from); err != nil {
		t.Fatal(err)
	}
}
