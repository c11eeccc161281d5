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
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/internal/mcpconn"
	"github.com/pagewire/pagewire/bridge/internal/parts"
	"github.com/pagewire/pagewire/bridge/internal/quota"
)

// An Agent is the gateway's end of one agent's session, as the agent sees it: a mcpconn.Conn. The
// agent's messages go in through Write, the gateway's come out through Read. While more than 256
// KiB are unread, the agent gets at most one update per URI, as on any port that is not writable.
type Agent struct {
	g         *Gateway
	id        bridge.PortID
	transport string
	out       *mcpconn.Outbox
	client    *client       // the program of the session: its sessions share a bound
	done      chan struct{} // closed when the session has ended
	// closed when the session has ended and its unread messages are discarded
	dropped   chan struct{}
	blocked   atomic.Bool // the engine has been told that the port is not writable
	pass      *pass       // the gateway's lock guards its use
	reminders Reminders
	about     string // AgentOptions.About
	parts     parts.Rules
	partsFile string

	// The gateway's lock guards all below.
	isDropped bool
	name      string // the agent's name for itself; "" until it gives one
	whole     bool   // priorities must be integers: wantsWhole
	// memory records the content that the agent has seen. It is nil for a session of one request,
	// and for the command line.
	memory   *follow.Memory
	webhooks events.Webhooks
}

const (
	highWater, lowWater = 256 << 10, 64 << 10
	// maxWaiting bounds the unread bytes in all sessions of one client, maxWaitingAll those of all
	// clients. Above a bound the session with the most unread bytes ends: of that client, or of the
	// client with the most.
	maxWaiting, maxWaitingAll = 64 << 20, 256 << 20
	// allLeaveTooMuch is the reason for ending a session above maxWaitingAll or a Pool's bound.
	allLeaveTooMuch = "all agents together leave too much unread, and this one most of all"
)

// A client is a program that may have several sessions.
type client struct {
	name     string
	sessions int // guarded by the gateway's lock
	waiting  atomic.Int64
}

// A Pool bounds the unread bytes of several gateways together. Above the bound, the gateway with
// the most unread bytes ends its session with the most. Its methods may be called concurrently.
type Pool struct{ backlog *quota.Backlog[*Agent] }

// NewPool returns a Pool with a bound of most bytes. ended is called after each session that the
// Pool ends.
func NewPool(most int64, ended func()) *Pool {
	return &Pool{quota.NewBacklog(int(most), func(a *Agent) {
		a.g.locked(func() { a.close(allLeaveTooMuch, true) })()
		ended()
	})}
}

// Waiting is the number of bytes that agents have not read yet.
func (p *Pool) Waiting() int64 { return int64(p.backlog.Held()) }

// The transports of agents that the gateway tells apart. TransportRequest and TransportCommand have
// no memory, and get no reminders; TransportRequest is logged at debug level.
const (
	TransportStdio   = door.TransportStdio
	TransportHTTP    = door.TransportHTTP
	TransportRequest = door.TransportRequest
	TransportCommand = door.TransportCommand
)

// remembers reports whether a session of this transport is one agent's for several calls, so that
// it has a memory.
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
	// Transport names the agent's transport ("stdio", "http"), for logs and metrics. With
	// TransportRequest or TransportCommand the agent has no memory.
	Transport string
	// Client names the session's program. Its sessions share a bound on unread bytes; with "" the
	// session has its own.
	Client string
	// Allow, Deny and Only are the agent's door.Scope. Pages outside it do not exist for the agent.
	Allow, Deny, Only []string
	// Shown and Opened are origins of which the agent gets what pages show (door.Scope). A
	// TransportCommand gets that of each page that the user shows to anybody.
	Shown, Opened []string
	// Parts are the rules of the agent's user for parts of the pages that Shown and Opened name.
	// All agents that get what a page shows get its parts.
	Parts parts.Rules
	// PartsFile is the file of Parts, for SetParts. Default none.
	PartsFile string
	// Reminders are the agent's own. Default Options.Reminders.
	Reminders Reminders
	// DebuggingTools shows the agent also the tools that pages have for their developers. Default
	// off.
	DebuggingTools bool
	// NoPageTools hides the tools of all pages from the agent: it looks, and cannot act.
	NoPageTools bool
	// NoSubscriptions switches resource subscriptions off for this agent
	// (bridge.Options.NoSubscriptions).
	NoSubscriptions bool
	// Front shows the agent which tab is in front. Default off.
	Front bool
	// Webhooks deliver events to the agent's principal. Default none: the agent can only poll and
	// stream.
	Webhooks events.Webhooks
	// About is the subject of the notice for this agent's people (Agent.Notice). Default none.
	About string
	// Handover is the result of Agent.Handover for this session at an earlier gateway; nil for
	// none. Invalid parts of it are left out.
	Handover []byte
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
		done: make(chan struct{}), dropped: make(chan struct{}),
		reminders: cmp.Or(o.Reminders, g.opt.Reminders),
		parts:     o.Parts, partsFile: o.PartsFile, about: o.About, webhooks: o.Webhooks,
		pass: g.passOf(o)}
	a.out = mcpconn.NewOutbox(a.countWaiting)
	g.offerFront(a)
	if err := g.engine.Open(g.now(), a.id); err != nil {
		return nil, err
	}
	g.restrict(a)
	if a.pass.SeesDebugging() {
		g.engine.ShowDebugging(a.id)
	}
	if o.NoSubscriptions {
		g.engine.ForgoSubscriptions(a.id)
	}
	if remembers(o.Transport) {
		a.memory = g.books.NewMemory(seen.Limits{})
		a.memory.Resumed = o.Handover != nil
		g.remembering++
	}
	if o.Handover != nil {
		if err := g.restore(o.Handover); err != nil {
			g.log.Warn("the snapshot of an agent's session is ignored", "agent", int(a.id),
				"reason", err)
		}
	}
	c.sessions++
	g.clients[name], g.agents[a.id] = c, a
	g.named(a)
	g.log.Log(context.Background(), a.level(), "agent connected", "agent", int(a.id), "transport",
		a.transport)
	return a, nil
}

