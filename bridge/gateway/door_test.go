package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/testkit"
)

var ofWork = []string{ProfilePrefix + "Work"}

// By no way does an agent of one profile read a page of another, whatever it writes into a URI.
func TestURIsThatNameAProfile(t *testing.T) {
	const mark = "/.pagewire/profile=Work"
	g := newGateway(t, Options{})
	a, end := openAgentWith(t, g, AgentOptions{Only: ofWork})
	waits := openEventAgent(t, g, AgentOptions{Only: ofWork})
	p := openPage(t, g, inProfile("a", "w1", "Private"), map[string]string{
		app + "/list{?q,sort}": "mail", app + "/doc": "mail", app + "/item/{id}": "mail", app + "/all{/rest*}": "mail"})
	openPage(t, g, inProfile("b", "w2", "Work"), map[string]string{app + "/own": "of work"})
	a.Shows(app + "/own")
	asked := p.page.Asked()
	for _, uri := range []string{
		"/list?q=lawyer&sort=" + mark, "/list?q=" + mark + "&sort=a", "/list?sort=" + url.QueryEscape(mark), "/doc?" + mark,
		"/doc" + mark, "/doc#" + mark, "/item/" + url.PathEscape(mark), "/item/1?" + mark, "/all/a" + mark,
		mark + "/doc", mark, "/.pagewire/tab/1/list?q=" + mark, "/.pagewire/tab/1" + mark + "/doc", "/list{?q,sort}" + mark,
	} {
		uri = app + uri
		if text, err := a.Read(uri); err == nil {
			t.Errorf("it reads %s: %q", uri, text)
		}
		for tool, args := range map[string]map[string]any{calls.Read: {"uri": uri},
			calls.Wait: {"uris": []string{uri}, "timeout_ms": 1}} {
			if texts, failed := a.tool(tool, args); !failed || strings.Contains(texts[0], "mail") {
				t.Errorf("%s of %s: %q", tool, uri, texts)
			}
		}
		if err := a.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err == nil {
			t.Errorf("it subscribes to %s", uri)
		}
		if known := end.Unknown([]string{uri}); len(known) > 0 {
			t.Errorf("changes of %q are unknown to a hook", known)
		}
		waits.ask("events/poll", fmt.Sprintf(`"name":%q,"arguments":{"uri":%q}`, events.Updated, uri))
	}
	if n := p.page.Asked() - asked; n > 0 || p.page.Watches(app+"/doc") {
		t.Errorf("the page of Private was asked %d times", n)
	}
}

// A stream and a poll are wishes: while their URI leads to a page of another profile, they tell nothing, not even when
// something has happened. When it leads to a page of theirs again, they go on.
func TestEventsOfOneProfile(t *testing.T) {
	const doc = app + "/doc"
	for name, arguments := range map[string]string{"the URI": `{"uri":"` + doc + `"}`, "the origin": `{"origin":"` + app + `"}`,
		"a prefix": `{"uriPrefix":"` + doc + `"}`, "all": `{}`} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, Options{})
			a, all := openEventAgent(t, g, AgentOptions{Only: ofWork}), openEventAgent(t, g, AgentOptions{})
			early, _ := a.stream(events.Updated, arguments, "")
			work := openPage(t, g, inProfile("a", "w1", "Work"), map[string]string{doc: "1"})
			if name == "the URI" {
				a.event(early, doc) // it can be read now
			}
			late, cursor := a.stream(events.Updated, arguments, "")
			private := openPage(t, g, inProfile("b", "w2", "Private"), map[string]string{doc: "secret"})
			g.Focus("b")
			hidden, _ := a.stream(events.Updated, arguments, "")
			seen, _ := all.stream(events.Updated, `{"uri":"`+doc+`"}`, "")
			first := a.poll(events.Updated, arguments, "", "")
			for range 3 {
				private.set(doc, "another secret")
				all.event(seen, doc)
			}
			for _, since := range []string{cursor, *first.Cursor} {
				r := a.poll(events.Updated, arguments, since, "")
				if len(r.Events) > 0 || *r.NextPollMs != *first.NextPollMs {
					t.Errorf("a poll tells %+v, and to come again in %d ms", r.Events, *r.NextPollMs)
				}
			}
			work.set(doc, "2")
			g.Focus("a")
			work.set(doc, "3")
			for _, id := range []string{early, late, hidden} {
				m := a.nextOf(id)
				text := string(m.Params.Data)
				for strings.Contains(text, "/.pagewire/tab/1/") { // where the tab had it meanwhile
					m = a.nextOf(id)
					text = string(m.Params.Data)
				}
				if !strings.Contains(text, doc) || !strings.Contains(text, `"tab":1,`) || strings.Contains(text, "Private") {
					t.Errorf("a stream goes on with %s %s", m.Method, text)
				}
			}
			for _, list := range a.streams {
				for _, m := range list {
					if text := string(m.Params.Data); strings.Contains(text, `"tab":2`) || strings.Contains(text, "/tab/2/") {
						t.Errorf("a stream tells %s", text)
					}
				}
			}
		})
	}
}

