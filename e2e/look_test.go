package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// Two agents share a daemon and its browser, and one of them has --no-page-tools: at this daemon, and at the next one.
// A person's pagewire tools and pagewire call reach the same page.
func TestAgentThatLooksInABrowser(t *testing.T) {
	t.Parallel()
	h, w := newHome(t), serveTill(t, "")
	looks := h.serve(t, "--launch", "--headless", "--open", w.URL, "--no-page-tools")
	acts := h.serve(t)
	binary := testkit.Must(gatewayBinary())(t)
	for _, last := range []bool{false, true} {
		testkit.Eventually(t, "the other agent has the tool", func() bool { return slices.Contains(acts.ToolNames(), "pay") })
		if names := looks.ToolNames(); len(names) != 4 || slices.Contains(names, "pay") {
			t.Errorf("the one that looks has %q", names)
		}
		for _, name := range []string{"pay", "pay_tab1", "none"} {
			_, err := looks.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"order": 0}})
			if err == nil || !strings.Contains(err.Error(), "Unknown tool: "+name+". Tools of pages are switched off") {
				t.Errorf("it calls %s: %v", name, err)
			}
		}
		if text, _ := looks.Call("list_page_resources", nil); strings.Contains(text, "pay") {
			t.Errorf("it is told of the tool: %s", text)
		}
		if text, isError := acts.Call("pay", map[string]any{"order": 1}); isError || !strings.Contains(text, "paid") {
			t.Errorf("the other calls it: %s", text)
		}
		if out, err := h.output(binary, "tools", "--hub", h.hub); err != nil || !strings.Contains(out, "\npay  ") ||
			!strings.Contains(out, "  "+w.URL+"  ") {
			t.Errorf("pagewire tools: %s, %v", out, err)
		}
		if out, err := h.output(binary, "call", "pay", `{"order": 2}`, "--hub", h.hub); err != nil || out != "paid\n" {
			t.Errorf("pagewire call: %s, %v", out, err)
		}
		if got := w.take(); !slices.Equal(got, []string{"paid 1", "paid 2"}) {
			t.Errorf("the page has %q", got)
		}
		if !last {
			syscall.Kill(h.daemon(t), syscall.SIGKILL)
		}
	}
}
