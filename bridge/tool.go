package bridge

import (
	"slices"

	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// The engine defines no tool. It offers its host's tools in the same sessions as the resources. It checks names and
// limits, and passes the rest on.

// A ToolHost is a Host that has tools.
type ToolHost interface {
	Host
	// CallTool asks the host to run a tool. The host answers with Complete, now or later, unless End comes first; until
	// then it may call Progress. The Contents of the Result are the JSON text of MCP's CallToolResult, an object
	// without resultType and _meta. A tool that fails has isError in it; Failure is for a tool that could not be run.
	CallTool(call CallID, t ToolCall)
}

// A ToolCall is an agent's call of a tool.
type ToolCall struct {
	Name string
	// Arguments is the JSON text of an object. It belongs to the engine again when the call returns.
	Arguments []byte
	// Port is the calling agent's port, and Meta the JSON text of its request's _meta, or "".
	Port PortID
	Meta string
}

// A Tool is a tool that a host offers.
type Tool struct {
	Name string
	// JSON is MCP's Tool object, with the name.
	JSON []byte
	// Owner returns whose the tool is now. Restricted ports see the tool by it. nil is for every port.
	Owner func() Owner
	// First tools come before all others, on a list's first page: some agents read only that page.
	First bool
	// Debugging tools exist only for ports with ShowDebugging.
	Debugging bool
	// Typed is what a host has made of JSON. The engine does not use it.
	Typed any
}

// DecodeTools decodes the JSON text of an array of MCP's Tool objects. It keeps no part of text. With an error it
// returns the tools that have a name.
func DecodeTools(text []byte) (tools []Tool, err error) {
	v, err := wire.Parse(text, 64)
	if err != nil {
		return nil, err
	}
	bad := v.Kind() != wire.Array
	v.Elements(func(m wire.Value) bool {
		name, ok := m.Get("name").Text()
		if ok {
			tools = append(tools, Tool{Name: name, JSON: clone(m)})
		}
		bad = bad || !ok
		return true
	})
	if bad {
		err = failure("bridge: tools must be an array of objects with a name")
	}
	return tools, err
}

// SetTools replaces the tools, and announces the list if it differs. It leaves out tools above Limits.Tools, and tools
// with an empty or doubled name, and then fails. It takes all others: if it refused the whole list, removed tools would
// stay. Above the limit, tools that were listed before take precedence.
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
		same = unchanged(&sorted[i], &e.tools[i])
	}
	if !same {
		if restricts {
			of := append(missing(e.tools, sorted), missing(sorted, e.tools)...)
			e.markSeenWhereHidden(listTools, func(p *port) bool {
				return !slices.ContainsFunc(of, func(o Owner) bool { return !p.hidesOwner(o) })
			})
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

// hidesTool reports whether a tool is hidden from this port.
func (p *port) hidesTool(t *Tool) bool {
	return restricts && t.Debugging && !p.debugging || t.Owner != nil && p.hidesOwner(t.Owner())
}

// hidesNamed reports whether the listed tool with a name is hidden from this port.
func (p *port) hidesNamed(e *Engine, name string) bool {
	return named(e.tools, name) && p.hidesTool(&e.tools[toolAfter(e.tools, name)-1])
}

// missing are the owners of the tools of list that from, which is ordered by name, does not have unchanged.
func missing(list, from []Tool) (owners []Owner) {
	for i := range list {
		at := toolAfter(from, list[i].Name)
		if at == 0 || !unchanged(&list[i], &from[at-1]) {
			var of Owner
			if list[i].Owner != nil {
				of = list[i].Owner()
			}
			owners = append(owners, of)
		}
	}
	return owners
}

func unchanged(a, b *Tool) bool {
	return a.Name == b.Name && string(a.JSON) == string(b.JSON)
}

// named reports whether a list that is ordered by name has a tool with a name.
func named(tools []Tool, name string) bool {
	i := toolAfter(tools, name)
	return i > 0 && tools[i-1].Name == name
}

// toolAfter is the index of the first tool with a name greater than name, in a list that is ordered by name.
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

// listTools answers one page, ordered by name. Its cursor is the name of its last tool, so it stays valid while tools
// come and go.
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
	for i := range e.tools {
		if t := &e.tools[i]; cursor == "" && t.First && !r.port.hidesTool(t) {
			p.put(p.text.Next().Bytes(t.JSON))
		}
	}
	for _, t := range e.tools[from:] {
		if t.First || r.port.hidesTool(&t) {
			continue
		}
		if !p.add(p.text.Next().Bytes(t.JSON)) {
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
	case wire.Absent, wire.Null:
		args = wire.Value("{}")
	default:
		return invalidParams("arguments must be an object")
	}
	if !e.opt.UnlistedTools && !named(e.tools, name) || restricts && r.port.hidesNamed(e, name) {
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

// A Progress is what a tool says of a call that runs.
type Progress struct {
	Progress, Total wire.Value // numbers; Total may be absent
	Message         string     // or ""
}

// DecodeProgress decodes the JSON text of MCP's progress notification. Members that a page does not say, such as a
// progressToken, do not pass. some is false if there is no progress in it.
func DecodeProgress(text []byte) (p Progress, some bool, err error) {
	v, err := wire.Parse(text, maxDepth)
	if err == nil && v.Kind() != wire.Object {
		err = failure("bridge: progress must be an object")
	}
	p.Progress, p.Total = progressNumber(v.Get("progress")), progressNumber(v.Get("total"))
	p.Message, _ = v.Get("message").Text()
	return p, p.Progress != nil, err
}

// Members are the members of MCP's progress notification, as JSON text.
func (p Progress) Members() []byte {
	text := wire.Text(`"progress":`).Bytes(p.Progress)
	if p.Total != nil {
		text = text.Raw(`,"total":`).Bytes(p.Total)
	}
	if p.Message != "" {
		text = text.Raw(`,"message":`).Str(p.Message)
	}
	return text
}

// progressNumber is a copy of a number, or absent. One with an exponent may not fit a double.
func progressNumber(v wire.Value) wire.Value {
	if v.Kind() != wire.Number || len(v) > 24 {
		return nil
	}
	for _, c := range v {
		if c|' ' == 'e' {
			return nil
		}
	}
	return clone(v)
}

// Progress passes on a tool's progress. It does nothing if the agent did not ask for progress, or if the port is not
// writable: only the result matters.
func (e *Engine) Progress(now Time, id CallID, p Progress) {
	e.enter(now)
	defer e.drain()
	c := e.calls[id]
	if c == nil || c.kind != callTool {
		return
	}
	for _, w := range c.waits {
		if len(w.progress) == 0 || !w.port.writable {
			continue
		}
		text := e.begin().Notification(wire.Progress).Raw(`{"progressToken":`).Bytes(w.progress)
		e.send(w.port, text.Raw(`,`).Bytes(p.Members()).Raw(`}}`))
	}
}

// answerTool sends a tool's result: its members become the answer's. Only the engine says resultType.
func (e *Engine) answerTool(w *wait, r Result) {
	q := request{port: w.port, id: w.id}
	text := e.result(&q)
	hole := len(text)
	if w.modern {
		text = text.Raw(`,"resultType":"complete"`)
	}
	own := wire.Value(r.Contents)
	switch {
	case own == nil:
	case w.modern:
		text = text.Raw(`,`).Bytes(e.modernMeta)
		if len(r.Meta) > 0 {
			text = text[:len(text)-1].Raw(`,`).Bytes(r.Meta).Raw(`}`)
		}
	case len(r.Meta) > 0:
		text = text.Raw(`,"_meta":{`).Bytes(r.Meta).Raw(`}`)
	}
	if own != nil {
		r.Contents = own[1 : len(own)-1]
	}
	e.sendContents(w.port, e.closeResult(&q, text), w.call.id, hole, r.Contents)
}
