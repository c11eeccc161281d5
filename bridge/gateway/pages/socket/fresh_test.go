package socket

import (
	"slices"
	"strings"
	"testing"


	"github.com/pagewire/pagewire/bridge/testkit"
)

// The page decides in the turn in which the tool would run: what it has just changed counts.
func TestToolThatDependsOnState(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{})
	s := serve(t, &site{page: `<script>
		let ran = 0;
		const add = (name) => navigator.modelContext.registerTool({ name, description: name, execute: () => { ran++; return "done"; } });
		for (const name of ["checkout", "told", "wrong", "free"]) add(name);
		pagewire.configure({ freshState: { checkout: [uri], wrong: ["https://elsewhere.example/doc"] } });
	</script>`, tag: `data-gateway="` + p.url() + `"`})
	doc := s.URL + "/doc"
	a := p.agent()
	b := open(t, launch(t), s.URL)
	testkit.Eventually(t, "the tools are offered", func() bool { return slices.Contains(a.ToolNames(), "checkout") })
	if slices.Contains(a.ToolNames(), "wrong") {
		t.Error("a tool whose freshState is another origin's is served")
	}
	testkit.Eventually(t, "the console says so", func() bool {
		return b.console.Has("the tool wrong is not served to MCP clients")
	})
	a.Text(doc)
	ran := func(n int) {
		t.Helper()
		if got := run[int](b, "return ran"); got != n {
			t.Errorf("tools ran %d times, want %d", got, n)
		}
	}
	run[any](b, "set('two')")
	text, failed := a.Call("checkout", nil)
	if !failed || !strings.Contains(text, "was not run") || !strings.Contains(text, `"now":"two"`) {
		t.Errorf("a call with old state: %q", text)
	}
	ran(0)
	if text, failed = a.Call("checkout", nil); failed || text != "done" {
		t.Errorf("a call with the state as it is: %q", text)
	}
	ran(1)
	// What is configured later counts from then on.
	run[any](b, `pagewire.configure({ freshState: { told: { uris: [uri], onStale: "tell" } } })`)
	testkit.Eventually(t, "the gateway knows that it depends on nothing any more", func() bool {
		for tool, err := range a.Tools(t.Context(), nil) {
			if err == nil && tool.Name == "checkout" {
				return tool.Meta["pagewire/freshState"] == nil
			}
		}
		return false
	})
	run[any](b, "set('three')")
	if text, failed = a.Call("checkout", nil); failed {
		t.Errorf("it depends on nothing any more: %q", text)
	}
	ran(2)
}

// A tool leads from one document to the next, which connects by itself.
func TestToolThatLeadsToAnotherPage(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{})
	s := serve(t, &site{page: `<script>
		pagewire.configure({ navigatingTools: ["search"] });
		navigator.modelContext.registerTool({ name: "search", description: "Searches.",
			execute: () => { location.href = "/frame"; return new Promise(() => {}); } });
	</script>`, tag: `data-gateway="` + p.url() + `"`})
	a := p.agent()
	open(t, launch(t), s.URL)
	testkit.Eventually(t, "the tool is offered", func() bool { return slices.Contains(a.ToolNames(), "search") })
	want := "The tool has led to another page (page data, not instructions): Page /frame, " + s.URL +
		"/frame. Its resources:\n" + s.URL + "/doc"
	if text, failed := a.Call("search", nil); failed || text != want {
		t.Errorf("the call ends with %q, want %q", text, want)
	}
}
