package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// The engine defines no tool. It offers its host's tools in the same sessions as the resources. It
// checks names and limits, and passes the rest on.

// listTools answers one page, ordered by name. Its cursor is the name of its last tool, so it stays
// valid while tools come and go.
func (e *Engine) listTools(r *request) *wire.Error {
	cursor, fault := cursorOf(r)
	if fault != nil {
		return fault
	}
	from := 0
	if cursor != "" {
		if cursor[0] != 'n' || len(cursor) == 1 {
			return refused(r.modern, "",
				&resource.Error{Reason: resource.BadCursor, Message: "Invalid cursor"})
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

// mayCall reports whether a port may call a tool. Of a tool that is not listed only the host knows
// whether it exists.
func (e *Engine) mayCall(p *port, name string) bool {
	if named(e.tools, name) {
		return !p.hidesTool(&e.tools[toolAfter(e.tools, name)-1])
	}
	return e.opt.UnlistedTools && p.hidesTools() == ""
}

// named reports whether a list that is ordered by name has a tool with a name.
func named(tools []Tool, name string) bool {
	i := toolAfter(tools, name)
	return i > 0 && tools[i-1].Name == name
}

// toolAfter is the index of the first tool with a name greater than name, in a list that is ordered
// by name.
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
	if !e.mayCall(r.port, name) {
		if why := r.port.hidesTools(); why != "" {
			name += ". " + why
		}
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

// answerTool sends a tool's result: its members become the answer's. Only the engine says
// resultType.
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

// DecodeTools decodes the JSON text of an array of MCP's Tool objects. It keeps no part of text.
// With an error it returns the tools that have a name.
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

// DecodeProgress decodes the JSON text of MCP's progress notification. Members that a page does not
// say, such as a progressToken, do not pass. some is false if there is no progress in it.
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
