// Package page is a page for clients that others wrote: the resources and tools that the protocol's conformance suites
// ask for by name, and some that change by themselves. It stands where a page in a browser would: a real engine, that
// connects to a gateway as pages do. A page in a browser cannot be it, since test:// is at no web origin.
package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge"
)

// Origin is the page's. Besides the suites' resources it has
//
//	/clock       counts up every 50 ms
//	/square/{n}  n times n
//	/slow        is not answered until its reader gives up
//	/gave_up     how many readers of slow gave up
//	/heard/{name}  ends the call of the tool progress_that_is_heard that has the name
//	/door        reading it makes /guest come or go
const Origin = "https://x.test"

// A page is the home of the engine.
type page struct {
	mu     sync.Mutex // guards all below, and the engine
	engine *bridge.Engine
	start  time.Time
	timer  *time.Timer
	out    *websocket.Conn
	ticks  int
	gaveUp int
	slow   map[bridge.CallID]bool
	// unheard are the calls of progress_that_is_heard, by their names.
	unheard map[string]bridge.CallID
	open    bool // /door
	extra   int  // the number of the tool that is there besides the others
}

// Connect brings the page to the hub at addr, which must admit any scheme and the page's origin, until ctx ends: by
// WebSocket, as a page in a browser does.
func Connect(ctx context.Context, addr string) error {
	far, _, err := websocket.Dial(ctx, "ws://"+addr+"/page", &websocket.DialOptions{Subprotocols: []string{"pagewire.v1"}, HTTPHeader: http.Header{"Origin": {Origin}}})
	if err != nil {
		return err
	}
	far.SetReadLimit(-1)
	hello := `{"type":"pagewire:page","tab":"page-of-the-clients","title":"Page of the clients","url":"` + Origin + `/"}`
	if err := far.Write(ctx, websocket.MessageText, []byte(hello)); err != nil {
		return err
	}
	p := &page{start: time.Now(), out: far, slow: map[bridge.CallID]bool{}, unheard: map[string]bridge.CallID{}}
	p.engine = bridge.New(bridge.Options{Rule: bridge.Rule{Any: true}, Tools: true}, p)
	p.timer = time.AfterFunc(time.Hour, func() { p.call(func(now bridge.Time) { p.engine.Tick(now) }) })
	p.call(func(now bridge.Time) {
		for _, r := range resources {
			if err := p.engine.Register(now, r); err != nil {
				panic(err)
			}
		}
		p.setTools(now)
		if err := p.engine.Open(now, 1); err != nil {
			panic(err)
		}
	})
	go func() {
		for {
			_, m, err := far.Read(ctx)
			if err != nil {
				return
			}
			if strings.HasPrefix(string(m), `{"type":"pagewire:`) {
				continue
			}
			p.call(func(now bridge.Time) { p.engine.Receive(now, 1, m) })
		}
	}()
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.call(func(now bridge.Time) {
					p.ticks++
					p.engine.Touch(now, Origin+"/clock")
				})
			}
		}
	}()
	return nil
}

// call runs f, which calls the engine, and sets the timer by what the engine then waits for.
func (p *page) call(f func(now bridge.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.now())
	if at, ok := p.engine.Deadline(); ok {
		p.timer.Reset(time.Duration(max(at-p.now(), 0)) * time.Millisecond)
	}
}

func (p *page) now() bridge.Time { return bridge.Time(time.Since(p.start).Milliseconds()) }

func (p *page) Send(_ bridge.PortID, m bridge.Message) {
	p.out.Write(context.Background(), websocket.MessageText, m.AppendTo(nil))
}

func (p *page) Watched(string, bool) {}

func resource(uri, name, mimeType string) bridge.Resource {
	return bridge.Resource{URI: uri, Name: name, Description: name, MIMEType: mimeType, Size: -1}
}

var resources = []bridge.Resource{
	resource("test://static-text", "Static text", "text/plain"),
	resource("test://static-binary", "Static binary", "image/png"),
	resource("test://template/{id}/data", "Template", "application/json"),
	resource("test://watched-resource", "Watched", "text/plain"),
	resource(Origin+"/clock", "Clock", "text/plain"),
	resource(Origin+"/square/{n}", "Square", "text/plain"),
	resource(Origin+"/slow", "Slow", "text/plain"),
	resource(Origin+"/gave_up", "Gave up", "text/plain"),
	resource(Origin+"/door", "Door", "text/plain"),
	resource(Origin+"/heard/{name}", "Heard", "text/plain"),
}

// A PNG of one red pixel, and a WAV without a sample.
const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
)

