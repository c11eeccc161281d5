package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// openFront opens an agent that sees the tab in front, with further options.
func openFront(t *testing.T, g *Gateway, o AgentOptions) *testAgent {
	t.Helper()
	o.Transport, o.Front = "test", true
	port, err := g.ConnectWith(o)
	if err != nil {
		t.Fatal(err)
	}
	a := &testAgent{testkit.Connect(t, testkit.Transport(port), testkit.Legacy), t}
	a.Watch(door.FrontURI)
	return a
}

// shows waits for one update of the tab in front, and checks its contents.
func (a *testAgent) shows(want string) {
	a.t.Helper()
	a.Told(door.FrontURI)
	if got := a.Text(door.FrontURI); got != want {
		a.t.Errorf("in front is %s, want %s", got, want)
	}
}

const nothing = `{"origin":null}`

// bare is a tab of Chrome with a page without Pagewire.
func bare(tab, origin string) PageInfo {
	return PageInfo{Tab: tab, Origin: origin, URL: origin + "/a", Title: "A title", Transport: "cdp", Browser: "Chrome", Window: "w"}
}

// Each agent with AgentOptions.Front reads the part of the tab in front that it may see, and is notified of a new one.
func TestTabInFront(t *testing.T) {
	g := newGateway(t, Options{})
	before := openAgent(t, g)
	a, ofApp := openFront(t, g, AgentOptions{}), openFront(t, g, AgentOptions{Only: []string{app, ProfilePrefix + "Work"}})
	if got := a.Text(door.FrontURI); got != nothing {
		t.Errorf("in front is %s before anything is known", got)
	}

	info := bare("a", bank)
	info.Profile = "Work"
	g.Front(info, true, "")
	a.shows(`{"tab":1,"where":"tab 1 in window 1 of Chrome, profile Work","title":"A title","url":"https://bank.example/a",` +
		`"origin":"https://bank.example","resources":[]}`)
	ofApp.shows(`{"origin":"https://bank.example"}`)

	info = inProfile("b", "w", "Work")
	p := openPage(t, g, info, map[string]string{app + "/doc": "text", app + "/item/{id}": "item "})
	frame := info
	frame.Frame, frame.Origin = "1", bank
	openPage(t, g, frame, map[string]string{bank + "/selection": "of a frame"})
	openPage(t, g, inProfile("c", "w", "Home"), map[string]string{app + "/selection": "of another tab"})
	a.quiet()
	g.Front(info, true, "")
	const where = `"tab":2,"where":"tab 2 in window 1 of Chrome, profile Work"`
	const page = where + `,"title":"App b","url":"https://app.example/","origin":"https://app.example","resources":[`
	a.shows(`{` + page + `"https://app.example/doc","https://bank.example/selection"]}`)
	ofApp.shows(`{` + page + `"https://app.example/doc"]}`)
	p.offer(app+"/selection", "some words")
	const selects = `{` + page + `"https://app.example/.pagewire/tab/2/selection","https://app.example/doc"],` +
		`"selection":"https://app.example/.pagewire/tab/2/selection"}`
	ofApp.shows(selects)
	p.Retitle("App c")
	ofApp.shows(strings.Replace(selects, "App b", "App c", 1))
	info.Title = "App c"

	// The tools have it too.
	if list := a.must(calls.List, map[string]any{})[0]; !strings.Contains(list, door.FrontURI) {
		t.Errorf("listed are %s", list)
	}
	if texts := ofApp.must(calls.Read, map[string]any{"uri": door.FrontURI}); !strings.Contains(texts[1], "App c") {
		t.Errorf("the tool reads %q", texts)
	}
	// A page of another profile is not shown.
	g.Front(inProfile("c", "w", "Home"), true, "")
	ofApp.shows(`{"origin":"https://app.example"}`)
	g.Front(info, false, info.Tab) // ignored: the tab is not in front now
	g.Behind(info.Tab)
	ofApp.quiet()
	info.URL = "" // as the extension reports a site that its user has not allowed
	g.Front(info, false, "c")
	testkit.Eventually(t, "it has the origin alone", func() bool { return a.Text(door.FrontURI) == `{"origin":"https://app.example"}` })
	g.CloseTab(info.Tab)
	ofApp.shows(nothing)

	for name, other := range map[string]*testAgent{"before": before, "after": openAgent(t, g)} {
		for _, uri := range other.URIs() {
			if uri == door.FrontURI {
				t.Errorf("an agent of %s, without the flag, has it in its list", name)
			}
		}
		if text, err := other.Read(door.FrontURI); err == nil {
			t.Errorf("an agent of %s, without the flag, reads %s", name, text)
		}
		if texts, failed := other.tool(calls.Read, map[string]any{"uri": door.FrontURI}); !failed {
			t.Errorf("an agent of %s, without the flag, reads %q", name, texts)
		}
		if list := other.must(calls.List, map[string]any{})[0]; strings.Contains(list, door.FrontURI) {
			t.Errorf("an agent of %s, without the flag, lists %s", name, list)
		}
	}
}

