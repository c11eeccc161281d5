package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webmcp"
	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A peer is an MCP server of others through which agents use a browser. It knows WebMCP's tools,
// and no resources: it sees only Pagewire's projected tools.
type peer struct {
	name string
	// args connect it to a running browser, and stop it from reporting its use.
	args func(browser string) []string
	// choose selects the tab at a URL. tools then returns the names of the page's tools.
	choose func(a *peerAgent, url string)
	tools  func(a *peerAgent) []string
	// call returns the answer of a page's tool, as JSON. It may run concurrently with the test.
	call func(a *peerAgent, tool string, input map[string]any) string
}

// none is an object without members. A nil map would become null.
var none = map[string]any{}

var peers = []peer{
	{
		name: "chrome-devtools-mcp",
		args: func(browser string) []string {
			return []string{"--browserUrl", browser, "--categoryExperimentalWebmcp",
				"--no-usage-statistics",
				"--no-performance-crux"}
		},
		choose: func(a *peerAgent,
			url string) {
			a.page = a.tabAt(a.tool("list_pages", none), url)
		},
		tools: func(a *peerAgent) (names []string) {
			for _, m := range regexp.MustCompile(`(?m)^name="(\w+)"`).FindAllStringSubmatch(
				a.tool("list_webmcp_tools", map[string]any{"pageId": a.page}), -1) {
				names = append(names, m[1])
			}
			return names
		},
		call: func(a *peerAgent, tool string, input map[string]any) string {
			text, _ := json.Marshal(input) // strings and numbers always encode
			result := a.tool("execute_webmcp_tool",
				map[string]any{"pageId": a.page, "toolName": tool, "input": string(text)})
			var answer struct{ Output json.RawMessage }
			if err := json.Unmarshal([]byte(result), &answer); err != nil {
				return result // the error as text
			}
			// Chromium 156 returns it as a string, instead of as JSON, if it is Latin-1 and not
			// ASCII.
			if json.Unmarshal(answer.Output, &result) == nil {
				return result
			}
			return string(answer.Output)
		},
	},
	{
		name: "playwright-mcp",
		args: func(browser string) []string { return []string{"--cdp-endpoint", browser} },
		choose: func(a *peerAgent, url string) {
			a.page = a.tabAt(a.tool("browser_tabs", map[string]any{"action": "list"}), url)
			a.tool("browser_tabs", map[string]any{"action": "select", "index": a.page})
		},
		tools: func(a *peerAgent) (names []string) {
			a.tool("browser_snapshot", none) // the snapshot makes it look up the page's tools
			for tool, err := range a.session.Tools(a.t.Context(), nil) {
				if err != nil {
					a.t.Fatal(err)
				}
				if name, ok := strings.CutPrefix(tool.Name, "webmcp_"); ok {
					names = append(names, name)
				}
			}
			return names
		},
		call: func(a *peerAgent, tool string, input map[string]any) string {
			_, answer, _ := strings.Cut(a.tool("webmcp_"+tool, input), "untrusted:\n")
			return answer
		},
	},
}

type peerAgent struct {
	t       *testing.T
	session *mcp.ClientSession
	page    int // the peer's number of the tab
}

