package cdp

import (
	"encoding/json"
	"sync"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/webmcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/gate"
)

// webmcpTools are the tools of a document without Pagewire in a browser with WebMCP. It has no
// resources. The browser runs them, and reports them and their results (its WebMCP domain). It is a
// gateway.ToolRunner.
type webmcpTools struct {
	d     *document
	page  *gateway.Page // guarded by the browser's lock, as are document's fields
	tools []bridge.Tool // until there is a page
	// schemas are those that the browser has left out, by name; asking is set while the document is
	// asked.
	schemas map[string]json.RawMessage
	asking  bool

	mu          sync.Mutex           // taken with the gateway's lock held, never the other way
	invocations map[*invocation]bool // that are waited for; nil when the document has gone
}

type invocation struct {
	id   string // the browser's; "" before it is known
	done func(result []byte, gone bool)
}

var _ gateway.ToolRunner = (*webmcpTools)(nil)

func (s *session) addTools(tools []*webmcp.Tool) {
	for _, t := range tools {
		if t == nil {
			continue
		}
		of := s.tools[string(t.FrameID)]
		if of == nil {
			of = map[string]*webmcp.Tool{}
			s.tools[string(t.FrameID)] = of
		}
		of[t.Name] = t
		for _, d := range s.documents {
			if d.webmcp != nil && d.frameID == string(t.FrameID) {
				delete(d.webmcp.schemas, t.Name) // it may have another one now
			}
		}
	}
	s.offerTools()
}

func (s *session) removeTools(tools []*webmcp.RemovedTool) {
	for _, t := range tools {
		if t != nil {
			delete(s.tools[string(t.FrameID)], t.Name)
		}
	}
	s.offerTools()
}

// retool asks the browser for all tools, even if it has reported some. It does not report tools
// that go with a document, and reports those of one that came back (bfcache) before we know of it.
func (s *session) retool() {
	if s.b.inject != "" {
		return
	}
	clear(s.tools)
	s.following, s.retooling = true, true
	s.tell(webmcp.CommandDisable, nil)
	s.b.link.post(s.id, webmcp.CommandEnable, nil, func(jsonv2.Value, error) {
		s.retooling = false
		if len(s.tools) > 0 {
			s.offerTools()
		}
	})
}

// unfollow stops the reports if no document needs them: they make a page's own calls of tools 0.1
// ms slower.
func (s *session) unfollow() {
	if !s.following {
		return
	}
	for _, d := range s.documents {
		if d.bare && !d.cut {
			return
		}
	}
	s.following = false
	clear(s.tools)
	s.tell(webmcp.CommandDisable, nil)
}

// offerTools updates the gateway's tools. A document with Pagewire offers its tools itself.
func (s *session) offerTools() {
	if s.retooling {
		return
	}
	for _, d := range s.documents {
		tools := s.tools[d.frameID]
		if !d.bare || d.cut || d.webmcp == nil && len(tools) == 0 {
			continue
		}
		if d.webmcp == nil {
			d.webmcp = &webmcpTools{d: d, invocations: map[*invocation]bool{}}
			d.webmcp.attach()
		}
		d.webmcp.offer(tools)
	}
}

// offer sets the tools, in the form of MCP.
func (n *webmcpTools) offer(tools map[string]*webmcp.Tool) {
	missing := false
	list := make([]bridge.Tool, 0, len(tools))
	for name, t := range tools {
		described := map[string]any{"name": name, "description": t.Description,
			"inputSchema": n.schemas[name]}
		if schema := json.RawMessage(t.InputSchema); json.Valid(schema) {
			described["inputSchema"] = schema
		} else if _, known := n.schemas[name]; !known {
			missing = true
			continue
		}
		meta := map[string]any{}
		if t.BackendNodeID != 0 { // a form
			meta["pagewire/navigates"] = true
		}
		if a := t.Annotations; a != nil {
			described["annotations"] = map[string]any{"readOnlyHint": a.ReadOnly}
			// A form that submits by itself has consequences, unless the page says that it only
			// reads.
			meta["pagewire/hints"] = map[string]bool{"consequentialHint": a.Consequential ||
				a.Autosubmit && !a.ReadOnly,
				"untrustedContentHint": a.UntrustedContent, "debugging": a.Debugging}
		}
		if len(meta) > 0 {
			described["_meta"] = meta
		}
		text, err := json.Marshal(described)
		if err != nil {
			continue
		}
		list = append(list, bridge.Tool{Name: name, JSON: text})
	}
	if missing {
		n.askSchemas(tools)
	}
	n.tools = list
	n.publish()
}