// An agent of one profile is told of its pages that come and go, by any argument, and of no others.
func TestVisitsOfOneProfile(t *testing.T) {
	for name, arguments := range map[string]string{"the origin": `{"origin":"` + app + `"}`, "all": `{}`} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, Options{Grace: time.Millisecond})
			g.events.Began, g.events.ClosedAfter = time.Time{}, time.Millisecond
			a := openEventAgent(t, g, AgentOptions{Only: []string{app, ProfilePrefix + "Work"}})
			opened, _ := a.stream(events.Opened, arguments, "")
			closed, cursor := a.stream(events.Closed, arguments, "")
			named := inProfile("c", "w3", "")
			named.Source = "browser"
			defer g.NameProfile("browser", "Work")()
			openPage(t, g, inProfile("b", "w2", "Private"), map[string]string{app + "/b": "1"}).crash()
			openPage(t, g, inProfile("d", "w4", ""), map[string]string{app + "/d": "1"}).crash()
			openPage(t, g, inProfile("a", "w1", "Work"), map[string]string{app + "/a": "1"}).crash()
			a.event(opened, `"title":"App a"`)
			a.event(closed, `"title":"App a"`)
			openPage(t, g, named, map[string]string{app + "/c": "1"}).crash()
			a.event(opened, `"title":"App c"`)
			a.event(closed, `"title":"App c"`)
			if r := a.poll(events.Closed, arguments, cursor, ""); len(r.Events) != 2 {
				t.Errorf("a poll tells %+v", r.Events)
			}
			if len(a.streams[opened])+len(a.streams[closed]) > 0 {
				t.Errorf("further come %+v", a.streams)
			}
		})
	}
	g := newGateway(t, Options{})
	a := openEventAgent(t, g, AgentOptions{Only: []string{app, ProfilePrefix + "Work"}})
	refusedWith(t, a.ask("events/stream", `"name":"page.opened","arguments":{"origin":"`+bank+`"}`), -32024, "does not see")
}

// Without AgentOptions.Front no way leads to the tab in front, if another agent has it or not.
func TestFrontByNoWay(t *testing.T) {
	for _, others := range []bool{false, true} {
		g := newGateway(t, Options{})
		if others {
			openFront(t, g, AgentOptions{})
		}
		for name, o := range map[string]AgentOptions{"all": {}, "app": {Only: []string{app}}, "work": {Only: ofWork},
			"deny": {Deny: []string{bank}}} {
			a, end := openAgentWith(t, g, o)
			info := bare("a", app)
			info.Title = "Private notes of " + name
			g.Front(info, true, "")
			got := ""
			for what, ask := range map[string]func() any{
				"read": func() any { _, err := a.Read(door.FrontURI); return err },
				"subscribe": func() any {
					return a.Subscribe(t.Context(), &mcp.SubscribeParams{URI: door.FrontURI})
				},
				"list":  func() any { return a.URIs() },
				"tools": func() any { return a.must(calls.List, map[string]any{}) },
				"tool": func() any {
					texts, failed := a.tool(calls.Read, map[string]any{"uri": door.FrontURI})
					return fmt.Sprint(texts, failed)
				},
				"wait": func() any {
					texts, failed := a.tool(calls.Wait, map[string]any{"uris": []string{door.FrontURI}, "timeout_ms": 1})
					return fmt.Sprint(texts, failed)
				},
				"unknown": func() any { return end.Unknown([]string{door.FrontURI}) },
				"hook": func() any {
					text, err := end.Changes(t.Context(), calls.Ask{URIs: []string{door.FrontURI}})
					return fmt.Sprint(text, err)
				},
			} {
				if got = fmt.Sprint(ask()); strings.Contains(got, "notes") || got == "<nil>" && what != "hook" ||
					(what == "list" || what == "tools") && strings.Contains(got, door.FrontURI) {
					t.Errorf("%s, others %t: %s gives %s", name, others, what, got)
				}
			}
			events := openEventAgent(t, g, o)
			refusedWith(t, events.ask("events/poll", `"name":"page.resource.updated","arguments":{"uri":"pagewire://front"}`), -32024, "does not see")
		}
	}
}

