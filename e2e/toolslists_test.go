package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// The README says how many bytes the tools of each server are: the member tools of the answer to
// tools/list, as it is sent without arguments or a page.
func TestToolsListsOfTheReadme(t *testing.T) {
	t.Parallel()
	readme := string(testkit.Must(os.ReadFile("../README.md"))(t))
	for _, server := range [][]string{
		{"../bin/pagewire", "serve", "--hub", testkit.Addr(t)},
		{"playwright-mcp"},
		{"chrome-devtools-mcp", "--no-usage-statistics", "--no-performance-crux"},
		{"agent-browser", "mcp"},
	} {
		name := strings.TrimSuffix(filepath.Base(server[0]), "-mcp")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bytes := figure.Grouped(fmt.Sprint(len(toolsList(t, server)))) + " B"
			_, said, _ := strings.Cut(readme, "`tools/list`")
			if said, _, _ = strings.Cut(said, "\n\n"); !strings.Contains(said, bytes) {
				t.Errorf("README.md does not say that the tools of %s are %s:%s", name, bytes, said)
			}
		})
	}
}

// toolsList starts an MCP server of stdio, and returns its tools as it sends them.
func toolsList(t *testing.T, command []string) json.RawMessage {
	t.Helper()
	path := command[0]
	if !strings.Contains(path, "/") {
		path = "peers/node_modules/.bin/" + path
	}
	server := testcmd.CommandContext(t.Context(), testkit.Must(filepath.Abs(path))(t), command[1:]...)
	home := t.TempDir()
	server.Dir = home
	server.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home,
		"CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS=1")
	in := testkit.Must(server.StdinPipe())(t)
	answers := bufio.NewReader(testkit.Must(server.StdoutPipe())(t))
	testkit.OK(t, server.Start())
	t.Cleanup(func() {
		in.Close()
		server.Wait()
	})
	ask := func(id int, method, params string) (result struct{ Tools json.RawMessage }) {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for {
			line, err := answers.ReadBytes('\n')
			if err != nil {
				t.Fatalf("%s: %v; make test-browser installs it", method, err)
			}
			var answer struct {
				ID     int
				Result json.RawMessage
			}
			if json.Unmarshal(line, &answer) == nil && answer.ID == id {
				testkit.OK(t, json.Unmarshal(answer.Result, &result))
				return result
			}
		}
	}
	ask(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return ask(2, "tools/list", "{}").Tools
}
