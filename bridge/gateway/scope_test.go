package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/testkit"
)

const (
	bank = "https://bank.example"
	// none is an origin without pages.
	none = "https://none.example"
	here = "http://127.0.0.1:3000"
)

// Each agent sees its scope, no matter whether it or the pages came first. Other resources seem not to exist.
func TestAgentsSeeTheirScopes(t *testing.T) {
	scopes := map[string]AgentOptions{
		"all": {}, "deny": {Deny: []string{bank}}, "allow": {Allow: []string{app}}, "only": {Only: []string{app}},
	}
	for _, order := range [][]string{{"all", "deny", "allow", "only"}, {"only", "allow", "deny", "all"}} {
		t.Run(strings.Join(order, " "), func(t *testing.T) {
			g := newGateway(t, Options{})
			agents, ends := map[string]*testAgent{}, map[string]*Agent{}
			connect := func(names []string) {
				for _, name := range names {
					agents[name], ends[name] = openAgentWith(t, g, scopes[name])
				}
			}
			connect(order[:2]) // the others come after the pages
			pages := map[string]*testPage{}
			for _, tab := range []struct{ tab, origin string }{{"a", app}, {"b", bank}, {"c", bank}} {
				info := PageInfo{Tab: tab.tab, Origin: tab.origin, URL: tab.origin + "/", Title: "A page", Transport: "test"}
				p := openPage(t, g, info, map[string]string{tab.origin + "/doc": "one", tab.origin + "/item/{id}": "item "})
				p.tellTool(map[string]string{app: "search", bank: "pay"}[tab.origin], nil)
				pages[tab.tab] = p
			}
			connect(order[2:])
			for name, a := range agents {
				if name == "all" {
					seesAll(t, a)
				} else {
					seesApp(t, a)
				}
			}
			for i, a := range g.Snapshot().Agents {
				if want := map[string]int{"all": 3}[order[i]]; a.Pages != max(want, 1) {
					t.Errorf("%s sees %d pages", order[i], a.Pages)
				}
			}
			// Changes of a resource are sent only to the agents that see it.
			for name, a := range agents {
				a.must(calls.Read, map[string]any{"uri": app + "/doc"})
				if a.Watch(app + "/doc"); name == "all" {
					a.Watch(bank + "/doc")
					a.must(calls.Read, map[string]any{"uri": bank + "/doc"})
				}
			}
			if got := ends["deny"].Unknown([]string{bank + "/doc", none + "/doc"}); !slices.Equal(got, []string{none + "/doc"}) {
				t.Errorf("the changes of %q are said to be unknown", got)
			}
			for _, end := range ends {
				if text, err := end.Changes(t.Context(), calls.Ask{}); text != "" || err != nil {
					t.Errorf("a hook is told %q, %v", text, err)
				}
			}
			pages["c"].change(g, bank+"/doc", "two")
			pages["a"].change(g, app+"/doc", "two")
			for name, a := range agents {
				want := map[string][]string{"all": {app + "/doc", bank + "/doc"}}[name]
				if want == nil {
					want = []string{app + "/doc"}
				}
				a.updated(want...)
				text, err := ends[name].Changes(t.Context(), calls.Ask{URIs: []string{bank + "/doc"}})
				if err != nil || strings.Contains(text, bank) != (name == "all") || !strings.Contains(text, app+"/doc") {
					t.Errorf("%s: a hook is told %q, %v", name, text, err)
				}
			}
			// A conversation's unknown agent may be any of them, so it sees only what all see.
			if prompt(t, g, calls.Ask{Session: talk}); prompt(t, g, calls.Ask{Session: talk}) != "" {
				t.Error("nothing has changed for a conversation")
			}
			pages["c"].change(g, bank+"/doc", "three")
			pages["a"].change(g, app+"/doc", "three")
			if text := prompt(t, g, calls.Ask{Session: talk}); strings.Contains(text, bank) || !strings.Contains(text, app) {
				t.Errorf("a conversation is told %q", text)
			}
		})
	}
}

