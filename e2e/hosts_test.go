//go:build hosts

package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// hostsTable is what make test-hosts prints, and hostsManual has the same table.
const hostsTable, hostsManual = "../bin/hosts.md", "../demo/docs/hosts.md"

// offline limits a browser to this machine.
const offline = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"

// A hostProgram is a program of others through which an agent uses a page's tools. It knows nothing
// of Pagewire, and is as npm has it.
type hostProgram struct {
	name, pkg string
	// way says by what the host finds the tools, and flags are the browser's for that.
	way   string
	flags []string
	// tag is what the page loads beside Pagewire.
	tag func(t *testing.T, relay string) string
	// connect starts the host, which is attached to the browser at an address.
	connect func(h *hosted, browser string)
	// lacks has, by check, why it cannot pass.
	lacks map[string]string
}

// A hosted page is open in a browser that a host is attached to.
type hosted struct {
	t *testing.T
	b *tab
	s *site
	// relay is the address that the page expects a relay at.
	relay string
	// tools returns the names of the page's tools.
	tools func() []string
	// call returns all that a model gets for the call of a page's tool.
	call func(tool string, input map[string]any) string
	// revision is the last that the model was told.
	revision string
}

// cartOf40 is a page with one resource, a tool, and a tool that must not run for an older cart.
var cartOf40 = page{script: `
	const uri = location.origin + "/cart";
	const cart = { items: Array.from({ length: 40 }, (_, i) => ({ title: "thing " + i, quantity: 1 })) };
	document.modelContext.registerResource({ uri, name: "Cart", mimeType: "application/json", read: () => JSON.stringify(cart) });
	pagewire.configure({ freshState: { checkout: [uri] } });
	const tool = (name, execute) => document.modelContext.registerTool({ name, description: name + " of the cart", inputSchema: { type: "object", properties: {} }, execute });
	globalThis.paid = 0;
	const text = (text) => ({ content: [{ type: "text", text }] });
	tool("shipping_costs", () => text("shipping is free"));
	tool("checkout", () => text("it is paid, payment " + ++paid));
	globalThis.set = (i, quantity) => {
		cart.items[i].quantity = quantity;
		document.modelContext.notifyResourceUpdated(uri);
	};`}

// A hostCheck fails if the host's model does not get what it should.
type hostCheck struct {
	name string
	run  func(h *hosted) (said string, err error)
}

var hostChecks = []hostCheck{
	{"list", func(h *hosted) (string, error) {
		said := h.asks("resources_list", none)
		return said, h.has(said, h.s.URL+"/cart")
	}},
	{"read", func(h *hosted) (string, error) {
		said := h.asks("resources_read", map[string]any{"uri": h.s.URL + "/cart"})
		return said, h.has(said, "thing 0", "thing 39")
	}},
	{"delta", func(h *hosted) (string, error) {
		h.set(3, 2)
		said := h.asks("resources_read", map[string]any{"uri": h.s.URL + "/cart",
			"since": h.revision})
		return said, h.has(said, "/items/3/quantity", whole)
	}},
	{"told", func(h *hosted) (string, error) {
		h.set(5, 4)
		said := h.asks("shipping_costs", map[string]any{"pagewire_since": h.revision})
		return said, h.has(said, "shipping is free", "/items/5/quantity", whole)
	}},
	{"stale", func(h *hosted) (string, error) {
		h.set(7, 9)
		refused := h.asks("checkout", map[string]any{"pagewire_since": h.revision})
		known := h.revision
		unknown := h.asks("checkout", none)
		if paid := run[int](h.b, "return paid"); paid != 0 {
			return refused, fmt.Errorf("checkout has run %d times", paid)
		}
		said := h.asks("checkout", map[string]any{"pagewire_since": known})
		if paid := run[int](h.b, "return paid"); paid != 1 {
			return said, fmt.Errorf("checkout has run %d times", paid)
		}
		return refused, cmp.Or(h.has(refused, "was not run", "/items/7/quantity", whole),
			h.has(unknown, "was not run", "thing 39"), h.has(said, "it is paid"))
	}},
}

