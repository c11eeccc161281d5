package view

import (
	"slices"

	"github.com/pagewire/pagewire/bridge"
)

// engineHost is the Host as the engine sees it.
type engineHost struct{ *Host }

func (h engineHost) Send(to bridge.PortID, m bridge.Message) {
	if v := h.ports[to]; v != nil {
		h.home.ToView(v.id, m)
	}
}

func (h engineHost) Read(call bridge.CallID, r bridge.Request) {
	if h.down {
		h.engine.Complete(h.now, call, bridge.Result{Failure: bridge.ReadFailed, Detail: "The server is not " +
			"connected: try again when it is"})
		return
	}
	h.stats.Reads++
	h.reads[call] = h.ask("resources/read", bridge.Text(`"uri":`).Str(r.URI),
		pending{kind: askRead, call: call, uri: r.URI})
}

func (h engineHost) End(call bridge.CallID) {
	if id, ok := h.reads[call]; ok {
		delete(h.reads, call)
		h.drop(id)
	}
	if s := h.asked[call]; s != nil {
		delete(h.asked, call)
		s.calls = slices.DeleteFunc(s.calls, func(c bridge.CallID) bool { return c == call })
	}
}

func (h engineHost) Watched(uri string, on bool) { h.source(uri).watched = on }

func (h engineHost) Subscribe(call bridge.CallID, _ bridge.PortID, uri string) {
	s := h.source(uri)
	s.calls = append(s.calls, call)
	h.asked[call] = s
}

func (h engineHost) Unsubscribe(call bridge.CallID, _ bridge.PortID, _ string) {
	if call != 0 { // the last one at the server ends by Watched
		h.engine.Complete(h.now, call, bridge.Result{})
	}
}
