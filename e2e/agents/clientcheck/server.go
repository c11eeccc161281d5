//go:build !js

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	checkName = "pagewire-check"
	checkURI  = "https://check.example/counter"
	// slowest is the maximum duration of check_slow, in seconds. slowByDefault is below the 60 s
	// after which some clients give up.
	slowest, slowByDefault = 600, 50
)

// A checker is an MCP server that notes what a client does with it.
type checker struct {
	server *mcp.Server
	write  func(report string) error
	// words are the words to show, by the name of the place in the report. They cannot be guessed.
	words map[string]string

	mu         sync.Mutex
	client     string
	version    string
	can        []string // its capabilities
	asked      map[string]int
	changes    int // to the page
	told       int // updates sent after a subscription
	subscribed bool
	readAgain  int // reads of the page that found a change
	lastRead   int
	reported   bool
	seen       map[string]bool
	slow       []string // the outcomes of the slow calls
}

// A place is a part of a tool's result that may be shown to a model. Places are in the order of the
// report.
type place struct {
	name, tool string
	result     func(word string) *mcp.CallToolResult
}

func textResult(texts ...string) *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	for _, text := range texts {
		r.Content = append(r.Content, &mcp.TextContent{Text: text})
	}
	return r
}

func checkPlaces() []place {
	holding := func(
		c mcp.Content) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{c}}
	}
	return []place{
		{"text", "check_text",
			func(w string) *mcp.CallToolResult { return textResult("A text.", w) }},
		{"text beside `structuredContent`", "check_both", nil},
		{"`structuredContent` beside text", "check_both", nil},
		{"`structuredContent` alone", "check_structured", func(w string) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: []mcp.Content{},
				StructuredContent: map[string]any{"word": w}}
		}},
		{"embedded resource", "check_embedded", func(w string) *mcp.CallToolResult {
			text := &mcp.ResourceContents{URI: checkURI, MIMEType: "text/plain", Text: w}
			return holding(&mcp.EmbeddedResource{Resource: text})
		}},
		{"`resource_link`", "check_link", func(w string) *mcp.CallToolResult {
			return holding(&mcp.ResourceLink{URI: checkURI, Name: w, Description: w})
		}},
		{"text for the user alone", "check_user", func(w string) *mcp.CallToolResult {
			return holding(&mcp.TextContent{Text: w,
				Annotations: &mcp.Annotations{Audience: []mcp.Role{"user"}}})
		}},
		{"`_meta`", "check_meta", func(w string) *mcp.CallToolResult {
			r := textResult("Its word is elsewhere.")
			r.Meta = mcp.Meta{"word": w}
			return r
		}},
		{"error", "check_error", func(w string) *mcp.CallToolResult {
			r := textResult(w)
			r.IsError = true
			return r
		}},
	}
}

// The places of words that are in no result.
const (
	inInstructions = "instructions of the server"
	inResource     = "the resource, read"
	inProgress     = "progress of a call"
	inSlow         = "result of the slow call"
	inLate         = "tool that came within the session"
)

var (
	emptySchema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	slowSchema  = json.RawMessage(`{"type":"object","properties":{"seconds":` +
		`{"type":"integer","minimum":1,"maximum":600,"description":"Default 50"}}}`)
	reportSchema = json.RawMessage(`{"type":"object","properties":{"words":` +
		`{"type":"array","items":{"type":"string"}}},"required":["words"]}`)
)