// whole is a part of the cart that is in no difference, as has takes it.
const whole = "-thing 20"

func (h *hosted) set(item, quantity int) {
	h.t.Helper()
	run[any](h.b, fmt.Sprintf("set(%d, %d)", item, quantity))
}

// asks calls a tool, and keeps the revision of the result.
func (h *hosted) asks(tool string, input map[string]any) string {
	h.t.Helper()
	said := h.call(tool, input)
	h.t.Logf("%s %v: %s", tool, input, said)
	if m := aRevision.FindAllStringSubmatch(said, -1); m != nil {
		h.revision = m[len(m)-1][1]
	}
	return said
}

// aRevision is that of a result, a refusal or what stands at a result's end, also within a string
// of JSON.
var aRevision = regexp.MustCompile(`(?:"revision|"pagewire_since|is now)\\*"?:?\s*\\*"([\w-]+)`)

// has reports which part is not there once, or is there in spite of its "-".
func (h *hosted) has(said string, parts ...string) error {
	for _, part := range parts {
		times := 1
		if not, is := strings.CutPrefix(part, "-"); is {
			part, times = not, 0
		}
		if got := strings.Count(said, part); got != times {
			return fmt.Errorf("%q is there %d times, want %d", part, got, times)
		}
	}
	return nil
}

