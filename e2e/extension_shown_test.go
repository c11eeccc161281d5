package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	host "github.com/pagewire/pagewire/bridge/pages/extension"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// popupOf opens the popup, in a tab, for the tab with a title.
func (x *extended) popupOf(title string) *tab {
	x.t.Helper()
	p := x.tab(host.ExtensionOrigin + "/options.html")
	id := run[int](p,
		fmt.Sprintf(`return (await chrome.tabs.query({})).find(({ title }) => title === %q).id`,
			title))
	p.do(chromedp.Navigate(host.ExtensionOrigin + fmt.Sprint("/popup.html?tab=", id)))
	return p
}

// With the extension a person shows agents a page that knows nothing of Pagewire and allows only
// its own scripts. The popup first shows what agents will read, and its size. Until then nothing
// runs in the page for that, and agents see nothing. Agents need no flag. They follow the page to
// the next one of the site, until the person revokes it or stops all.
func TestExtensionShows(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	x := extend(t, h, true)
	ci, inbox, job := serveRun(t)
	uri := ci + "/.pagewire/shown"
	p := x.tab(ci + "/run")
	x.tab(inbox + "/inbox")
	run[any](p, `document.querySelector("main").append(document.createElement("div"));
		document.querySelector("main > div").attachShadow({ mode: "closed" }).textContent = "in a closed tree"`)
	lists := func(want string) {
		t.Helper()
		testkit.Eventually(t, "the agent is told "+want, func() bool {
			said, _ := agent.Call("list_page_resources", nil)
			if strings.Contains(said+h.log(), "Inbox of Ada") {
				t.Fatalf("an agent or the log has the title of a tab that nobody has shown: %s",
					said)
			}
			return strings.Contains(said, want)
		})
	}
	lists("Open tabs that offer you nothing: 2. Only your user can let you read")
	if out, err := h.ls(); err != nil || strings.Contains(out, "Inbox") ||
		!strings.Contains(out, "open tabs that offer agents nothing: 2;") {
		t.Errorf("pagewire ls without a terminal says %s, %v", out, err)
	}
	if out, err := h.lsAtTerminal(); err != nil ||
		!strings.Contains(out, inbox+"/inbox  Inbox of Ada") ||
		!strings.Contains(out, ci+"/run  Run 4821") {
		t.Errorf("pagewire ls says %s, %v", out, err)
	}
	popup := x.popupOf("Run 4821")
	everything := "[aria-label='Everything that " + ci + " shows'] "
	popup.shows(everything + "[data-do=preview]")
	if run[bool](popup,
		fmt.Sprintf("return !!document.querySelector(%q)", everything+"[data-do=once]")) {
		t.Error("it can be granted without a look")
	}
	popup.do(chromedp.Click(everything + "[data-do=preview]"))
	popup.shows(everything + ".preview")
	seen := run[string](popup, `return document.querySelector(".preview").textContent`)
	if said := run[string](popup,
		fmt.Sprintf("return document.querySelector(%q).innerText",
			strings.TrimSpace(everything))); !strings.Contains(said,
		fmt.Sprintf("Agents read this (%d B)", len(seen))) ||
		!strings.Contains(said, "Agents do not see it.") {
		t.Errorf("before it is granted the popup says %s", said)
	}
	if text, err := agent.Read(uri); err == nil || agent.Offers(uri) {
		t.Errorf("what nobody has granted is read: %q", text)
	}

	popup.do(chromedp.Click(everything + "[data-do=once]"))
	popup.shows(everything + "[data-do=revoke]")
	testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(uri) })
	lists("Open tabs that offer you nothing: 1.")
	text, err := agent.Read(uri)
	if text != seen || err != nil {
		t.Errorf("the popup shows %s\nand the agent reads %s, %v", seen, text, err)
	}
	for _, want := range []string{"# Deltas for long texts", "| browser | In progress | 2m 0s |",
		"(secret)", "in a closed tree"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "hunter2") || strings.Contains(text, "ignore all rules") {
		t.Errorf("what nobody sees is in %s", text)
	}
	if agent.Offers(inbox + "/.pagewire/shown") {
		t.Error("another site is shown")
	}
	if names := run[[]string](p,
		`return Object.getOwnPropertyNames(globalThis).filter((name) => /^pagewire./.test(name))`); len(names) > 0 {
		t.Errorf("the page finds %q", names)
	}

	first, _ := agent.Call("read_page_resource", map[string]any{"uri": uri})
	waits := agent.waits(uri, first)
	job.Store("Failed")
	if told := testkit.Receive(t, "the agent is told", waits); !strings.Contains(told,
		"+| browser | Failed | 2m 0s |") ||
		strings.Contains(told, "| types |") {
		t.Errorf("it is told %s", told)
	}
	agent.Watch(uri)
	p.do(chromedp.Navigate(ci + "/other")) // of the same site
	for text := ""; !strings.Contains(text, "private"); text, _ = agent.Read(uri) {
		testkit.Receive(t, "the agent is told of the next document", agent.Updates)
	}
	p.do(chromedp.Navigate(inbox + "/inbox"))
	testkit.Eventually(t, "another site is not shown",
		func() bool { _, err := agent.Read(uri); return err != nil })
	p.do(chromedp.Navigate(ci + "/run"))
	testkit.Eventually(t, "the site is shown again", func() bool {
		text, _ := agent.Read(uri)
		return strings.Contains(text, "| browser | Failed | 2m 0s |")
	})

	popup.do(chromedp.Click("#stop"))
	testkit.Eventually(t, "all is stopped",
		func() bool { _, err := agent.Read(uri); return err != nil && !agent.Offers(uri) })
	popup.do(chromedp.Click("#stop"))
	testkit.Eventually(t, "it is there again", func() bool { return agent.Offers(uri) })
	first, _ = agent.Call("read_page_resource", map[string]any{"uri": uri})
	waits = agent.waits(uri, first)
	testkit.Eventually(t, "it waits", func() bool { return h.waits(1) })
	popup.do(chromedp.Click(everything + "[data-do=revoke]"))
	if told := testkit.Receive(t, "the wait ends", waits); strings.Contains(told, "| browser |") ||
		!strings.Contains(told, "not shown to you any more") {
		t.Errorf("of a site that is revoked the agent is told %s", told)
	}
	testkit.Eventually(t, "it is revoked",
		func() bool { _, err := agent.Read(uri); return err != nil && !agent.Offers(uri) })
}

