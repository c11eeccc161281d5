//go:build !js

package gateway

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
)

// An Agent is the gateway's end of one agent's session, seen from the agent: a mcpconn.Conn. What is written to it the
// gateway receives, what is read from it the gateway has sent. Reading is what makes room: while more than 256 KiB
// wait, the agent gets at most one update per URI, as on any port that is not writable.
type Agent struct {
	g         *Gateway
	id        bridge.PortID
	transport string
	out       *mcpconn.Outbox
	// client is the program whose sessions share a bound.
	client *client
	done   chan struct{} // closed when the session has ended
	// dropped is closed when it has ended at once. Guarded by the gateway's lock, as is isDropped.
	dropped   chan struct{}
	isDropped bool
	// blocked is set while the engine knows the port as not writable.
	blocked atomic.Bool
	// name is what the agent calls itself, once it has. Guarded by the gateway's lock.
	name string
	// memory records the content that the agent has seen; nil for a session of one request, and for one that is no
	// agent's. Guarded by the gateway's lock.
	memory *follow.Memory
	// record is that of its memory: it stays when the memory has ended.
	record *seen.Record
	// last is its snapshot as of its end: the message that Read returned last may still be on its way then.
	last []byte
	// scope is what it sees, and sees the same for a URI; nil for all. reminders are how it is reminded.
	scope     Scope
	sees      func(uri string) bool
	reminders Reminders
}

const (
	highWater, lowWater = 256 << 10, 64 << 10
	// maxWaiting is how many bytes may wait for one client, in all of its sessions, and maxWaitingAll for all clients.
	// Above it one session ends: of the client for which most waits, the one for which most does.
	maxWaiting, maxWaitingAll = 64 << 20, 256 << 20
	// allLeaveTooMuch is why that one ends, and why one does above a Pool's bound.
	allLeaveTooMuch = "all agents together leave too much unread, and this one most of all"
)

// A client is a program that may have several sessions.
type client struct {
	name     string
	sessions int // guarded by the gateway's lock
	waiting  atomic.Int64
}

// TransportRequest is the transport of an agent that is one request over HTTP: the modern era has no sessions there.
// Their coming and going is logged at debug level.
const TransportRequest = "http request"

