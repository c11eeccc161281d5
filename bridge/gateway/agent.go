//go:build !js

package gateway

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/pagewire/pagewire/bridge"
)

// An Agent is the gateway's end of one agent's session, seen from the agent: a Conn. What is written to it the gateway
// receives, what is read from it the gateway has sent. Reading is what makes room: while more than 256 KiB wait, the
// agent gets at most one update per URI, as on any port that is not writable.
type Agent struct {
	g    *Gateway
	id   bridge.PortID
	road string
	out  *outbox
	// blocked is set while the engine knows the port as not writable.
	blocked atomic.Bool
}

const (
	highWater, lowWater = 256 << 10, 64 << 10
	// maxWaiting ends a session: its agent asks and does not read.
	maxWaiting = 64 << 20
)

// Connect opens a session for an agent. road says how it came ("stdio", "http"), for logs and metrics. It fails above the
// limit of sessions and after Close.
func (g *Gateway) Connect(road string) (*Agent, error) {
	g.mu.Lock()
	defer g.unlock()
	if g.closed {
		return nil, ErrClosed
	}
	g.lastPort++
	a := &Agent{g: g, id: g.lastPort, road: road, out: newOutbox()}
	if err := g.engine.Open(g.now(), a.id); err != nil {
		return nil, err
	}
	g.agents[a.id] = a
	g.logOpen(a)
	return a, nil
}

// Read waits for the next message to the agent.
func (a *Agent) Read(ctx context.Context) ([]byte, error) {
	message, err := a.out.next(ctx)
	if a.blocked.Load() && a.out.size() < lowWater {
		a.g.mu.Lock()
		if a.blocked.CompareAndSwap(true, false) {
			a.g.engine.Writable(a.g.now(), a.id, true)
		}
		a.g.unlock()
	}
	return message, err
}

// Write hands over a message of the agent. It does not block.
func (a *Agent) Write(_ context.Context, message []byte) error {
	g := a.g
	g.tap(Event{Way: FromAgent, Agent: int(a.id), Text: message})
	g.mu.Lock()
	defer g.unlock()
	if g.agents[a.id] == nil {
		return io.ErrClosedPipe
	}
	return g.engine.Receive(g.now(), a.id, message)
}

// Close ends the session and frees all that it held.
func (a *Agent) Close() error {
	g := a.g
	g.mu.Lock()
	defer g.unlock()
	a.end("closed")
	return nil
}

// end is called with the gateway's lock held.
func (a *Agent) end(reason string) {
	g := a.g
	if g.agents[a.id] != nil {
		g.engine.Close(g.now(), a.id)
		delete(g.agents, a.id)
		g.log.Info("agent gone", "agent", int(a.id), "road", a.road, "reason", reason)
	}
	a.out.close(true)
}

// send is called with the gateway's lock held.
func (a *Agent) send(message []byte) {
	a.g.tap(Event{Way: ToAgent, Agent: int(a.id), Text: message})
	a.out.push(message)
	if a.out.size() > maxWaiting {
		a.end("it does not read what it asks for")
		return
	}
	if !a.blocked.Load() && a.out.size() > highWater {
		a.blocked.Store(true)
		a.g.engine.Writable(a.g.now(), a.id, false)
	}
}
