package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// Agents get a page's words only if they are valid and the page's own.

// Contents of another origin, and invalid contents, are an error with a reason, by both ways to read. Valid contents
// arrive.
func TestContentsThatArePassedOn(t *testing.T) {
	g := newGateway(t, Options{})
	l := openPage(t, g, tabInfo("liar"), map[string]string{app + "/doc": ""}).page
	a := openAgent(t, g)
	for name, c := range map[string]struct {
		contents string
		why      string // "" if they are passed on
	}{
		"as it should be": {`[{"uri":"` + app + `/doc","text":"fine","mimeType":"text/plain","_meta":{"x":1}}]`, ""},
		"several": {`[{"uri":"` + app + `/doc","text":"fine"},{"uri":"` + app +
			`/other","text":"fine, too"}]`, ""},
		"members of its own": {`[{"uri":"` + app + `/doc","text":"fine","x":[{"text":5}]}]`, ""},
		"another origin":     {`[{"uri":"https://bank.example/balance","text":"0"}]`, gate.ForeignContents},
		"a longer host":      {`[{"uri":"` + app + `.evil.example/doc","text":"0"}]`, gate.ForeignContents},
		"no web origin":      {`[{"uri":"file:///etc/passwd","text":"0"}]`, gate.ForeignContents},
		"the second one": {`[{"uri":"` + app + `/doc","text":"0"},{"uri":"https://bank.example/x","text":"0"}]`,
			gate.ForeignContents},
		"a long URI": {`[{"uri":"` + app + `/` + strings.Repeat("x", 8192) + `","text":"0"}]`,
			gate.ForeignContents},
		"two URIs": {`[{"uri":"` + app + `/doc","uri":"https://bank.example/x","text":"0"}]`,
			gate.ForeignContents},
		"a type of its own":  {`[{"uri":"` + app + `/doc","text":"fine","mimeType":["a"]}]`, ""},
		"a list as _meta":    {`[{"uri":"` + app + `/doc","text":"fine","_meta":[]}]`, ""},
		"a number as text":   {`[{"uri":"` + app + `/doc","text":5}]`, gate.NoContents},
		"a text that is not": {`[{"uri":"` + app + `/doc","text":null}]`, gate.NoContents},
		"a blob of objects":  {`[{"uri":"` + app + `/doc","blob":{}}]`, gate.NoContents},
		"no URI":             {`[{"text":"x"}]`, gate.NoContents},
		"a URI that is none": {`[{"uri":7,"text":"x"}]`, gate.NoContents},
		"neither":            {`[{"uri":"` + app + `/doc"}]`, gate.NoContents},
		"no list":            {`{"uri":"` + app + `/doc","text":"x"}`, gate.NoContents},
		"a text alone":       {`"x"`, gate.NoContents},
		"texts in a list":    {`["x"]`, gate.NoContents},
	} {
		l.Contents(func(string) string { return c.contents })
		_, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: app + "/doc"})
		texts, failed := a.tool("read_page_resource", map[string]string{"uri": app + "/doc"})
		if c.why == "" {
			if err != nil || failed || !strings.Contains(texts[1], "fine") {
				t.Errorf("%s: %v; by the tool %q", name, err, texts)
			}
			continue
		}
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != -32603 ||
			!strings.Contains(string(wire.Data), `"reason":"invalid_contents"`) ||
			!strings.Contains(string(wire.Data)+wire.Message, c.why) {
			t.Errorf("%s: %v %s", name, err, dataOf(err))
		}
		if !failed || !strings.Contains(texts[0], c.why) {
			t.Errorf("%s: by the tool %q", name, texts)
		}
	}
}

// A frame that does not parse may have been an answer. So waiting readers get an error, and the page's link ends with
// the reason.
func TestPageThatSendsNoJSON(t *testing.T) {
	for name, text := range map[string]string{"NUL": "=1 0 [{\"text\":\"\x00\"}]", "half": `=1 0 [{"uri":"x"`,
		"half a call": `[["touch"`, "nothing": "x"} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, Options{})
			l := openPage(t, g, tabInfo("liar"), map[string]string{app + "/doc": ""})
			asked := make(chan struct{}, 10)
			l.page.Contents(func(string) string { asked <- struct{}{}; return "" })
			a := openAgent(t, g)
			ended := make(chan error, 2)
			go func() {
				_, err := a.ReadResource(context.Background(), &mcp.ReadResourceParams{URI: app + "/doc"})
				ended <- err
			}()
			testkit.Receive(t, "the page is asked", asked)
			l.page.Post(`[]`)
			l.page.Post(text)
			if err := testkit.Receive(t, "the read ends", ended); err == nil ||
				!strings.Contains(err.Error()+dataOf(err), "the page was let go: ") {
				t.Errorf("the reader is told %v %s", err, dataOf(err))
			}
			testkit.Ends(t, "the page is let go", l.Done())
			if why := l.page.Refusal(); why == "" {
				t.Error("the page is not told why")
			}
		})
	}
}

