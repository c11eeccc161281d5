package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// refusedShapes are shapes of one tool or resource for which official clients refuse the list of
// all: what a page has, and the clients that refuse it.
var refusedShapes = []struct {
	what    string
	members string // of a tool, or of a resource if it has a uri
	by      string
	quiet   bool // nothing is lost, so the page is told nothing
}{
	{"required: true", `"inputSchema":{"type":"object","required":true}`, "sdk 1, sdk 2", false},
	{"required with a number", `"inputSchema":{"type":"object","required":["a",1]}`, "sdk 1, sdk 2",
		false},
	{"properties: true", `"inputSchema":{"type":"object","properties":true}`, "sdk 1, sdk 2",
		false},
	{"properties as a list", `"inputSchema":{"type":"object","properties":["a"]}`, "sdk 1, sdk 2",
		false},
	{"no inputSchema", `"title":"T"`, "sdk 1, sdk 2", true},
	{"an inputSchema of type string", `"inputSchema":{"type":"string"}`, "sdk 1, sdk 2", false},
	{"a property that is true", `"inputSchema":{"type":"object","properties":{"data":true}}`,
		"sdk 1", true},
	{"a property that is a string", `"inputSchema":{"type":"object","properties":{"q":"string"}}`,
		"sdk 1", false},
	{"a title that is a number", `"inputSchema":{"type":"object"},"title":5`, "sdk 1, sdk 2",
		false},
	{"a description that is null", `"inputSchema":{"type":"object"},"description":null`,
		"sdk 1, sdk 2", true},
	{"a hint that is a string",
		`"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes"}`, "sdk 1, sdk 2",
		false},
	{"annotations that are a list", `"inputSchema":{"type":"object"},"annotations":[]`,
		"sdk 1, sdk 2", false},
	{"_meta that is null", `"inputSchema":{"type":"object"},"_meta":null`, "sdk 1, sdk 2", true},
	{"icons without src", `"inputSchema":{"type":"object"},"icons":[{}]`, "sdk 1, sdk 2", false},
	{"an execution of its own",
		`"inputSchema":{"type":"object"},"execution":{"taskSupport":"always"}`, "sdk 1, sdk 2",
		false},
	{"an output pattern for other engines", output(`{"pattern":"^[^\\s\\@]+\\@[^\\s]+$"}`), "sdk 1",
		false},
	{"an output pattern that is none", output(`{"pattern":"("}`), "sdk 1", false},
	{"an output enum without members", output(`{"enum":[]}`), "sdk 1", false},
	{"an output type that is none", output(`{"type":"file"}`), "sdk 1", false},
	{"an output minimum that is null", output(`{"minimum":null}`), "sdk 1", false},
	{"an output reference to nothing", output(`{"$ref":"#/$defs/none"}`), "sdk 1", false},
	{"an output required that is true", output(`{"required":true}`), "sdk 1", false},
	{"an output nullable", output(`{"nullable":true}`), "sdk 1", false},
	{"an output property that is a string",
		`"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"q":"string"}}`, "sdk 1", false},
	{"a date", resource(`"annotations":{"lastModified":"2026-11-27"}`), "sdk 1, sdk 2", true},
	{"a time without an offset", resource(`"annotations":{"lastModified":"2026-11-27T10:00:00"}`),
		"sdk 1, sdk 2", false},
	{"an offset without a colon",
		resource(`"annotations":{"lastModified":"2026-11-27T10:00:00+0100"}`), "sdk 1, sdk 2",
		true},
	{"a day that does not exist", resource(`"annotations":{"lastModified":"2026-02-30T10:00:00Z"}`),
		"sdk 1, sdk 2", false},
	{"an hour that does not exist",
		resource(`"annotations":{"lastModified":"2026-11-27T24:00:00Z"}`), "sdk 1, sdk 2", false},
	{"a date in words", resource(`"annotations":{"lastModified":"yesterday"}`), "sdk 1, sdk 2",
		false},
	{"an audience that is unknown", resource(`"annotations":{"audience":["all"]}`), "sdk 1, sdk 2",
		false},
	{"a priority above 1", resource(`"annotations":{"priority":2}`), "sdk 1, sdk 2", false},
	{"a number beyond a double, for which the Go client refuses it",
		resource(`"_meta":{"n":1e999}`), "", true},
	{"a theme that is unknown", resource(`"icons":[{"src":"a","theme":"blue"}]`), "sdk 1, sdk 2",
		false},
}