func seesAll(t *testing.T, a *testAgent) {
	t.Helper()
	a.Shows(app+"/doc", bank+"/doc", bank+"/.pagewire/tab/2/doc")
	for uri, want := range map[string]string{app + "/doc": "one", bank + "/doc": "one", bank + "/item/1": "item 1"} {
		if got := a.Text(uri); got != want {
			t.Errorf("%s reads %q", uri, got)
		}
	}
	for _, tool := range []string{"search", "pay", "pay_tab2", "pay_tab3"} {
		a.must(tool, map[string]any{})
	}
	if all := strings.Join(a.must(calls.List, map[string]any{}), "\n"); !strings.Contains(all, app) || !strings.Contains(all, bank) {
		t.Errorf("listed: %s", all)
	}
}

func seesApp(t *testing.T, a *testAgent) {
	t.Helper()
	a.Shows(app + "/doc")
	for template, err := range a.ResourceTemplates(t.Context(), nil) {
		if err != nil || template.URITemplate != app+"/item/{id}" {
			t.Errorf("a template: %+v, %v", template, err)
		}
	}
	a.hasTool("search")
	for _, name := range a.ToolNames() {
		if strings.HasPrefix(name, "pay") {
			t.Errorf("listed: the tool %s", name)
		}
	}
	a.must("search", map[string]any{})
	if all := strings.Join(a.must(calls.List, map[string]any{}), "\n"); !strings.Contains(all, app) || strings.Contains(all, bank) {
		t.Errorf("listed: %s", all)
	}
	for _, path := range []string{"/doc", "/item/1", "/.pagewire/tab/2/doc", "/.pagewire/tab/3/doc"} {
		for what, ask := range map[string]func(uri string) string{
			"read": func(uri string) string {
				text, err := a.Read(uri)
				return fmt.Sprint(text, err)
			},
			"subscribe": func(uri string) string {
				return fmt.Sprint(a.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}))
			},
			"unsubscribe": func(uri string) string {
				return fmt.Sprint(a.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: uri}))
			},
			calls.Read: func(uri string) string {
				return fmt.Sprint(a.tool(calls.Read, map[string]any{"uri": uri}))
			},
			calls.Wait: func(uri string) string {
				return fmt.Sprint(a.tool(calls.Wait, map[string]any{"uris": []string{uri}, "timeout_ms": 1}))
			},
		} {
			got, want := ask(bank+path), strings.ReplaceAll(ask(none+path), none, bank)
			if got != want {
				t.Errorf("%s of %s: %q, want %q", what, bank+path, got, want)
			}
		}
	}
	// A wait for a visible and a hidden resource ignores the hidden one.
	args := map[string]any{"uris": []string{bank + "/doc", app + "/doc"}, "timeout_ms": 1}
	if texts := a.must(calls.Wait, args); !fields(t, texts).TimedOut {
		t.Errorf("a wait for both says %q", texts)
	}
	for _, tool := range []string{"pay", "pay_tab2", "pay_tab3", "pay_tab4"} {
		_, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}})
		if err == nil || !strings.Contains(err.Error(), "Unknown tool: "+tool) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

// A page that no agent sees gets no requests, even if agents and their hooks ask for it.
func TestPagesThatNobodySees(t *testing.T) {
	g := newGateway(t, Options{})
	a, end := openAgentWith(t, g, AgentOptions{Deny: []string{bank}})
	info := PageInfo{Tab: "b", Origin: bank, URL: bank + "/", Transport: "test"}
	testkit.Connect(t, testkit.Transport(connect(t, g, AgentOptions{Deny: []string{bank}})), testkit.Modern).Watch(bank + "/doc")
	p := openPage(t, g, info, map[string]string{bank + "/doc": "one"})
	openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "one"})
	uris := []string{bank + "/doc", app + "/doc"}
	if _, err := end.Changes(t.Context(), calls.Ask{URIs: uris}); err != nil {
		t.Fatal(err)
	}
	end.Unknown(uris)
	a.tool(calls.Read, map[string]any{"uri": bank + "/doc"})
	a.tool(calls.Wait, map[string]any{"uris": uris, "timeout_ms": 1})
	a.must(calls.Changes, map[string]any{"uris": uris})
	if n := p.page.Asked(); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
}