// schemas is the names and schemas of the document's tools. The browser leaves a schema out if it
// has a character outside ASCII.
const schemas = `(async () => JSON.stringify((await (document.modelContext ?? navigator.modelContext).getTools()).map(` +
	`({ name, inputSchema }) => ({ name, inputSchema }))))()`

// askSchemas asks the document for the schemas that the browser has left out, and then offers the
// tools that lack them.
func (n *webmcpTools) askSchemas(tools map[string]*webmcp.Tool) {
	if n.asking {
		return
	}
	n.asking = true
	n.d.s.evaluate(runtime.EvaluateParams{Expression: schemas, UniqueContextID: n.d.world,
		AwaitPromise: yes(), ReturnByValue: yes()},
		func(r runtime.EvaluateResult, err error) {
			var text string
			var list []struct {
				Name        string
				InputSchema json.RawMessage
			}
			if n.asking = false; err != nil || n.d.webmcp != n {
				return
			}
			if json.Unmarshal(r.Result.Value, &text) != nil ||
				json.Unmarshal([]byte(text), &list) != nil {
				n.Report("the parameters of its tools are unknown: " +
					"neither the browser nor getTools() gives them.")
			}
			n.schemas = map[string]json.RawMessage{}
			for name := range n.d.s.tools[n.d.frameID] {
				n.schemas[name] = nil // it has none
			}
			for _, t := range list {
				n.schemas[t.Name] = t.InputSchema
			}
			n.offer(n.d.s.tools[n.d.frameID])
		})
}

// publish passes the tools to the gateway, once there is a page.
func (n *webmcpTools) publish() {
	if n.page == nil {
		return
	}
	if err := n.page.SetTools(n.tools); err != nil {
		n.d.b.o.Log.Warn("a page's tools are not served", "origin", n.d.origin, "error", err)
	}
}

func (n *webmcpTools) attach() {
	n.d.withURL(func(info gateway.PageInfo) {
		if n.d.webmcp != n {
			return // it has gone meanwhile
		}
		page, err := n.d.b.g.AttachTools(info, n)
		if err != nil {
			n.d.refused(err)
			return
		}
		n.page, n.d.page = page, page
		n.publish()
	})
}

// Look makes attach.js look for Pagewire, which then begins a link in place of this page.
func (n *webmcpTools) Look() { n.d.sendText("[]") }

// Report shows a sentence on the page's console, and in our log.
func (n *webmcpTools) Report(sentence string) {
	text, _ := json.Marshal("pagewire: " + sentence)
	n.d.b.o.Log.Warn("a page is told", "origin", n.d.origin, "report", sentence)
	n.d.s.evaluate(runtime.EvaluateParams{UniqueContextID: n.d.world,
		Expression: "console.error(" + string(text) + ")"}, nil)
}

// reacts is a task of the page. It ends once the page runs tasks: not behind a dialog, at a
// breakpoint or frozen.
var reacts = jsonv2.Value(
	`{"awaitPromise":true,"expression":"new Promise(done => { const { port1, port2 } = ` +
		`new MessageChannel(); port1.onmessage = () => done(port1.close()); port2.postMessage(0) })"}`)