var hosts = []hostProgram{
	{name: "chrome-devtools-mcp", pkg: "peers/node_modules/chrome-devtools-mcp", way: "WebMCP",
		flags: []string{withWebMCP}, connect: func(h *hosted, browser string) {
			a := connectPeer(h.t, peers[0], browser)
			peers[0].choose(a, h.s.URL)
			h.tools = func() []string { return peers[0].tools(a) }
			h.call = func(tool string, input map[string]any) string {
				return a.text("execute_webmcp_tool", map[string]any{"pageId": a.page,
					"toolName": tool, "input": asJSON(input)})
			}
		}},
	{name: "chrome-devtools-mcp", pkg: "peers/node_modules/chrome-devtools-mcp",
		way: "third-party tools", flags: []string{withoutWebMCP},
		connect: func(h *hosted, browser string) {
			p := peers[0]
			p.args = func(browser string) []string {
				return []string{"--browserUrl", browser, "--categoryExperimentalThirdParty",
					"--no-usage-statistics", "--no-performance-crux"}
			}
			a := connectPeer(h.t, p, browser)
			p.choose(a, h.s.URL)
			h.tools = func() []string {
				return named(a.text("list_3p_developer_tools", map[string]any{"pageId": a.page}))
			}
			h.call = func(tool string, input map[string]any) string {
				return a.text("execute_3p_developer_tool", map[string]any{"pageId": a.page,
					"toolName": tool, "params": asJSON(input)})
			}
		}},
	{name: "playwright-mcp", pkg: "peers/node_modules/@playwright/mcp", way: "WebMCP",
		flags: []string{withWebMCP}, connect: playwrightMCP},
	{name: "playwright-mcp", pkg: "peers/node_modules/@playwright/mcp", way: "WebMCP of Pagewire",
		flags: []string{withoutWebMCP}, connect: playwrightMCP},
	{name: "agent-browser", pkg: "peers/node_modules/agent-browser", way: "WebMCP",
		flags: []string{withWebMCP}, connect: func(h *hosted, browser string) {
			a := agentBrowser(h, browser)
			h.tools = func() []string { return named(a.text("agent_browser_webmcp_list", none)) }
			h.call = func(tool string, input map[string]any) string {
				return a.text("agent_browser_webmcp_invoke", map[string]any{"tool": tool,
					"params": input})
			}
		}},
	{name: "agent-browser", pkg: "peers/node_modules/agent-browser", way: "eval",
		flags: []string{withoutWebMCP}, connect: func(h *hosted, browser string) {
			a := agentBrowser(h, browser)
			h.evaluates(func(script string) string {
				return a.text("agent_browser_eval", map[string]any{"script": script})
			})
		}},
	{name: "Stagehand", pkg: "hosts/node_modules/@browserbasehq/stagehand", way: "page.tools()",
		flags: []string{withWebMCP, "--enable-unsafe-extension-debugging",
			"--remote-allow-origins=*"},
		connect: func(h *hosted, browser string) {
			ask := stagehand(h, browser)
			h.tools = func() (names []string) {
				json.Unmarshal([]byte(ask(map[string]any{})), &names)
				return names
			}
			h.call = func(tool string, input map[string]any) string {
				return ask(map[string]any{"tool": tool, "input": input})
			}
		}},
	{name: "Stagehand", pkg: "hosts/node_modules/@browserbasehq/stagehand", way: "page.evaluate()",
		flags: []string{withoutWebMCP, "--enable-unsafe-extension-debugging",
			"--remote-allow-origins=*"},
		connect: func(h *hosted, browser string) {
			ask := stagehand(h, browser)
			h.evaluates(func(script string) string {
				return ask(map[string]any{"script": script})
			})
		}},
	{name: "@mcp-b relay", pkg: "hosts/node_modules/@mcp-b/webmcp-local-relay", way: "embed.js",
		flags: []string{withoutWebMCP},
		tag: func(t *testing.T, relay string) string {
			_, port, _ := strings.Cut(relay, ":")
			return "<script>window.__webMCPPolyfillOptions = { installTestingShim: true }" +
				"</script>" + polyfill(t) + `<script src="/pagewire.js"></script>` +
				`<script defer src="/relay/embed.js" data-relay-port="` +
				port + `"></script>`
		},
		connect: func(h *hosted, _ string) {
			program := testkit.Must(filepath.Abs("hosts/node_modules/.bin/node"))(h.t)
			_, port, _ := strings.Cut(h.relay, ":")
			command := testcmd.CommandContext(h.t.Context(), program,
				"hosts/node_modules/@mcp-b/webmcp-local-relay/dist/cli.js", "--port", port,
				"--widget-origin", h.s.URL)
			command.Env = append(os.Environ(), "HOME="+h.t.TempDir())
			command.Stderr = testkit.LogOf(h.t, "the relay")
			a := mcpHost(h, command)
			h.tools = func() (names []string) {
				for tool, err := range a.session.Tools(a.t.Context(), nil) {
					testkit.OK(h.t, err)
					names = append(names, tool.Name)
				}
				return names
			}
			h.call = a.text
		}},
}

// evaluates makes the host call tools by a script of its model's, which needs no WebMCP of the
// browser: Pagewire's own has the same methods.
func (h *hosted) evaluates(evaluate func(script string) string) {
	h.tools = func() []string {
		return regexp.MustCompile(`\w+`).FindAllString(evaluate(
			"document.modelContext.getTools().then((all) => all.map(({ name }) => name))"), -1)
	}
	h.call = func(tool string, input map[string]any) string {
		return evaluate(fmt.Sprintf("document.modelContext.getTools().then((all) => "+
			"document.modelContext.executeTool(all.find(({ name }) => name === %q), %s))", tool,
			asJSON(input)))
	}
}

// named finds the names of tools in a list as JSON, or as chrome-devtools-mcp writes it.
func named(list string) (names []string) {
	for _, m := range regexp.MustCompile(`name(?:":\s*|=)"(\w+)"`).FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	return names
}

func playwrightMCP(h *hosted, browser string) {
	a := connectPeer(h.t, peers[1], browser)
	peers[1].choose(a, h.s.URL)
	h.tools = func() []string { return peers[1].tools(a) }
	h.call = func(tool string, input map[string]any) string { return a.text("webmcp_"+tool, input) }
}

