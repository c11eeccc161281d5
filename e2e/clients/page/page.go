// Package page is a page for clients that others wrote. It has the resources and tools that the
// protocol's conformance suites request by name, and some that change by themselves. It connects to
// a gateway as pages do. A page in a browser cannot replace it, since no web origin has test://
// URIs.
//
// It never speaks MCP: the gateway does.
package page

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// Origin is the page's. Besides the suites' resources it has
//
//	/clock       counts up every 50 ms
//	/square/{n}  n times n
//	/slow        is not answered until its reader gives up
//	/gave_up     the number of readers of /slow that gave up
//	/heard/{name}  ends the call with that name of the tool progress_that_is_heard
//	/door        reading it makes /guest come or go
const Origin = "https://x.test"

type page struct {
	*testkit.Page
	mu     sync.Mutex // guards all below
	ticks  int
	gaveUp int
	// unheard are the calls of progress_that_is_heard, by their names.
	unheard map[string]chan struct{}
	open    bool // /door
	extra   int  // tools that test_trigger_tool_change has added
}

// Connect keeps the page connected to the gateway at addr until the test ends. The gateway must
// admit any scheme and the page's origin. ticket is for a node of a fleet; "" for none.
func Connect(t testing.TB, addr, ticket string) {
	p := &page{Page: testkit.NewPage(t, nil), unheard: map[string]chan struct{}{}}
	p.addResources()
	p.addTools()
	p.Dial(addr, Origin, ticket)
	go p.tick(t.Context())
}

func (p *page) tick(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.mu.Lock()
			p.ticks++
			p.mu.Unlock()
			p.Touch(Origin + "/clock")
		}
	}
}

// A PNG of one red pixel, and a WAV without a sample.
const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
)

// A reading returns the content of a URI.
type reading = func(ctx context.Context, uri string) (string, error)

func (p *page) add(uri, name, mimeType string, read reading) {
	p.Describe(uri, map[string]any{"name": name, "description": name, "mimeType": mimeType})
	p.Add(uri, read)
}

func text(s string) reading {
	return func(context.Context, string) (string, error) { return s, nil }
}

// number returns a reading of one of the page's counts.
func (p *page) number(n *int) reading {
	return func(context.Context, string) (string, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return strconv.Itoa(*n), nil
	}
}

func (p *page) addResources() {
	pixel, err := base64.StdEncoding.DecodeString(png)
	if err != nil {
		panic(err) // a constant decodes always
	}
	p.add("test://static-text", "Static text", "text/plain",
		text("This is the content of the static text resource."))
	p.add("test://static-binary", "Static binary", "image/png", text(string(pixel)))
	p.add("test://template/{id}/data", "Template", "application/json",
		func(_ context.Context, uri string) (string, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
			text, err := json.Marshal(map[string]any{"id": id, "templateTest": true,
				"data": "Data for ID: " + id})
			return string(text), err
		})
	p.add("test://watched-resource", "Watched", "text/plain", text("Watched resource content"))
	p.add(Origin+"/clock", "Clock", "text/plain", p.number(&p.ticks))
	p.add(Origin+"/square/{n}", "Square", "text/plain",
		func(_ context.Context, uri string) (string, error) {
			n, err := strconv.Atoi(strings.TrimPrefix(uri, Origin+"/square/"))
			return strconv.Itoa(n * n), err
		})
	p.add(Origin+"/slow", "Slow", "text/plain",
		func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.gaveUp++
			return "", errors.New("nobody waits any more")
		})
	p.add(Origin+"/gave_up", "Gave up", "text/plain", p.number(&p.gaveUp))
	p.add(Origin+"/door", "Door", "text/plain", p.door)
	p.add(Origin+"/heard/{name}", "Heard", "text/plain",
		func(_ context.Context, uri string) (string, error) {
			name := strings.TrimPrefix(uri, Origin+"/heard/")
			p.mu.Lock()
			defer p.mu.Unlock()
			if call := p.unheard[name]; call != nil {
				delete(p.unheard, name)
				close(call)
			}
			return name, nil
		})
}

func (p *page) door(context.Context, string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open = !p.open; p.open {
		p.Offer(Origin+"/guest", "hello")
		return "open", nil
	}
	p.Withdraw(Origin + "/guest")
	return "closed", nil
}