// RunTool makes the browser run a tool. The browser's own queue for the page knows no withdrawal: a
// call that waits there, behind a dialog, runs later. So the page must react before the browser is
// told. What remains is a page that stops within the millisecond between the two. Such a call
// counts as started.
func (n *webmcpTools) RunTool(name string, args []byte, started func(),
	done func(result []byte, gone bool)) (cancel func()) {
	i := &invocation{done: done}
	input := append(jsonv2.Value(nil), args...)
	params := &webmcp.InvokeToolParams{FrameID: protocol.FrameID(n.d.frameID), ToolName: name,
		Input: input}
	n.mu.Lock()
	gone := n.invocations == nil
	if !gone {
		// It ends with its document: the browser does not answer for each that has gone.
		n.invocations[i] = true
	}
	n.mu.Unlock()
	if gone {
		go done(failed(pageHasGone), true)
	} else if err := n.d.b.link.full(); err != nil {
		go n.finish(i, failed(err.Error()), false)
	} else {
		askFor(n, i, runtime.CommandEvaluate, reacts, func(struct{}) {
			waits := n.waits(i)
			started()
			if waits {
				askFor(n, i, webmcp.CommandInvokeTool, params,
					func(r webmcp.InvokeToolResult) { n.begun(i, r.InvocationID) })
			}
		})
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.invocations[i] && i.id != "" {
			n.cancel(i.id)
		}
		delete(n.invocations, i)
	}
}

// askFor sends a command of a call to the browser. If it fails, so does the call.
func askFor[R any](n *webmcpTools, i *invocation, command string, params any,
	answered func(R)) {
	err := ask(n.d.b.link, n.d.s.id, command, params, func(r R, err error) {
		if err == nil {
			answered(r)
		} else {
			n.finish(i, failed("The tool could not be called: "+err.Error()), false)
		}
	})
	if err != nil {
		go n.finish(i, failed("The browser is gone."), false)
	}
}

// called returns the call with the browser's id, or nil.
func (n *webmcpTools) called(id string) *invocation {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.invocations {
		if i.id == id {
			return i
		}
	}
	return nil
}

func (n *webmcpTools) waits(i *invocation) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.invocations[i]
}

// begun notes the browser's id of a call: its result comes as an event. It cancels the call if
// nothing waits for it.
func (n *webmcpTools) begun(i *invocation, id string) {
	n.mu.Lock()
	i.id = id
	waits := n.invocations[i]
	n.mu.Unlock()
	if !waits {
		n.cancel(id)
	}
}

// finish passes on a result, if the call still waits for it.
func (n *webmcpTools) finish(i *invocation, result []byte, gone bool) {
	n.mu.Lock()
	waits := n.invocations[i]
	delete(n.invocations, i)
	n.mu.Unlock()
	if waits {
		i.done(result, gone)
	}
}

func (n *webmcpTools) cancel(id string) {
	n.d.s.tell(webmcp.CommandCancelInvocation, &webmcp.CancelInvocationParams{InvocationID: id})
}

const pageHasGone = "The page has gone."

// close ends all calls.
func (n *webmcpTools) close() {
	n.mu.Lock()
	all := n.invocations
	n.invocations = nil
	n.mu.Unlock()
	for i := range all {
		i.done(failed(pageHasGone), true)
	}
}

// finish ends a call with its tool's result.
func (s *session) finish(id string, result []byte) {
	for _, d := range s.documents {
		if n := d.webmcp; n != nil {
			n.finish(n.called(id), result, false)
		}
	}
}

// toolResult returns a tool's output, of which the gateway makes a result.
func toolResult(e *webmcp.EventToolResponded) []byte {
	if e.Status != webmcp.InvocationStatusCompleted {
		why := e.ErrorText
		if why == "" {
			why = "The tool failed."
		}
		return failed(why)
	}
	if len(e.Output) == 0 {
		return gate.Texts(false, "").JSON(true)
	}
	return e.Output
}

func failed(why string) []byte { return gate.Texts(true, why).JSON(true) }
