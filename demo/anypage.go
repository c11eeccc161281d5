package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/demo/ci"
	"github.com/pagewire/pagewire/demo/step"
)

// program is the gateway, as make build has written it.
const program = "bin/pagewire"

// anyPage is the story's first part. An agent follows a page that knows nothing of Pagewire: its
// user offers it. The agent starts the gateway, as a desktop client does by its configuration. It
// is go-sdk's client.
func (t *teller) anyPage(b *launched.Started, site string, run *ci.Run) {
	run.Set(ci.Runs)
	t.act("open the page", chromedp.Navigate(site+ci.Path))
	dir := step.Must(os.MkdirTemp("", "pagewire-demo-"))
	defer os.RemoveAll(dir)
	// A separate hub, so that the story is the same beside a gateway that runs here already.
	hub := step.FreeAddrs(1)[0]
	var said bytes.Buffer // read when the process has ended
	command := exec.Command(program, "serve", "--hub", hub, "--chrome", b.URL, "--shown", site,
		"--log-level", "warn")
	command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir)
	command.Stderr = &said

	ctx, cancel := context.WithTimeout(t.ctx, startDeadline)
	defer cancel()
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1"}, nil).Connect(ctx,
		&mcp.CommandTransport{Command: command}, nil)
	ended := func(err error, before string) {
		if err != nil {
			step.Check(fmt.Errorf("%w\n%s", err, said.String()), before, program)
		}
	}
	ended(err, "start ")
	defer agent.Close() // if the story ends here
	t.line("person", "says: watch the CI run in my browser, and when the browser job fails, "+
		"look into it")
	t.line("page", "%s knows nothing of Pagewire, and its policy allows no script of others",
		site+ci.Path)
	t.line("agent", "starts pagewire serve --chrome ... --shown %s", site)
	t.watchRun(call(ctx, agent), site+"/.pagewire/shown", run)
	ended(agent.Close(), "end ")
}

// call returns a function that calls a tool, and returns the texts of its result.
func call(ctx context.Context, agent *mcp.ClientSession) func(tool string, arguments any) string {
	return func(tool string, arguments any) (text string) {
		result, err := agent.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		step.Check(err, tool)
		for _, c := range result.Content {
			if c, is := c.(*mcp.TextContent); is {
				text += c.Text + "\n"
			}
		}
		if result.IsError {
			step.Check(errors.New(text), tool)
		}
		return text
	}
}

// watchRun lists, reads and waits, as a model does by the gateway's tools. Meanwhile the run fails.
func (t *teller) watchRun(tool func(string, any) string, uri string, run *ci.Run) {
	for !strings.Contains(tool("list_page_resources", nil), uri) {
		time.Sleep(10 * time.Millisecond)
	}
	t.line("agent", "listed %s", uri)
	text := tool("read_page_resource", map[string]any{"uri": uri})
	head, lines, _ := strings.Cut(text, "\n")
	var read struct{ Revision int64 }
	step.Check(json.Unmarshal([]byte(head), &read), "read_page_resource: ", head)
	t.line("agent", "read its %d lines, %d bytes, and waits, in one call",
		strings.Count(lines, "\n"), len(lines))

	run.Set(ci.Fails)
	t.line("page", "shows that the browser job has failed")
	began := time.Now()
	told := tool("wait_for_page_update",
		map[string]any{"uris": []string{uri}, "since": read.Revision})
	const before = "-| browser | " + ci.Runs + " | large |"
	const after = "+| browser | " + ci.Fails + " | large |"
	if !strings.Contains(told, before+"\n"+after+"\n") {
		step.Check(fmt.Errorf("the agent was told of another change:\n%s", told))
	}
	t.line("agent", "was told after %.0f ms, and looks into it", time.Since(began).Seconds()*1000)
	t.line("", before)
	t.line("", after)
}