func (g *Gateway) passOf(o AgentOptions) *pass {
	return g.door.Pass(door.Scope{Allow: o.Allow, Deny: o.Deny, Only: o.Only, Front: o.Front,
		Debugging: o.DebuggingTools, NoPageTools: o.NoPageTools, Shown: o.Shown, Opened: o.Opened,
		Transport: o.Transport})
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
	return a.WriteAll([][]byte{message})
}

// WriteAll is Write for several messages, in their order. A page gets what they cause together: a
// call that a later message withdraws does not start.
func (a *Agent) WriteAll(messages [][]byte) error {
	for _, m := range messages {
		a.g.tap(Event{Way: FromAgent, Agent: int(a.id), Text: m})
	}
	defer a.g.lock()()
	for _, m := range messages {
		if a.g.agents[a.id] == nil {
			return io.ErrClosedPipe
		}
		if a.name == "" {
			name, title := agentName(m)
			a.name, a.whole = name, wantsWhole(name, title)
		}
		if err := a.g.engine.Receive(a.g.now(), a.id, m); err != nil {
			return err
		}
	}
	return nil
}

// Oversize is Write for a message of more than Gateway.MessageBytes, of which at least the first and
// the last bridge.PeekBytes have been kept. The answer is an error, with the message's id if they
// have it.
func (a *Agent) Oversize(kept []byte) error {
	defer a.g.lock()()
	if a.g.agents[a.id] == nil {
		return io.ErrClosedPipe
	}
	return a.g.engine.Oversize(a.g.now(), a.id, kept)
}

// Hold with true says that only answers and their progress can reach the agent now, as over HTTP
// without an open stream. Then at most one update per URI is kept. Hold with false sends these
// updates.
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

// Settled reports whether the agent has read the answers to all its requests. Open listens do not
// count.
func (a *Agent) Settled() bool {
	defer a.g.lock()()
	return a.settled()
}

func (a *Agent) settled() bool { return !a.g.engine.Waits(a.id) && a.out.Size() == 0 }

// SetWebhooks replaces AgentOptions.Webhooks.
func (a *Agent) SetWebhooks(w events.Webhooks) {
	defer a.g.lock()()
	a.webhooks = w
}

// EndStreams ends the agent's streams of events, each with this reason.
func (a *Agent) EndStreams(why *bridge.EventError) {
	defer a.g.lock()()
	for id, c := range maps.Clone(a.g.calls) {
		if c.events != nil && c.agent == a {
			a.g.engine.Terminate(a.g.now(), id, why)
		}
	}
}

// Done is closed when the session has ended. The agent may still have messages to read then.
func (a *Agent) Done() <-chan struct{} { return a.done }

// Dropped is closed when the session has ended and its unread messages are discarded.
func (a *Agent) Dropped() <-chan struct{} { return a.dropped }

// Dismiss ends the session like a server that shuts down: each open request gets an error, each
// listen its result. Read returns these messages, and then io.EOF.
func (a *Agent) Dismiss() {
	defer a.g.lock()()
	if a.g.agents[a.id] != nil {
		a.g.engine.Dismiss(a.g.now(), a.id)
		a.close("dismissed", false)
	}
}

// Close ends the session at once. Unread messages are discarded.
func (a *Agent) Close() error {
	defer a.g.lock()()
	a.close("closed", true)
	return nil
}

// close is called with the gateway's lock held. drop discards the messages that the agent has not
// read yet.
func (a *Agent) close(reason string, drop bool) {
	g := a.g
	if g.agents[a.id] != nil {
		g.engine.Close(g.now(), a.id)
		delete(g.agents, a.id)
		g.named(a)
		g.forget(a)
		if a.client.sessions--; a.client.sessions == 0 {
			delete(g.clients, a.client.name)
		}
		close(a.done)
		g.log.Log(context.Background(), a.level(), "agent gone", "agent", int(a.id), "transport",
			a.transport, "reason", reason)
	}
	if drop && !a.isDropped {
		a.isDropped = true
		close(a.dropped)
	}
	a.out.Close(drop)
}

// forget ends an agent's memory.
func (g *Gateway) forget(a *Agent) {
	if a.memory == nil {
		return
	}
	a.memory.End()
	a.memory = nil
	g.remembering--
}

// fullest returns a client's session with the most unread bytes. If of is nil, the client with the
// most of all is chosen. The gateway's lock is held.
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

// countWaiting adds bytes, which may be negative, to the counts of unread bytes.
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
		a.g.fullest(a.client).close("its client does not read what it asks for", true)
	} else if a.g.waiting.Load() > maxWaitingAll {
		a.g.fullest(nil).close(allLeaveTooMuch, true)
	}
	if !a.blocked.Load() && a.out.Size() > highWater {
		a.blocked.Store(true)
		a.g.engine.Writable(a.g.now(), a.id, false)
		a.unblock() // Read may have emptied the outbox before blocked was set
	}
}