func output(property string) string {
	return `"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":` +
		property + `}}`
}

func resource(members string) string { return `"uri":"https://odd.example/x",` + members }

// Of a page's tool or resource that clients refuse, agents get as much as clients take. Tools and
// resources beside it stay, and the page is told what is different.
func TestOfficialClientsTakeEachList(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	put := func(method,
		result string) {
		fmt.Fprintf(&lines, "{\"method\":%q,\"result\":%s}\n", method, result)
	}
	for _, shape := range refusedShapes {
		g := gateway.New(gateway.Options{})
		t.Cleanup(func() { g.Close() })
		var told strings.Builder
		page, err := g.Attach(gateway.PageInfo{Tab: "t", Origin: "https://odd.example",
			URL: "https://odd.example/", Transport: "test"},
			func(frame []byte) { told.Write(frame) })
		if err != nil {
			t.Fatal(err)
		}
		method, key, beside, list := "tools/list", "tools", "innocent",
			`[{"name":"innocent","inputSchema":{"type":"object"}},{"name":"odd_tool",`+
				shape.members+`}]`
		odd := []any{"setTools", list}
		if strings.HasPrefix(shape.members, `"uri"`) {
			method, key, beside, list = "resources/list", "resources", "/cart", `[{"name":"odd",`+
				shape.members+`}]`
			odd = []any{"register", list[1 : len(list)-1]}
		}
		text, _ := json.Marshal([]any{[]any{"hello", 1, "0", map[string]any{"epoch": "e"}},
			[]any{"register", `{"uri":"https://odd.example/cart","name":"cart"}`}, odd})
		if err := page.Receive(text); err != nil {
			t.Fatal(err)
		}
		if shape.quiet == strings.Contains(told.String(), `"report"`) {
			t.Errorf("%s: the page is told %s", shape.what, told.String())
		}
		put(method, `{"`+key+`":`+list+`}`)
		raw := listing(t, g, method)
		put(method, raw)
		if !strings.Contains(raw, beside) {
			t.Errorf("%s: what is beside it is gone", shape.what)
		}
		end, err := g.ConnectWith(gateway.AgentOptions{Transport: "test"})
		if err != nil {
			t.Fatal(err)
		}
		golang := testkit.Connect(t, testkit.Transport(end), testkit.Legacy)
		if _, err := golang.ListTools(t.Context(), &mcp.ListToolsParams{}); err != nil {
			t.Errorf("%s: go-sdk: %v", shape.what, err)
		}
		if _, err := golang.ListResources(t.Context(), &mcp.ListResourcesParams{}); err != nil {
			t.Errorf("%s: go-sdk: %v", shape.what, err)
		}
		end.Close()
	}
	cmd := testcmd.Command("node", clientScript(t, "clients/gate.mjs"))
	cmd.Stdin = &lines
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(bytes.NewReader(out))
	next := func() (refused map[string]string) {
		if !answers.Scan() {
			t.Fatalf("too few answers: %s", out)
		}
		if err := json.Unmarshal(answers.Bytes(), &refused); err != nil {
			t.Fatal(err)
		}
		return refused
	}
	for _, shape := range refusedShapes {
		var by []string
		before := next()
		for _, name := range []string{"sdk 1", "sdk 2"} {
			if before[name] != "" {
				by = append(by, name)
			}
		}
		if got := strings.Join(by, ", "); got != shape.by {
			t.Errorf("%s is refused by %q, want %q: %v", shape.what, got, shape.by, before)
		}
		if after := next(); len(after) > 0 {
			t.Errorf("%s: through the gate: %v", shape.what, after)
		}
	}
}

// listing is the result of a list, as text, for a new agent.
func listing(t *testing.T, g *gateway.Gateway, method string) string {
	t.Helper()
	a, err := g.ConnectWith(gateway.AgentOptions{Transport: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var answer struct {
		ID     int
		Result json.RawMessage
	}
	for i, m := range []string{`"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}`,
		`"method":"` + method + `"`} {
		if err := a.Write(t.Context(),
			fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,%s}`, i+1, m)); err != nil {
			t.Fatal(err)
		}
		for answer.ID != i+1 {
			text, err := a.Read(t.Context())
			if err == nil {
				err = json.Unmarshal(text, &answer)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return string(answer.Result)
}
