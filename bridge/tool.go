package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// The engine defines no tool: it carries those of its host, so that they ride the same sessions as the resources. It
// checks names and limits and lets the rest through.

// A ToolHost is a Host that has tools.
type ToolHost interface {
	Host
	// CallTool asks for a tool to be run. The host answers with Complete, now or later, unless End comes first; until
	// then it may say Progress. The Contents of the Result are the JSON text of MCP's CallToolResult, an object: a tool
	// that fails says isError in it, and Failure is for a tool that could not be run.
	CallTool(call CallID, t ToolCall)
}

// A ToolCall is a tool that an agent wants run.
type ToolCall struct {
	Name string
	// Arguments is the JSON text of an object. It is the engine's again when the call returns.
	Arguments []byte
	// Port is that of the agent who called, and Meta the JSON text of its request's _meta, "" without one.
	Port PortID
	Meta string
}

// A Tool is one that a host offers.
type Tool struct {
	Name string
	// JSON is MCP's Tool object, with the name.
	JSON []byte
	// Origin is that of the page that has the tool, by which ports see it that do not see all. "" is for every port.
	Origin string
}

// DecodeTools reads the JSON text of an array of MCP's Tool objects. It keeps nothing of text.
func DecodeTools(text []byte) (tools []Tool, err error) {
	err = EachTool(text, func(t Tool) { tools = append(tools, Tool{Name: t.Name, JSON: clone(t.JSON)}) })
	if err != nil {
		return nil, err
	}
	return tools, nil
}

// EachTool calls f with each tool of such a text. The JSON is a part of text. With an error, what f was called with is
// not all.
func EachTool(text []byte, f func(Tool)) error {
	v, err := wire.Parse(text, 64)
	if err != nil {
		return err
	}
	bad := v.Kind() != wire.Array
	v.Elements(func(m wire.Value) bool {
		name, ok := m.Get("name").Text()
		if bad = bad || !ok; !bad {
			f(Tool{Name: name, JSON: m})
		}
		return !bad
	})
	if bad {
		return failure("bridge: tools must be an array of objects with a name")
	}
	return nil
}

// SetTools says what tools there are, in place of what was said before. Agents are told if that is something else. It
// fails above Limits.Tools, where tools that were listed before are kept first, and for names that are empty or
// doubled. Those tools are left out, and all others are taken: a list that was refused as a whole would keep what is
// gone.
func (e *Engine) SetTools(now Time, tools []Tool) error {
	e.enter(now)
	defer e.drain()
	var err error
	leftOut := 0
	// Inserted one by one: a page has few, and slices.SortFunc takes 5 KB of wasm.
	var sorted []Tool
	for _, before := range [...]bool{true, false} {
		for _, t := range tools {
			if named(e.tools, t.Name) != before {
				continue
			}
			switch {
			case t.Name == "" || named(sorted, t.Name):
				err = failure("bridge: the name of a tool is empty or doubled: " + t.Name)
			case len(sorted) == e.opt.Limits.Tools:
				leftOut++
			default:
				i := toolAfter(sorted, t.Name)
				sorted = append(sorted, Tool{})
				copy(sorted[i+1:], sorted[i:])
				sorted[i] = t
			}
		}
	}
	same := len(sorted) == len(e.tools)
	for i := 0; same && i < len(sorted); i++ {
		same = sorted[i].Name == e.tools[i].Name && string(sorted[i].JSON) == string(e.tools[i].JSON)
	}
	if !same {
		if restricts {
			e.markSeenWhereHidden(listTools, append(missing(e.tools, sorted), missing(sorted, e.tools)...)...)
		}
		e.tools = sorted
		e.listChanged(listTools)
	}
	if leftOut > 0 {
		err = failure("bridge: too many tools: the limit is " + wire.Itoa(e.opt.Limits.Tools) + ", and " +
			wire.Itoa(leftOut) + " are left out")
	}
	return err
}

// hidesTool reports whether a tool is listed, and not for this port.
func (p *port) hidesTool(e *Engine, name string) bool {
	i := toolAfter(e.tools, name)
	return i > 0 && e.tools[i-1].Name == name && p.hides(e.tools[i-1].Origin)
}

// missing are the origins of those tools of a list that another, ordered by name, does not have just so.
func missing(list, from []Tool) (origins []string) {
	for _, t := range list {
		if i := toolAfter(from, t.Name); i == 0 || from[i-1].Name != t.Name || string(from[i-1].JSON) != string(t.JSON) {
			origins = append(origins, t.Origin)
		}
	}
	return origins
}