// text is tool for a result that may have several parts, or be an error.
func (a *peerAgent) text(name string, arguments map[string]any) string {
	result, err := a.session.CallTool(a.t.Context(),
		&mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return err.Error()
	}
	var said []string
	for _, part := range result.Content {
		if text, is := part.(*mcp.TextContent); is {
			said = append(said, text.Text)
		}
	}
	return strings.Join(said, "\n")
}

func asJSON(v any) string {
	text, _ := json.Marshal(v) // strings and numbers always encode
	return string(text)
}

// agentBrowser is agent-browser's own MCP server, with the profile of tools for WebMCP.
func agentBrowser(h *hosted, browser string) *peerAgent {
	home := testkit.ShortDir(h.t)
	program := testkit.Must(filepath.Abs("peers/node_modules/.bin/agent-browser"))(h.t)
	env := append(os.Environ(), "HOME="+home, "AGENT_BROWSER_CDP="+browser,
		"AGENT_BROWSER_NO_VERSION_CHECK=1")
	command := testcmd.CommandContext(h.t.Context(), program, "mcp", "--tools", "core,tabs,webmcp")
	command.Env, command.Dir = env, home
	a := mcpHost(h, command)
	h.t.Cleanup(func() { // it ends the process that has the browser
		last := testcmd.Command(program, "close")
		last.Env, last.Dir = env, home
		last.Run()
	})
	tab := regexp.MustCompile(`"tabId":\s*"(t\d+)"[^}]*"url":\s*"` + regexp.QuoteMeta(h.s.URL)).
		FindStringSubmatch(a.text("agent_browser_tab_list", none))
	if tab == nil {
		h.t.Fatalf("it does not list the page: %s", a.text("agent_browser_tab_list", none))
	}
	a.text("agent_browser_tab_switch", map[string]any{"tab": tab[1]})
	return a
}

func mcpHost(h *hosted, command *exec.Cmd) *peerAgent {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(h.t.Context(),
		&mcp.CommandTransport{Command: command, TerminateDuration: testkit.Patience}, nil)
	if err != nil {
		h.t.Fatalf("connect to %v: %v; make test-hosts installs it", command.Args, err)
	}
	h.t.Cleanup(func() { session.Close() })
	return &peerAgent{t: h.t, session: session}
}

// stagehand starts a program that uses Stagehand; the result passes it a question.
func stagehand(h *hosted, browser string) func(question any) string {
	program := testkit.Must(filepath.Abs("hosts/node_modules/.bin/node"))(h.t)
	command := testcmd.CommandContext(h.t.Context(), program, "hosts/stagehand.mjs", browser,
		h.s.URL)
	command.Env = append(os.Environ(), "HOME="+h.t.TempDir())
	command.Stderr = testkit.LogOf(h.t, "stagehand")
	in := testkit.Must(command.StdinPipe())(h.t)
	out := bufio.NewReader(testkit.Must(command.StdoutPipe())(h.t))
	testkit.OK(h.t, command.Start())
	h.t.Cleanup(func() { in.Close(); command.Wait() })
	return func(question any) string {
		fmt.Fprintln(in, asJSON(question))
		line, err := out.ReadString('\n')
		var answer struct{ Said, Failed string }
		if err == nil {
			err = json.Unmarshal([]byte(line), &answer)
		}
		if err != nil {
			h.t.Fatalf("Stagehand's program answers %q: %v", line, err)
		}
		return answer.Said + answer.Failed
	}
}

