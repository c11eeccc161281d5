package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/parts"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// testReader has the form of dist/pagewire.shown.js, which js/test tests. It marks the document
// when it runs, and with the attribute "hold" a read waits.
const testReader = `(() => {
	const root = document.documentElement;
	root.setAttribute("read", "");
	const text = () => "title: " + document.title + "\n" + document.body.innerText + "\n";
	globalThis.pagewireShown = (document, clock) => {
		let observer;
		return {
			view(changed, part) {
				if (part) {
					let observer;
					const [{ css }] = part.find;
					document.querySelector(css);
					return {
						read: async () => document.querySelector(css)?.innerText,
						watch(on) {
							observer?.disconnect();
							observer = on ? new MutationObserver(changed) : undefined;
							observer?.observe(document.querySelector(css), { childList: true });
							root.setAttribute("part", on + " " + css);
						},
					};
				}
				return {
					async read({ from, links }) {
						root.setAttribute("asked", "");
						while (root.hasAttribute("hold")) await clock.wait(5);
						if (root.hasAttribute("fails")) throw new Error("secret");
						if (root.hasAttribute("large")) return "x".repeat(3e6);
						return text().slice(from) + (links ? "links\n" : "");
					},
					watch(on) {
						root.setAttribute("watched", on);
						if (root.hasAttribute("floods")) for (let i = 0; i < 1000; i++) changed();
						observer?.disconnect();
						observer = on ? new MutationObserver(() => clock.wait(5).then(changed)) : undefined;
						observer?.observe(document.body, { subtree: true, childList: true, characterData: true });
					},
				};
			},
			stop() {
				observer?.disconnect();
				root.setAttribute("watched", "stopped");
			},
		};
	};
})()`

// testPicker has the form of dist/pagewire.pick.js.
const testPicker = `globalThis.pagewirePick = (document, element) =>
	element.id && { path: "/ci", find: [{ css: element.localName + "#" + element.id }], as: "text" };`

func init() {
	pageReader = func() (reader, picker string, err error) { return testReader, testPicker, nil }
}

// foreign are pages that know nothing of Pagewire, under a strict policy.
var foreign = kind{path: strict + "ci", script: `<main><p>Run 4821</p><p id=job>browser: In progress</p></main><a id=pagewireReader></a>`}

func (r *rig) shown() string { return r.at(gateway.ShownPath) }

// named connects an agent whose user has named these origins.
func (r *rig) named(origins ...string) (*agent, *gateway.Agent) {
	r.t.Helper()
	port := testkit.Must(r.g.ConnectWith(gateway.AgentOptions{Transport: "test", Shown: origins}))(r.t)
	return &agent{testkit.Connect(r.t, testkit.Transport(port), testkit.Legacy), r.t}, port
}

// marked waits for an attribute that testReader sets.
func (p *tabbed) marked(name, want string) {
	p.t.Helper()
	testkit.Eventually(p.t, fmt.Sprintf("%s is %q", name, want), func() bool {
		text, err := p.try("document.documentElement.getAttribute('" + name + "')")
		return err == nil && text == want
	})
}

// An agent reads what a foreign page shows, and is told when that changes. Nothing runs in the page
// before, the page sees nothing of it, and after the last watch nothing follows it.
func TestShown(t *testing.T) {
	t.Parallel()
	r := browse(t, foreign)
	r.always = []string{r.site.URL}
	r.attach()
	// For an agent that has a memory the page would be followed after a read, too.
	r.agent.Close()
	testkit.Eventually(t, "no agent is left", func() bool { return r.g.Agents() == 0 })
	port := testkit.Must(r.g.ConnectWith(gateway.AgentOptions{Transport: gateway.TransportRequest, Shown: r.always}))(t)
	a := &agent{testkit.Connect(t, testkit.Transport(port), testkit.Legacy), t}
	p := r.open(r.path + "?token=SECRET#id_token=SECRET")
	a.listed(r.shown())
	for _, page := range r.g.Snapshot().Pages {
		if page.URL != r.at(r.path) {
			t.Errorf("its URL is %s", page.URL)
		}
	}
	if strings.Contains(r.log.String(), "SECRET") {
		t.Errorf("the log is %s", r.log)
	}
	const about = "JSON.stringify([Object.getOwnPropertyNames(globalThis), document.documentElement.outerHTML])"
	before := p.eval(about)
	testkit.Eventually(t, "its title is known", func() bool { return strings.Contains(a.titleOf(r.shown()), "/strict/ci") })
	if got := a.titleOf(r.shown()); !strings.HasPrefix(got, "What the page shows (offered by the user) - ") {
		t.Errorf("its title is %q", got)
	}
	if after := p.eval(about); after != before || strings.Contains(after, "read") {
		t.Errorf("the page was %s, and is %s", before, after)
	}
	text := "title: /strict/ci\nRun 4821\n\nbrowser: In progress\n"
	a.CheckText(r.shown(), text)
	a.CheckText(r.shown()+"?from=7", text[7:])
	a.CheckText(r.shown()+"?from=7&links=1", text[7:]+"links\n")
	p.marked("watched", "null")
	a.Watch(r.shown())
	p.marked("watched", "true")
	p.eval("document.getElementById('job').textContent = 'browser: Failed'")
	a.Updated(r.shown())
	a.CheckText(r.shown(), strings.Replace(text, "In progress", "Failed", 1))
	if names := p.eval("Object.getOwnPropertyNames(globalThis).filter((name) => /pagewire/i.test(name))"); names != "" {
		t.Errorf("the page sees %s", names)
	}
	if err := a.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: r.shown()}); err != nil {
		t.Fatal(err)
	}
	p.marked("watched", "false")
	a.Watch(r.shown())
	p.marked("watched", "true")
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	p.marked("watched", "stopped")
}

