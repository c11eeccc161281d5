package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// Each test here plays a client that fails on messages that MCP allows.

// asked is the text of the answer to one request of a client with this clientInfo.
func asked(t *testing.T, g *Gateway, client, method, params string) string {
	t.Helper()
	a, err := g.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	next := func(message string) string {
		if err := a.Write(t.Context(), []byte(message)); err != nil {
			t.Fatal(err)
		}
		answer, err := a.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	next(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":` +
		client + `}}`)
	return next(`{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":` + params + `}`)
}

// To Codex a list, a read or a call with a fractional priority is an unexpected response.
func TestCodexReadsWholePriorities(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/plain": "x"})
	for uri, priority := range map[string]string{app + "/cart": "0.8", app + "/item/{id}": "4e-1", app + "/last": "1.0"} {
		p.page.Describe(uri, map[string]any{"annotations": map[string]any{"audience": []string{"user"},
			"priority": json.RawMessage(priority)}})
		p.offer(uri, "x")
	}
	const item = `{"type":"text","text":"annotations priority 0.8","annotations":{"priority":0.8}}`
	p.page.SetTool("show", testkit.Tool{Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
		return json.RawMessage(`{"content":[` + item + `],"_meta":{"annotations":{"priority":0.3}}}`)
	}})
	p.page.Contents(func(uri string) string {
		return `[{"uri":"` + uri + `","text":"\"priority\":0.8","_meta":{"annotations":{"priority":0.5,"x":[0.5]}}}]`
	})
	a := openAgent(t, g)
	testkit.Eventually(t, "the tool is listed", func() bool { return toolNames(t, a)["show"] })
	for method, c := range map[string]struct {
		params string
		other  []string // in the answer to any other client
		codex  []string
	}{
		"resources/list":           {`{}`, []string{`"priority":0.8`, `"priority":1.0`}, []string{`"audience":["user"],"priority":1}`}},
		"resources/templates/list": {`{}`, []string{`"priority":4e-1`}, []string{`"priority":0}`}},
		"resources/read": {`{"uri":"` + app + `/cart"}`, []string{`"priority":0.5,"x":[0.5]}`},
			[]string{`"text":"\"priority\":0.8"`, `"priority":0.5,"x":[0.5]}`}},
		"tools/call": {`{"name":"show","arguments":{}}`, []string{item},
			[]string{`{"annotations":{"priority":1},"text":"annotations priority 0.8","type":"text"}`,
				`"_meta":{"annotations":{"priority":0.3}}`}},
	} {
		for client, codex := range map[string]bool{`{"name":"codex-mcp-client","version":"1"}`: true,
			`{"name":"x","title":"OpenAI Codex","version":"1"}`: true, `{"name":"x","version":"1"}`: false} {
			got := asked(t, g, client, method, c.params)
			want := c.other
			if codex {
				want = c.codex
			}
			for _, part := range want {
				if !strings.Contains(got, part) || !json.Valid([]byte(got)) {
					t.Errorf("%s of %s: %s, want %s", method, client, got, part)
				}
			}
		}
	}
}

// Cursor drops a tool if the server's name and its own, with its tab's suffix, have more than 60 characters together.
// Codex reads only the first page of tools. mcp-context-forge refuses a semicolon.
func TestListsSuitClients(t *testing.T) {
	g := newGateway(t, Options{})
	long := strings.Repeat("reschedule_the_appointment_", 4)
	for _, tab := range []string{"a", "b"} {
		p := openPage(t, g, PageInfo{Tab: tab, Origin: app, URL: app + "/", Title: "One; two", Transport: "test"},
			map[string]string{app + "/doc": "x"})
		tools := map[string]testkit.Tool{}
		for n := range 150 {
			tools[fmt.Sprint("a_tool_before_ours_", n)] = testkit.Tool{}
		}
		for _, name := range []string{long + "a", long + "b", "короткое"} {
			tools[name] = testkit.Tool{Members: map[string]any{"description": "One; two;three."}}
		}
		p.page.SetTools(tools)
	}
	a := openAgent(t, g)
	tabs := 2
	listed(t, a, "all tools are listed", func(names map[string]bool) bool {
		return len(names) == len(calls.Described)+tabs*153
	})
	first, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Tools) != len(calls.Described)+tabs*153 || first.NextCursor != "" {
		t.Errorf("the first page has %d tools, and %q is next", len(first.Tools), first.NextCursor)
	}
	for i, tool := range first.Tools {
		if own := i < len(calls.Described); own != (tool.Meta["pagewire/origin"] == nil) ||
			own != (tool.Annotations != nil && tool.Annotations.ReadOnlyHint) {
			t.Errorf("%s is tool %d of the list: %+v", tool.Name, i, tool)
		}
		if n := len("pagewire") + 1 + len(tool.Name); n > 60 {
			t.Errorf("%s has %d characters with its server's", tool.Name, n)
		}
		if strings.Contains(tool.Description, ";") {
			t.Errorf("%s: %s", tool.Name, tool.Description)
		}
		if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name}); tool.Meta["pagewire/origin"] != nil && err != nil {
			t.Errorf("%s cannot be called: %v", tool.Name, err)
		}
	}
}

// Our own texts in lists and at the start are plain ASCII without a semicolon. No schema is so long that a client drops
// its descriptions.
func TestOwnTextsAreASCII(t *testing.T) {
	g := newGateway(t, Options{})
	openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "x", app + "/item/{id}": "x"})
	a := openAgent(t, g)
	said := a.InitializeResult().Instructions
	for tool, err := range a.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		schema, _ := json.Marshal(tool.InputSchema)
		if len(schema) > 4<<10 {
			t.Errorf("the schema of %s has %d bytes", tool.Name, len(schema))
		}
		all, _ := json.Marshal(tool)
		said += string(all)
	}
	for r, err := range a.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		said += r.Title + r.Description
	}
	for r, err := range a.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		said += r.Title + r.Description
	}
	if i := strings.IndexFunc(said, func(r rune) bool { return r == ';' || r > '~' }); i >= 0 {
		t.Errorf("we say %q", said[max(0, i-40):min(len(said), i+40)])
	}
	for _, bad := range []string{"$ref", "$defs", `"priority":0.`} {
		if strings.Contains(said, bad) {
			t.Errorf("a list has %s", bad)
		}
	}
}