func (a *peerAgent) tool(name string, arguments map[string]any) string {
	result, err := a.session.CallTool(a.t.Context(),
		&mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil || len(result.Content) != 1 {
		a.t.Errorf("%s: %+v, %v", name, result, err)
		return ""
	}
	return result.Content[0].(*mcp.TextContent).Text
}

// tabAt returns the number of the tab at a URL, from lines such as "- 1: (current) [title](url)".
func (a *peerAgent) tabAt(list, url string) (number int) {
	for line := range strings.Lines(list) {
		if strings.Contains(line, "("+url) {
			if _, err := fmt.Sscanf(strings.TrimPrefix(line, "- "), "%d:", &number); err == nil {
				return number
			}
		}
	}
	a.t.Fatalf("no tab at %s: %s", url, list)
	return 0
}

// Agents of others that only know tools, unmodified. They find the three tools, list and read with
// them, wait while a person types, and read the new text. Failures are reported, and the tools go
// with the last resource.
func TestPeers(t *testing.T) {
	t.Parallel()
	chromium, url := startChromium(t)
	address := "http://" + strings.Split(url, "/")[2]
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			s := serve(t, field)
			b := openIn(t, chromium, s)
			waits := make(chan string, 1)
			if err := chromedp.Listen(b.ctx, func(event any) {
				if e, ok := event.(*webmcp.EventToolInvoked); ok && e.ToolName == "resources_wait" {
					waits <- e.Input
				}
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := chromedp.Call(b.ctx, webmcp.Enable, cdp.Empty{}); err != nil {
				t.Fatal(err)
			}

			a := connectPeer(t, p, address)
			p.choose(a, s.URL)
			if got := p.tools(a); !slices.Equal(sorted(got),
				[]string{"resources_list", "resources_read", "resources_wait"}) {
				t.Fatalf("it finds the tools %q", got)
			}

			var listed struct {
				Revision  string
				Resources []struct{ URI, Name, MIMEType string }
			}
			answered(a, p.call(a, "resources_list", none), &listed)
			if len(listed.Resources) != 1 || listed.Resources[0].Name != "Field" ||
				listed.Resources[0].URI != s.URL+"/state/field" {
				t.Fatalf("listed %+v", listed)
			}
			uri := listed.Resources[0].URI
			type read struct {
				Revision  string
				Unchanged bool
				Contents  []struct{ URI, Text string }
			}
			var before, after, again read
			answered(a, p.call(a, "resources_read", map[string]any{"uri": uri}), &before)
			if len(before.Contents) != 1 || before.Contents[0].URI != uri ||
				before.Contents[0].Text != "" {
				t.Errorf("read %+v before anybody has typed", before)
			}

			answer := make(chan string, 1)
			go func() {
				answer <- p.call(a, "resources_wait",
					map[string]any{"uris": []string{uri}, "since": before.Revision,
						"timeoutMs": 25_000})
			}()
			testkit.Ends(t, "the page's tool runs", waits)
			select {
			case text := <-answer:
				t.Fatalf("nothing has changed, and resources_wait answers %s", text)
			case <-time.After(300 * time.Millisecond):
			}
			b.do(chromedp.SendKeys("#field", "é"))
			var woken struct {
				Revision string
				Updated  []string
			}
			answered(a,
				testkit.Receive(t, "resources_wait answers, well before its own timeout", answer),
				&woken)
			if !slices.Equal(woken.Updated, []string{uri}) || woken.Revision == before.Revision ||
				woken.Revision == "" {
				t.Errorf("woken by %+v, after revision %s", woken, before.Revision)
			}
			answered(a,
				p.call(a, "resources_read", map[string]any{"uri": uri, "since": before.Revision}),
				&after)
			if len(after.Contents) != 1 || after.Contents[0].Text != "é" ||
				after.Revision == before.Revision {
				t.Errorf("read %+v after the change", after)
			}
			answered(a,
				p.call(a, "resources_read", map[string]any{"uri": uri, "since": after.Revision}),
				&again)
			if !again.Unchanged || again.Contents != nil {
				t.Errorf("read again %+v", again)
			}

			run[any](b, `navigator.modelContext.unregisterResource(uri)`)
			testkit.Eventually(t, "the tools are gone", func() bool { return len(p.tools(a)) == 0 })
		})
	}
}

func answered(a *peerAgent, text string, v any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		a.t.Fatalf("answered %q: %v", text, err)
	}
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// connectPeer starts a peer as agents do, and connects a client to it.
func connectPeer(t *testing.T, p peer, address string) *peerAgent {
	t.Helper()
	program := testkit.Must(filepath.Abs(filepath.Join("peers/node_modules/.bin", p.name)))(t)
	command := testcmd.CommandContext(t.Context(), program, p.args(address)...)
	// A home of its own, for the files that they keep from run to run. The variable stops a check
	// for a newer version.
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "HOME="+command.Dir,
		"CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS=1")
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(),
		&mcp.CommandTransport{Command: command, TerminateDuration: testkit.Patience}, nil)
	if err != nil {
		t.Fatalf("connect to %s: %v; make test-browser installs it", p.name, err)
	}
	t.Cleanup(func() { session.Close() })
	return &peerAgent{t: t, session: session}
}
