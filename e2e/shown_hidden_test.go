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
	const frame = document.querySelector("iframe[srcdoc]");
	const inner = frame?.contentDocument;
	if (frame && (inner.URL !== "about:srcdoc" || inner.readyState !== "complete")) await new Promise((done) => frame.addEventListener("load", done));`

// A text that no person sees may have been written for agents. It is left out, also when it
// changes, and the agent is told how much was.
func TestShownHiddenText(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	for name, html := range cases(t, "testdata/shown/hidden.txtar", 70) {
		b.shows(html)
		run[any](b.tab, prepare)
		b.holdsNoSecret(name)
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

// What hides a text, or shows it, is told with the next look, whatever writes it.
func TestShownHidesAtOnce(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<style>.faint + p { color: transparent } .tiny + p { font-size: 0 } .away + p { position: fixed; top: -999px } .cut + p { clip-path: inset(100%) }
		.none + p { display: none } .unseen + p { visibility: hidden } .clear + p { opacity: 0 } #c.clear { opacity: 0 }</style><p id=c>Other</p><p id=p>Words</p>`, nil)
	b.watches()
	set := func(name, attribute, value string) string {
		return name + `.setAttribute("` + attribute + `", "` + value + `")`
	}
	var hides []string
	for _, style := range []string{"opacity:0", "opacity: 0", "OPACITY:0", "opacity:.05",
		"opacity: 0.0", "opacity:0%", "opacity:calc(0)", "color:red;opacity:0;top:0",
		"display:none", "display : none", "visibility:hidden", "font-size:0", "font:0 serif",
		"color:transparent", "color:white", "clip-path:circle(0)", "filter:opacity(0)",
		"filter:blur(30px)", "transform:scale(0)", "transform: scale3d(0,0,0)", "scale:0",
		"zoom:.1", "height:0;overflow:hidden", "max-height:0px;overflow:hidden",
		"width:1px;overflow:hidden",
		"margin-left:-9999px;width:100px", "transform:translateX(-9999px)", "text-indent:-9999px",
		"position:fixed;top:-999px", "-webkit-text-fill-color:transparent",
		"mask-image:linear-gradient(transparent,transparent)", "content-visibility:hidden"} {
		hides = append(hides, set("p", "style", style))
	}
	for _, class := range []string{"faint", "tiny", "away", "cut", "none", "unseen", "clear"} {
		hides = append(hides, set("c", "class", class))
	}
	told := func(script string) int {
		defer inWorld[any](b, "await pass(40_000)")
		return b.told(script)
	}
	for _, script := range hides {
		if n := told(script); n != 1 ||
			strings.Contains(inWorld[string](b, "return lines()"), "Words") {
			t.Errorf("%s: told %d times, of\n%s", script, n, inWorld[string](b, "return lines()"))
		}
		if n := told(`p.removeAttribute("style"); c.removeAttribute("class")`); n != 1 {
			t.Errorf("after %s the text was shown again, and told %d times", script, n)
		}
	}
	for _, style := range []string{"opacity:0.5", "opacity:.9", "transform:translateX(12.3456px)",
		"height:50%", "width:300px", "top:99px"} {
		if n := told(set("p", "style", style)); n != 0 {
			t.Errorf("%s: told %d times", style, n)
		}
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
