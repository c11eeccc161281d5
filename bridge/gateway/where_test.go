package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// inProfile is a tab in a window of Chrome.
func inProfile(tab, window, profile string) PageInfo {
	info := tabInfo(tab)
	info.Browser, info.Window, info.Profile = "Chrome", window, profile
	return info
}

// An entry says in everyday words where its page is.
func TestWhereabouts(t *testing.T) {
	g := newGateway(t, Options{})
	a := openAgent(t, g)
	offer := func(info PageInfo) *testPage {
		return openPage(t, g, info, map[string]string{app + "/" + info.Tab: "text"})
	}
	shown := func(want string) {
		t.Helper()
		testkit.Eventually(t, "an entry ends with "+want, func() bool {
			return strings.Contains(a.must(calls.List, map[string]any{})[0], want)
		})
		for r, err := range a.Resources(t.Context(), nil) {
			if err == nil && strings.HasSuffix(r.Title, want) {
				return
			}
		}
		t.Errorf("resources/list has no title that ends with %q", want)
	}
	a1 := offer(inProfile("a", "w1", "Work"))
	offer(inProfile("b", "w2", " Pri\nvate "))
	offer(inProfile("c", "w1", ""))
	offer(tabInfo("d"))
	shown("(tab 1 in window 1 of Chrome, profile Work, app.example)")
	shown("(tab 2 in window 2 of Chrome, profile Pri vate, app.example)")
	shown("(tab 3 in window 1 of Chrome, app.example)")
	shown("(tab 4, app.example)")
	a1.tellTool("search", nil)
	a.hasTool("search")
	for tool, err := range a.Tools(t.Context(), nil) {
		if err == nil && tool.Name == "search" && !strings.HasSuffix(tool.Description, "tab 1 in window 1 of Chrome, profile Work]") {
			t.Errorf("the tool is described as %q", tool.Description)
		}
	}
	// NameProfile's name for a browser counts until its release.
	named := inProfile("e", "w3", "")
	named.Source = "the browser"
	offer(named)
	first, second := g.NameProfile("the browser", "Mine"), g.NameProfile("the browser", "Shopping")
	shown("(tab 5 in window 3 of Chrome, profile Shopping, app.example)")
	second()
	shown("(tab 5 in window 3 of Chrome, profile Mine, app.example)")
	first()
	shown("(tab 5 in window 3 of Chrome, app.example)")
	// A window's number is free again with its last page.
	g.CloseTab("b")
	offer(inProfile("f", "w4", ""))
	shown("(tab 6 in window 2 of Chrome, app.example)")
}

func TestBrowserOf(t *testing.T) {
	const like = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
	for userAgent, want := range map[string]string{
		like + "Chrome/156.0.0.0 Safari/537.36":                                            "Chrome",
		like + "HeadlessChrome/156.0.0.0 Safari/537.36":                                    "headless Chrome",
		like + "Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0":                                "Edge",
		like + "Chrome/156.0.0.0 Safari/537.36 OPR/118.0.0":                                "Opera",
		"Mozilla/5.0 (X11; rv:147.0) Gecko/20100101 Firefox/147.0":                         "Firefox",
		"Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Safari/605.1.15": "Safari",
		"Go-http-client/1.1": "", "": "",
	} {
		if got := BrowserOf(userAgent); got != want {
			t.Errorf("%s is %q", userAgent, got)
		}
	}
}

