package e2e

import (
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// prepare opens what markup cannot: popovers, dialogs and shadow trees.
const prepare = `
	document.querySelector("#pop")?.showPopover();
	document.querySelector("#modal")?.showModal();
	for (const [id, tree] of [["host", ""], ["slots", "<b><slot></slot></b>"]]) {
		const host = document.getElementById(id);
		if (host) host.attachShadow({ mode: "open" }).innerHTML = tree;
	}
	const frame = document.querySelector("iframe");
	if (frame && !frame.contentDocument.body?.textContent) await new Promise((done) => frame.addEventListener("load", done));`

// A text that no person sees may have been written for agents. It is left out, and the agent is told how much was.
func TestShownHiddenText(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	for name, html := range cases(t, "testdata/shown/hidden.txtar", 70) {
		b.shows(html)
		run[any](b.tab, prepare)
		if text := inWorld[string](b, "return read()"); strings.Contains(text, "SECRET") {
			t.Errorf("%s is shown:\n%s", name, text)
		}
	}
	for name, html := range cases(t, "testdata/shown/seen.txtar", 25) {
		b.shows(html)
		run[any](b.tab, prepare)
		if text := inWorld[string](b, "return read()"); !strings.Contains(text, "SEEN") {
			t.Errorf("%s is not shown:\n%s", name, text)
		}
	}
	if got, want := b.lines(`a<p style="opacity:0">four</p><p style="font-size:0">five5</p>`),
		"a\n(hidden text of 9 characters is left out)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// cases reads a table of at least so many cases: a name, and markup.
func cases(t *testing.T, file string, least int) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range archive.Files {
		all[f.Name] = string(f.Data)
	}
	if len(all) < least || len(all) != len(archive.Files) {
		t.Fatalf("%s has %d cases with %d names", file, len(archive.Files), len(all))
	}
	return all
}
