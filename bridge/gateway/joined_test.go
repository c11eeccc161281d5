//go:build !js

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// join has a gateway join a hub that lists these tools, and what resources gives: entries as JSON text, and the next
// cursor.
func join(t *testing.T, tools string, resources func(cursor string) (entries, next string)) (*Gateway, error) {
	t.Helper()
	g := newGateway(t, Options{})
	ours, theirs := testkit.Pipe()
	t.Cleanup(func() { theirs.Close() })
	go func() {
		for {
			text, err := theirs.Read(context.Background())
			if err != nil {
				return
			}
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct{ Cursor string }
			}
			if json.Unmarshal(text, &m); m.ID == nil {
				continue
			}
			result := `{"resourceTemplates":[]}`
			switch m.Method {
			case "initialize":
				result = `{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"tools":{}},"serverInfo":{"name":"hub","version":"1"}}`
			case "resources/list":
				entries, next := resources(m.Params.Cursor)
				result = fmt.Sprintf(`{"resources":[%s],"nextCursor":%q}`, entries, next)
			case "tools/list":
				result = fmt.Sprintf(`{"tools":[%s]}`, tools)
			}
			theirs.Write(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
		}
	}()
	_, err := g.Join(t.Context(), PageInfo{Tab: "hub"}, ours)
	return g, err
}

// A hub whose pages hold one resource each, or sometimes none, is listed to its end.
func TestAHubOfManySmallPages(t *testing.T) {
	const n = 500
	g, err := join(t, "", func(cursor string) (string, string) {
		var i int
		fmt.Sscan(cursor, &i)
		next := fmt.Sprint(i + 1)
		if i == n {
			next = ""
		}
		if i%10 == 9 {
			return "", next
		}
		return fmt.Sprintf(`{"uri":"%s/%d","name":"n"}`, app, i), next
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(openAgent(t, g).URIs()); got != n-n/10+1 {
		t.Errorf("%d resources are listed, not %d", got, n-n/10+1)
	}
}

// A hub whose list has no end is left, with a reason.
func TestAHubWhoseListHasNoEnd(t *testing.T) {
	many := strings.Repeat(`,{"uri":"https://x.test/a","name":"n"}`, 10_000)[1:]
	asked := 0
	for want, resources := range map[string]func(string) (string, string){
		`repeats the cursor "same"`: func(string) (string, string) { return "", "same" },
		"has no end: 200000 entries": func(string) (string, string) {
			asked++
			return many, fmt.Sprint(asked)
		},
	} {
		g, err := join(t, "", resources)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("joined a hub with %v, want %q", err, want)
		}
		if s := g.Snapshot(); len(s.Pages) != 0 {
			t.Errorf("%d pages are left of it", len(s.Pages))
		}
	}
	if asked != 20 {
		t.Errorf("it was asked for %d pages of 10,000", asked)
	}
}

// listed is what a gateway lists, of one page: each entry as it is written, in order.
func listed(t *testing.T, g *Gateway, method, member string) (entries []string) {
	t.Helper()
	port, err := g.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	port.Write(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		method, testkit.Modern))
	text, err := port.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Result map[string]json.RawMessage }
	var list []json.RawMessage
	if json.Unmarshal(text, &m) != nil || json.Unmarshal(m.Result[member], &list) != nil ||
		m.Result["nextCursor"] != nil {
		t.Fatalf("%s is answered with %s", method, text)
	}
	for _, entry := range list {
		entries = append(entries, string(entry))
	}
	return entries
}

// The agents of a gateway that has joined a hub are shown each entry as the hub shows it: what go-sdk has no field for,
// zeros, members in their order and numbers in their digits included.
func TestAHubsListsAsTheHubWritesThem(t *testing.T) {
	hub, joiner := newGateway(t, Options{}), newGateway(t, Options{})
	p := openPage(t, hub, tabInfo("a"), nil)
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	members := map[string]any{
		"title": "T", "description": "D <&>", "mimeType": "text/plain", "size": 0,
		"annotations": raw(`{"audience":["user"],"priority":0,"subscribeHint":true}`),
		"icons":       raw(`[{"src":"data:,x","sizes":[],"newer":0}]`),
		"_meta":       raw(`{"acme/unknown":{"z":0,"a":[null,false,""],"n":12345678901234567890}}`),
	}
	p.page.Describe(app+"/doc", members)
	p.page.Describe(app+"/item/{id}", members)
	p.page.Offer(app+"/doc", "")
	p.page.Offer(app+"/item/{id}", "")
	p.page.SetTool("tool", testkit.Tool{Members: map[string]any{
		"inputSchema": raw(`{"type":"object","properties":{"n":{"type":"integer","default":0}},"x-unknown":{"z":0,"a":0}}`),
		"annotations": raw(`{"readOnlyHint":true}`), "_meta": raw(`{"acme/unknown":{"z":0}}`),
	}})
	port, err := hub.Connect(TransportGateway)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := joiner.Join(t.Context(), PageInfo{Tab: "hub"}, port); err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]struct {
		member string
		with   []string // that the page gave, and must be there
	}{
		"resources/list": {"resources",
			[]string{`"size":0`, `"priority":0,"subscribeHint":true`, `"newer":0`, `12345678901234567890`}},
		"resources/templates/list": {"resourceTemplates",
			[]string{`"priority":0,"subscribeHint":true`, `"newer":0`, `12345678901234567890`}},
		"tools/list": {"tools", []string{`"x-unknown":`, `"acme/unknown":{"z":0}`}},
	} {
		here, there := listed(t, hub, method, want.member), listed(t, joiner, method, want.member)
		if !slices.Equal(here, there) {
			t.Errorf("%s at the hub:\n%s\nat the joiner:\n%s", method, strings.Join(here, "\n"),
				strings.Join(there, "\n"))
		}
		for _, member := range want.with {
			if !strings.Contains(strings.Join(here, "\n"), member) {
				t.Errorf("%s at the hub has no %s: %s", method, member, here)
			}
		}
	}
}

