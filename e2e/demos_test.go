package e2e

// The demos as people see them: real input drives each, and an agent outside of the page, on
// `pagewire serve`, reports its view.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

func serveDemos(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "demo")
	if out, err := testcmd.CommandContext(t.Context(), "go", "build", "-o", binary, "../demo").
		CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cmd := testcmd.CommandContext(t.Context(), binary, "-story=false", "-addr", "127.0.0.1:0")
	cmd.Dir = ".." // where dist/ is
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, base, ok := strings.Cut(lines.Text(), "demo at "); ok {
			return base
		}
	}
	t.Fatal("the demo server says nowhere that it serves")
	return ""
}

type demoed struct {
	*tab
	*testkit.Agent
	t  *testing.T
	at string // the page's URL, with a / at the end
}

// demos are the stories of the demos, by folder. TestViewsDemo has the missing one.
var demos = map[string]func(demoed){
	"1-live-document": demoed.liveDocument, "2-cart": demoed.cart, "3-form": demoed.form,
	"4-chart": demoed.chart,
}

// TestDemos runs the demos in one browser, which one agent has named. Each demo also has an agent
// of its own.
func TestDemos(t *testing.T) {
	t.Parallel()
	base := serveDemos(t)
	chromium, url := startChromium(t)
	h := newHome(t)
	h.serve(t, "--chrome", url)
	if folders, err := filepath.Glob("../demo/[0-9]*-*"); err != nil ||
		len(folders) != len(demos)+1 {
		t.Errorf("%d demos are tested here, and there are %q", len(demos), folders)
	}
	for name, story := range demos {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := base + "demo/" + name + "/"
			d := demoed{openIn(t, chromium, &site{Server: &httptest.Server{URL: at}}),
				h.serve(t).Agent, t, at}
			subscribed := `document.documentElement.dataset.agent === "subscribed"`
			d.sees("the agent beside it has subscribed", subscribed)
			story(d)
			if name != "2-cart" { // its agent's gateway remembers sessions, which only one era has
				d.navigate(at + "?era=modern")
				d.sees("so has one of the modern era", subscribed+
					` && !!document.querySelector("#steps [data-version='2026-07-28']")`)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if len(d.console) > 0 {
				t.Errorf("the page's console: %q", d.console)
			}
		})
	}
}

// sees waits until a person would see it.
func (d demoed) sees(what, expression string) {
	d.t.Helper()
	testkit.Eventually(d.t, what, func() bool { return run[bool](d.tab, "return "+expression) })
}

// keeps reads after each update, until the text fits.
func (d demoed) keeps(what, path string, fits func(text string) bool) (text string) {
	d.t.Helper()
	for text = d.Text(d.at + path); !fits(text); text = d.Text(d.at + path) {
		testkit.Receive(d.t, fmt.Sprintf("%s, after it has read %s", what, text), d.Updates)
	}
	return text
}

// reads waits until the text contains a word.
func (d demoed) reads(path, want string) string {
	d.t.Helper()
	return d.keeps("the agent reads "+want, path,
		func(text string) bool { return strings.Contains(text, want) })
}

func (d demoed) lists(path string, want bool) {
	d.t.Helper()
	testkit.Eventually(d.t, fmt.Sprintf("%s is listed: %t", path, want), func() bool {
		return d.Offers(d.at+path) == want
	})
}

func (d demoed) calls(tool string, input any) (text string, failed bool) {
	d.t.Helper()
	testkit.Eventually(d.t, "the tool "+tool,
		func() bool { return slices.Contains(d.ToolNames(), tool) })
	r, err := d.CallTool(d.Context(), &mcp.CallToolParams{Name: tool, Arguments: input})
	if err != nil {
		d.t.Fatalf("%s: %v", tool, err)
	}
	for _, c := range r.Content {
		text += c.(*mcp.TextContent).Text + "\n"
	}
	return text, r.IsError
}

