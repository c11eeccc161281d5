package cdp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/chromedp/cdproto/target"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestListReadSubscribeUpdated(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, k kind) {
		r := begin(t, k)
		p := r.openListed()
		r.CheckText(r.uri, r.path+" 0")
		r.Watch(r.uri)
		r.bump(p)
		r.CheckText(r.uri, r.path+" 1")
		p.eval("navigator.modelContext.unregisterResource(uri)")
		r.listed()
		if got := p.eval("performance.getEntriesByType('resource').filter(({ name }) => /wasm|worker/.test(name)).length"); got != "0" {
			t.Errorf("the page fetched %s files of a core that it does not need", got)
		}
	})
}

// An entry names the browser and the window.
func TestWindowOfATab(t *testing.T) {
	t.Parallel()
	r := begin(t, tagged)
	r.openListed()
	for found, err := range r.Resources(t.Context(), nil) {
		if err != nil || !strings.Contains(found.Title, "(tab 1 in window 1 of headless Chrome") {
			t.Errorf("its title is %q, %v", found.Title, err)
		}
	}
}

// The first look at a browser is over once all that its open pages offer is known, and not later: pages that offer
// nothing, that connect by themselves or that could not be loaded are known too.
func TestFirstLook(t *testing.T) {
	t.Parallel()
	const tool = `<script>document.modelContext.registerTool({ name: "say", description: "Says.", execute: () => "hello" })</script>`
	r := browse(t, tagged)
	r.address = "127.0.0.1:7433"
	for path, document := range map[string]string{
		"/tools": tool, "/empty": `<script src="/pagewire.js"></script>`,
		"/frames":  "<iframe src=" + r.path + "></iframe><iframe allow=tools src=" + r.site.elsewhere() + "/tools></iframe>",
		"/by-self": `<script data-gateway="ws://127.0.0.1:7433" src="/pagewire.js"></script>`,
	} {
		r.site.add(path, document)
	}
	for _, path := range []string{r.path, "/bare", "/tools", "/empty", "/frames", "/by-self"} {
		r.open(path)
	}
	id := r.user.openLink("http://127.0.0.1:1/")
	failed := &tabbed{r.user, r.site, id, r.user.attachTo(id)}
	testkit.Eventually(t, "a page could not be loaded", func() bool {
		text, err := failed.try("location.protocol")
		return err == nil && text == "chrome-error:"
	})
	const want = 2 + 2*2 // resources, and names of tools
	known := make(chan int, 2)
	r.looked = func() {
		s := r.g.Snapshot()
		known <- len(s.Resources) + len(s.Tools)
	}
	r.attach()
	if n := testkit.Receive(t, "the first look is over", known); n != want {
		t.Errorf("then %d resources and names of tools are known, want %d", n, want)
	}
	late := r.open(r.path + "2")
	testkit.Eventually(t, "a later page is there", func() bool { return len(r.g.Snapshot().Resources) == 3 })
	late.close()
	if len(known) > 0 {
		t.Error("there is a second first look")
	}
}

// A page that loads during the first look is waited for.
func TestFirstLookAtAPageThatLoads(t *testing.T) {
	t.Parallel()
	r := browse(t, tagged)
	goesOn := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { <-goesOn }))
	t.Cleanup(slow.Close)
	r.site.add("/slow", `<script src="`+slow.URL+`"></script>`+tag)
	id := r.user.openLink(r.at("/slow"))
	p := &tabbed{r.user, r.site, id, r.user.attachTo(id)}
	testkit.Eventually(t, "the document is there", func() bool {
		text, err := p.try("location.pathname")
		return err == nil && text == "/slow"
	})
	known := make(chan int, 1)
	r.looked = func() { known <- len(r.g.Snapshot().Resources) }
	r.attach()
	p.begun(r)
	select {
	case n := <-known:
		t.Errorf("the look is over with %d resources, and the page still loads", n)
	default:
	}
	close(goesOn)
	if n := testkit.Receive(t, "the first look is over", known); n != 1 {
		t.Errorf("there are %d resources", n)
	}
}

// A page is listed as soon as its scripts have run, and not only when the rest of the document is there.
func TestPageThatLoadsForLong(t *testing.T) {
	t.Parallel()
	r := begin(t, tagged)
	goesOn := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-map[string]chan struct{}{"/first": goesOn}[q.URL.Path]: // the rest never comes
		case <-q.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(slow.CloseClientConnections)
	wait := func(path string) string { return `<script src="` + slow.URL + path + `"></script>` }
	r.site.add("/long", wait("/first")+tag+wait("/rest"))
	id := r.user.openLink(r.at("/long"))
	(&tabbed{r.user, r.site, id, r.user.attachTo(id)}).begun(r)
	close(goesOn)
	r.listed(r.uri)
}