func (a *agent) titleOf(uri string) string {
	for found, err := range a.Resources(a.t.Context(), nil) {
		if err == nil && found.URI == uri {
			return found.Title
		}
	}
	return ""
}

// An agent that names no origin, or another one, gets nothing of a page, whatever others get.
// Documents of no origin, and those to which a named one leads, are not shown.
func TestShownToNobodyElse(t *testing.T) {
	t.Parallel()
	r := begin(t, foreign)
	here, _ := r.named(r.site.URL)
	there, _ := r.named(strings.Replace(r.site.URL, "127.0.0.1", "127.0.0.2", 1), "https://*.example")
	p := r.open(r.path)
	here.listed(r.shown())
	here.CheckText(r.shown(), p.eval("'title: ' + document.title + '\\n' + document.body.innerText + '\\n'"))
	for _, other := range []*agent{r.agent, there} {
		if text, err := other.Read(r.shown()); err == nil {
			t.Errorf("another agent reads %q", text)
		}
		if got := other.URIs(); len(got) > 0 {
			t.Errorf("another agent lists %v", got)
		}
	}
	r.site.add(strict+"away", `<meta http-equiv=refresh content="0; url=`+r.site.elsewhere()+strict+`ci">`)
	p.eval("location.href = '/strict/away'")
	here.listed()
	p.eval("document.title")
	for _, url := range []string{"about:blank", "data:text/html,secret", "file:///etc/hostname", "blob:null/1"} {
		p.send(p.session, "Page.navigate", map[string]any{"url": url})
		if text, err := here.Read(r.shown()); err == nil {
			t.Errorf("at %s an agent reads %q", url, text)
		}
	}
	r.site.add("/sandboxed", `<iframe sandbox src=`+r.path+`></iframe><iframe src="data:text/html,secret"></iframe>`)
	p.visit("/sandboxed")
	here.listed(r.shown())
	for _, page := range r.g.Snapshot().Pages {
		if page.Shown && page.Frame != "" {
			t.Errorf("a frame without an origin is shown: %+v", page)
		}
	}
}

// What is open already is shown as soon as an agent names it, before its first list is answered.
func TestShownAfterwards(t *testing.T) {
	t.Parallel()
	r := begin(t, foreign)
	p := r.open(r.path)
	p.begun(r)
	r.listed()
	testkit.Eventually(t, "the browser has told all", func() bool { return r.g.Snapshot().Counts.Passed != nil })
	a, port := r.named(r.site.URL)
	a.listed(r.shown())
	a.Watch(r.shown())
	p.marked("watched", "true")
	port.Close()
	p.marked("watched", "stopped")
	again, _ := r.named(r.site.URL)
	again.listed(r.shown())
	again.Watch(r.shown())
	p.eval("document.getElementById('job').textContent = 'again'")
	again.Updated(r.shown())
}