// Typed text is read, and so is a selection. A withdrawn resource is gone.
func (d demoed) liveDocument() {
	d.lists("state/order", true)
	d.Watch(d.at+"state/document", d.at+"state/selection")
	d.types("#document-title", kb.End+" and swim")
	d.reads("state/document", "picnic and swim")
	d.click("#document-text")
	// Naming the command makes the key work on macOS too.
	d.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl),
		func(p *input.DispatchKeyEventParams) {
			p.Commands = []string{"selectAll"}
		}))
	d.reads("state/selection", `"text":"Twelve people`)
	d.click("#order-shared")
	d.lists("state/order", false)
}

// An agent whose cart is older than the page's is refused and told of the change; then it may
// order. So is the agent beside the page, with a gateway of its own.
func (d demoed) cart() {
	d.lists("state/cart", true)
	d.reads("state/cart", `"total":"€ 11.40"`)
	// It reads again once it has subscribed, and that read would know of the croissant.
	d.sees("the agent beside it has read the cart again",
		`document.querySelector("#resources [data-name=cart]")?.dataset.reads >= 2`)
	d.click("[data-sku=croissant] .more")
	if text, failed := d.calls("checkout", struct{}{}); !failed ||
		!strings.Contains(text, "was not run") ||
		!strings.Contains(text, `"value":"€ 13.20"`) {
		d.t.Errorf("a checkout of the cart as it was: %s", text)
	}
	// What it is told shows a button, which moves the tools below it.
	d.sees("the agent beside it is told", `!!document.querySelector("#resources [data-stale]")`)
	d.click("#tools button")
	d.sees("the agent beside it is refused",
		`document.querySelector("#tools [data-failed] output")?.textContent.includes("was not run")`)
	if said := run[string](d.tab,
		`return document.getElementById("ordered").textContent`); said != "" {
		d.t.Errorf("the page says %q, though nobody may have ordered", said)
	}
	const done = "Ordered by an agent: 6 items for € 13.20."
	if text, failed := d.calls("checkout", struct{}{}); failed || !strings.Contains(text, done) {
		d.t.Errorf("a checkout of the cart as it is: %s", text)
	}
	d.sees("the page says so",
		fmt.Sprintf(`document.getElementById("ordered").textContent === %q`, done))
}

// An error is readable as long as it exists. The password is in nothing that an agent gets.
func (d demoed) form() {
	const secret = "correct-horse-7"
	d.lists("form", true)
	d.Watch(d.at + "form")
	d.types("[name=email]", "ada")
	d.types("[name=password]", "short"+kb.Tab)
	d.reads("form", `An address looks like`)
	text := d.reads("form", `Ten characters at least`)
	d.types("[name=email]", "@example.org")
	d.types("[name=password]", "-"+secret)
	d.types("[name=name]", "Ada")
	d.click("[name=rules]")
	d.types("[name=name]", kb.Enter)
	text += d.reads("form", `"sent":true`)
	seen := text + run[string](d.tab, `return document.getElementById("agent").textContent`)
	if strings.Contains(seen, "short") || strings.Contains(seen, secret) ||
		strings.Contains(text[len(text)-200:], "error") {
		d.t.Errorf("the agent saw %s", seen)
	}
}

// Sixty changes a second become a few messages, and the last change is among them.
func (d demoed) chart() {
	type wind struct{ Measured int }
	read := func(text string) (w wind) {
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			d.t.Fatalf("%v: %s", err, text)
		}
		return w
	}
	d.lists("wind", true)
	d.Watch(d.at + "wind")
	testkit.Receive(d.t, "the agent is told", d.Updates)
	from, told := read(d.Text(d.at+"wind")).Measured, 0
	for ; told < 2; told++ {
		testkit.Receive(d.t, "the agent is told again", d.Updates)
	}
	if to := read(d.Text(d.at + "wind")).Measured; to-from < 20*told {
		d.t.Errorf("told %d times of %d changes", told, to-from)
	}
	d.click("#run")
	last := run[int](d.tab,
		`return Number(document.getElementById("changes").textContent.replace(/,/g, ""))`)
	d.keeps("the agent reads the last state", "wind",
		func(text string) bool { return read(text).Measured >= last })
}
