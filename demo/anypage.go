package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/demo/ci"
)

// anyPage is the story's first part. An agent follows a page that knows nothing of Pagewire: its
// user offers it. The agent starts the gateway, the binary that make build has written, as a
// desktop client does by its configuration. It is go-sdk's client.
func (t *teller) anyPage(gateway string, b *launched.Started, site string, run *ci.Run) (
	err error) {
	run.Set(ci.Runs)
	if err := t.act("open the page", chromedp.Navigate(site+ci.Path)); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pagewire-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// A separate hub, so that the story is the same beside a gateway that runs here already.
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	hub := free.Addr().String()
	free.Close()
	var said bytes.Buffer // read when the process has ended
	command := exec.Command(gateway, "serve", "--hub", hub, "--chrome", b.URL, "--shown", site,
		"--log-level", "warn")
	command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir)
	command.Stderr = &said

	ctx, cancel := context.WithTimeout(t.ctx, startDeadline)
	defer cancel()
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1"}, nil).Connect(ctx,
		&mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		return fmt.Errorf("start %s: %w\n%s", gateway, err, said.String())
	}
	defer func() {
		if closeErr := agent.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("end %s: %w\n%s", gateway, closeErr, said.String())
		}
	}()
	t.line("person", "says: watch the CI run in my browser, and when the browser job fails, "+
		"look into it")
	t.line("page", "%s knows nothing of Pagewire, and its policy allows no script of others",
		site+ci.Path)
	t.line("agent", "starts pagewire serve --chrome ... --shown %s", site)
	return t.watchRun(call(ctx, agent), site+"/.pagewire/shown", run)
}

// call returns a function that calls a tool, and returns the texts of its result.
func call(ctx context.Context, agent *mcp.ClientSession) func(tool string, arguments any) (
	string, error) {
	return func(tool string, arguments any) (text string, err error) {
		result, err := agent.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return "", fmt.Errorf("%s: %w", tool, err)
		}
		for _, c := range result.Content {
			if c, is := c.(*mcp.TextContent); is {
				text += c.Text + "\n"
			}
		}
		if result.IsError {
			return "", fmt.Errorf("%s: %s", tool, text)
		}
		return text, nil
	}
}

// watchRun lists, reads and waits, as a model does by the gateway's tools. Meanwhile the run fails.
func (t *teller) watchRun(tool func(string, any) (string, error), uri string, run *ci.Run) error {
	for list, err := "",
		error(nil); !strings.Contains(list, uri); time.Sleep(10 * time.Millisecond) {
		if list, err = tool("list_page_resources", nil); err != nil {
			return err
		}
	}
	t.line("agent", "listed %s", uri)
	text, err := tool("read_page_resource", map[string]any{"uri": uri})
	if err != nil {
		return err
	}
	head, lines, _ := strings.Cut(text, "\n")
	var read struct{ Revision int64 }
	if err := json.Unmarshal([]byte(head), &read); err != nil {
		return fmt.Errorf("read_page_resource: %s: %w", head, err)
	}
	t.line("agent", "read its %d lines, %d bytes, and waits, in one call",
		strings.Count(lines, "\n"), len(lines))

	run.Set(ci.Fails)
	t.line("page", "shows that the browser job has failed")
	began := time.Now()
	told, err := tool("wait_for_page_update",
		map[string]any{"uris": []string{uri}, "since": read.Revision})
	if err != nil {
		return err
	}
	const before = "-| browser | " + ci.Runs + " | large |"
	const after = "+| browser | " + ci.Fails + " | large |"
	if !strings.Contains(told, before+"\n"+after+"\n") {
		return fmt.Errorf("the agent was told of another change:\n%s", told)
	}
	t.line("agent", "was told after %.0f ms, and looks into it", time.Since(began).Seconds()*1000)
	t.line("", before)
	t.line("", after)
	return nil
}