// A subscription and a read that waits outlive navigations within the origin, a crash, and the way
// back.
func TestShownDocumentIsLeft(t *testing.T) {
	t.Parallel()
	r := begin(t, foreign)
	a, _ := r.named(r.site.URL)
	r.site.add(strict+"ci2", "<p>the second")
	p := r.open(r.path)
	a.listed(r.shown())
	a.Watch(r.shown())
	read := make(chan string, 1)
	p.eval("document.documentElement.setAttribute('hold', ''), onpageshow = () => " +
		"document.documentElement.removeAttribute('hold')")
	go func() { read <- a.Text(r.shown()) }()
	p.marked("asked", "")
	p.visit(r.path + "2")
	if got := testkit.Receive(t, "the next document answers", read); got != "title: /strict/ci2\nthe second\n" {
		t.Errorf("read %q", got)
	}
	a.Updated(r.shown())
	p.marked("watched", "true")
	p.eval("document.querySelector('p').textContent = 'changed'")
	a.Updated(r.shown())
	p.eval("history.back()")
	a.Updated(r.shown())
	a.Reads(r.shown(), "title: /strict/ci\nRun 4821\n\nbrowser: In progress\n")
	p.marked("watched", "true")
	p.eval("document.getElementById('job').textContent = 'changed'")
	a.Updated(r.shown())
	p.link.post(target.SessionID(p.session), "Page.crash", nil, nil) // not answered while it has crashed
	a.until("it has gone", func() bool { return len(a.URIs()) == 0 })
	p.reload()
	a.Updated(r.shown())
	a.Reads(r.shown(), "title: /strict/ci\nRun 4821\n\nbrowser: In progress\n")
}

// A frame of the page's own origin is read in place. One of another origin has a source of its own,
// if that is named.
func TestShownFrames(t *testing.T) {
	t.Parallel()
	r := begin(t, foreign)
	r.site.add("/frames", `<iframe src=`+r.path+`></iframe><iframe src=about:blank></iframe><iframe src=`+
		r.site.elsewhere()+r.path+`></iframe>`)
	a, _ := r.named(r.site.URL, r.site.elsewhere())
	r.open("/frames")
	other := r.site.elsewhere() + gateway.ShownPath
	a.listed(r.shown(), other)
	a.CheckText(other, "title: /strict/ci\nRun 4821\n\nbrowser: In progress\n")
	if n := len(slices.DeleteFunc(r.g.Snapshot().Pages, func(p gateway.PageState) bool { return !p.Shown })); n != 2 {
		t.Errorf("%d documents have a source", n)
	}
}

// Where the page has Pagewire and offers something, what it shows is not listed, and can be read.
// Its own word does not reach the reader, nor the source.
func TestShownBesidePagewire(t *testing.T) {
	t.Parallel()
	kinds(t, shownBesidePagewire)
}

func shownBesidePagewire(t *testing.T, k kind) {
	r := begin(t, k)
	a, _ := r.named(r.site.URL)
	p := r.open(r.path)
	a.listed(r.uri)
	p.eval("globalThis.pagewireShown = globalThis.pagewireReader = () => { throw 1 }")
	for _, path := range []string{"/.pagewire/shown", "/.pagewire/parts/a", "/.pagewire/{a}"} {
		if got := p.eval("(() => { try { navigator.modelContext.registerResource({ uri: origin + '" + path +
			"', name: 'x', read: () => 'of the page' }); } catch (e) { return e.name } })()"); got == "undefined" {
			t.Errorf("the page registers %s", path)
		}
	}
	if text := a.Text(r.shown()); !strings.HasPrefix(text, "title: "+r.path+"\n") {
		t.Errorf("read %q", text)
	}
	a.Watch(r.shown())
	p.eval("document.body.append('more')")
	a.Updated(r.shown())
	p.eval("navigator.modelContext.unregisterResource(uri)")
	a.listed(r.shown())
	// A reader that fails says nothing of why.
	p.eval("document.documentElement.setAttribute('fails', '')")
	if text, err := a.Read(r.shown()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("read %q, %v", text, err)
	}
	p.eval("document.documentElement.removeAttribute('fails')")
	p.eval("document.documentElement.setAttribute('large', '')")
	if text, err := a.Read(r.shown()); err == nil {
		t.Errorf("read %d bytes", len(text))
	}
	// One that tells without end is not heard any more, and the page is.
	p.eval("document.documentElement.setAttribute('floods', ''), offer()")
	a.listed(r.uri)
	if err := a.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: r.shown()}); err != nil {
		t.Fatal(err)
	}
	again, _ := r.named(r.site.URL)
	_ = again.Subscribe(t.Context(), &mcp.SubscribeParams{URI: r.shown() + "?from=1"}) // it may be gone by now
	testkit.Eventually(t, "it is not shown any more", func() bool {
		_, err := a.Read(r.shown())
		return strings.Contains(r.log.String(), "it tells too much") && err != nil
	})
	a.CheckText(r.uri, r.path+" 0")
}