// An agent of one profile that listens to a page before the page is there, or before its profile
// has that name, is told of the page once it may see it, and then of each change.
func TestListenBeforeItsPage(t *testing.T) {
	for _, before := range []string{"the name", "the page"} {
		t.Run(before, func(t *testing.T) {
			g := newGateway(t, Options{})
			only := AgentOptions{Only: []string{ProfilePrefix + "Work"}}
			a := testkit.Connect(t, testkit.Transport(connect(t, g, only)), testkit.Modern)
			a.Watch(app + "/doc")
			info := tabInfo("a")
			info.Source = "browser"
			if before == "the page" {
				defer g.NameProfile("browser", "Work")()
			}
			p := openPage(t, g, info, map[string]string{app + "/doc": "one"})
			if before == "the name" {
				if a.Silent(); p.page.Asked() > 0 || p.subscriptions(app+"/doc") > 0 {
					t.Error("the page of another profile is asked")
				}
				all := openAgent(t, g)
				all.Watch(app + "/doc")
				p.set(app+"/doc", "zero")
				all.Told(app + "/doc")
				a.Silent()
				p.set(app+"/doc", "one")
				defer g.NameProfile("browser", "Work")()
			}
			a.Learns(app+"/doc", "one")
			p.set(app+"/doc", "two")
			a.Learns(app+"/doc", "two")
		})
	}
}

// A notice about unlisted tools names no origin that the agent does not see.
func TestToolsWithoutPlaceOfOthers(t *testing.T) {
	g := newGateway(t, Options{})
	defer g.NameProfile("", "Work")()
	for n, origin := range []string{bank, app} {
		p := openTools(t, g, fmt.Sprint("tab", n), origin)
		p.say(toolList(fmt.Sprint("do", n, "_"), 1000-400*n, ""))
	}
	testkit.Eventually(t, "the tools of both have no place", func() bool {
		defer g.lock()()
		return len(g.tools.unlisted) == 2
	})
	looks, _ := openAgentWith(t, g, AgentOptions{NoPageTools: true})
	if text := looks.must(calls.List, map[string]any{})[0]; strings.Contains(text, "tools of open pages") {
		t.Errorf("an agent without pages' tools is told %s", text)
	}
	for deny, most := range map[string]string{"": bank, bank: app} {
		a, _ := openAgentWith(t, g, AgentOptions{Deny: []string{deny}, Only: []string{ProfilePrefix + "Work"}})
		if text := a.must(calls.List, map[string]any{})[0]; !strings.Contains(text, "are of "+most+".") || deny != "" &&
			strings.Contains(text, deny) {
			t.Errorf("without %q it is told %s", deny, text)
		}
	}
}