// A person shares one part of a page, and nothing else of it. They point at it in the page, whose
// scripts get no event and find nothing added. The popup shows what agents will read before
// anything is shared. The part is renamed, and forgotten.
func TestExtensionSharesAPart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	x := extend(t, h, true)
	ci, _, job := serveRun(t)
	uri := ci + "/.pagewire/parts/browser"
	p := x.tab(ci + "/run")
	run[any](p, `globalThis.seen = []; for (const type of ["click", "mousedown", "pointerup", "keydown", "keyup"])
		document.addEventListener(type, () => seen.push(type), true);
		new MutationObserver((records) => { for (const { target } of records) if (target.id !== "job") seen.push(target.nodeName) })
			.observe(document, { subtree: true, childList: true, attributes: true })`)
	popup := x.popupOf("Run 4821")
	section := "[aria-label='Parts of " + ci + "'] "
	point := func() { popup.pointsInPage(section, p, "#job") }
	unmarked := func() {
		testkit.Eventually(t, "it is not marked any more",
			func() bool { return run[string](p, `return getComputedStyle(job).cursor`) == "auto" })
	}
	point()
	p.do(chromedp.KeyEvent(kb.Escape))
	unmarked()
	point()
	p.do(chromedp.Click("#job"))
	unmarked()
	popup.shows(section + ".preview")
	if text := run[string](popup,
		`return document.querySelector("form .preview").textContent`); text != "In progress\n" {
		t.Errorf("before it is shared the popup shows %q", text)
	}
	if seen := run[[]string](p, `return seen`); len(seen) > 0 {
		t.Errorf("the page has seen %q", seen)
	}
	if text, err := agent.Read(uri); err == nil || len(agent.URIs()) > 0 {
		t.Errorf("what is not shared is read: %q", text)
	}
	popup.types("#part", "browser")
	popup.do(chromedp.Click(section + "[data-do=share]"))
	popup.shows(section + "[data-part=browser]")
	agent.Shows(uri)
	agent.Watch(uri)
	agent.CheckText(uri, "In progress\n")
	job.Store("Failed")
	agent.Learns(uri, "Failed\n")
	if text, err := agent.Read(ci + "/.pagewire/shown"); err == nil {
		t.Errorf("all is read: %q", text)
	}
	popup.do(chromedp.Click(section + "[data-part=browser] [data-do=look]"))
	popup.shows(section + "[data-part=browser] .preview")
	options := x.tab(host.ExtensionOrigin + "/options.html")
	options.shows("[data-part=browser]")
	run[any](options,
		`const name = document.querySelector("[data-part=browser] input"); name.value = "firefox"; name.dispatchEvent(new Event("change", { bubbles: true }))`)
	agent.Shows(ci + "/.pagewire/parts/firefox")
	popup.do(chromedp.Click("#stop"))
	agent.Shows()
	popup.do(chromedp.Click("#stop"))
	agent.Shows(ci + "/.pagewire/parts/firefox")
	options.do(chromedp.Click("[data-part=firefox] [data-do=forget]"))
	agent.Shows()
}