func TestSameURIInTwoTabsFollowsFocus(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, k kind) {
		r := begin(t, k)
		one := r.openWatched()
		two := r.open(r.path + "2")
		r.listed(r.at("/.pagewire/tab/1/state"), r.uri)
		r.Updated(r.uri) // of another owner
		r.CheckText(r.uri, r.path+"2 0")
		one.toFront()
		r.Updated(r.uri)
		r.listed(r.at("/.pagewire/tab/2/state"), r.uri)
		r.CheckText(r.uri, r.path+" 0")
		r.CheckText(r.at("/.pagewire/tab/2/state"), r.path+"2 0")
		two.eval("bump()")
		r.Silent()
		one.close()
		r.Updated(r.uri)
		r.listed(r.uri)
		r.CheckText(r.uri, r.path+"2 1")
	})
}

func TestFrames(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, k kind) {
		r := begin(t, k)
		part := func(name string) string { return "<script>part = '-" + name + "'</script>" + r.script }
		r.site.add("/top", part("top")+"<iframe src=/near></iframe>"+
			"<iframe allow=tools src="+r.site.elsewhere()+"/far></iframe>"+
			"<iframe sandbox='allow-scripts' src=/opaque></iframe>"+
			"<iframe srcdoc='"+strings.ReplaceAll(part("srcdoc"), "'", "&quot;")+"'></iframe>")
		for _, name := range []string{"near", "far", "opaque"} {
			r.site.add("/"+name, part(name))
		}
		p := r.open("/top")
		top, near, srcdoc := r.at("/state-top"), r.at("/state-near"), r.at("/state-srcdoc")
		far := r.site.elsewhere() + "/state-far"
		r.listed(top, near, far, srcdoc)
		for uri, want := range map[string]string{top: "/top 0", near: "/near 0", far: "/far 0"} {
			r.CheckText(uri, want)
		}
		for _, page := range r.g.Snapshot().Pages {
			if page.Tab != r.g.Snapshot().Pages[0].Tab || page.Number != 1 {
				t.Errorf("the frame %s is in tab %d, %s", page.URL, page.Number, page.Tab)
			}
			if page.Origin == "null" || strings.HasSuffix(page.URL, "/opaque") {
				t.Errorf("attached %+v", page.PageInfo)
			}
		}
		r.Watch(near)
		p.eval("frames[0].bump()")
		r.Updated(near)
		// A frame that goes takes its resources with it, when it has had time to come back.
		p.eval("document.querySelector('iframe').remove()")
		r.listed(top, far, srcdoc)
		p.eval("document.querySelector('iframe').remove()")
		r.listed(top, srcdoc)
	})
}

func TestReloadAndNavigationKeepTheSubscription(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, k kind) {
		r := begin(t, k)
		p := r.openWatched()
		r.bump(p)
		steps := []struct {
			name string
			do   func()
			want string
		}{
			{"reload", p.reload, r.path + " 0"},
			{"navigation", func() { p.visit(r.path + "2") }, r.path + "2 0"},
			{"history", func() { r.bump(p); p.eval("void history.back()") }, r.path + " 1"},
			// the state that it was left with
			{"and forward", func() { p.eval("void history.forward()") }, r.path + "2 2"},
		}
		for _, step := range steps {
			step.do()
			r.Updated(r.uri)
			t.Log("after", step.name)
			r.CheckText(r.uri, step.want)
			r.bump(p)
		}
		if s := r.g.Snapshot(); s.Resources[0].Tab != 1 {
			t.Errorf("the tab has another number: %+v", s.Resources)
		}
		// Away to a page without resources: the subscription stays, and gets an update when the page is back.
		p.visit("/bare")
		r.listed()
		p.visit(r.path)
		r.Updated(r.uri)
	})
}

func TestCrashOfATab(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, k kind) {
		r := begin(t, k)
		p := r.openWatched()
		p.link.post(target.SessionID(p.session), "Page.crash", nil, nil) // not answered while it has crashed
		r.until("its resources have gone", func() bool { return len(r.URIs()) == 0 })
		if _, err := r.ReadResource(r.Context(), &mcp.ReadResourceParams{URI: r.uri}); err == nil {
			t.Error("a tab that has crashed was read")
		}
		p.reload()
		r.Updated(r.uri)
		r.CheckText(r.uri, r.path+" 0")
		if number := r.g.Snapshot().Resources[0].Tab; number != 1 {
			t.Errorf("it is tab %d now", number)
		}
	})
}

func TestBrowserThatIsKilled(t *testing.T) {
	t.Parallel()
	r := begin(t, tagged)
	r.openListed()
	r.kill()
	r.listed()
	if err := r.stop(); err == nil || !strings.Contains(err.Error(), r.browser.URL) {
		t.Errorf("Run returned %v", err)
	}
}

// Run leaves no goroutine behind. The test is not parallel, because it would also wait for other tests' goroutines.
func TestRunLeavesNothing(t *testing.T) {
	kinds(t, func(t *testing.T, k kind) {
		r := begin(t, k)
		r.openListed()
		if err := r.stop(); err != nil {
			t.Errorf("Run returned %v", err)
		}
		testkit.Eventually(t, "no goroutine of this package and the gateway's is left", func() bool {
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			for _, stack := range strings.Split(string(stacks), "\n\n") {
				if (strings.Contains(stack, "cdp.(*attachment)") || strings.Contains(stack, "cdp.Run") ||
					strings.Contains(stack, "gateway.(*session)")) && !strings.Contains(stack, "testing.tRunner") {
					return false
				}
			}
			return true
		})
	})
}

