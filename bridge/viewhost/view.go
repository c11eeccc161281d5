//go:build !js

package viewhost

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/pagewire/pagewire/bridge/view"
)

// A View is one View, as long as it is shown.
type View struct {
	host  *Host
	id    view.ID
	queue [][]byte // what waits to be sent, under host.mu
	more  *sync.Cond
	full  bool
	done  bool
}

// ErrClosed is what Open returns when the Host is closed.
var ErrClosed = errors.New("viewhost: the host is closed")

// Open begins a View. send gets each message for it, one after the other, on a goroutine of its own; it may block.
func (h *Host) Open(send func(text []byte)) (*View, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	v := &View{host: h, id: h.last + 1, more: sync.NewCond(h.mu)}
	if err := h.rules.Open(h.mu.Now(), v.id); err != nil {
		return nil, err
	}
	h.last = v.id
	h.views[v.id] = v
	h.work.Go(func() { v.pump(send) })
	return v, nil
}

// pump sends what waits, until the View is closed.
func (v *View) pump(send func([]byte)) {
	h := v.host
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		for len(v.queue) == 0 && !v.done {
			if v.full {
				v.full = false
				h.rules.Writable(h.mu.Now(), v.id, true)
				continue // that may have brought more
			}
			v.more.Wait()
		}
		if v.done {
			return
		}
		text := v.queue[0]
		v.queue = v.queue[1:]
		h.mu.Unlock()
		send(text)
		h.mu.Lock()
	}
}

// Receive looks at a message of the View, and reports whether it is answered by the Host. The home handles all others,
// but Receive must see them.
func (v *View) Receive(text []byte) (taken bool) {
	h := v.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if v.done {
		return false
	}
	taken = h.rules.Receive(h.mu.Now(), v.id, text)
	return taken
}

// Sent looks at a message that the home sends to the View, and returns what is to be sent: the answer to ui/initialize,
// whose request id is hello, with what the Host can do added to its hostCapabilities; everything else as it is. It
// notices ui/resource-teardown, at which all that the View watches is released.
func (v *View) Sent(text, hello []byte) []byte {
	var m struct {
		ID     json.RawMessage
		Method string
		Result map[string]json.RawMessage
	}
	if json.Unmarshal(text, &m) != nil {
		return text
	}
	if m.Method == "ui/resource-teardown" {
		v.Teardown()
	}
	if m.Method != "" || m.Result == nil || len(hello) == 0 || string(m.ID) != string(hello) {
		return text
	}
	m.Result["hostCapabilities"] = v.host.Capabilities(m.Result["hostCapabilities"])
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": m.Result})
	if err != nil {
		return text
	}
	return answer
}

// Teardown says that ui/resource-teardown is being sent, for homes that do not pass it through Sent.
func (v *View) Teardown() {
	h := v.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if !v.done {
		h.rules.Teardown(h.mu.Now(), v.id)
	}
}

// Close ends the View: its window is gone. Nothing is sent to it any more, but what is being sent.
func (v *View) Close() {
	h := v.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(v)
}

func (h *Host) end(v *View) {
	if v.done {
		return
	}
	v.done = true
	v.queue = nil
	v.more.Signal()
	delete(h.views, v.id)
	h.rules.Close(h.mu.Now(), v.id)
}