// An agent of one profile sees nothing of another, even if both have the same site open, no matter which tab is in
// front, and after a name has changed.
func TestAgentOfOneProfile(t *testing.T) {
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, AgentOptions{Only: []string{app, ProfilePrefix + "Work"}})
	all := openAgent(t, g)
	const doc, ofWork, ofPrivate = app + "/doc", app + "/.pagewire/tab/1/doc", app + "/.pagewire/tab/2/doc"
	state := map[string]string{doc: "of work", app + "/item/{id}": "item "}
	work := openPage(t, g, inProfile("a", "w1", "Work"), state)
	work.tellTool("search", nil)
	a.Shows(doc)
	a.hasTool("search")
	if got := a.Text(app + "/item/1"); got != "item 1" {
		t.Errorf("a template's URI reads %q", got)
	}
	a.Watch(doc)
	private := openPage(t, g, inProfile("b", "w2", "Private"), nil)
	g.Focus("b")
	private.offer(doc, "secret")
	private.tellTool("search", nil)
	private.tellTool("pay", nil)
	a.Shows(ofWork)
	all.hasTool("pay")
	for _, uri := range []string{doc, ofPrivate} {
		if text, err := a.Read(uri); err == nil {
			t.Errorf("%s reads %q", uri, text)
		}
		if texts, failed := a.tool(calls.Read, map[string]any{"uri": uri}); !failed {
			t.Errorf("%s reads %q", uri, texts)
		}
	}
	if got := a.Text(ofWork); got != "of work" {
		t.Errorf("its own tab reads %q", got)
	}
	if names := a.ToolNames(); slices.Contains(names, "pay") || slices.Contains(names, "search") ||
		!slices.Contains(names, "search_tab1") {
		t.Errorf("listed are the tools %q", names)
	}
	if list := a.must(calls.List, map[string]any{})[0]; strings.Contains(list, "Private") || !strings.Contains(list, "Work") {
		t.Errorf("listed: %s", list)
	}
	all.Watch(doc)
	for len(a.Updates) > 0 { // from the time when its own tab had the URI
		<-a.Updates
	}
	private.set(doc, "another secret")
	all.Told(doc)
	a.quiet()
	g.Focus("a")
	a.Shows(doc)
	if got := a.Text(doc); got != "of work" {
		t.Errorf("in front again it reads %q", got)
	}
	told := func(what string, change func()) {
		t.Helper()
		testkit.Eventually(t, "the agent has heard of earlier changes", func() bool {
			select {
			case <-a.Lists:
				return false
			case <-time.After(200 * time.Millisecond):
				return true
			}
		})
		change()
		testkit.Receive(t, what, a.Lists)
	}
	told("a resource has come", func() { work.offer(app+"/new", "new") })
	told("a resource has gone", func() { work.page.Withdraw(app + "/new") })
}

// An agent of one profile is told that its lists have changed when the profile gets another name,
// which hides all that is in them. So it is when the profile has its name again.
func TestListsOfARenamedProfile(t *testing.T) {
	const doc = app + "/doc"
	g := newGateway(t, Options{})
	defer g.NameProfile("browser", "Work")()
	info := inProfile("a", "w1", "")
	info.Source = "browser"
	openPage(t, g, info, map[string]string{doc: "one"}).tellTool("search", nil)
	openAgent(t, g).hasTool("search")
	a, _ := openAgentWith(t, g, AgentOptions{Only: ofWork}) // when there is nothing else to tell
	a.Shows(doc)
	told := func(change string) {
		t.Helper()
		for told := map[string]bool{}; !told["resources"] || !told["tools"]; {
			told[testkit.Receive(t, change, a.Lists)] = true
		}
	}
	again := g.NameProfile("browser", "Private")
	told("the profile has another name")
	a.Shows()
	again()
	told("the profile has its name again")
	a.Shows(doc)
}

// A read by an agent of one profile goes to no page of another, even if its page leaves after the URI has come to lead
// there, and another page comes.
func TestReadsStayInAProfile(t *testing.T) {
	const doc = app + "/doc"
	for name, comes := range map[string]bool{"its page leaves": false, "its page leaves, and another comes": true} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, Options{Grace: 100 * time.Millisecond})
			a, _ := openAgentWith(t, g, AgentOptions{Transport: TransportRequest, Only: []string{ProfilePrefix + "Work"}})
			openPage(t, g, inProfile("b", "w2", "Private"), map[string]string{doc: "secret"})
			work := openPage(t, g, inProfile("a", "w1", "Work"), nil)
			work.page.Add(doc, func(ctx context.Context, _ string) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
			a.Shows(doc)
			answer := make(chan string, 1)
			go func() {
				text, err := a.Read(doc)
				answer <- fmt.Sprint(text, err)
			}()
			testkit.Eventually(t, "its page is asked", func() bool { return work.page.Running() == 1 })
			g.Focus("b")
			if work.crash(); comes {
				openPage(t, g, inProfile("c", "w2", "Private"), map[string]string{app + "/other": ""})
			}
			if got := testkit.Receive(t, "the read ends", answer); !strings.Contains(got, "went away") {
				t.Errorf("it reads %q", got)
			}
		})
	}
}

// A read that waits for a page to come back ends when the page's profile is no longer the agent's, and no other page is
// asked.
func TestWaitingReadOfARenamedProfile(t *testing.T) {
	const doc = app + "/doc"
	g := newGateway(t, Options{})
	free := g.NameProfile("browser", "Work")
	a, _ := openAgentWith(t, g, AgentOptions{Transport: TransportRequest, Only: []string{ProfilePrefix + "Work"}})
	info := inProfile("a", "w1", "")
	info.Source = "browser"
	work := openPage(t, g, info, map[string]string{doc: "one"})
	a.Shows(doc)
	work.crash()
	answer := make(chan string, 1)
	go func() {
		text, err := a.Read(doc)
		answer <- fmt.Sprint(text, err)
	}()
	testkit.Eventually(t, "the read waits", func() bool { return waitsOf(g) == 1 })
	free()
	if got := testkit.Receive(t, "the read ends", answer); !strings.Contains(got, "not found") {
		t.Errorf("it reads %q", got)
	}
}