func TestNoBrowser(t *testing.T) {
	t.Parallel()
	g := gateway.New(gateway.Options{})
	defer g.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for url, want := range map[string]string{
		"9222":                "is not the URL of a browser",
		"ftp://127.0.0.1/":    "must begin with",
		"http://127.0.0.1:1/": "--remote-debugging-port",
		other.URL:             "is no browser",
		"ws" + strings.TrimPrefix(other.URL, "http") + "/devtools/browser/x": "connect to the browser",
	} {
		if err := Run(t.Context(), g, Options{URL: url}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", url, err, want)
		}
	}
}

// A gateway that is killed says nothing, and the page cannot see it: the next one replaces its sessions.
func TestGatewayThatWasKilled(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, k kind) {
		r := begin(t, k)
		p := r.openListed()
		// A killed gateway leaves a binding without a listener.
		p.eval("(pagewire.configure({ gateway: () => {} }), bump(), 0)")
		r.stop()
		r.attach()
		r.listed(r.uri)
		r.Watch(r.uri)
		r.bump(p)
		if got := p.eval("pagewire.stats().watched"); got != "1" {
			t.Errorf("%s URIs are watched at the page", got)
		}
	})
}

// A user may have two gateways at a browser.
func TestGatewaysOfTwoAddresses(t *testing.T) {
	t.Parallel()
	r := begin(t, tagged)
	p := r.openWatched()
	other := *r
	other.address = "127.0.0.1:2"
	other.attach()
	other.listed(r.uri)
	other.Watch(r.uri)
	p.eval("bump()")
	r.Updated(r.uri)
	other.Updated(r.uri)
	other.stop()
	r.bump(p)
}

// An agent that is served alone may attach to the browser after the daemon, and goes when it has noticed the daemon.
func TestLaterGatewayOfTheSameAddress(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, k kind) {
		r := begin(t, k)
		p := r.openWatched()
		later := *r
		later.attach()
		later.listed(r.uri)
		later.stop()
		p.eval("bump()")
		r.Learns(r.uri, r.path+" 1")
		r.bump(p)
	})
}

// A gateway is at every page of the browser, and a page that has no Pagewire cannot tell.
func TestPageFindsNoGateway(t *testing.T) {
	t.Parallel()
	r := browse(t, tagged)
	id := r.user.openLink(r.at("/bare"))
	p := &tabbed{r.user, r.site, id, r.user.attachTo(id)}
	p.loaded()
	const sees = `[globalThis, document, ...[Window, Document, Node, EventTarget, Navigator].map((c) => c.prototype)]
		.flatMap((owner) => Reflect.ownKeys(owner).map(String)).join() + document.documentElement.outerHTML`
	before := p.eval(sees)
	r.attach()
	p.begun(r)
	if now := p.eval(sees); now != before {
		t.Errorf("a page that was open sees\n%s\nand before the gateway\n%s", now, before)
	}
	p.reload()
	p.begun(r)
	p.loaded()
	if now := p.eval(sees); now != before {
		t.Errorf("a page that is loaded sees\n%s\nand before the gateway\n%s", now, before)
	}
}

// Elements whose names are those of the document's members hide these from scripts. They hide no page.
func TestPageWhoseElementsHaveNamesOfMembers(t *testing.T) {
	t.Parallel()
	r := browse(t, tagged)
	elements := ""
	for _, name := range strings.Fields("addEventListener dispatchEvent hasFocus head readyState removeEventListener title visibilityState") {
		elements += "<img name=" + name + "><form name=" + name + "></form>"
	}
	r.site.add("/named", elements+tag)
	id := r.user.openLink(r.at("/named"))
	p := &tabbed{r.user, r.site, id, r.user.attachTo(id)}
	testkit.Eventually(t, "the page is loaded", func() bool {
		text, err := p.try("performance.timing.loadEventEnd > 0 && !!globalThis.pagewire")
		return err == nil && text == "true"
	})
	r.attach()
	r.listed(r.uri)
	r.stop()
	r.attach()
	r.listed(r.uri)
	r.Watch(r.uri)
	r.bump(p)
}

// The gateway attaches to a launched browser again at any moment of its work before.
func TestNextGatewayOnTheSamePipe(t *testing.T) {
	t.Parallel()
	r, kill := piped(t, tagged)
	r.attach()
	p := r.openWatched()
	for n := range 3 {
		kill() // nothing is said to the page
		if err := r.stop(); err != nil && !strings.Contains(err.Error(), "is gone") {
			t.Fatal(err)
		}
		p.eval("bump()") // no gateway gets this
		r.attach()
		r.listed(r.uri)
		r.CheckText(r.uri, r.path+" "+strconv.Itoa(2*n+1))
		r.Watch(r.uri)
		r.bump(p)
		if got := p.eval("pagewire.stats().watched"); got != "1" {
			t.Errorf("%s URIs are watched at the page", got)
		}
	}
	// The scripts that dead gateways set for new documents do not run as well.
	p.reload()
	p.loaded()
	r.listed(r.uri)
	r.Updated(r.uri)
	r.bump(p)
}

