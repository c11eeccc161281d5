package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// The engine's codec, for a host that also speaks JSON-RPC itself, such as a host of Views towards its server: it needs
// no other package.

// JSON is the text of one valid JSON value, a view into the bytes that it was taken from.
type JSON = wire.Value

// Text is JSON text that is being written.
type Text = wire.Text

// DecodeMessage reads one JSON-RPC message of a peer that the host trusts to send such: a request or a notification
// has a method, and an answer one of result and failure. ok is false where text is neither.
func DecodeMessage(text []byte) (m Incoming, ok bool) {
	v, err := wire.Parse(text, maxDepth)
	if err != nil || v.Kind() != wire.Object {
		return m, false
	}
	m.Method, _ = v.Get("method").Text()
	m.ID, m.Params, m.Result, m.Failure = v.Get("id"), v.Get("params"), v.Get("result"), v.Get("error")
	return m, m.Method != "" || len(m.ID) > 0 && (len(m.Result) > 0) != (len(m.Failure) > 0)
}

// An Incoming is a message of a peer. Each member is absent where the message has none.
type Incoming struct {
	ID, Params, Result, Failure JSON
	Method                      string
}