// Pages that connect by themselves report their own focus. Reports of the extension's pages do not count. A page that
// has gone is not in front, for example after its user has revoked its site.
func TestPageInFront(t *testing.T) {
	g := newGateway(t, Options{})
	a := openFront(t, g, AgentOptions{})
	at := func(tab, frame, transport string) PageInfo {
		info := tabInfo(tab)
		info.Frame, info.Transport, info.Focused = frame, transport, time.Now().UnixMilli()
		return info
	}
	openPage(t, g, at("x", "", "extension"), map[string]string{app + "/x": ""})
	a.quiet()
	p := openPage(t, g, at("a", "", "websocket"), map[string]string{app + "/a": ""})
	want := `{"tab":2,"where":"tab 2","title":"App a","url":"https://app.example/","origin":"https://app.example",` +
		`"resources":["https://app.example/a"]}`
	testkit.Eventually(t, "the page is in front", func() bool { return a.Text(door.FrontURI) == want })
	g.Front(bare("b", bank), true, "")
	openPage(t, g, at("a", "1", "websocket"), map[string]string{app + "/frame": ""})
	want = strings.Replace(want, `/a"]`, `/a","https://app.example/frame"]`, 1)
	testkit.Eventually(t, "the tab of the frame is in front", func() bool { return a.Text(door.FrontURI) == want })
	p.Close("its user does not allow the site any more")
	testkit.Eventually(t, "the page is in front no more", func() bool { return a.Text(door.FrontURI) == nothing })
}

// While a browser tells which tab is in front, no page's own claim counts: not in its hello, nor in a note, a frame's, or
// one with a time of the future, whether or not the browser has told of a tab.
func TestPagesThatClaimTheFront(t *testing.T) {
	for _, told := range []bool{false, true} {
		g := newGateway(t, Options{})
		a := openFront(t, g, AgentOptions{})
		claim := func(tab, frame string) {
			info := tabInfo(tab)
			info.Frame, info.Transport, info.Focused = frame, "websocket", time.Now().UnixMilli()
			p := openPage(t, g, info, map[string]string{app + "/selection": "ignore all"})
			for _, at := range []int64{time.Now().UnixMilli(), time.Now().Add(time.Hour).UnixMilli(), 1} {
				p.page.Post(fmt.Sprintf(`[["note",{"focused":%d}]]`, at))
			}
		}
		claim("early", "")
		testkit.Eventually(t, "without a browser's word a page's counts", func() bool {
			return strings.Contains(a.Text(door.FrontURI), "App early")
		})
		first, second := g.TellsFront(), g.TellsFront()
		want := nothing
		if told {
			g.Front(bare("b", bank), true, "")
			want = "bank.example"
		}
		first()
		first() // counts once
		claim("late", "")
		claim("late", "1")
		a.Shows(a.URIs()...)
		if got := a.Text(door.FrontURI); !strings.Contains(got, want) {
			t.Errorf("a browser has told: %t, and in front is %s", told, got)
		}
		second()
		claim("last", "")
		testkit.Eventually(t, "when no browser tells any more a page's word counts", func() bool {
			return strings.Contains(a.Text(door.FrontURI), "App last")
		})
	}
}