// A tab that a link opens waits for the page layer, even if the gateway is busy.
func TestTabWaitsForABusyGateway(t *testing.T) {
	t.Parallel()
	r := browse(t, injected)
	other := r.open("/bare")
	slow, busy, free := busyDial(func(ctx context.Context) (Conn, error) {
		return reach(ctx, Options{URL: r.browser.URL})
	})
	r.dial = slow
	r.attach()
	t.Cleanup(free)
	testkit.Receive(t, "the gateway is busy", busy)
	r.user.openLink(r.at(r.path))
	for range 3 { // by then a tab that does not wait has been loaded, too
		other.visit("/bare")
	}
	free()
	r.listed(r.uri)
}

// busyDial returns connections that send no page layer until free is called. They write to busy before they send it.
func busyDial(dial func(ctx context.Context) (Conn, error)) (
	slow func(ctx context.Context) (Conn, error), busy chan struct{}, free func()) {
	busy, goOn := make(chan struct{}, 10), make(chan struct{})
	slow = func(ctx context.Context) (Conn, error) {
		conn, err := dial(ctx)
		return busyConn{conn, busy, goOn}, err
	}
	return slow, busy, sync.OnceFunc(func() { close(goOn) })
}

type busyConn struct {
	Conn
	busy, goOn chan struct{}
}

func (c busyConn) Write(message []byte) error {
	if bytes.Contains(message, []byte("Page.addScriptToEvaluateOnNewDocument")) {
		c.busy <- struct{}{}
		<-c.goOn
	}
	return c.Conn.Write(message)
}

// If a gateway dies, the next one lets its waiting tab go on, with the page layer.
func TestTabThatWaitsForADeadGateway(t *testing.T) {
	t.Parallel()
	r, kill := piped(t, injected)
	next := r.dial
	slow, busy, free := busyDial(next)
	r.dial = slow
	r.attach()
	t.Cleanup(free)
	testkit.Receive(t, "the gateway is busy", busy)
	id := r.user.openLink(r.at("/bare"))
	kill()
	free()
	r.stop()
	r.dial = next
	r.attach()
	p := r.tab(id)
	testkit.Eventually(t, "it has the page layer", func() bool {
		return p.eval("typeof navigator.modelContext?.registerResource") == "function"
	})
	p.eval("navigator.modelContext.registerResource({ uri: origin + '/state', name: 'state', read: () => '' })")
	r.listed(r.at("/state"))
}

func TestInjectedBesideAScriptTag(t *testing.T) {
	t.Parallel()
	r := begin(t, kind{inject: true, path: "/page", script: tag})
	p := r.openWatched()
	r.CheckText(r.uri, "/page 0")
	r.bump(p)
	if got := p.eval("performance.getEntriesByName(origin + '/pagewire.wasm').length"); got != "0" {
		t.Error("the page fetched a core that it does not need")
	}
}

// The page layer comes late to tabs that are open already: a script that looks again finds it.
func TestLateInjection(t *testing.T) {
	t.Parallel()
	r := browse(t, injected)
	r.site.add("/plain", noTag)
	r.site.add("/tagged", "<script>part = '-tagged'</script>"+tag)
	plain := r.open("/plain")
	r.open("/tagged")
	r.attach()
	r.listed(r.at("/state-tagged"))
	plain.eval("offer()")
	r.listed(r.uri, r.at("/state-tagged"))
	r.CheckText(r.uri, "/plain 0")
}

// An agent in the page is told that the page needs Pagewire of its own.
func TestAgentInAnInjectedPage(t *testing.T) {
	t.Parallel()
	r := begin(t, injected)
	p := r.openListed()
	if got := p.eval("await new Promise((done) => (pagewire.connect().onerror = (e) => done(e.message)))"); !strings.Contains(
		got, "the page has no Pagewire of its own") {
		t.Errorf("it is told %q", got)
	}
}

func TestContentsOfAllSizes(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, k kind) {
		r := begin(t, k)
		p := r.openListed()
		for _, text := range []string{`""`, `'"\\\u2028\ud834\udd1e'`, `'"x'.repeat(2_000_000)`,
			`'é'.repeat(3_000_000)`} {
			p.eval("(document.title = " + text + ", 0)")
			want := p.eval("document.title.length + ' ' + document.title.slice(-20)")
			got := strings.TrimSuffix(r.Text(r.uri), " 0")
			p.eval("(document.title = 'other', 0)")
			if have := fmt.Sprint(len(utf16.Encode([]rune(got)))) + " " + last(got, 20); have != want {
				t.Errorf("%s: read %.60q, want %.60q", text, have, want)
			}
		}
		p.eval("(document.title = 'x'.repeat(17_000_000), 0)") // more than a page's engine lets through
		if _, err := r.ReadResource(r.Context(), &mcp.ReadResourceParams{URI: r.uri}); err == nil ||
			!strings.Contains(err.Error(), "the limit is 16777216") {
			t.Errorf("17 MB: %v", err)
		}
		p.eval("(document.title = 'x', 0)")
		r.CheckText(r.uri, "x 0")
	})
}