// After a change of focus, a read does not join one that the tab before has not answered, which may be of another
// profile.
func TestReadJoinsNoneOfAnotherTab(t *testing.T) {
	for uri, offered := range map[string]string{app + "/doc": app + "/doc", app + "/item/1": app + "/item/{id}"} {
		t.Run(offered, func(t *testing.T) {
			g := newGateway(t, Options{})
			request := AgentOptions{Transport: TransportRequest}
			all, _ := openAgentWith(t, g, request)
			request.Only = []string{ProfilePrefix + "Work"}
			a, _ := openAgentWith(t, g, request)
			openPage(t, g, inProfile("a", "w1", "Work"), nil).page.Add(offered,
				func(context.Context, string) (string, error) { return "of work", nil })
			private, goOn := openPage(t, g, inProfile("b", "w2", "Private"), nil), make(chan bool)
			private.page.Add(offered, func(context.Context, string) (string, error) {
				<-goOn
				return "secret", nil
			})
			testkit.Eventually(t, "both are there", func() bool { return len(g.Snapshot().Resources) == 2 })
			g.Focus("b")
			first, second := make(chan string, 1), make(chan string, 1)
			read := func(a *testAgent, answer chan string) {
				text, err := a.Read(uri)
				answer <- fmt.Sprint(text, err)
			}
			go read(all, first)
			testkit.Eventually(t, "the tab before is asked", func() bool { return private.page.Running() == 1 })
			g.Focus("a")
			go read(a, second)
			select {
			case got := <-second:
				if got != "of work<nil>" {
					t.Errorf("it reads %q", got)
				}
				close(goOn)
			case <-time.After(testkit.Patience):
				close(goOn)
				t.Errorf("it waits, and reads %q", <-second)
			}
			if got := <-first; got != "secret<nil>" {
				t.Errorf("the first reads %q", got)
			}
		})
	}
}

// A tool's read looks for its page once that reports changes. The URI may lead to another profile by then.
func TestToolReadsNoOtherProfile(t *testing.T) {
	const doc = app + "/doc"
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, AgentOptions{Only: []string{ProfilePrefix + "Work"}})
	openPage(t, g, inProfile("b", "w2", "Private"), map[string]string{doc: "secret"})
	work := openPage(t, g, inProfile("a", "w1", "Work"), map[string]string{doc: "of work"})
	work.page.HoldWatch = make(chan struct{})
	defer close(work.page.HoldWatch)
	a.Shows(doc)
	answer := make(chan []string, 1)
	go func() {
		texts, _ := a.tool(calls.Read, map[string]any{"uri": doc})
		answer <- texts
	}()
	testkit.Eventually(t, "its page is to report changes", func() bool { return work.subscriptions(doc) == 1 })
	g.Focus("b")
	if got := testkit.Receive(t, "the call ends", answer); !slices.Equal(got, []string{doc + ": " + calls.Unknown}) {
		t.Errorf("it reads %q", got)
	}
}

// While a URI leads to another profile, neither a reminder nor a wait tells of its changes.
func TestNoChangesOfAnotherProfile(t *testing.T) {
	const doc = app + "/doc"
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, AgentOptions{Only: []string{ProfilePrefix + "Work"}})
	private := openPage(t, g, inProfile("b", "w2", "Private"), map[string]string{doc: "secret"})
	work := openPage(t, g, inProfile("a", "w1", "Work"), map[string]string{doc: "one"})
	a.Shows(doc)
	a.must(calls.Read, map[string]any{"uri": doc})
	wait := make(chan []string, 1)
	go func() { wait <- a.must(calls.Wait, map[string]any{}) }()
	testkit.Eventually(t, "it waits", func() bool { return g.Snapshot().Stats.Calls == 1 })
	g.Focus("b")
	private.change(g, doc, "another secret")
	if texts := a.must(calls.List, map[string]any{}); len(texts) != 1 {
		t.Errorf("it is reminded: %q", texts)
	}
	g.Focus("a")
	work.change(g, doc, "two")
	if got := testkit.Receive(t, "the wait ends", wait); len(got) != 2 || got[1] != "two" {
		t.Errorf("the wait tells of %q", got)
	}
}