// named reports whether a list that is ordered by name has a tool of that name.
func named(tools []Tool, name string) bool {
	i := toolAfter(tools, name)
	return i > 0 && tools[i-1].Name == name
}

// toolAfter is the index of the first tool whose name is greater than name, in a list that is ordered by name.
func toolAfter(tools []Tool, name string) int {
	lo, hi := 0, len(tools)
	for lo < hi {
		if mid := (lo + hi) / 2; tools[mid].Name <= name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// listTools answers one page. Its cursor is the name of the page's last tool, so that it stays good while tools come
// and go.
func (e *Engine) listTools(r *request) *wire.Error {
	cursor, fault := cursorOf(r)
	if fault != nil {
		return fault
	}
	from := 0
	if cursor != "" {
		if cursor[0] != 'n' || len(cursor) == 1 {
			return refused(r.modern, "", &resource.Error{Reason: resource.BadCursor, Message: "Invalid cursor"})
		}
		from = toolAfter(e.tools, cursor[1:])
	}
	bytes := 0
	for _, t := range e.tools {
		bytes += len(t.JSON)
	}
	p := e.newPage(e.result(r).Raw(`"tools":[`), len(e.tools), bytes)
	next := ""
	for _, t := range e.tools[from:] {
		if r.port.hides(t.Origin) {
			continue
		}
		if !p.take(p.begin().Bytes(t.JSON)) {
			next = cursor
			break
		}
		cursor = "n" + t.Name
	}
	e.send(r.port, e.listed(r, p.text.Raw(`]`), next))
	return nil
}

func (e *Engine) callTool(r *request) *wire.Error {
	name, ok := r.params.Get("name").Text()
	if !ok {
		return invalidParams("name must be a string")
	}
	args := r.params.Get("arguments")
	switch args.Kind() {
	case wire.Object:
	case wire.Absent:
		args = wire.Value("{}")
	default:
		return invalidParams("arguments must be an object")
	}
	if !e.opt.UnlistedTools && !named(e.tools, name) || restricts && r.port.hidesTool(e, name) {
		return unknownTool(name)
	}
	meta := r.params.Get("_meta")
	token := meta.Get("progressToken")
	if len(token) > e.opt.Limits.IDBytes {
		return tooLarge("Progress token too long", reasonIDSize, "maxIdBytes", e.opt.Limits.IDBytes)
	}
	if err := e.full(r.port); err != nil {
		return err
	}
	c := e.ask(callTool, &e.toolCalls, e.opt.ToolTimeout,
		op{kind: opTool, request: Request{Key: name, Params: string(meta)}, contents: clone(args)})
	c.tool = name
	w := e.await(r, c)
	if token.Kind() == wire.String || token.Integer() {
		w.progress = clone(token)
	}
	return nil
}

func unknownTool(name string) *wire.Error {
	return &wire.Error{Code: wire.InvalidParams, Message: "Unknown tool: " + name}
}

// Progress passes on how far a tool has come: members is the JSON text of the members of MCP's progress notification
// but for its token, such as "progress":1,"total":3. It does nothing where nobody asked for it, or where the port is
// not writable: what counts is the result.
func (e *Engine) Progress(now Time, id CallID, members []byte) {
	e.enter(now)
	defer e.drain()
	c := e.calls[id]
	if c == nil || c.kind != callTool {
		return
	}
	// They must not end the object that they are put into.
	if v, err := wire.Parse(wire.Text(`{`).Bytes(members).Raw(`}`), maxDepth); err != nil || v.Empty() {
		return
	}
	for _, w := range c.waits {
		if len(w.progress) > 0 && w.port.writable {
			text := e.begin().Notification(wire.Progress).Raw(`{"progressToken":`).Bytes(w.progress)
			e.send(w.port, text.Raw(`,`).Bytes(members).Raw(`}}`))
		}
	}
}

// answerTool sends a tool's result: its members become the answer's.
func (e *Engine) answerTool(w *wait, r Result) {
	q := request{port: w.port, id: w.id}
	text := e.result(&q)
	hole := len(text)
	own := wire.Value(r.Contents)
	if w.modern && own.Get("resultType").Kind() == wire.Absent {
		text = text.Raw(`,"resultType":"complete"`)
	}
	if w.modern && own != nil && own.Get("_meta").Kind() == wire.Absent {
		text = text.Raw(`,`).Bytes(e.modernMeta)
	}
	if own != nil {
		r.Contents = own[1 : len(own)-1]
	}
	e.sendContents(w.port, e.end(&q, text), w.call.id, hole, r.Contents)
}
