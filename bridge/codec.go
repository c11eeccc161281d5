package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// maxDepth bounds the nesting of any JSON text: the scanner recurses.
const maxDepth = 1000

// This is the engine's codec for a host that looks into messages itself, as the gateway's
// connections do. Such a host needs no other package.

// JSON is the text of one valid JSON value, a view into the bytes that it was taken from.
type JSON = wire.Value

// Text is JSON text that is being written.
type Text = wire.Text

// PeekBytes is how many bytes of either end of a message Engine.Oversize looks at.
const PeekBytes = wire.PeekBytes

// DecodeMessage decodes one JSON-RPC message of a trusted peer. A request or a notification has a
// method, and an answer either result or failure. ok is false if text is neither.
func DecodeMessage(text []byte) (m Incoming, ok bool) {
	v, err := wire.Parse(text, maxDepth)
	if err != nil || v.Kind() != wire.Object {
		return m, false
	}
	m.Method, _ = v.Get("method").Text()
	m.ID, m.Params = v.Get("id"), v.Get("params")
	m.Result, m.Failure = v.Get("result"), v.Get("error")
	return m, m.Method != "" || len(m.ID) > 0 && (len(m.Result) > 0) != (len(m.Failure) > 0)
}

// An Incoming is a message of a peer. Missing members are absent.
type Incoming struct {
	ID, Params, Result, Failure JSON
	Method                      string
}

// Request reports whether the message asks for an answer.
func (m *Incoming) Request() bool { return m.Method != "" && len(m.ID) > 0 }
