package main

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// decodeLink is the server that a client finds in an install link.
func decodeLink(t *testing.T, link string) map[string]any {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatalf("%s: %v", link, err)
	}
	var text []byte
	switch {
	case u.Scheme == "https" && u.Query().Has("url"): // for places that drop the schemes of programs
		return decodeLink(t, u.Query().Get("url"))
	case u.Scheme == "vscode" && u.Opaque == "mcp/install":
		var plain string
		plain, err = url.PathUnescape(u.RawQuery)
		text = []byte(plain)
	case strings.HasSuffix(u.Path, "/install") || strings.HasSuffix(u.Path, "/install-mcp"):
		text, err = base64.StdEncoding.DecodeString(u.Query().Get("config"))
	default:
		t.Fatalf("no client knows %s", link)
	}
	server := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &server)
	}
	if err != nil {
		t.Fatalf("%s: %v", link, err)
	}
	if name := u.Query().Get("name"); name != "" {
		server["name"] = name
	}
	return server
}

func TestLinkHoldsTheEntry(t *testing.T) {
	atHome(t)
	self := testkit.Must(os.Executable())(t)
	flags := []string{"--launch", "--open", "https://a.example/?b=+%20&c=ä"}
	for _, c := range clients {
		if !hasLink(c) {
			continue
		}
		_, out, errs := run(append([]string{"config", c.name, "--link", "--"}, flags...)...)
		want := generic(c.entry(self, append([]string{"serve"}, flags...), "", ""))
		want.(map[string]any)["name"] = "pagewire"
		if got := decodeLink(t, strings.TrimSpace(out)); !reflect.DeepEqual(any(got), want) {
			t.Errorf("%s: the link has %v, want %v (%s)", c.name, got, want, errs)
		}
	}
}

// The buttons of the manual add what npx starts.
func TestLinksOfTheManual(t *testing.T) {
	pages := testkit.Must(filepath.Glob("../../../demo/docs/clients/*.md"))(t)
	buttons := map[string]int{}
	for _, page := range append(pages, "../../../demo/docs/install.md") {
		text := testkit.Must(os.ReadFile(page))(t)
		for _, link := range regexp.MustCompile(`\]\((https://(?:cursor\.com/install-mcp|insiders\.vscode\.dev)[^)]*)\)`).
			FindAllSubmatch(text, -1) {
			is := decodeLink(t, string(link[1]))
			delete(is, "type")
			want := map[string]any{"name": "pagewire", "command": "npx", "args": []any{"-y", "pagewire", "serve"}}
			if !reflect.DeepEqual(is, want) {
				t.Errorf("%s: a link adds %v, want %v", page, is, want)
			}
			buttons[filepath.Base(page)]++
		}
	}
	if buttons["cursor.md"] == 0 || buttons["vscode.md"] == 0 || buttons["install.md"] < 2 {
		t.Errorf("buttons are in %v, and not in cursor.md, vscode.md and install.md", buttons)
	}
}