// last returns the last n UTF-16 units.
func last(s string, n int) string {
	units := utf16.Encode([]rune(s))
	return string(utf16.Decode(units[max(0, len(units)-n):]))
}

// A page's flood harms only that page.
func TestFloodIsCutOff(t *testing.T) {
	t.Parallel()
	for name, flood := range map[string]string{
		"frames": "for (let i = 0; i < 200_000; i++) post('[]')",
		"calls": "for (let i = 0; i < 400; i++) post(JSON.stringify(Array(1000).fill(['touch', origin + " +
			"'/state', 1])))",
		"one message": "post('x'.repeat(20 << 20))",
		"no JSON":     "post('[[')",
	} {
		t.Run(name, func(t *testing.T) {
			// A page that pretends to be Pagewire, and sends anything.
			fake := `<script>globalThis.pagewire = { configure: ({ gateway: post }) => { post('[["hello",1,"0",{}]]'); setTimeout(() => { ` + flood + ` }, 100) } }</script>`
			r := begin(t, tagged)
			r.site.add("/flood", fake)
			r.openListed()
			r.open("/flood")
			testkit.Eventually(t, "the page is cut off", func() bool {
				return r.log.Has("cut off") && r.log.Has("/flood")
			})
			testkit.Eventually(t, "it is counted", func() bool {
				ended := r.g.Snapshot().Ended
				return len(ended) == 1 && (name != "one message" || ended[tooLong] == 1)
			})
			r.CheckText(r.uri, "/page 0") // the other page's
		})
	}
}

// The browser leaves out a schema that has a letter outside ASCII. It comes from the document then, also after a change.
// A tool that is left out is named on the console of its page, which has no Pagewire.
func TestNativeSchemasOutsideASCII(t *testing.T) {
	t.Parallel()
	r := begin(t, tagged)
	r.site.add("/words", `<script>
		const said = [];
		console.error = (text) => said.push(text);
		let end = new AbortController();
		const offer = (name, word) => document.modelContext.registerTool({ name, description: "d", execute: () => "",
			inputSchema: { type: "object", properties: { [word]: { type: "string", description: word } } } }, { signal: end.signal });
		offer("search", "Wörter"); offer("plain", "words");
		document.modelContext.registerTool({ name: "odd", description: "d", execute: () => "",
			inputSchema: { type: "object", properties: { q: "string" } } });
	</script>`)
	p := r.open("/words")
	schema := func(name string) string {
		for tool, err := range r.Tools(r.Context(), nil) {
			if err == nil && tool.Name == name {
				text, _ := json.Marshal(tool.InputSchema)
				return string(text)
			}
		}
		return ""
	}
	r.until("both have their parameters", func() bool {
		return strings.Contains(schema("search"), "Wörter") && strings.Contains(schema("plain"), "words")
	})
	p.eval(`end.abort(), end = new AbortController(), offer("search", "Größe"), 0`)
	r.until("the new parameters are known", func() bool { return strings.Contains(schema("search"), "Größe") })
	r.until("the page is told", func() bool {
		return strings.Contains(fmt.Sprint(p.eval("said.join()")), "the tool odd is left out: inputSchema.properties.q")
	})
	if got := schema("odd"); got != "" {
		t.Errorf("odd has %s", got)
	}
}