// Two gateways of one browser read the same page, each in a world of its own.
func TestShownByTwoGateways(t *testing.T) {
	t.Parallel()
	r := begin(t, foreign)
	first, _ := r.named(r.site.URL)
	p := r.open(r.path)
	first.listed(r.shown())
	first.Watch(r.shown())
	stop := r.stop
	r.attach()
	second, _ := r.named(r.site.URL)
	second.listed(r.shown())
	second.Watch(r.shown())
	p.eval("document.getElementById('job').textContent = 'changed'")
	first.Updated(r.shown())
	second.Updated(r.shown())
	if err := stop(); err != nil {
		t.Error(err)
	}
	p.eval("document.getElementById('job').textContent = 'again'")
	second.Updated(r.shown())
}

// The user's rules make parts of a page resources of their own, on the pages that they are about, and only for agents
// that get what the page shows. A part that is not in the page is gone.
func TestShownParts(t *testing.T) {
	t.Parallel()
	r := begin(t, foreign)
	rule := func(css, as string) parts.Rule {
		return parts.Rule{Path: "/strict/ci", Find: []parts.Anchor{{CSS: css}}, As: as}
	}
	connect := func(rules map[string]parts.Rule) (*agent, *gateway.Agent) {
		port := testkit.Must(r.g.ConnectWith(gateway.AgentOptions{Transport: "test", Shown: []string{r.site.URL},
			Parts: parts.Rules{r.site.URL: rules}}))(t)
		return &agent{testkit.Connect(t, testkit.Transport(port), testkit.Legacy), t}, port
	}
	place := parts.Rule{Path: "/strict/*", Find: []parts.Anchor{{Place: "main"}}}
	a, port := connect(map[string]parts.Rule{"job": rule("#job", ""), "rows": rule("main", "table"), "gone": rule("h1", ""),
		"bad": rule("#", ""), "else": {Path: "/else", Find: []parts.Anchor{{CSS: "p"}}}, "placed": place})
	uri := func(name string) string { return r.at(gateway.PartsPath + name) }
	p := r.open(r.path)
	a.listed(uri("bad"), uri("gone"), uri("job"), uri("placed"), uri("rows"), r.shown())
	for found, err := range a.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if found.URI == uri("job") && !strings.HasPrefix(found.Title, "A part of the page (offered by the user): job - ") {
			t.Errorf("its title is %q", found.Title)
		}
		if want := map[bool]string{true: "application/json", false: "text/markdown"}[found.URI == uri("rows")]; found.MIMEType != want {
			t.Errorf("%s is %s", found.URI, found.MIMEType)
		}
		if is := strings.Contains(found.Description, "by its place alone"); is != (found.URI == uri("placed")) {
			t.Errorf("%s: %s", found.URI, found.Description)
		}
	}
	a.CheckText(uri("job"), "browser: In progress")
	for name, want := range map[string]string{"gone": "the page does not show the part gone now",
		"bad": "a selector of its rule is none"} {
		if text, err := a.Read(uri(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s reads as %q, %v", name, text, err)
		}
	}
	if text, err := r.agent.Read(uri("job")); err == nil {
		t.Errorf("another agent reads %q", text)
	}
	// Only the part that has changed is told of.
	a.Watch(r.shown())
	p.marked("watched", "true")
	a.Watch(uri("job"))
	p.marked("part", "true #job")
	p.eval("document.getElementById('job').textContent = 'browser: Failed'")
	updated := map[string]bool{}
	for !updated[uri("job")] || !updated[r.shown()] {
		updated[testkit.Receive(t, "the agent is told", a.Updates)] = true
	}
	a.CheckText(uri("job"), "browser: Failed")
	// A part of another address is withdrawn, though the document is the same.
	p.eval("history.pushState(0, '', '/strict/other')")
	a.listed(uri("placed"), r.shown())
	p.eval("history.pushState(0, '', '/strict/ci')")
	a.listed(uri("bad"), uri("gone"), uri("job"), uri("placed"), uri("rows"), r.shown())
	// The agent that came first decides what a name means.
	b, _ := connect(map[string]parts.Rule{"job": rule("main", "")})
	b.CheckText(uri("job"), "browser: Failed")
	port.Close()
	b.listed(uri("job"), r.shown())
	b.CheckText(uri("job"), p.eval("document.querySelector('main').innerText"))
}

