//go:build !js

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// join has a gateway join a hub that lists what resources gives: entries as JSON text, and the next cursor.
func join(t *testing.T, resources func(cursor string) (entries, next string)) (*Gateway, error) {
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
				result = `{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"hub","version":"1"}}`
			case "resources/list":
				entries, next := resources(m.Params.Cursor)
				result = fmt.Sprintf(`{"resources":[%s],"nextCursor":%q}`, entries, next)
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
	g, err := join(t, func(cursor string) (string, string) {
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
		`goes round in a circle at the cursor "same"`: func(string) (string, string) { return "", "same" },
		"has no end: 200000 entries": func(string) (string, string) {
			asked++
			return many, fmt.Sprint(asked)
		},
	} {
		g, err := join(t, resources)
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