// heard reports progress. Its result comes when /heard/NAME is read, however long the client takes.
func (p *page) heard(ctx context.Context, raw json.RawMessage, progress func(object)) any {
	var args struct{ Name string }
	if json.Unmarshal(raw, &args) != nil || args.Name == "" {
		return object{"isError": true, "content": []object{block("It has no name.")}}
	}
	call := make(chan struct{})
	p.mu.Lock()
	p.unheard[args.Name] = call
	p.mu.Unlock()
	for i := range 3 {
		progress(object{"progress": 50 * i, "total": 100})
	}
	select {
	case <-call:
	case <-ctx.Done():
	}
	return object{"content": []object{block("heard")}}
}

type object = map[string]any

func block(s string) object { return object{"type": "text", "text": s} }

func answers(content ...object) func(context.Context, json.RawMessage, func(object)) any {
	return func(context.Context, json.RawMessage,
		func(object)) any {
		return object{"content": content}
	}
}

// tool returns the members of a tool with an input of these properties.
func tool(properties object) object {
	return object{"description": "A tool of the conformance suites",
		"inputSchema": object{"type": "object", "properties": properties}}
}

// The tools are those of the suites, as far as a page can have them. It cannot ask the agent for a
// sample or for input, and cannot write to its log.
func (p *page) addTools() {
	image := object{"type": "image", "data": png, "mimeType": "image/png"}
	for name, content := range map[string][]object{
		"test_simple_text":   {block("This is a simple text response for testing.")},
		"test_image_content": {image},
		"test_audio_content": {{"type": "audio", "data": wav, "mimeType": "audio/wav"}},
		"test_embedded_resource": {{"type": "resource", "resource": object{
			"uri": "test://embedded-resource", "mimeType": "text/plain",
			"text": "This is an embedded resource content."}}},
		"test_multiple_content_types": {block("Multiple content types test:"), image,
			{"type": "resource", "resource": object{
				"uri": "test://mixed-content-resource", "mimeType": "application/json",
				"text": `{"test":"data","value":123}`}}},
	} {
		p.SetTool(name, testkit.Tool{Members: tool(object{}), Run: answers(content...)})
	}
	p.SetTool("progress_that_is_heard",
		testkit.Tool{Members: tool(object{"name": object{"type": "string"}}),
			Run: p.heard})
	p.SetTool("test_error_handling",
		testkit.Tool{Members: tool(object{}),
			Run: func(context.Context, json.RawMessage, func(object)) any {
				return object{"isError": true,
					"content": []object{block(
						"This tool intentionally returns an error for testing")}}
			}})
	p.SetTool("test_tool_with_progress",
		testkit.Tool{Members: tool(object{}),
			Run: func(_ context.Context, _ json.RawMessage, progress func(object)) any {
				for i := range 3 {
					progress(object{"progress": 50 * i, "total": 100})
				}
				// The result comes a second after the last progress. The TypeScript client looks at a
				// result before earlier progress, and gives no sign when it has looked.
				time.Sleep(time.Second)
				return object{"content": []object{block("done")}}
			}})
	p.SetTool("test_trigger_tool_change",
		testkit.Tool{Members: tool(object{}),
			Run: func(context.Context, json.RawMessage, func(object)) any {
				p.addExtra()
				return object{"content": []object{block("changed")}}
			}})
	echo := func(_ context.Context, arguments json.RawMessage, _ func(object)) any {
		return object{"content": []object{block(string(arguments))}}
	}
	for name, members := range map[string]object{
		"test_streaming_elicitation": tool(object{}),
		"test_logging_tool":          tool(object{}),
		"test_header_param": tool(
			object{"city": object{"type": "string", "x-mcp-header": "City"}}),
		"json_schema_2020_12_tool": {"description": "Tool with JSON Schema 2020-12 features",
			"inputSchema": json.RawMessage(schema)},
	} {
		p.SetTool(name, testkit.Tool{Members: members, Run: echo})
	}
}

// addExtra adds another tool each time: a list that is changed and changed back counts as
// unchanged.
func (p *page) addExtra() {
	p.mu.Lock()
	name := fmt.Sprintf("test_extra_%d", p.extra)
	p.extra++
	p.mu.Unlock()
	p.SetTool(name, testkit.Tool{Members: tool(object{})})
}

const schema = `{` +
	`"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
	`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},` +
	`"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
	`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},` +
	`"additionalProperties":false}`