// pointsInPage begins to point, in the extension's popup b, and moves the pointer to an element of a
// page.
func (b *tab) pointsInPage(section string, p *tab, selector string) {
	p.t.Helper()
	b.shows(section + "[data-do=pick]")
	b.do(chromedp.Click(section + "[data-do=pick]"))
	_, err := chromedp.Call(p.ctx, cdppage.BringToFront, cdp.Empty{})
	p.must(err)
	testkit.Eventually(p.t, "the part below the pointer is marked", func() bool {
		p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 5, 5))
		p.hover(selector)
		return run[string](p, `return getComputedStyle(document.querySelector("`+selector+`")).cursor`) == "crosshair"
	})
}

func (b *tab) hover(selector string) {
	b.t.Helper()
	at := run[[]float64](b, "const box = document.querySelector('"+selector+
		"').getBoundingClientRect(); return [box.left + 5, box.top + 5]")
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
}

// grant shows agents everything of the site of the tab with a title, as a person does.
func (x *extended) grant(title, origin string) (popup *tab) {
	x.t.Helper()
	popup = x.popupOf(title)
	everything := "[aria-label='Everything that " + origin + " shows'] "
	for _, step := range []string{"preview", "once"} {
		popup.shows(everything + "[data-do=" + step + "]")
		popup.do(chromedp.Click(everything + "[data-do=" + step + "]"))
	}
	popup.shows(everything + "[data-do=revoke]")
	return popup
}

// A tab that an agent's flag names by CDP, and that is granted in the extension, is one resource,
// before and after the grant, a reload and the next document.
func TestExtensionShowsATabOfCDP(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := testkit.Must(filepath.Abs(filepath.Join(dist, "extension")))(t)
	ctx, url := startChromium(t, "--load-extension="+dir, "--disable-extensions-except="+dir)
	x := &extended{t: t, home: h, ctx: ctx}
	testkit.Eventually(t, "the extension is there", func() bool { return x.worker() != "" })
	x.placed(x.attachWorker())
	x.useSocket()
	ci, _, _ := serveRun(t)
	uri := ci + "/.pagewire/shown"
	named, plain := h.serve(t, "--chrome", url, "--shown", ci), h.serve(t)
	p := x.tab(ci + "/run")
	testkit.Eventually(t, "it is listed by CDP", func() bool { return named.Offers(uri) })
	x.grant("Run 4821", ci)
	one := func(when, want string) {
		t.Helper()
		for name, a := range map[string]*started{"named": named, "plain": plain} {
			testkit.Eventually(t, when+" it is listed",
				func() bool { return a.Offers(uri) && len(a.URIs()) == 1 })
			testkit.Eventually(t, when+" it is read",
				func() bool { text, _ := a.Read(uri); return strings.Contains(text, want) })
			if uris := a.URIs(); len(uris) != 1 {
				t.Errorf("%s the agent that is %s lists %q", when, name, uris)
			}
			if said, _ := a.Call("list_page_resources", nil); strings.Contains(said,
				"you nothing") {
				t.Errorf("%s a tab that is shown offers nothing to the agent that is %s: %s", when,
					name, said)
			}
		}
	}
	one("after the grant", "browser")
	p.do(chromedp.Reload())
	one("after a reload", "browser")
	p.do(chromedp.Navigate(ci + "/other"))
	one("in the next document", "private")
}

// The browser ends the extension's worker while an agent waits. The reader in the page has it
// started again, and the agent is told of the next change.
func TestExtensionShowsWithoutItsWorker(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	x := extend(t, h, true)
	ci, _, job := serveRun(t)
	uri := ci + "/.pagewire/shown"
	x.tab(ci + "/run")
	popup := x.grant("Run 4821", ci)
	_ = chromedp.Cancel(popup.ctx) // it would start the worker, too
	testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(uri) })
	agent.Watch(uri)
	testkit.Must(agent.Read(uri))(t) // what is there at the reader's first look is no change
	job.Store("Queued")
	for text := ""; !strings.Contains(text, "Queued"); text, _ = agent.Read(uri) {
		testkit.Receive(t, "the agent is told", agent.Updates) // so the reader runs
	}
	first, _ := agent.Call("read_page_resource", map[string]any{"uri": uri})
	waits := agent.waits(uri, first)
	x.stop(x.worker())
	job.Store("Failed")
	if told := testkit.Receive(t, "the agent is told", waits); !strings.Contains(told,
		"+| browser | Failed | 2m 0s |") {
		t.Errorf("it is told %s", told)
	}
}