func (p *page) Read(call bridge.CallID, r bridge.Request) {
	contents := map[string]string{"uri": r.URI, "mimeType": "text/plain"}
	switch r.Key {
	case "test://static-text":
		contents["text"] = "This is the content of the static text resource."
	case "test://static-binary":
		contents["mimeType"], contents["blob"] = "image/png", png
	case "test://template/{id}/data":
		id := strings.TrimSuffix(strings.TrimPrefix(r.URI, "test://template/"), "/data")
		text, _ := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id}) // strings
		contents["mimeType"], contents["text"] = "application/json", string(text)
	case "test://watched-resource":
		contents["text"] = "Watched resource content"
	case Origin + "/clock":
		contents["text"] = strconv.Itoa(p.ticks)
	case Origin + "/square/{n}":
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URI, Origin+"/square/"))
		contents["text"] = strconv.Itoa(n * n)
	case Origin + "/slow":
		p.slow[call] = true
		return
	case Origin + "/gave_up":
		contents["text"] = strconv.Itoa(p.gaveUp)
	case Origin + "/door":
		if p.open = !p.open; p.open {
			p.engine.Register(p.now(), resource(Origin+"/guest", "Guest", "text/plain"))
			contents["text"] = "open"
		} else {
			p.engine.Unregister(p.now(), Origin+"/guest")
			contents["text"] = "closed"
		}
	case Origin + "/guest":
		contents["text"] = "hello"
	case Origin + "/heard/{name}":
		name := strings.TrimPrefix(r.URI, Origin+"/heard/")
		if call, ok := p.unheard[name]; ok {
			delete(p.unheard, name)
			p.complete(call, object{"content": []object{{"type": "text", "text": "heard"}}})
		}
		contents["text"] = name
	}
	p.complete(call, []map[string]string{contents})
}

func (p *page) End(call bridge.CallID) {
	if p.slow[call] {
		delete(p.slow, call)
		p.gaveUp++
	}
}

func (p *page) complete(call bridge.CallID, contents any) {
	text, err := json.Marshal(contents)
	if err != nil {
		panic(err) // they are strings, in maps and lists
	}
	p.engine.Complete(p.now(), call, bridge.Result{Contents: text})
}

// The tools are the suites', as a page can have them: it has no way to ask the agent for a sample or for input, or to
// write to its log.
var tools = []bridge.Tool{
	tool("test_simple_text", "{}"),
	tool("test_image_content", "{}"),
	tool("test_audio_content", "{}"),
	tool("test_embedded_resource", "{}"),
	tool("test_multiple_content_types", "{}"),
	tool("test_error_handling", "{}"),
	tool("test_tool_with_progress", "{}"),
	tool("progress_that_is_heard", `{"name":{"type":"string"}}`),
	tool("test_streaming_elicitation", "{}"),
	tool("test_logging_tool", "{}"),
	tool("test_trigger_tool_change", "{}"),
	tool("test_header_param", `{"city":{"type":"string","x-mcp-header":"City"}}`),
	{Name: "json_schema_2020_12_tool", JSON: []byte(`{"name":"json_schema_2020_12_tool","description":"Tool with JSON Schema 2020-12 features","inputSchema":{` +
		`"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
		`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
		`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},` +
		`"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
		`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},` +
		`"additionalProperties":false}}`)},
}

func tool(name, properties string) bridge.Tool {
	return bridge.Tool{Name: name, JSON: fmt.Appendf(nil, `{"name":%q,"description":"A tool of the conformance suites","inputSchema":{"type":"object","properties":%s}}`, name, properties)}
}

func (p *page) setTools(now bridge.Time) {
	// Another one each time: a list that is changed and changed back has not changed.
	if err := p.engine.SetTools(now, append(tools[:len(tools):len(tools)], tool(fmt.Sprintf("test_extra_%d", p.extra), "{}"))); err != nil {
		panic(err)
	}
}

type object map[string]any

func (p *page) CallTool(call bridge.CallID, t bridge.ToolCall) {
	text := func(s string) object { return object{"type": "text", "text": s} }
	image := object{"type": "image", "data": png, "mimeType": "image/png"}
	answer := func(content ...object) { p.complete(call, object{"content": content}) }
	switch t.Name {
	case "test_simple_text":
		answer(text("This is a simple text response for testing."))
	case "test_image_content":
		answer(image)
	case "test_audio_content":
		answer(object{"type": "audio", "data": wav, "mimeType": "audio/wav"})
	case "test_embedded_resource":
		answer(object{"type": "resource", "resource": object{"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}})
	case "test_multiple_content_types":
		answer(text("Multiple content types test:"), image,
			object{"type": "resource", "resource": object{"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": `{"test":"data","value":123}`}})
	case "test_error_handling":
		p.complete(call, object{"isError": true, "content": []object{text("This tool intentionally returns an error for testing")}})
	case "test_tool_with_progress":
		// The result comes later than the last progress: the TypeScript client looks at a result before what came with it.
		go func() {
			for i := range 3 {
				p.call(func(now bridge.Time) {
					p.engine.Progress(now, call, fmt.Appendf(nil, `"progress":%d,"total":100`, 50*i))
				})
				time.Sleep(50 * time.Millisecond)
			}
			p.call(func(bridge.Time) { answer(text("done")) })
		}()
	case "progress_that_is_heard":
		// Its result comes when /heard/NAME is read, whatever time the client takes.
		var args struct{ Name string }
		if json.Unmarshal(t.Arguments, &args) != nil || args.Name == "" {
			p.complete(call, object{"isError": true, "content": []object{text("It has no name.")}})
			return
		}
		p.unheard[args.Name] = call
		for i := range 3 {
			p.engine.Progress(p.now(), call, fmt.Appendf(nil, `"progress":%d,"total":100`, 50*i))
		}
	case "test_trigger_tool_change":
		p.extra++
		p.setTools(p.now())
		answer(text("changed"))
	default:
		answer(text(string(t.Arguments)))
	}
}