// newChecker makes the server. It calls write with the report each time that the report has
// changed.
func newChecker(write func(string) error) *checker {
	c := &checker{write: write, words: map[string]string{}, asked: map[string]int{},
		seen: map[string]bool{}}
	for _, name := range append([]string{inInstructions, inResource, inProgress, inSlow, inLate},
		placeNames()...) {
		c.words[name] = "pw-" + strings.ToLower(rand.Text()[:8])
	}
	c.server = mcp.NewServer(&mcp.Implementation{Name: checkName, Version: "1"}, &mcp.ServerOptions{
		Instructions: "A test server. Its word: " + c.words[inInstructions],
		SubscribeHandler: func(context.Context, *mcp.SubscribeRequest) error {
			c.note(func() { c.subscribed = true })
			return nil
		},
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	c.server.AddReceivingMiddleware(c.notes)
	c.server.AddResource(&mcp.Resource{URI: checkURI, Name: "counter", MIMEType: "text/plain",
		Description: "A page that changes with each call of a tool"}, c.read)
	for _, p := range checkPlaces() {
		if p.result != nil {
			c.tool(p.tool, func() *mcp.CallToolResult { return p.result(c.words[p.name]) })
		}
	}
	c.tool("check_both", func() *mcp.CallToolResult {
		r := textResult(c.words["text beside `structuredContent`"])
		r.StructuredContent = map[string]any{"word": c.words["`structuredContent` beside text"]}
		return r
	})
	c.server.AddTool(&mcp.Tool{Name: "check_slow", Description: "Shows a word after some seconds",
		InputSchema: slowSchema}, c.callSlow)
	c.server.AddTool(&mcp.Tool{Name: "check_report",
		Description: "Takes all words that begin with pw- that you have " +
			"seen", InputSchema: reportSchema}, c.callReport)
	return c
}

func placeNames() (names []string) {
	for _, p := range checkPlaces() {
		names = append(names, p.name)
	}
	return names
}

func (c *checker) tool(name string, call func() *mcp.CallToolResult) {
	tool := &mcp.Tool{Name: name, Description: "Shows words", InputSchema: emptySchema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	c.server.AddTool(tool,
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c.change(ctx)
			return call(), nil
		})
}

// change changes the page, and notifies the client in each possible way. The first change adds a
// tool.
func (c *checker) change(ctx context.Context) {
	first := false
	c.note(func() {
		c.changes++
		first = c.changes == 1
		if c.subscribed {
			c.told++
		}
	})
	_ = c.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: checkURI})
	if first {
		c.tool("check_late", func() *mcp.CallToolResult { return textResult(c.words[inLate]) })
	}
}

// callSlow waits, reports progress each second, and notes how long the client has waited.
func (c *checker) callSlow(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult,
	error) {
	var given struct{ Seconds int }
	_ = json.Unmarshal(r.Params.Arguments, &given)
	if given.Seconds <= 0 {
		given.Seconds = slowByDefault
	}
	given.Seconds = min(given.Seconds, slowest)
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := 1; second <= given.Seconds; second++ {
		select {
		case <-ctx.Done():
			c.note(func() {
				c.slow = append(c.slow,
					fmt.Sprintf("given up by the client after %.0f s", time.Since(began).Seconds()))
			})
			return nil, ctx.Err()
		case <-tick.C:
		}
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx,
				&mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(second),
					Total: float64(given.Seconds), Message: c.words[inProgress]})
		}
	}
	c.note(func() { c.slow = append(c.slow, fmt.Sprintf("answered after %d s", given.Seconds)) })
	return textResult(c.words[inSlow]), nil
}

func (c *checker) callReport(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult,
	error) {
	var given struct{ Words []string }
	if err := json.Unmarshal(r.Params.Arguments, &given); err != nil {
		wrong := textResult("words: want a list of strings")
		wrong.IsError = true
		return wrong, nil
	}
	c.note(func() {
		c.reported = true
		for _, word := range given.Words {
			c.seen[strings.ToLower(strings.TrimSpace(word))] = true
		}
	})
	return textResult("Thank you. That is all."), nil
}

func (c *checker) read(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	changes := 0
	c.note(func() {
		if c.lastRead < c.changes && c.asked["resources/read"] > 1 {
			c.readAgain++
		}
		changes, c.lastRead = c.changes, c.changes
	})
	text := fmt.Sprintf("The counter is %d. Its word: %s", changes, c.words[inResource])
	contents := []*mcp.ResourceContents{{URI: checkURI, MIMEType: "text/plain", Text: text}}
	return &mcp.ReadResourceResult{Contents: contents}, nil
}

// notes counts the client's requests by method and tool.
func (c *checker) notes(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if call, ok := r.GetParams().(*mcp.CallToolParamsRaw); ok {
			method += " " + call.Name
		}
		c.note(func() { c.asked[method]++ })
		method, _, _ = strings.Cut(method, " ")
		result, err := next(ctx, method, r)
		if session, ok := r.GetSession().(*mcp.ServerSession); ok &&
			session.InitializeParams() != nil {
			c.note(func() { c.know(session.InitializeParams()) })
		}
		return result, err
	}
}

func (c *checker) know(p *mcp.InitializeParams) {
	if p.ClientInfo != nil {
		c.client = p.ClientInfo.Name + " " + p.ClientInfo.Version
	}
	c.version = p.ProtocolVersion
	var can map[string]any
	text, err := json.Marshal(p.Capabilities)
	if err == nil && json.Unmarshal(text, &can) == nil {
		c.can = slices.Sorted(maps.Keys(can))
	}
}

func (c *checker) note(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	_ = c.write(c.report()) // newChecker's caller has seen whether it can be written
}

func (c *checker) save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(c.report())
}

func (c *checker) run(ctx context.Context, in io.Reader, out io.Writer) error {
	err := c.server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}})
	if ctx.Err() != nil || err == nil || strings.Contains(err.Error(), "EOF") {
		return nil
	}
	return err
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
