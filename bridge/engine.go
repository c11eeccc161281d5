package bridge

import (
	"errors"

	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// An Engine is one MCP server. Create it with New.
type Engine struct {
	opt  Options
	host Host
	now  Time

	registry *resource.Registry
	ports    map[PortID]*port
	order    []*port // all ports; port.index is the place of each

	watches map[string]*watch            // URI -> its watch, while somebody subscribes to it
	wide    map[*resource.Entry][]*watch // watches that a template or a resource with parameters answers for; under nil those that nothing answers for

	calls    map[CallID]*call
	joinable map[string]*call // URI -> the read that a further reader of it may share
	deadline []*call          // by age, ended ones among them; all have the same time to live
	lastCall CallID

	updates   coalesce.Queue[*watch]
	list      coalesce.Item[struct{}]
	lists     coalesce.Queue[struct{}]
	revision  int     // of the list: how often resources came or went
	throttled []*port // ports with updates that wait for their rate

	queue queue
	stats Stats

	capabilities, serverInfo, modernMeta wire.Text // JSON that every session is told, made once
}

// New returns an engine for a home.
func New(o Options, host Host) *Engine {
	o = o.withDefaults()
	e := &Engine{
		opt:      o,
		host:     host,
		registry: resource.NewRegistry(o.Rule, o.Limits.Resources, o.Limits.URIBytes),
		ports:    map[PortID]*port{},
		watches:  map[string]*watch{},
		wide:     map[*resource.Entry][]*watch{},
		calls:    map[CallID]*call{},
		joinable: map[string]*call{},
	}
	e.capabilities = wire.Text(`"capabilities":{"resources":{"subscribe":true,"listChanged":true}}`)
	if o.NoSubscriptions {
		e.capabilities = wire.Text(`"capabilities":{"resources":{"listChanged":true}}`)
	}
	if o.Instructions != "" {
		e.capabilities = e.capabilities.Raw(`,"instructions":`).Str(o.Instructions)
	}
	e.serverInfo = wire.Text(`{"name":`).Str(o.Name).Raw(`,"version":`).Str(o.Version).Raw(`}`)
	e.modernMeta = wire.Text(`"_meta":{"` + wire.MetaServerInfo + `":`).Bytes(e.serverInfo).Raw(`}`)
	return e
}

// enter begins every method that knows the time: it does what has fallen due, so that a timer that comes late (a
// hidden tab's come once a second) delays nothing that a call could have done.
func (e *Engine) enter(now Time) {
	e.now = max(e.now, now)
	if at, ok := e.Deadline(); ok && at <= e.now {
		e.due()
	}
}

// Tick does what has fallen due. Call it when Deadline says; a call that comes early or late does no harm.
func (e *Engine) Tick(now Time) {
	e.enter(now)
	e.drain()
}

func (e *Engine) due() {
	for {
		w := e.updates.Pop(e.now, e.interval)
		if w == nil {
			break
		}
		e.announce(w.Value)
	}
	if e.lists.Pop(e.now, func(struct{}) Time { return e.opt.ListInterval }) != nil {
		e.announceList()
	}
	waiting := e.throttled
	e.throttled = e.throttled[:0]
	for _, p := range waiting {
		p.throttled = false
		e.flush(p)
	}
	e.expireReads()
}

// Deadline tells when Tick is next needed. ok is false while it is not.
func (e *Engine) Deadline() (at Time, ok bool) {
	soonest := func(t Time, found bool) {
		if found && (!ok || t < at) {
			at, ok = t, true
		}
	}
	soonest(e.updates.Next())
	soonest(e.lists.Next())
	for _, p := range e.throttled {
		soonest(p.ready(e.opt.Limits.UpdateRate), true)
	}
	soonest(e.nextExpiry())
	return at, ok
}

// Stats returns the engine's counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Resources, s.Ports, s.Reads, s.Watched = e.registry.Len(), len(e.ports), len(e.calls), len(e.watches)
	return s
}

// errPort is what the methods on ports return for a port that is not open.
var errPort = errors.New("bridge: no such port")
