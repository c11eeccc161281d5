package bridge

import (
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
	// restricted is how many ports do not see all.
	restricted int

	watches map[string]*watch // by URI, while there are subscriptions to it or the host watches it
	// watches that a template or a resource with parameters answers for; under nil those that nothing answers for
	wide map[*resource.Entry][]*watch

	calls    map[CallID]*call
	joinable map[string]*call // URI -> the read that a further reader of it may share
	fresh    map[string]*freshReads
	lastCall CallID

	reads, toolCalls ages // reads has the consents to subscriptions too
	tools            []Tool
	asks             bool // the host is a SubscriptionHost

	updates   coalesce.Queue[*watch]
	lists     coalesce.Queue[listKind]
	list      [listKinds]coalesce.Item[listKind]
	revision  [listKinds]int // how often the list has changed
	throttled []*port        // ports with updates that wait for their rate

	queue queue
	stats Stats

	capabilities, serverInfo, modernMeta wire.Text // JSON that every session gets, written once

	hostWatches map[string]bool // what the host watches: nothing in a page
}

// New returns an engine for a host.
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
		fresh:    map[string]*freshReads{},
	}
	for kind := range e.list {
		e.list[kind].Value = listKind(kind)
	}
	_, e.asks = host.(SubscriptionHost)
	if _, ok := host.(ToolHost); o.Tools && !ok {
		panic("bridge: Options.Tools needs a ToolHost")
	}
	e.capabilities = wire.Text(`"capabilities":{"resources":{`)
	if !o.NoSubscriptions {
		e.capabilities = e.capabilities.Raw(`"subscribe":true,`)
	}
	e.capabilities = e.capabilities.Raw(`"listChanged":true}`)
	if o.Tools {
		e.capabilities = e.capabilities.Raw(`,"tools":{"listChanged":true}`)
	}
	e.capabilities = e.capabilities.Raw(`}`)
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
		w := e.updates.Pop(e.now, e.pace)
		if w == nil {
			break
		}
		e.announce(w.Value)
	}
	for {
		list := e.lists.Pop(e.now, func(listKind) coalesce.Pace { return coalesce.Pace{Interval: e.opt.ListInterval} })
		if list == nil {
			break
		}
		e.announceList(list.Value)
	}
	waiting := e.throttled
	e.throttled = e.throttled[:0]
	for _, p := range waiting {
		p.throttled = false
		e.flush(p)
	}
	e.expire(&e.reads, e.opt.ReadTimeout)
	e.expire(&e.toolCalls, e.opt.ToolTimeout)
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
	for _, list := range [...]*ages{&e.reads, &e.toolCalls} {
		if c := list.first; c != nil {
			soonest(c.deadline, true)
		}
	}
	return at, ok
}

// Stats returns the engine's counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Resources, s.Ports, s.Calls, s.Watched = e.registry.Len(), len(e.ports), len(e.calls), len(e.watches)
	return s
}

// errPort is what the methods on ports return for a port that is not open.
const errPort = failure("bridge: no such port")