func TestHosts(t *testing.T) {
	// Programs of Node reach this machine alone. agent-browser is none, and connects to the browser.
	t.Setenv("NODE_OPTIONS", "--require "+testkit.Must(filepath.Abs("bench/site/offline.cjs"))(t))
	rows := make([]string, len(hosts))
	t.Run("each", func(t *testing.T) {
		for i, of := range hosts {
			t.Run(of.name+" "+of.way, func(t *testing.T) {
				t.Parallel()
				rows[i] = of.checked(t)
			})
		}
	})
	table := hostsHead + strings.Join(rows, "")
	testkit.OK(t, os.MkdirAll(filepath.Dir(hostsTable), 0o755))
	testkit.OK(t, os.WriteFile(hostsTable, []byte(table), 0o644))
	if slices.Contains(rows, "") {
		return // not all have run
	}
	manual := string(testkit.Must(os.ReadFile(hostsManual))(t))
	_, printed, _ := strings.Cut(manual, hostsHead)
	printed, _, _ = strings.Cut(printed, "\n\n")
	if sizes := regexp.MustCompile(`, \d+ B`); sizes.ReplaceAllString(printed+"\n", "") !=
		sizes.ReplaceAllString(strings.Join(rows, ""), "") {
		t.Errorf("%s has another table than %s:\n%s", hostsManual, hostsTable, printed)
	}
}

const hostsHead = "| host | version | way | list | read | delta | told | stale |\n" +
	"|---|---|---|---|---|---|---|---|\n"

func (of hostProgram) checked(t *testing.T) (row string) {
	p, relay := cartOf40, testkit.Addr(t)
	if of.tag != nil {
		p.tag = of.tag(t, relay)
	}
	h := &hosted{t: t, s: serve(t, p), relay: relay}
	files := h.s.Config.Handler
	h.s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, is := strings.CutPrefix(r.URL.Path, "/relay/"); is {
			http.ServeFile(w, r, "hosts/node_modules/@mcp-b/webmcp-local-relay/dist/browser/"+name)
			return
		}
		files.ServeHTTP(w, r)
	})
	ctx, url := startChromium(t, append(of.flags, offline)...)
	// A relay that starts later than its page waits long: after 33 refused connections, Chromium
	// delays each further one by more than the widget waits.
	open := func() { h.b = openIn(t, ctx, h.s) }
	if of.tag == nil {
		open()
	}
	of.connect(h, "http://"+strings.Split(url, "/")[2])
	if of.tag != nil {
		open()
	}
	testkit.State(t, "the tools are", func() string { return fmt.Sprint(h.tools()) })
	testkit.Eventually(t, "it finds the tools", func() bool {
		names := h.tools()
		return slices.Contains(names, "resources_list") && slices.Contains(names, "checkout")
	})
	var version struct{ Version string }
	testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile(of.pkg+"/package.json"))(t), &version))
	_, name, _ := strings.Cut(of.pkg, "node_modules/")
	manual := string(testkit.Must(os.ReadFile(hostsManual))(t))
	if !strings.Contains(manual, name+"@"+version.Version) &&
		!strings.Contains(manual, name+" "+version.Version) {
		t.Errorf("%s has no entry for %s@%s", hostsManual, name, version.Version)
	}
	row = fmt.Sprintf("| %s | %s | %s |", of.name, version.Version, of.way)
	for _, check := range hostChecks {
		said, err := check.run(h)
		why := of.lacks[check.name]
		verdict := fmt.Sprintf("yes, %d B", len(said))
		switch {
		case err == nil && why != "":
			t.Errorf("%s: passed, and it was not expected to: %s", check.name, why)
		case err != nil && why == "":
			t.Errorf("%s: %v in %q", check.name, err, said)
			verdict = "**no**"
		case err != nil:
			verdict = "no: " + why
		}
		row += " " + verdict + " |"
	}
	// After a reload the old revision is of another document: the model gets all again.
	h.b.navigate(h.s.URL)
	// A host may list the tools of the document that goes, and have none for a moment.
	since := h.revision
	testkit.Eventually(t, "it reads all after a reload", func() bool {
		if !slices.Contains(h.tools(), "resources_read") {
			return false
		}
		said := h.asks("resources_read", map[string]any{"uri": h.s.URL + "/cart", "since": since})
		return h.has(said, "thing 39") == nil
	})
	return row + "\n"
}