func TestNativeTools(t *testing.T) {
	t.Parallel()
	tools := `<script>
		document.modelContext.registerTool({ name: "add", description: "Adds.", inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
			annotations: { readOnlyHint: true }, execute: ({ a, b }) => ({ sum: a + b }) });
		document.modelContext.registerTool({ name: "say", description: "Says.", execute: () => "hello" });
		document.modelContext.registerTool({ name: "fail", description: "Fails.", execute: () => { throw new Error("no") } });
		document.modelContext.registerTool({ name: "mcp", description: "Gives MCP's own.", execute: () => ({ content: [{ type: "text", text: "own" }], isError: true }) });
		document.modelContext.registerTool({ name: "hang", description: "Hangs.", execute: ({ n }, { signal }) => new Promise(() => { document.title = "runs " + n; signal.onabort = () => document.title = "aborted" }) });
	</script>`
	r := begin(t, tagged)
	r.site.add("/tools", tools)
	r.site.add("/tools2", tools)
	r.site.add("/both", tag+tools)
	p := r.open("/tools")
	ours := len([]string{"list_page_resources", "page_changes", "read_page_resource", "wait_for_page_update"})
	counted := func(n int) { // of the page's tools
		t.Helper()
		r.until(fmt.Sprintf("%d tools of the page are listed", n), func() bool { return len(r.ToolNames()) == ours+n })
	}
	gives := func(name string, args any, want string, wantError bool) {
		t.Helper()
		if got, isError := r.Call(name, args); got != want || isError != wantError {
			t.Errorf("%s: %s gives %q, %v", p.eval("location.pathname"), name, got, isError)
		}
	}
	answers := func() {
		t.Helper()
		gives("add", map[string]int{"a": 1, "b": 2}, `{"sum":3}`, false)
		gives("say", nil, "hello", false)
		gives("mcp", nil, "own", true)
	}
	hung := 0 // a call that began, and that nobody waited for, does not run again at once
	hang := func() (cancel func(), ended <-chan struct{}) {
		t.Helper()
		hung++
		params := &mcp.CallToolParams{Name: "hang", Arguments: map[string]int{"n": hung}}
		ctx, cancel := context.WithCancel(r.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.CallTool(ctx, params)
		}()
		// A call that is cancelled before it begins never runs, so there would be nothing to abort.
		runs := fmt.Sprint("runs ", hung)
		testkit.Eventually(t, "call "+runs, func() bool { return p.eval("document.title") == runs })
		return cancel, done
	}
	aborted := func() {
		t.Helper()
		testkit.Eventually(t, "the tool is aborted", func() bool { return p.eval("document.title") == "aborted" })
	}
	counted(5)
	answers()
	if got, isError := r.Call("fail", nil); !isError {
		t.Errorf("fail gives %q, no error", got)
	}
	// The page aborts a call that the agent cancels.
	cancel, ended := hang()
	cancel()
	testkit.Ends(t, "the cancelled call", ended)
	aborted()

	// A call whose page goes ends.
	_, ended = hang()
	p.visit("/tools2")
	testkit.Ends(t, "the call of a page that has gone", ended)
	counted(5)
	says := func() bool {
		result, err := r.CallTool(r.Context(), &mcp.CallToolParams{Name: "say"})
		return err == nil && result.Content[0].(*mcp.TextContent).Text == "hello"
	}
	testkit.Eventually(t, "the next page's tool is called", says)
	p.eval("void history.back()")
	testkit.Eventually(t, "it is back", func() bool { return p.eval("location.pathname") == "/tools" })
	testkit.Eventually(t, "its tool is called again", says)
	p.visit("/bare")
	counted(0)

	// With Pagewire they come over its link, once, without our tools for agents in pages.
	p.visit("/both")
	r.until("the page's tools are listed", func() bool { return len(r.ToolNames()) >= ours+5 })
	names := r.ToolNames()
	if len(names) != ours+5 || slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "resources_")
	}) {
		t.Errorf("listed %v", names)
	}
	if pages := r.g.Snapshot().Pages; len(pages) != 1 {
		t.Errorf("attached %+v", pages)
	}
	answers()
	gives("fail", nil, "The tool failed.", true) // not the page's words: it does not expose its errors
	// Calls run in parallel, and a cancellation ends only its own.
	cancel, first := hang()
	_, second := hang()
	gives("say", nil, "hello", false)
	cancel()
	testkit.Ends(t, "the cancelled call", first)
	aborted()
	if calls := r.g.Snapshot().Stats.Calls; calls != 1 {
		t.Errorf("%d calls are left, want the other one", calls)
	}
	// The page goes, and each waiting agent gets an error.
	p.visit("/bare")
	testkit.Ends(t, "the call of a page that has gone", second)
	counted(0)
}

// The tools of a page with Pagewire run in its own model context: a tool that Chromium 156 runs for CDP returns "[]",
// or an error, as soon as any frame has been loaded.
func TestToolThatOpensAFrame(t *testing.T) {
	t.Parallel()
	tools := `<script>document.modelContext.registerTool({ name: "open", description: "Opens a frame.", execute: () => new Promise((done) => {
		const frame = document.createElement("iframe");
		frame.src = "/bare";
		frame.onload = () => setTimeout(() => done("opened"), 300);
		document.body.append(frame);
	}) })</script>`
	r := begin(t, kind{path: "/page", script: tag + tools})
	r.open(r.path)
	r.until("the page's tool is listed", func() bool { return slices.Contains(r.ToolNames(), "open") })
	if got, isError := r.Call("open", nil); got != "opened" || isError {
		t.Errorf("open gives %q, %v", got, isError)
	}
}