// A page that describes a resource otherwise than MCP has it is refused, and keeps no gateway from joining its hub.
func TestAPageThatDescribesNonsenseToAHub(t *testing.T) {
	hub, joiner := newGateway(t, Options{}), newGateway(t, Options{})
	p := openPage(t, hub, tabInfo("a"), nil)
	p.page.Describe(app+"/odd", map[string]any{"annotations": map[string]any{"audience": 5}})
	p.page.Offer(app+"/odd", "")
	testkit.Eventually(t, "the page is told", func() bool {
		return strings.Contains(strings.Join(p.page.Reports(), "\n"), "member annotations has the wrong type")
	})
	p.page.Describe(app+"/fine", map[string]any{"_meta": map[string]any{metaAbsent: "yes"}})
	p.page.Offer(app+"/fine", "")
	port, err := hub.Connect(TransportGateway)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := joiner.Join(t.Context(), PageInfo{Tab: "hub"}, port); err != nil {
		t.Fatal(err)
	}
	const method, member = "resources/list", "resources"
	here, there := listed(t, hub, method, member), listed(t, joiner, method, member)
	if len(here) != 1 || !slices.Equal(here, there) {
		t.Errorf("at the hub:\n%s\nat the joiner:\n%s", here, there)
	}
}

// A hub of another version lists tools with members that this one does not know: they are passed on. The annotations of
// a page, which older hubs pass on too, are not.
func TestToolsOfAHubOfAnotherVersion(t *testing.T) {
	const newer = `{"name":"newer","execution":{"taskSupport":"optional"},"inputSchema":{"z":0,"type":"object","a":1e3},` +
		`"_meta":{"acme/b":0,"acme/a":[]}}`
	g, err := join(t, newer+`,{"name":"older","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		func(string) (string, string) { return "", "" })
	if err != nil {
		t.Fatal(err)
	}
	all := listed(t, g, "tools/list", "tools")
	if !slices.Contains(all, newer) {
		t.Errorf("%s is not in\n%s", newer, strings.Join(all, "\n"))
	}
	i := slices.IndexFunc(all, func(entry string) bool { return strings.Contains(entry, `"older"`) })
	if i < 0 || strings.Contains(all[i], "readOnlyHint") || !strings.Contains(all[i], "The page says: read-only.") {
		t.Errorf("the older hub's tool is not claimed in\n%s", strings.Join(all, "\n"))
	}
}

// What is shown of a page is not longer than the page has written it: "<" is one byte.
func TestNothingGrowsOnItsWay(t *testing.T) {
	g, joiner := newGateway(t, Options{}), newGateway(t, Options{})
	description := strings.Repeat("<&>", 1000)
	p := openPage(t, g, tabInfo("a"), nil)
	meta := map[string]any{"x": description}
	p.page.Describe(app+"/doc", map[string]any{"_meta": meta})
	p.page.Offer(app+"/doc", "")
	p.page.SetTool("tool", testkit.Tool{Members: map[string]any{"description": description}})
	hub, err := g.Connect("gateway")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := joiner.Join(t.Context(), PageInfo{Tab: "hub"}, hub); err != nil {
		t.Fatal(err)
	}
	shown := make(chan int, 100)
	a := openAgent(t, joiner)
	joiner.Tap(func(e Event) {
		if e.Way == ToAgent {
			shown <- len(e.Text)
		}
	})
	for what, list := range map[string]func(){"resources": func() { a.URIs() },
		"tools": func() { a.ListTools(t.Context(), nil) }} {
		list()
		if n := testkit.Receive(t, "the list comes", shown); n < len(description) || n > len(description)+8000 {
			t.Errorf("the list of %s has %d bytes, with a description of %d", what, n, len(description))
		}
	}
}
