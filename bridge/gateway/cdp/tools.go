//go:build !js

package cdp

import (
	"bytes"
	"encoding/json"
	"sync"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webmcp"

	"github.com/pagewire/pagewire/bridge"
)

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

// retool asks the browser for all tools again: it says nothing of those that went with a document, and of those of one that
// came back (bfcache) it may have told before we knew of that.
func (s *session) retool() {
	if s.b.inject != "" {
		return
	}
	clear(s.tools)
	s.retooling = true
	s.b.link.post(s.id, webmcp.CommandDisable, nil, nil)
	s.b.link.post(s.id, webmcp.CommandEnable, nil, func(jsonv2.Value, error) {
		s.retooling = false
		if len(s.tools) > 0 {
			s.offerTools()
		}
	})
}

// offerTools brings what the gateway is offered in line with the tools that there are. A document with Pagewire offers its
// tools itself.
func (s *session) offerTools() {
	if s.retooling {
		return
	}
	for _, d := range s.documents {
		tools := s.tools[d.frameID]
		if !d.bare || d.cut || d.conn != nil || d.core != nil || d.native == nil && len(tools) == 0 {
			continue
		}
		if d.native == nil {
			n := &native{d: d, calls: map[bridge.CallID]*invocation{}}
			n.home.init(d, n, func() {})
			d.native = n
			n.offer(tools)
			d.attach(n.conn)
		} else {
			d.native.offer(tools)
		}
	}
}

// A runner has a browser run the tools of one session's documents. Its lock is the innermost.
type runner struct {
	link    *link
	session target.SessionID

	mu      sync.Mutex
	running map[string]*invocation // by the browser's id
}

// An invocation is one run of a tool.
type invocation struct {
	id   string // the browser's; "" before it has said it
	over bool   // it has been answered, or nobody waits
	done func(r ran)
}

// What a tool gave, as MCP's CallToolResult; failed, where it is our words for its failure.
type ran struct {
	result []byte
	failed bool
}

// invoke has a tool run; who calls it sees to it that the link sends that. done is called once, by the reader, unless cancel was
// called before or there is an error.
func (v *runner) invoke(frame, tool string, input []byte, done func(ran)) (*invocation, error) {
	if len(input) == 0 {
		input = []byte("{}")
	}
	i := &invocation{done: done}
	params := &webmcp.InvokeToolParams{FrameID: protocol.FrameID(frame), ToolName: tool, Input: append(jsonv2.Value(nil), input...)}
	return i, v.link.enqueue(v.session, webmcp.CommandInvokeTool, params, func(result jsonv2.Value, err error) {
		var r webmcp.InvokeToolResult
		if err == nil {
			err = jsonv2.Unmarshal(result, &r, decodeOptions)
		}
		if err != nil {
			v.end(i, failed("The tool could not be called: "+err.Error()))
			return
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if i.over {
			v.abort(r.InvocationID)
			return
		}
		i.id = r.InvocationID
		v.running[i.id] = i
	})
}

func (v *runner) end(i *invocation, r ran) {
	v.mu.Lock()
	over := i.over
	i.over = true
	delete(v.running, i.id)
	v.mu.Unlock()
	if !over {
		i.done(r)
	}
}

// cancel aborts a tool for which nobody waits any more. One that has ended is left alone.
func (v *runner) cancel(i *invocation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if i.over {
		return
	}
	i.over = true
	if i.id != "" {
		delete(v.running, i.id)
		v.abort(i.id)
	}
}

func (v *runner) abort(id string) {
	v.link.post(v.session, webmcp.CommandCancelInvocation, &webmcp.CancelInvocationParams{InvocationID: id}, nil)
}

// responded takes what a tool has given.
func (v *runner) responded(e *webmcp.EventToolResponded) {
	v.mu.Lock()
	i := v.running[e.InvocationID]
	v.mu.Unlock()
	if i != nil {
		v.end(i, toolResult(e))
	}
}

// run has the browser run a tool of a document with Pagewire, where the browser knows it, instead of the document's
// own session: that would ask the browser to run it: 0.3 ms more. It reports whether it has
// taken the message, which is a tools/call or a cancellation of the gateway.
func (d *document) run(message []byte) bool {
	if head := message[:min(len(message), 64)]; !bytes.Contains(head, []byte(`"tools/call"`)) && !bytes.Contains(head, []byte(`"notifications/cancelled"`)) {
		return false
	}
	var m struct {
		ID     string
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
			RequestID string
		}
	}
	if json.Unmarshal(message, &m) != nil {
		return false
	}
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	if m.Method == "notifications/cancelled" {
		i := d.running[m.Params.RequestID]
		if i == nil {
			return false
		}
		delete(d.running, m.Params.RequestID)
		d.s.runner.cancel(i)
		return true
	}
	c := d.conn
	if c == nil || d.s.tools[d.frameID][m.Params.Name] == nil {
		return false
	}
	i, err := d.s.runner.invoke(d.frameID, m.Params.Name, m.Params.Arguments, func(r ran) {
		delete(d.running, m.ID)
		if r.failed {
			r = failed("The tool failed.") // the page's words are for its own console, as when its session answers
		}
		d.deliver(c, bridge.Text(`{"jsonrpc":"2.0","id":`).Str(m.ID).Raw(`,"result":`).Bytes(r.result).Raw(`}`))
	})
	if err == nil {
		d.running[m.ID] = i
	}
	return err == nil
}

// toolResult is MCP's CallToolResult of what a tool gave: that itself where it is one, the text of a string, and of all else
// the JSON text.
func toolResult(e *webmcp.EventToolResponded) ran {
	if e.Status != webmcp.InvocationStatusCompleted {
		why := e.ErrorText
		if why == "" {
			why = "The tool failed."
		}
		return failed(why)
	}
	var own struct {
		Content []struct {
			Type string `json:"type"`
		} `json:"content"`
	}
	if json.Unmarshal(e.Output, &own) == nil && own.Content != nil {
		typed := true
		for _, c := range own.Content {
			typed = typed && c.Type != ""
		}
		if typed {
			return ran{result: e.Output}
		}
	}
	var text string
	if json.Unmarshal(e.Output, &text) != nil {
		text = string(e.Output)
	}
	return ran{result: bridge.Text(`{"content":[{"type":"text","text":`).Str(text).Raw(`}]}`)}
}

func failed(why string) ran {
	return ran{bridge.Text(`{"content":[{"type":"text","text":`).Str(why).Raw(`}],"isError":true}`), true}
}