// Of two agents at one gateway, the one without pages' tools reads, waits and is told like the other. No tool of a page
// exists for it, under any name, and no change of one is told.
func TestAgentsThatOnlyLook(t *testing.T) {
	for _, order := range [][]bool{{false, true}, {true, false}} {
		g := newGateway(t, Options{})
		agents := map[bool]*testAgent{}
		for _, looks := range order {
			agents[looks], _ = openAgentWith(t, g, AgentOptions{NoPageTools: looks})
		}
		const changed = "notifications/tools/list_changed"
		lines := map[bool]*Agent{}
		until := func(looks bool, want string) { // and the one that looks gets no changed before
			for got := ""; !strings.Contains(got, want); {
				line, err := lines[looks].Read(t.Context())
				if got = string(line); err != nil || looks && strings.Contains(got, changed) {
					t.Fatalf("before %s: %s, %v", want, got, err)
				}
			}
		}
		for looks := range agents {
			lines[looks] = connect(t, g, AgentOptions{NoPageTools: looks})
			testkit.OK(t, lines[looks].Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+
				`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`)))
			until(looks, `"id":1`)
		}
		p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "one"})
		p.tellTool("pay", map[string]any{"_meta": map[string]any{"pagewire/freshState": map[string]any{"uris": []string{app + "/doc"}}}})
		agents[false].hasTool("pay")
		until(false, changed)
		testkit.OK(t, lines[true].Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)))
		until(true, `"id":2`)
		looks := agents[true]
		if got := looks.ToolNames(); len(got) != len(calls.Described) {
			t.Errorf("listed: %q", got)
		}
		for _, name := range []string{"pay", "pay_tab1", "none"} {
			_, err := looks.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
			if err == nil || !strings.Contains(err.Error(), "Unknown tool: "+name+". Tools of pages are switched off for you.") ||
				!strings.Contains(err.Error(), "--no-page-tools") {
				t.Errorf("%s: %v", name, err)
			}
			if g.InputSchema(name, AgentOptions{NoPageTools: true}) != nil {
				t.Errorf("the schema of %s is known", name)
			}
		}
		if n := p.page.Running(); n != 0 {
			t.Errorf("the page runs %d tools", n)
		}
		for _, a := range agents {
			a.must(calls.Read, map[string]any{"uri": app + "/doc"})
			a.Watch(app + "/doc")
		}
		agents[false].must("pay", map[string]any{})
		p.change(g, app+"/doc", "two")
		for _, a := range agents {
			a.Told(app + "/doc")
			if texts := a.must(calls.Wait, map[string]any{}); !strings.Contains(strings.Join(texts, ""), "two") {
				t.Errorf("a wait says %q", texts)
			}
		}
	}
}

func TestAllowedOrigins(t *testing.T) {
	g := newGateway(t, Options{Allow: []string{here}})
	var last *Agent
	for _, origins := range [][]string{{bank}, nil, {app, bank}} {
		last = connect(t, g, AgentOptions{Allow: origins})
	}
	if got := g.AllowedOrigins(); !slices.Equal(got, []string{here, app, bank}) {
		t.Errorf("allowed: %q", got)
	}
	last.Close()
	if got := g.AllowedOrigins(); !slices.Equal(got, []string{here, bank}) {
		t.Errorf("allowed when one has gone: %q", got)
	}
}

// Cursors are of our own making, and encrypted: an agent would count what it may not see.
func TestCursorsTellNothing(t *testing.T) {
	g := newGateway(t, Options{})
	own := map[string]string{}
	for n := range maxTools + 1 {
		own[fmt.Sprint(app, "/doc", n)] = "1"
	}
	openPage(t, g, tabInfo("a"), own)
	a, _ := openAgentWith(t, g, AgentOptions{Only: []string{app}})
	openPage(t, g, PageInfo{Tab: "b", Origin: bank, URL: bank + "/", Title: "Bank", Transport: "test"},
		map[string]string{bank + "/1": "1", bank + "/2": "1"})
	list, err := a.ListResources(t.Context(), nil)
	if err != nil || len(list.NextCursor) != 2*(12+48+16) { // as hex: nonce, text and tag
		t.Fatalf("the first page: %v, %v", list, err)
	}
	first, listed := list.NextCursor, len(list.Resources)
	if list, err = a.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: first}); err != nil ||
		listed+len(list.Resources) != len(own) {
		t.Errorf("%d of %d and %v, %v", listed, len(own), list, err)
	}
	for n := range 5 {
		for _, cursor := range []string{first[:len(first)-1] + "g", first + "00", fmt.Sprintf("r1.%d", n), fmt.Sprintf("r%d.1.", n), fmt.Sprintf("r1.%d.0123456789abcdef", n)} {
			if _, err := a.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor}); err == nil {
				t.Errorf("the cursor %s is accepted", cursor)
			}
		}
	}
}