// Each part may tell its changes. Many parts are not cut off for what one alone may not tell.
func TestShownManyParts(t *testing.T) {
	t.Parallel()
	r := begin(t, foreign)
	rules, uris := map[string]parts.Rule{}, []string{}
	for i := range 40 {
		name := fmt.Sprint("part", i)
		rules[name] = parts.Rule{Find: []parts.Anchor{{CSS: "#job"}}}
		uris = append(uris, r.at(gateway.PartsPath+name))
	}
	port := testkit.Must(r.g.ConnectWith(gateway.AgentOptions{Transport: "test", Shown: []string{r.site.URL},
		Parts: parts.Rules{r.site.URL: rules}}))(t)
	a := &agent{testkit.Connect(t, testkit.Transport(port), testkit.Legacy), t}
	p := r.open(r.path)
	a.listed(append(uris, r.shown())...)
	for _, uri := range uris {
		a.Watch(uri)
	}
	p.eval(`(async () => {
		for (let i = 0; i < 20; i++) {
			document.getElementById("job").textContent = "attempt " + i;
			await 0; // the observers are told of each
		}
		document.documentElement.setAttribute("told", "");
	})()`)
	p.marked("told", "")
	for range 2 { // the reader answers after all that it has told
		a.CheckText(uris[0], "attempt 19")
	}
	p.eval("document.getElementById('job').textContent = 'browser: Failed'")
	a.CheckText(uris[39], "browser: Failed")
}

// A person points at a part in the browser, and gets the rule by which it is found, and what agents would read of it.
func TestPick(t *testing.T) {
	t.Parallel()
	r := browse(t, foreign)
	r.picks = &Picks{}
	if _, err := r.picks.Pick(t.Context()); !errors.Is(err, errNoBrowser) {
		t.Errorf("without a browser: %v", err)
	}
	r.always = []string{r.site.URL}
	r.attach()
	a, _ := r.named(r.site.URL)
	p := r.open(r.path)
	a.listed(r.shown())
	// pickIn points at the middle of an element of a tab, which is open once the person points, until it is picked.
	pickIn := func(open func() *tabbed, selector string) (picked Picked, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			picked, err = r.picks.Pick(ctx)
		}()
		testkit.Eventually(t, "it waits", func() bool { return r.picks.now() != nil })
		p := open()
		testkit.Eventually(t, "something is picked", func() bool {
			var at struct{ X, Y float64 }
			box := p.eval("(() => { const b = document.querySelector('" + selector + "').getBoundingClientRect(); " +
				"return JSON.stringify({ X: b.left + 5, Y: b.top + b.height / 2 }) })()")
			if err := json.Unmarshal([]byte(box), &at); err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
				p.send(p.session, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y,
					"button": "left", "clickCount": 1})
			}
			select {
			case <-ended:
				return true
			default:
				return false
			}
		})
		return picked, err
	}
	pick := func(p *tabbed, selector string) (Picked, error) {
		return pickIn(func() *tabbed { return p }, selector)
	}
	want := Picked{Origin: r.site.URL, Rule: parts.Rule{Path: "/ci", Find: []parts.Anchor{{CSS: "p#job"}}, As: "text"},
		Text: "browser: In progress"}
	if got, err := pick(p, "#job"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("picked %+v, %v; want %+v", got, err, want)
	}
	anew := func() *tabbed {
		p := r.tab(r.user.openLink(r.site.URL + r.path))
		p.toFront()
		return p
	}
	if got, err := pickIn(anew, "#job"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("in a tab that is opened meanwhile %+v is picked, %v; want %+v", got, err, want)
	}
	p.toFront()
	if got, err := pick(p, "main"); !errors.Is(err, errNotFound) {
		t.Errorf("of what no rule finds %+v is picked, %v", got, err)
	}
	other := r.tab(r.user.openLink(r.site.elsewhere() + strict + "ci"))
	other.toFront()
	if got, err := pick(other, "#job"); !errors.Is(err, errNotShown) {
		t.Errorf("of a page that is not shown %+v is picked, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, err := r.picks.Pick(ctx)
		waits <- err
	}()
	testkit.Eventually(t, "it waits", func() bool { return r.picks.now() != nil })
	if _, err := r.picks.Pick(ctx); !errors.Is(err, errPicking) {
		t.Errorf("a second pick: %v", err)
	}
	cancel()
	if err := testkit.Receive(t, "it ends", waits); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
