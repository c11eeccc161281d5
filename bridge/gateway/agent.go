package gateway

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/internal/quota"
	"github.com/pagewire/pagewire/bridge/gateway/live/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
)

// An Agent is the gateway's end of one agent's session, as the agent sees it: a mcpconn.Conn. The agent's messages go
// in through Write, the gateway's come out through Read. While more than 256 KiB wait to be read, the agent gets at
// most one update per URI, as on any port that is not writable.
type Agent struct {
	g         *Gateway
	id        bridge.PortID
	transport string
	out       *mcpconn.Outbox
	client    *client       // the program of the session: its sessions share a bound
	done      chan struct{} // closed when the session has ended
	dropped   chan struct{} // closed when it has ended at once
	blocked   atomic.Bool   // the engine knows the port as not writable
	record    *seen.Record  // the memory's; it outlives that
	scope     Scope
	reminders Reminders
	debugging bool // it has the tools that pages have for their developers

	// The gateway's lock guards all below.
	sees      func(uri string) bool // whether the scope has a URI; nil for all
	isDropped bool
	name      string // that the agent gives itself, once it has
	whole     bool   // priorities are to be integers: wantsWhole
	// memory records the content that the agent has seen. It is nil for a session of one request, and for the command
	// line.
	memory *follow.Memory
	// last is its snapshot as of its end: the message that Read returned last may still be on its way then.
	last []byte
	// conversation is its program's name for what it is in, if a hook has said so. lastRecord is as last.
	conversation string
	lastRecord   []byte
	webhooks     Webhooks
}

const (
	highWater, lowWater = 256 << 10, 64 << 10
	// maxWaiting is how many bytes may wait to be read in all sessions of one client, and maxWaitingAll in those of all
	// clients. Above it one session ends: the fullest session of the fullest client.
	maxWaiting, maxWaitingAll = 64 << 20, 256 << 20
	// allLeaveTooMuch is the reason of an end above maxWaitingAll or a Pool's bound.
	allLeaveTooMuch = "all agents together leave too much unread, and this one most of all"
)

// A client is a program that may have several sessions.
type client struct {
	name     string
	sessions int // guarded by the gateway's lock
	waiting  atomic.Int64
}

// A Pool bounds what waits for the agents of several gateways together, in bytes. Above it the session ends for which
// most waits, of the gateway for which most does. Its methods may be called concurrently.
type Pool struct{ backlog *quota.Backlog[*Agent] }

// NewPool returns a Pool of so many bytes. ended is called for each session that ends for it.
func NewPool(most int64, ended func()) *Pool {
	return &Pool{quota.NewBacklog(int(most), func(a *Agent) {
		a.g.locked(func() { a.end(allLeaveTooMuch, true) })()
		ended()
	})}
}

// Waiting is how many bytes agents have not read yet.
func (p *Pool) Waiting() int64 { return int64(p.backlog.Held()) }

const (
	// TransportStdio is the transport of the agent that started this process.
	TransportStdio = "stdio"
	// TransportRequest is the transport of an agent that is one request over HTTP: there the modern era has no sessions.
	// Such agents are logged at debug level.
	TransportRequest = "http request"
	// TransportCommand is the transport of the command line. It is no agent, has no memory and gets no reminders.
	TransportCommand = "command"
)

// remembers reports whether the agents of a transport are the same ones at their next call.
func remembers(transport string) bool {
	return transport != TransportRequest && transport != TransportCommand
}