func (a *Agent) level() slog.Level {
	if a.transport == TransportRequest {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// AgentOptions say what an agent is to a Gateway.
type AgentOptions struct {
	// Transport says how it came ("stdio", "http"), for logs and metrics, and whether it is the same one at its next
	// call: see TransportRequest and the others.
	Transport string
	// Client is any name of whose session this is: what waits to be read is bounded for all sessions of one client
	// together. "" is nobody else.
	Client string
	// Allow, Deny and Only are those of the Scope of what the agent sees. What it does not see answers to it as what
	// does not exist.
	Allow, Deny, Only []string
	// Reminders are the agent's own. Default Options.Reminders.
	Reminders Reminders
	// Snapshot is what Agent.Snapshot gave of the agent's session at an earlier gateway; nil for none. It need not be
	// sound: what cannot be taken over of it is left out, which at worst has calls refused, and contents given in full.
	Snapshot []byte
}

// Connect opens a session for an agent that comes by a transport and sees all.
func (g *Gateway) Connect(transport string) (*Agent, error) {
	return g.ConnectWith(AgentOptions{Transport: transport})
}

// ConnectWith opens a session for an agent. It fails above the limit of sessions and after Close.
func (g *Gateway) ConnectWith(o AgentOptions) (*Agent, error) {
	g.mu.Lock()
	defer g.unlock()
	if g.closed {
		return nil, ErrClosed
	}
	g.lastPort++
	name := cmp.Or(o.Client, strconv.Itoa(int(g.lastPort)))
	c := g.clients[name]
	if c == nil {
		c = &client{name: name}
	}
	a := &Agent{g: g, id: g.lastPort, transport: o.Transport, client: c,
		done: make(chan struct{}), dropped: make(chan struct{}), scope: Scope{o.Allow, o.Deny, o.Only},
		reminders: cmp.Or(o.Reminders, g.opt.Reminders)}
	a.out = mcpconn.NewOutbox(a.countWaiting)
	a.sees = a.scope.sees()
	if err := g.engine.Open(g.now(), a.id); err != nil {
		return nil, err
	}
	g.engine.Restrict(a.id, a.sees)
	if remembers(o.Transport) {
		a.memory = g.tools.revisions.NewMemory(seen.Limits{})
		a.record = a.memory.Record
		g.remembering++
	}
	if o.Snapshot != nil {
		if err := a.restore(o.Snapshot); err != nil {
			g.log.Warn("the snapshot of an agent's session is ignored", "agent", int(a.id), "reason", err)
		}
	}
	c.sessions++
	g.clients[name] = c
	g.agents[a.id] = a
	g.logOpen(a)
	return a, nil
}

// Read waits for the next message to the agent.
func (a *Agent) Read(ctx context.Context) ([]byte, error) {
	message, err := a.out.Next(ctx)
	if a.blocked.Load() && a.out.Size() < lowWater {
		a.g.mu.Lock()
		a.unblock()
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
	if a.name == "" {
		a.name = agentName(message)
	}
	return g.engine.Receive(g.now(), a.id, message)
}

// Oversize is Write for a message of more than Gateway.MessageBytes, of which only the beginning has been kept: it is
// answered with an error, under its id if that is within the beginning.
func (a *Agent) Oversize(beginning []byte) error {
	g := a.g
	g.mu.Lock()
	defer g.unlock()
	if g.agents[a.id] == nil {
		return io.ErrClosedPipe
	}
	return g.engine.Oversize(g.now(), a.id, beginning)
}

// Hold says that only answers, and how far they have come, can reach the agent now, as over HTTP while it has no stream
// open. What it has subscribed to is kept meanwhile: at most one update per URI, which comes when Hold ends.
func (a *Agent) Hold(on bool) {
	g := a.g
	g.mu.Lock()
	defer g.unlock()
	g.engine.Hold(g.now(), a.id, on)
}

// unblock is called with the gateway's lock held.
func (a *Agent) unblock() {
	if a.out.Size() < lowWater && a.blocked.CompareAndSwap(true, false) {
		a.g.engine.Writable(a.g.now(), a.id, true)
	}
}

// Settled reports whether the agent has been sent, and has read, an answer to each of its requests. Listens that it has
// open do not count.
func (a *Agent) Settled() bool {
	g := a.g
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.engine.Waits(a.id) && a.out.Size() == 0
}

// Done is closed when the session has ended, which may be before all that it was sent has been read.
func (a *Agent) Done() <-chan struct{} { return a.done }

// Dropped is closed when the session has ended and nothing that it was sent is to be read any more.
func (a *Agent) Dropped() <-chan struct{} { return a.dropped }

// Dismiss ends the session as a server does that goes away: each request that waits gets an error, each listen its
// result. Read returns these, and then io.EOF.
func (a *Agent) Dismiss() {
	g := a.g
	g.mu.Lock()
	defer g.unlock()
	if g.agents[a.id] == nil {
		return
	}
	g.engine.Dismiss(g.now(), a.id)
	a.end("dismissed", false)
}

// Close ends the session and frees all that it held.
func (a *Agent) Close() error {
	g := a.g
	g.mu.Lock()
	defer g.unlock()
	a.end("closed", true)
	return nil
}

// end is called with the gateway's lock held. What the agent has not read yet is dropped, or it still gets that.
func (a *Agent) end(reason string, drop bool) {
	g := a.g
	if g.agents[a.id] != nil {
		a.last = a.snapshot()
		g.engine.Close(g.now(), a.id)
		delete(g.agents, a.id)
		g.forget(a)
		if a.client.sessions--; a.client.sessions == 0 {
			delete(g.clients, a.client.name)
		}
		close(a.done)
		g.log.Log(context.Background(), a.level(), "agent gone", "agent", int(a.id), "transport", a.transport, "reason",
			reason)
	}
	if drop && !a.isDropped {
		a.isDropped = true
		close(a.dropped)
	}
	a.out.Close(drop)
}

// fullest is the session for which most waits, of a client or, without one, of the client for which most waits. It is
// called with the gateway's lock held.
func (g *Gateway) fullest(of *client) *Agent {
	var most *client
	for _, c := range g.clients {
		if most == nil || c.waiting.Load() > most.waiting.Load() {
			most = c
		}
	}
	if of == nil {
		of = most
	}
	var found *Agent
	for _, a := range g.agents {
		if a.client == of && (found == nil || a.out.Held() > found.out.Held()) {
			found = a
		}
	}
	return found
}

// countWaiting counts that more bytes wait for the agent, or fewer.
func (a *Agent) countWaiting(bytes int) {
	a.client.waiting.Add(int64(bytes))
	a.g.waiting.Add(int64(bytes))
	if p := a.g.opt.Pool; p != nil {
		p.backlog.Add(a, a.g, bytes)
	}
}

// send is called with the gateway's lock held.
func (a *Agent) send(message []byte) {
	a.g.tap(Event{Way: ToAgent, Agent: int(a.id), Text: message})
	a.out.Push(message)
	if a.client.waiting.Load() > maxWaiting {
		a.g.fullest(a.client).end("its client does not read what it asks for", true)
	} else if a.g.waiting.Load() > maxWaitingAll {
		a.g.fullest(nil).end(allLeaveTooMuch, true)
	}
	if !a.blocked.Load() && a.out.Size() > highWater {
		a.blocked.Store(true)
		a.g.engine.Writable(a.g.now(), a.id, false)
	}
}