// A search leads from one document to another, and the agent gets the second one's text: by a script that changes the
// location or submits a form, and by a form that is a tool itself.
func TestSearchForm(t *testing.T) {
	const form = `<form action="/results" toolname="search" tooldescription="Searches." toolautosubmit>
		<input name="q" toolparamdescription="Words"></form>`
	script := func(leads string) string {
		return `<script type="module">
			pagewire.configure({ navigatingTools: ["search"] });
			document.modelContext.registerTool({ name: "search", description: "Searches.", execute: ({ q }) => { ` +
			leads + `; return "searching"; } });
		</script>`
	}
	const slow = "a script that changes the location, and a slow site"
	for name, c := range map[string]struct {
		page, results string
		says          []string
	}{
		"a script that changes the location": {tag + script("location.href = '/results?q=' + q"), tag,
			[]string{`{"@type":"ItemList"}`, "/state"}},
		slow: {tag + script("location.href = '/slow?q=' + q"), tag,
			[]string{"searching", `{"@type":"ItemList"}`, "/state"}},
		"a script that submits a form": {tag + `<form action="/results"><input name="q"></form>` +
			script("document.forms[0].q.value = q; document.forms[0].requestSubmit()"), tag,
			[]string{`{"@type":"ItemList"}`, "/state"}},
		"a form whose results have a long answer": {tag + form, tag + `<script type="application/ld+json">"` +
			strings.Repeat("x", 16_384) + `"</script>`, []string{"/state"}},
		"a form": {tag + form, tag, []string{`{"@type":"ItemList"}`, "/state"}},
		// Without Pagewire the browser itself returns the JSON-LD.
		"a form without Pagewire":            {form, "", []string{"/results?q=cup"}},
		"a script that leads to a bare page": {tag + script("location.href = '/results?q=' + q"), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, tagged)
			r.site.add("/search", c.page)
			r.site.add("/results", c.results+`<script type="application/ld+json">{"@type":"ItemList"}</script>`)
			// /slow answers after the agent has got progress: its call waits for the next document.
			waits, files := make(chan string, 9), r.site.Config.Handler
			r.site.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if request.URL.Path == "/slow" {
					testkit.Receive(t, "progress", waits)
					http.Redirect(w, request, "/results?"+request.URL.RawQuery, http.StatusSeeOther)
					return
				}
				files.ServeHTTP(w, request)
			})
			port := testkit.Must(r.g.Connect("test"))(t)
			a := &agent{testkit.Connect(t, testkit.Transport(port), testkit.Legacy, func(p *mcp.ProgressNotificationParams) {
				waits <- p.Message
			}), t}
			r.open("/search")
			a.until("the tool is listed", func() bool { return slices.Contains(a.ToolNames(), "search") })
			params := &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"q": "cup"}}
			params.SetProgressToken("p")
			result, err := a.CallTool(a.Context(), params)
			if err != nil || result.IsError {
				t.Fatalf("the call ends with %v, %v", result, err)
			}
			var text strings.Builder
			for _, part := range result.Content {
				text.WriteString(part.(*mcp.TextContent).Text + "\n")
			}
			if strings.Contains(text.String(), "xxx") {
				t.Error("an answer above the limit is given")
			}
			for _, want := range append(c.says, `"/results", `+r.at("/results?q=cup")) {
				if !strings.Contains(text.String(), want) {
					t.Errorf("it says %q, without %q", text.String(), want)
				}
			}
		})
	}
}

func TestToolsOfAnInjectedPage(t *testing.T) {
	t.Parallel()
	tools := `<script>document.modelContext.registerTool({ name: "say", description: "Says.", execute: () => "hello" })</script>`
	r := begin(t, kind{inject: true, path: "/tools", script: tools})
	r.open(r.path)
	r.until("the page's tool is listed", func() bool { return slices.Contains(r.ToolNames(), "say") })
	if got, isError := r.Call("say", nil); got != "hello" || isError {
		t.Errorf("say gives %q, %v", got, isError)
	}
}

func TestTitleFollowsThePage(t *testing.T) {
	t.Parallel()
	r := begin(t, tagged)
	p := r.openListed()
	p.eval("(document.title = 'Renamed', 0)")
	testkit.Eventually(t, "the page has its new title", func() bool {
		return r.g.Snapshot().Pages[0].Title == "Renamed"
	})
}

// The injected page layer begins before a slow page has a head. An element may have the name of the title.
func TestTitleOfASlowPage(t *testing.T) {
	t.Parallel()
	r := begin(t, injected)
	rest := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		fmt.Fprint(w, "<!doctype html>")
		w.(http.Flusher).Flush()
		select {
		case <-rest:
		case <-q.Context().Done():
		}
		fmt.Fprint(w, "<title>Invoice 17</title><link rel=icon href=data:,><form name=title></form><script>"+app+"</script>")
	}))
	t.Cleanup(slow.Close)
	id := r.user.openLink(slow.URL + "/")
	p := &tabbed{r.user, r.site, id, r.user.attachTo(id)}
	p.begun(r)
	close(rest)
	r.listed(slow.URL + "/state")
	has := func(title string) {
		t.Helper()
		testkit.Eventually(t, title, func() bool { return r.g.Snapshot().Pages[0].Title == title })
	}
	has("Invoice 17")
	p.eval("document.querySelector('title').textContent = 'Invoice 18'")
	has("Invoice 18")
}