func (a *Agent) level() slog.Level {
	if a.transport == TransportRequest {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// AgentOptions describe an agent to a Gateway.
type AgentOptions struct {
	// Transport names the agent's transport ("stdio", "http"), for logs and metrics. A TransportRequest or
	// TransportCommand is not the same agent at its next call.
	Transport string
	// Client names the program of the session: all its sessions share a bound on unread bytes. "" has one of its own.
	Client string
	// Allow, Deny and Only are the Scope of what the agent sees. The rest does not exist for it.
	Allow, Deny, Only []string
	// Reminders are the agent's own. Default Options.Reminders.
	Reminders Reminders
	// DebuggingTools shows the agent also the tools that pages have for their developers. Default off.
	DebuggingTools bool
	// Front shows the agent which tab is in front. Default off.
	Front bool
	// Webhooks deliver events to the agent's principal. Default none: it can poll and stream.
	Webhooks Webhooks
	// Snapshot is the result of Agent.Snapshot for this session at an earlier gateway; nil for none. Invalid parts of
	// it are left out. At worst, calls are then refused and contents are given in full.
	Snapshot []byte
}

// Connect opens a session for an agent that sees everything.
func (g *Gateway) Connect(transport string) (*Agent, error) {
	return g.ConnectWith(AgentOptions{Transport: transport})
}

// ConnectWith opens a session for an agent. It fails above the limit of sessions and after Close.
func (g *Gateway) ConnectWith(o AgentOptions) (*Agent, error) {
	defer g.lock()()
	if g.closed {
		return nil, ErrClosed
	}
	g.lastPort++
	name := cmp.Or(o.Client, strconv.Itoa(int(g.lastPort)))
	c := cmp.Or(g.clients[name], &client{name: name})
	a := &Agent{g: g, id: g.lastPort, transport: o.Transport, client: c,
		done: make(chan struct{}), dropped: make(chan struct{}), scope: Scope{o.Allow, o.Deny, o.Only},
		reminders: cmp.Or(o.Reminders, g.opt.Reminders), debugging: o.DebuggingTools, webhooks: o.Webhooks}
	a.out = mcpconn.NewOutbox(a.countWaiting)
	a.sees = a.scope.sees(g.profileOf)
	g.admitToFront(a, o.Front)
	if err := g.engine.Open(g.now(), a.id); err != nil {
		return nil, err
	}
	g.engine.Restrict(a.id, a.sees)
	if a.debugging {
		g.engine.ShowDebugging(a.id)
	}
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
	g.clients[name], g.agents[a.id] = c, a
	g.log.Log(context.Background(), a.level(), "agent connected", "agent", int(a.id), "transport", a.transport)
	return a, nil
}

// Read waits for the next message to the agent.
func (a *Agent) Read(ctx context.Context) ([]byte, error) {
	message, err := a.out.Next(ctx)
	if a.blocked.Load() && a.out.Size() < lowWater {
		a.g.locked(a.unblock)()
	}
	return message, err
}

// Write hands over a message of the agent. It does not block.
func (a *Agent) Write(_ context.Context, message []byte) error {
	a.g.tap(Event{Way: FromAgent, Agent: int(a.id), Text: message})
	defer a.g.lock()()
	if a.g.agents[a.id] == nil {
		return io.ErrClosedPipe
	}
	if a.name == "" {
		name, title := agentName(message)
		a.name, a.whole = name, wantsWhole(name, title)
	}
	return a.g.engine.Receive(a.g.now(), a.id, message)
}

// Oversize is Write for a message of more than Gateway.MessageBytes, of which only the beginning has been kept. It is
// answered with an error, under its id if the beginning has one.
func (a *Agent) Oversize(beginning []byte) error {
	defer a.g.lock()()
	if a.g.agents[a.id] == nil {
		return io.ErrClosedPipe
	}
	return a.g.engine.Oversize(a.g.now(), a.id, beginning)
}

// Hold says that only answers and their progress can reach the agent now, as over HTTP while it has no open stream.
// Meanwhile at most one update per URI is kept. They are sent when Hold ends.
func (a *Agent) Hold(on bool) {
	defer a.g.lock()()
	a.g.engine.Hold(a.g.now(), a.id, on)
}

// unblock is called with the gateway's lock held.
func (a *Agent) unblock() {
	if a.out.Size() < lowWater && a.blocked.CompareAndSwap(true, false) {
		a.g.engine.Writable(a.g.now(), a.id, true)
	}
}

// Settled reports whether the agent has read an answer to each of its requests. Its open listens do not count.
func (a *Agent) Settled() bool {
	defer a.g.lock()()
	return a.settled()
}

func (a *Agent) settled() bool { return !a.g.engine.Waits(a.id) && a.out.Size() == 0 }

// Done is closed when the session has ended. The agent may still have messages to read then.
func (a *Agent) Done() <-chan struct{} { return a.done }

// Dropped is closed when the session has ended and none of its messages is to be read any more.
func (a *Agent) Dropped() <-chan struct{} { return a.dropped }

// Dismiss ends the session as a server that shuts down does: each open request gets an error, each listen its result.
// Read returns these, and then io.EOF.
func (a *Agent) Dismiss() {
	defer a.g.lock()()
	if a.g.agents[a.id] != nil {
		a.g.engine.Dismiss(a.g.now(), a.id)
		a.end("dismissed", false)
	}
}

// Close ends the session and frees all that it held.
func (a *Agent) Close() error {
	a.g.locked(func() { a.end("closed", true) })()
	a.keep()
	return nil
}

// end is called with the gateway's lock held. drop discards the messages that the agent has not read yet.
func (a *Agent) end(reason string, drop bool) {
	g := a.g
	if g.agents[a.id] != nil {
		a.last, a.lastRecord = a.snapshot(), a.recorded()
		g.engine.Close(g.now(), a.id)
		delete(g.agents, a.id)
		g.forget(a)
		if a.client.sessions--; a.client.sessions == 0 {
			delete(g.clients, a.client.name)
		}
		close(a.done)
		g.log.Log(context.Background(), a.level(), "agent gone", "agent", int(a.id), "transport", a.transport, "reason", reason)
	}
	if drop && !a.isDropped {
		a.isDropped = true
		close(a.dropped)
	}
	a.out.Close(drop)
}

// fullest is the session with the most unread bytes, of one client, or of the client that has most of all where of is
// nil. It is called with the gateway's lock held.
func (g *Gateway) fullest(of *client) *Agent {
	if of == nil {
		of = slices.MaxFunc(slices.Collect(maps.Values(g.clients)), func(a, b *client) int {
			return cmp.Compare(a.waiting.Load(), b.waiting.Load())
		})
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
	if a.whole {
		message = wholePriorities(message)
	}
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
