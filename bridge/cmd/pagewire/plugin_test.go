package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/skills"
)

const plugin = "../../../js/claude-plugin"

// The plugin of the repository's marketplace is what config claude-code --live writes, with the program that is on PATH.
// make generate writes it.
func TestReferencePlugin(t *testing.T) {
	home := t.TempDir()
	p := places{"linux", home, func(string) string { return "" }}
	client := clients[1]
	parts := append([]part{{file: claudeNotifier.server(p), At: []string{client.key, serverName},
		Value: client.entry("pagewire", []string{"serve"}, "", "")}},
		claudeNotifier.parts(client.name, p, command{goos: "linux", binary: "pagewire"})...)
	want := map[string]string{}
	for _, part := range parts {
		name, err := filepath.Rel(claudePlugin(p), part.file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := part.put([]byte(want[name]), false)
		if err != nil {
			t.Fatal(err)
		}
		want[name] = string(text)
	}
	for _, name := range skills.Names {
		want[filepath.Join("skills", name, "SKILL.md")] = skills.Text(name)
	}
	if flag.Lookup("update").Value.String() == "true" {
		for name, text := range want {
			path := filepath.Join(plugin, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := fs.WalkDir(os.DirFS(plugin), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(plugin, name))
		if string(text) != want[name] {
			t.Errorf("%s is not what config --live writes: run make generate", name)
		}
		delete(want, name)
		return err
	})
	if err != nil || len(want) > 0 {
		t.Errorf("%s lacks %d files (%v): run make generate", plugin, len(want), err)
	}
	var market struct {
		Name    string
		Plugins []struct{ Name, Source, Version string }
	}
	var npm struct{ Version string }
	for file, into := range map[string]any{".claude-plugin/marketplace.json": &market, "js/package.json": &npm} {
		text, err := os.ReadFile(filepath.Join("../../..", file))
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if market.Name != serverName || len(market.Plugins) != 1 || market.Plugins[0].Name != serverName ||
		market.Plugins[0].Version != npm.Version || // without a version each commit is an update
		!strings.HasSuffix(plugin, strings.TrimPrefix(market.Plugins[0].Source, "./")) {
		t.Errorf("the marketplace is %+v, and the version is %s", market, npm.Version)
	}
}
