//go:build !js

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// checking runs the server, with a client that has connected.
func checking(t *testing.T, o *mcp.ClientOptions) (session *mcp.ClientSession, report func() string) {
	t.Helper()
	testkit.NoLeak(t)
	path := filepath.Join(t.TempDir(), "report.md")
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	over := make(chan error, 1)
	go func() {
		over <- serve(context.Background(), path, in, out)
		out.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test|er", Version: "1"}, o)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		toServer.Close()
		if err := testkit.Receive(t, "the server ends", over); err != nil {
			t.Error(err)
		}
	})
	return session, func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func call(t *testing.T, session *mcp.ClientSession, name string, arguments map[string]any) *mcp.CallToolResult {
	t.Helper()
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

func TestClientCheckReportsWhatReachedAClient(t *testing.T) {
	updated := make(chan string, 100)
	session, report := checking(t,
		&mcp.ClientOptions{ResourceUpdatedHandler: func(_ context.Context,
			r *mcp.ResourceUpdatedNotificationRequest) {
			updated <- r.Params.URI
		}})
	has := func(rows ...string) {
		t.Helper()
		for _, row := range rows {
			if text := report(); !strings.Contains(text, row+"\n") {
				t.Errorf("no %q in\n%s", row, text)
			}
		}
	}
	has("# What reached test\\|er 1", "| spoke | 2025-11-25 |", "| `tools/list` | no |", "| text | was not asked for |",
		"| the slow call | not made, or still running |",
		"Its model has not called check_report: nothing is known of what it was shown. Ask it this:")
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: checkURI}); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		r, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: checkURI})
		if err != nil {
			t.Fatal(err)
		}
		return r.Contents[0].Text
	}
	first := read()
	text := call(t, session, "check_text", nil).Content[1].(*mcp.TextContent).Text
	if got := testkit.Receive(t, "an update", updated); got != checkURI {
		t.Errorf("an update of %s", got)
	}
	second := read()
	if !strings.HasPrefix(first, "The counter is 0.") || !strings.HasPrefix(second, "The counter is 1.") {
		t.Errorf("%s, and then %s", first, second)
	}
	call(t, session, "check_both", nil)
	structured := call(t, session, "check_structured", nil).StructuredContent.(map[string]any)["word"]
	call(t, session, "check_slow", map[string]any{"seconds": 1})
	testkit.Eventually(t, "a tool has come", func() bool {
		tools, err := session.ListTools(t.Context(), nil)
		return err == nil && len(tools.Tools) == len(checkPlaces())+2
	})
	if !call(t, session, "check_report", map[string]any{"words": []any{text, 5}}).IsError {
		t.Error("5 is no word, and there is no error")
	}
	has("| `resources/subscribe` | once |", "| `resources/read` | 2 times |",
		"| was sent `resources/updated` | 3 times |", "| read what had changed | once |",
		"| the slow call | answered after 1 s |", "Its model has not called check_report: nothing is known of what "+
			"it was shown. Ask it this:")
	call(t, session, "check_report",
		map[string]any{"words": []any{" " + strings.ToUpper(text), structured, "pw-guessed"}})
	has("| text | yes |", "| text beside `structuredContent` | no |", "| `structuredContent` alone | yes |",
		"| error | was not asked for |",
		"| instructions of the server | no |", "| result of the slow call | no |",
		"| tool that came within the session | was not asked for |")
}

func TestClientCheckNotesWhoGivesUp(t *testing.T) {
	session, report := checking(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "check_slow"})
		over <- err
	}()
	cancel()
	if err := testkit.Receive(t, "the call ends", over); err == nil {
		t.Error("it was answered")
	}
	testkit.Eventually(t, "that is in the report, or the call has never come", func() bool {
		return strings.Contains(report(), "| the slow call | given up by the client after ") ||
			!strings.Contains(report(), "check_slow")
	})
}

func TestClientCheckOfAProgramThatConnectsToNothing(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	err := check(t.Context(), []string{"sh", "-c", "{ echo {prompt}; cat {config}; } > '" + seen + "'"}, io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "sh started no server") {
		t.Error(err)
	}
	text, _ := os.ReadFile(seen)
	for _, want := range []string{"Call each tool of the MCP server pagewire-check", `"mcpServers"`, `"--report"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the program was not given %s: %s", want, text)
		}
	}
	if err := serve(t.Context(), filepath.Join(t.TempDir(), "none", "report.md"), nil, nil); err == nil {
		t.Error("a report that cannot be written is no error")
	}
}