func dataOf(err error) string {
	if wire := (*jsonrpc.Error)(nil); errors.As(err, &wire) {
		return string(wire.Data)
	}
	return ""
}

// A tool for developers exists only for an agent with the option, also under a name that is not listed. A result that
// holds text of others is followed by a mark.
func TestHintsOfPagesTools(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "x"})
	add := func(name string, hints map[string]any, result any) {
		p.page.SetTool(name, testkit.Tool{Members: map[string]any{"_meta": map[string]any{"pagewire/hints": hints}},
			Run: func(context.Context, json.RawMessage, func(map[string]any)) any { return result }})
	}
	const given = `{"content":[{"type":"text","text":"a comment"}]}`
	add("comments", map[string]any{"untrustedContentHint": true}, json.RawMessage(given))
	add("plain", map[string]any{"consequentialHint": true}, json.RawMessage(given))
	add("dump", map[string]any{"debugging": true}, json.RawMessage(given))
	developer, _ := openAgentWith(t, g, AgentOptions{DebuggingTools: true})
	for name, agent := range map[string]*testAgent{"user": openAgent(t, g), "developer": developer} {
		has := name == "developer"
		if got := toolNames(t, agent); got["dump"] != has || !got["plain"] {
			t.Errorf("the %s is listed %v", name, got)
		}
		for _, tool := range []string{"dump", "dump_tab1"} { // one listed name, and one that is not
			result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
			if (err == nil) != has {
				t.Errorf("the %s calls %s: %v, %v", name, tool, result, err)
			}
		}
	}
	texts, _ := developer.tool("comments", nil)
	if len(texts) != 2 || texts[0] != "a comment" || !strings.Contains(texts[1], "data of the page "+app) {
		t.Errorf("the result is %q", texts)
	}
	if texts, _ = developer.tool("plain", nil); len(texts) != 1 {
		t.Errorf("a result without text of others is %q", texts)
	}
}

// An outputSchema is listed if its root is an object, without references. Then a result with fitting structuredContent
// is passed on unchanged. Any other is sent as text only, with a message on the page's console. Clients throw it away
// unless it is marked as an error.
func TestOutputSchema(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "x"})
	add := func(name, schema, result string) {
		p.page.SetTool(name, testkit.Tool{Members: map[string]any{"outputSchema": json.RawMessage(schema)},
			Run: func(context.Context, json.RawMessage, func(map[string]any)) any { return json.RawMessage(result) }})
	}
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	add("fits", schema, `{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}`)
	add("both", schema, `{"content":[{"type":"text","text":"{\"n\": 1}"}],"structuredContent":{"n":1}}`)
	add("wrong", schema, `{"content":[],"structuredContent":{"n":"one"}}`)
	add("none", schema, `{"content":[{"type":"text","text":"one"}]}`)
	add("fails", schema, `{"content":[{"type":"text","text":"no"}],"isError":true}`)
	add("list", `{"type":"array"}`, `{"content":[],"structuredContent":{"n":1}}`)
	a := openAgent(t, g)
	testkit.Eventually(t, "the tools are listed", func() bool { return toolNames(t, a)["list"] })
	for tool, err := range a.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(tool.OutputSchema)
		want := `{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`
		if tool.Name == "list" || slices.ContainsFunc(calls.Described, func(o *mcp.Tool) bool { return o.Name == tool.Name }) {
			want = "null"
		}
		if string(text) != want {
			t.Errorf("the outputSchema of %s is %s, want %s", tool.Name, text, want)
		}
	}
	for name, want := range map[string]string{
		"fits":  `["one"] {"n":1}`,
		"both":  `["{\"n\": 1}"] {"n":1}`,
		"wrong": `["{\"n\":\"one\"}","` + unfit + `"] null, an error`,
		"none":  `["one","` + unfit + `"] null, an error`,
		"fails": `["no"] null, an error`,
		"list":  `["{\"n\":1}"] null`,
	} {
		r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
		if err != nil {
			t.Error(name, err)
			continue
		}
		texts := []string{}
		for _, c := range r.Content {
			texts = append(texts, c.(*mcp.TextContent).Text)
		}
		said, _ := json.Marshal(texts)
		structured, _ := json.Marshal(r.StructuredContent)
		got := string(said) + " " + string(structured)
		if r.IsError {
			got += ", an error"
		}
		if got != want {
			t.Errorf("%s gives %s, want %s", name, got, want)
		}
	}
	reports := func() string { return strings.Join(p.page.Reports(), "\n") }
	for _, want := range []string{"the result of the tool wrong", "the result of the tool none",
		"the tool list differs for agents: outputSchema.type"} {
		testkit.Eventually(t, "the developer is told of "+want, func() bool { return strings.Contains(reports(), want) })
	}
	if got := reports(); strings.Contains(got, "tool fits") || strings.Contains(got, "tool fails") {
		t.Errorf("the developer is told: %s", got)
	}
}
