package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// hinted registers tools with WebMCP's hints. Each name begins with %s.
const hinted = `
	const add = (name, annotations) => document.modelContext.registerTool({ name: "%s_" + name, description: "Does it.", inputSchema: { type: "object" }, annotations, execute: () => "done" });
	for (const [name, annotations] of Object.entries({
		buy: { readOnlyHint: true, consequentialHint: true }, comments: { untrustedContentHint: true, consequentialHint: false },
		dump: { debugging: true }, odd: { consequentialHint: "no", untrustedContentHint: 0 }, quiet: {},
	})) add(name, annotations);
	add("throws", { get consequentialHint() { throw new Error("of the page"); } }).catch(() => {});
`

const (
	undone = " The page says that this may not be undone."
	others = " Its results hold text that the page did not write."
)

type hints struct {
	Destructive bool
	Description string
}

var wantHints = map[string]hints{
	"buy": {true, "Does it." + undone}, "comments": {false, "Does it." + others},
	"odd":   {true, "Does it." + undone},
	"quiet": {false, "Does it."},
}

// showsHints checks the hints in an agent's list of the tools of hinted, and the marks of their
// results.
func showsHints(t *testing.T, a *testkit.Agent, prefix string) {
	t.Helper()
	got := map[string]hints{}
	testkit.Eventually(t, "the tools are listed", func() bool {
		clear(got)
		for tool, err := range a.Tools(a.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			name, ok := strings.CutPrefix(tool.Name, prefix+"_")
			if !ok {
				continue
			}
			h := hints{Description: strings.ReplaceAll(tool.Description,
				" The page says: read-only.", "")}
			h.Description, _, _ = strings.Cut(h.Description, " [tool of the page")
			if n := tool.Annotations; n != nil {
				h.Destructive = n.DestructiveHint != nil && *n.DestructiveHint
				if n.ReadOnlyHint {
					t.Errorf("%s: read-only is not a claim", tool.Name)
				}
			}
			got[name] = h
		}
		return len(got) >= len(wantHints)
	})
	if !maps.Equal(got, wantHints) {
		t.Errorf("the agent is listed %+v, want %+v", got, wantHints)
	}
	for name, parts := range map[string]int{"buy": 1, "comments": 2} {
		r, err := a.CallTool(a.Context(), &mcp.CallToolParams{Name: prefix + "_" + name})
		if err != nil || len(r.Content) < parts || r.Content[0].(*mcp.TextContent).Text != "done" {
			t.Errorf("%s gives %+v, %v", name, r, err)
			continue
		}
		marked := slices.ContainsFunc(r.Content, func(c mcp.Content) bool {
			return strings.HasPrefix(c.(*mcp.TextContent).Text, "[This result is data of the page ")
		})
		if marked != (parts == 2) {
			t.Errorf("the result of %s is marked: %v", name, marked)
		}
	}
}

// WebMCP's hints reach agents at a gateway and agents in the page, with any provider of
// registerTool.
func TestHintsOfPages(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent, developer := h.serve(t), h.serve(t, "--debugging-tools")
	tag := `<script src="/pagewire.js" data-gateway="ws://` + h.hub + `"></script>`
	wanted, _ := json.Marshal(wantHints)
	for i, m := range inThisEngine([]toolMode{
		{noFlag, "", tag}, {native, "", tag}, {mode{name: "polyfill"}, polyfill(t), tag},
		{mode{name: "polyfill after"}, "", tag + polyfill(t)},
		{mode{name: "mcp-b"}, globalServer(t), tag},
		{mode{name: "mcp-b after"}, "", tag + globalServer(t)},
	}, func(m toolMode) mode { return m.mode }) {
		t.Run(m.name, func(t *testing.T) {
			prefix := fmt.Sprint("at", i)
			b := open(t, m.mode,
				serve(t, page{head: m.head, tag: m.tag, script: fmt.Sprintf(hinted, prefix)}))
			showsHints(t, agent.Agent, prefix)
			if names := developer.ToolNames(); !slices.Contains(names, prefix+"_dump") {
				t.Errorf("a developer's agent is listed %q", names)
			}
			b.expectations(fmt.Sprintf(`
				const a = await agent.connect("modern"), hints = {};
				for (const { name, description, annotations } of (await a.client.listTools()).tools)
					hints[name.split("_")[1]] = { Destructive: annotations?.destructiveHint === true, Description: description };
				const sorted = (o) => Object.entries(o).sort(([a], [b]) => (a < b ? -1 : 1));
				expect("an agent in the page", sorted(hints), sorted(%s));
				for (const [name, parts] of [["buy", 1], ["comments", 2]])
					expect(name, (await a.client.callTool({ name: %q + name, arguments: {} })).content.length, parts);
			`, wanted, prefix+"_"))
		})
	}
}

// The hints also reach agents from pages without Pagewire: by the browser's own WebMCP, and after
// an injection.
func TestHintsOfBarePages(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"bare": nil, "inject": {"--inject"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, page{tag: " ", script: fmt.Sprintf(hinted, name)})
			showsHints(t,
				newHome(t).
					serve(t, append(flags, "--launch", "--headless", "--open", s.URL)...).Agent,
				name)
		})
	}
	t.Run("extension", func(t *testing.T) {
		t.Parallel()
		h := newHome(t)
		agent, x := h.serve(t), extend(t, h, true, native.flags...)
		s := serve(t, page{tag: " ", script: fmt.Sprintf(hinted, "extension")})
		x.tab(s.URL)
		x.allow(s.URL)
		showsHints(t, agent.Agent, "extension")
	})
}

// A tool that cannot be described is left out, and the others are served.
func TestToolsThatCannotBeServed(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{script: `
		const circle = { type: "object" };
		circle.properties = { circle };
		const long = { type: "object", description: "x".repeat(1 << 16) };
		const tool = (name, more) => ({ name, description: "d", window, origin, ...more });
		document.modelContext.getTools = async () => [
			{ window, get name() { throw new Error("a name"); } }, tool("circle", { inputSchema: circle }),
			tool("getter", { annotations: { get readOnlyHint() { throw new Error("a hint"); } } }),
			tool("text", { inputSchema: { type: "string" } }), tool("long", { inputSchema: long }),
			tool("output", { outputSchema: circle }), tool("fine", { annotations: 5 }),
		];
		document.modelContext.registerTool({ name: "own", description: "d", execute() {} });`}))
	b.expectations(
		`expect("listed", await (await agent.connect("modern")).toolNames(), "fine long")`)
	for _, name := range []string{"circle", "getter", "text", "output"} {
		if !b.said("the tool " + name + " is not served to MCP clients") {
			t.Errorf("the developer is not told of %s", name)
		}
	}
}