// A page that writes its document anew keeps its context, and loses all listeners.
func TestDocumentThatIsWritten(t *testing.T) {
	t.Parallel()
	r := begin(t, tagged)
	p := r.open("/bare")
	p.begun(r)
	p.eval("document.open(), document.write(" + strconv.Quote("<!doctype html><title>written</title>"+tag) + "), document.close()")
	r.listed(r.uri)
}

// While the Page domain is enabled, a browser that cannot show dialogs waits for us to close them. Only
// chrome-headless-shell cannot show them, so no browser here can test this.
func TestDialogThatNobodySees(t *testing.T) {
	t.Parallel()
	b := &attachment{link: newLink(nil)}
	event := func(params string) {
		b.handle(&message{Method: "Page.javascriptDialogOpening", Session: "s", Params: []byte(params)}, nil)
	}
	event(`{"type":"alert","hasBrowserHandler":true}`)
	event(`{"type":"alert","hasBrowserHandler":false}`)
	event(`{"type":"beforeunload","hasBrowserHandler":false}`)
	var sent []string
	for _, m := range b.link.queue {
		sent = append(sent, string(m))
	}
	const begin = `"sessionId":"s","method":"Page.handleJavaScriptDialog","params":`
	if want := []string{`{"id":1,` + begin + `{"accept":false}}`,
		`{"id":2,` + begin + `{"accept":true}}`}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
}

// The browser reports the tab in front, with any page. For a site that the agent may not see it is only the origin, and
// a page without an origin has none.
func TestTabInFront(t *testing.T) {
	t.Parallel()
	r := begin(t, tagged)
	const front = "pagewire://front"
	port := testkit.Must(r.g.ConnectWith(gateway.AgentOptions{Transport: "test", Front: true, Deny: []string{r.site.elsewhere()}}))(t)
	a := &agent{testkit.Connect(t, testkit.Transport(port), testkit.Legacy), t}
	a.Watch(front)
	shows := func(want string) {
		t.Helper()
		for a.Text(front) != want {
			testkit.Receive(t, want+" is in front, and not "+a.Text(front), a.Updates)
		}
	}
	shown := func(tab, path, resources string) {
		t.Helper()
		shows(fmt.Sprintf(`{"tab":%s,"where":"tab %[1]s in window 1 of headless Chrome","title":"%[2]s","url":"%[3]s%[2]s",`+
			`"origin":"%[3]s","resources":[%[4]s]}`, tab, path, r.site.URL, resources))
	}
	one := r.openListed()
	one.toFront()
	shown("1", "/page", `"`+r.uri+`"`)
	r.user.openLink(r.site.elsewhere() + "/bare")
	shows(`{"origin":"` + r.site.elsewhere() + `"}`)
	two := r.open("/bare")
	shown("2", "/bare", "")
	one.toFront()
	shown("1", "/page", `"`+r.uri+`"`)
	two.toFront()
	shown("2", "/bare", "")
	two.send(two.session, "Page.navigate", map[string]any{"url": "about:blank"})
	shows(`{"origin":null}`)
	two.visit("/page2")
	shown("2", "/page2", `"`+r.uri+`"`)
}

// The browser says which tab is in front. A page in the background that replaces all by which a page is asked, and calls
// all listeners of its document, stays there, now and when it loads itself again.
func TestPageThatClaimsTheFocus(t *testing.T) {
	t.Parallel()
	r := begin(t, tagged)
	const front = "pagewire://front"
	port := testkit.Must(r.g.ConnectWith(gateway.AgentOptions{Transport: "test", Front: true}))(t)
	a := &agent{testkit.Connect(t, testkit.Transport(port), testkit.Legacy), t}
	hostile := r.openListed()
	honest := r.open("/page2")
	r.listed(r.at("/.pagewire/tab/1/state"), r.uri)
	inFront := func() bool { return strings.Contains(a.Text(front), "/page2") }
	honest.toFront()
	testkit.Eventually(t, "the honest tab is in front", inFront)
	const claims = `(() => {
		Document.prototype.hasFocus = document.hasFocus = () => true;
		for (const on of [document, Document.prototype])
			Object.defineProperty(on, "visibilityState", { configurable: true, get: () => "visible" });
		for (const type of ["focus", "visibilitychange", "load", "DOMContentLoaded"])
			for (const at of [window, document]) at.dispatchEvent(new Event(type));
	})()`
	hostile.send(hostile.session, "Page.enable", nil)
	hostile.send(hostile.session, "Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": claims +
		`;const listen = EventTarget.prototype.addEventListener;
		EventTarget.prototype.addEventListener = function (type, f, ...more) {
			setTimeout(() => typeof f === "function" && f({ isTrusted: true, type, target: this }));
			return listen.call(this, type, f, ...more);
		};`})
	hostile.eval(claims)
	for range 3 {
		hostile.visit("/page")
		hostile.eval(claims)
		hostile.eval("bump()")
		testkit.Eventually(t, "its messages have arrived", func() bool {
			text := r.Text(r.at("/.pagewire/tab/1/state"))
			return strings.HasSuffix(text, " 1")
		})
		if !inFront() {
			t.Errorf("in front is %s", a.Text(front))
		}
	}
}
