package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/skills"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/script"
	"github.com/pagewire/pagewire/demo/reference"
)

const plugin = "../../../js/claude-plugin"

// The plugin of the repository's marketplace and the extension of Gemini CLI equal the output of config --live, with
// the program from PATH. make generate writes them.
func TestReferencePlugin(t *testing.T) {
	p := places{"linux", t.TempDir(), func(string) string { return "" }}
	extension := in(claudeDir, "extension")
	gemini := geminiNotifier
	gemini.hooksFile = in(extension, "hooks", "hooks.json")
	version := npmVersion(t)
	for _, of := range []struct {
		dir      string
		at       func(places) string
		client   string
		notifier notifier
		server   func(places) string
		base     string // the server's file without the server
	}{
		{plugin, claudePlugin, "claude-code", claudeNotifier, claudeNotifier.server, ""},
		{"../../../js/gemini-extension", extension, "gemini-cli", gemini, in(extension, "gemini-extension.json"), jsonText(
			entry{{"name", serverName}, {"version", version}, {"description", "Live state of the web pages that are open"}})},
	} {
		client := clients[slices.IndexFunc(clients, func(c client) bool { return c.name == of.client })]
		parts := append([]part{{file: of.server(p), At: []string{client.key, serverName},
			Value: client.entry("pagewire", []string{"serve"}, "", "")}},
			of.notifier.parts(client.name, p, command{goos: "linux", binary: "pagewire"})...)
		want := map[string]string{filepath.Base(of.server(p)): of.base}
		for _, part := range parts {
			name := testkit.Must(filepath.Rel(of.at(p), part.file))(t)
			text := testkit.Must(part.put([]byte(want[name]), false))(t)
			want[name] = string(text)
		}
		if of.dir == plugin { // the extension has a link to its skills
			for _, name := range skills.Names {
				want[filepath.Join("skills", name, "SKILL.md")] = skills.Text(name)
			}
		}
		checkGenerated(t, of.dir, want)
	}
	var market struct {
		Name    string
		Plugins []struct{ Name, Source, Version string }
	}
	readInto(t, "../../../.claude-plugin/marketplace.json", &market)
	if market.Name != serverName || len(market.Plugins) != 1 || market.Plugins[0].Name != serverName ||
		market.Plugins[0].Version != version || // without a version each commit would be an update
		!strings.HasSuffix(plugin, strings.TrimPrefix(market.Plugins[0].Source, "./")) {
		t.Errorf("the marketplace is %+v, and the version is %s", market, version)
	}
}

// checkGenerated compares the files of a directory with the wanted ones. With -update it writes them.
func checkGenerated(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if *script.Update {
		for name, text := range want {
			path := filepath.Join(dir, name)
			testkit.OK(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
		}
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if string(text) != want[name] {
			t.Errorf("%s/%s is not what config --live writes: run make generate", dir, name)
		}
		delete(want, name)
		return err
	})
	if err != nil || len(want) > 0 {
		t.Errorf("%s lacks %d files (%v): run make generate", dir, len(want), err)
	}
}

func npmVersion(t *testing.T) string {
	t.Helper()
	var npm struct{ Version string }
	readInto(t, "../../../js/package.json", &npm)
	return npm.Version
}

func readInto(t *testing.T, file string, value any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestReference(t *testing.T) { reference.Check(t, "../../../demo/docs/cli.md", commands()) }
