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

// What a person can scroll to within a part of the page is shown, however far it is scrolled.
func TestShownScrolledAway(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	for name, c := range map[string]struct{ html, script string }{
		"a card above, in an app's own scroller": {`<div id=s style="height:300px;overflow:auto"><div style="position:relative;height:3000px"><p style="position:absolute;top:10px">SEEN</p></div></div>`, `s.scrollTop = 1000`},
		"the beginning of a long conversation":   {`<div id=s style="height:300px;overflow:auto"><p>SEEN</p><p style="margin-top:9000px">last</p></div>`, `s.scrollTop = 9999`},
		"a conversation that begins at its end":  {`<div style="height:300px;overflow:auto;display:flex;flex-direction:column-reverse"><p>last</p><p style="margin-bottom:9000px">SEEN</p></div>`, ``},
		"the left of a wide board":               {`<div id=s style="width:300px;overflow:auto"><div style="width:9000px"><p style="width:200px">SEEN</p></div></div>`, `s.scrollLeft = 8000`},
		"a wide board from right to left":        {`<div dir=rtl style="width:300px;overflow:auto"><div style="width:9000px;direction:ltr"><p style="width:200px">SEEN</p></div></div>`, ``},
	} {
		b.shows(c.html)
		run[any](b.tab, c.script)
		if got := inWorld[string](b, "return lines()"); !strings.Contains(got, "SEEN") || strings.Contains(got, "hidden") {
			t.Errorf("%s: %q", name, got)
		}
	}
	b.shows(`<div id=s style="height:100px;overflow:auto"><p style="position:absolute;top:-500px">SECRET</p><div style="height:9000px"></div></div>`)
	run[any](b.tab, `s.scrollTop = 5000`)
	if got := inWorld[string](b, "return lines()"); strings.Contains(got, "SECRET") {
		t.Errorf("in a part that does not move it: %q", got)
	}
	// Nobody can scroll to these.
	for _, html := range []string{`<div style="height:300px;overflow:auto"><p style="margin-left:-9999px;width:100px">SECRET</p></div>`,
		`<div style="height:300px;overflow:auto;position:relative"><p style="position:absolute;left:-500px;width:400px">SECRET</p></div>`,
		`<div style="height:300px;overflow:auto"><p style="transform:translateY(-9999px)">SECRET</p></div>`} {
		if got := b.lines(html); strings.Contains(got, "SECRET") {
			t.Errorf("%s: %q", html, got)
		}
	}
}

// Text on a ground that a pseudo-element paints, and text that is drawn by its outline or shadow, is seen.
func TestShownPaintedGrounds(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	for name, html := range map[string]string{
		"a hero with a ground by ::before":   `<style>.hero{position:relative;color:#fff;z-index:0}.hero::before{content:"";position:absolute;inset:0;background:#123;z-index:-1}</style><div class=hero><h1>SEEN</h1></div>`,
		"a hero with a picture by ::after":   `<style>.hero{position:relative;color:#fff;z-index:0}.hero::after{content:"";position:absolute;inset:0;background-image:url(data:,);z-index:-1}</style><div class=hero><h1>SEEN</h1></div>`,
		"a button with a ground by ::before": `<style>a.b{position:relative;color:#fff;z-index:0;padding:9px}.b::before{content:"";position:absolute;inset:0;transform:skewX(-9deg);background:#123;z-index:-1}</style><a class=b href=/>SEEN</a>`,
		"an outlined heading":                `<h1 style="color:transparent;-webkit-text-stroke:2px black;font-size:60px">SEEN</h1>`,
	} {
		if got := b.lines(html); !strings.Contains(got, "SEEN") {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, html := range map[string]string{
		"a clear ground by ::before": `<style>.hero{position:relative;color:#fff}.hero::before{content:"";position:absolute;inset:0;background:#fff}</style><div class=hero><h1>SECRET</h1></div>`,
		"no pseudo-element":          `<style>.hero{color:#fff}.hero::before{background:#123}</style><div class=hero><h1>SECRET</h1></div>`,
		"a clear outline":            `<h1 style="color:transparent;-webkit-text-stroke:2px white">SECRET</h1>`,
		"a shadow that is cut off":   `<p style="overflow:hidden;height:20px;color:#fff;text-shadow:0 90px 0 #000">SECRET</p>`,
		"a ground that is away":      `<style>p{color:#fff;position:relative}p::before{content:"";position:absolute;left:-9999px;width:2000px;height:2000px;background:#000}</style><p>SECRET</p>`,
	} {
		if got := b.lines(html); strings.Contains(got, "SECRET") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