// When the user gives a page's profile another name, the calls end that are no longer permitted, and nothing that the
// page says later reaches the agent. The calls of others go on.
func TestRenamedProfile(t *testing.T) {
	const doc = app + "/doc"
	for what, args := range map[string]map[string]any{"": nil, "pay": {}, calls.Read: {"uri": doc}, calls.Wait: {"uris": []string{doc}}} {
		t.Run(cmp.Or(what, "resources/read"), func(t *testing.T) {
			g := newGateway(t, Options{})
			defer g.NameProfile("browser", "Work")()
			info := inProfile("a", "w1", "")
			info.Source = "browser"
			p := openPage(t, g, info, map[string]string{doc: "one"})
			withdrawn, goOn := make(chan bool, 2), make(chan bool)
			p.page.SetTool("pay", testkit.Tool{Run: func(ctx context.Context, _ json.RawMessage, progress func(map[string]any)) any {
				select {
				case <-ctx.Done():
					withdrawn <- true
				case <-goOn:
				}
				progress(map[string]any{"progress": 1, "message": "secret"})
				return map[string]any{"content": []any{map[string]any{"type": "text", "text": "secret"}}}
			}})
			told := make(chan string, 9)
			a, _ := openAgentWith(t, g, AgentOptions{Only: ofWork},
				func(q *mcp.ProgressNotificationParams) { told <- q.Message })
			all := openAgent(t, g)
			a.Shows(doc)
			a.hasTool("pay")
			for _, each := range []*testAgent{a, all} {
				each.must(calls.Read, map[string]any{"uri": doc})
			}
			p.page.Add(doc, func(context.Context, string) (string, error) {
				<-goOn
				return "secret", nil
			})
			a.Shows(doc)
			ask := func(a *testAgent) chan string {
				answer := make(chan string, 1)
				go func() {
					if what == "" {
						text, err := a.Read(doc)
						answer <- fmt.Sprint(text, err)
						return
					}
					params := &mcp.CallToolParams{Name: what, Arguments: args}
					params.SetProgressToken("token")
					r, err := a.CallTool(t.Context(), params)
					text, _ := json.Marshal(r)
					answer <- fmt.Sprint(string(text), err)
				}()
				return answer
			}
			before := g.Snapshot().Stats.Calls
			mine, theirs := ask(a), ask(all)
			testkit.Eventually(t, "both wait", func() bool {
				called, running := g.Snapshot().Stats.Calls-before, p.page.Running()
				switch what {
				case "":
					return called == 1 && running == 1 && waitsOf(g) == 2 // they share a read
				case calls.Wait:
					return called == 2
				}
				return called == 2 && running == 2
			})
			again := g.NameProfile("browser", "Private")
			if what == "pay" {
				testkit.Receive(t, "the page is told that nobody waits for the call", withdrawn)
			}
			if what == calls.Wait {
				p.page.Touch(doc)
			}
			close(goOn)
			if got := testkit.Receive(t, "the other's call ends", theirs); !strings.Contains(got, "secret") {
				t.Errorf("an agent that sees all gets %s", got)
			}
			if what == calls.Wait {
				select {
				case got := <-mine:
					t.Errorf("the wait ends with %s", got)
				default:
				}
				again() // the page is one of Work again
			}
			got := testkit.Receive(t, "its call ends", mine)
			if strings.Contains(got, "secret") != (what == calls.Wait) || what != calls.Wait && !strings.Contains(got, "not found") &&
				!strings.Contains(got, "Unknown tool") {
				t.Errorf("it gets %s", got)
			}
			for len(told) > 0 {
				if words := <-told; words == "secret" {
					t.Error("it is told of the progress")
				}
			}
		})
	}
}

// The next pages of a text that an agent was given end with the permission: most of the text was never shown to it.
func TestPagesOfATextEndWithThePermission(t *testing.T) {
	const doc = app + "/doc"
	g := newGateway(t, Options{})
	end := g.NameProfile("browser", "Work")
	info := inProfile("a", "w1", "")
	info.Source = "browser"
	p := openPage(t, g, info, map[string]string{doc: strings.Repeat("a line of the text\n", 1000)})
	a, _ := openAgentWith(t, g, AgentOptions{Only: ofWork})
	a.Shows(doc)
	next := func(args map[string]any) map[string]any {
		var head struct{ Next map[string]any }
		if text := a.must(calls.Read, args)[0]; json.Unmarshal([]byte(text), &head) != nil || head.Next == nil {
			t.Fatalf("there is no next page: %s", text)
		}
		return head.Next
	}
	whole := next(map[string]any{"uri": doc, "max_chars": 2000})
	p.set(doc, strings.Repeat("a new line\n", 1000))
	first := next(map[string]any{"uri": doc, "max_chars": 2000})
	next(whole)
	end()
	defer g.NameProfile("browser", "Private")()
	for _, args := range []map[string]any{whole, first} {
		if texts, failed := a.tool(calls.Read, args); !failed || strings.Contains(strings.Join(texts, ""), "line") {
			t.Errorf("%v gives %.200q", args, texts)
		}
	}
}

// waitsOf is the number of requests that wait for an answer.
func waitsOf(g *Gateway) (n int) {
	defer g.lock()()
	for id := range g.agents {
		n += truth(g.engine.Waits(id))
	}
	return n
}
