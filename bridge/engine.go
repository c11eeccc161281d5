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
	order    []*port // all ports, each at its port.index
	// restricted counts the ports with Restrict.
	restricted int

	watches map[string]*watch // by URI, with a subscription or watched by the host
	// wide has watches of URIs under a template or a resource with parameters; under nil, of URIs without a resource
	wide map[*resource.Entry][]*watch

	calls    map[CallID]*call
	joinable map[string]*call // by URI, the read that later readers may share
	fresh    map[string]*freshReads
	lastCall CallID

	reads, toolCalls ages // reads also has the consents to subscriptions and the event requests
	tools            []Tool
	asks             bool // the host is a SubscriptionHost

	updates   coalesce.Queue[*watch]
	lists     coalesce.Queue[listKind]
	list      [listKinds]coalesce.Item[listKind]
	revision  [listKinds]int // counts the changes of each list
	throttled []*port        // ports whose updates wait for their rate

	queue queue
	stats Stats

	// The same JSON for every session. Capabilities begin after resources' subscribe.
	capabilities, serverInfo, modernMeta wire.Text

	hostWatches map[string]bool // URIs that the host watches; none in a page

	awaits     bool // requests wait for the host; never in a page
	awaitUntil Time
	awaiting   ages

	streams map[CallID]*stream // of events; none in a page
	beats   []*stream          // in the order of their heartbeats
}

// extensions appends the extensions that are declared: events in two places, since ChatGPT looks at the second.
func extensions(text wire.Text, o Options) wire.Text {
	before := `,"extensions":{`
	declare := func(key string) {
		text, before = text.Raw(before).Str(key).Raw(`:{}`), `,`
	}
	if o.Events {
		declare(wire.EventsExtension)
	}
	if len(o.Skills) > 0 {
		declare(wire.SkillsExtension)
	}
	if before == `,` {
		text = text.Raw(`}`)
	}
	if o.Events {
		text = text.Raw(`,"events":{}`)
	}
	return text
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
	if restricts && o.Events {
		if _, ok := host.(EventHost); !ok {
			panic("bridge: Options.Events needs an EventHost")
		}
	}
	e.capabilities = wire.Text(`"listChanged":true}`)
	if o.Tools {
		e.capabilities = e.capabilities.Raw(`,"tools":{"listChanged":true}`)
	}
	if restricts {
		e.capabilities = extensions(e.capabilities, o)
	}
	e.capabilities = e.capabilities.Raw(`}`)
	if o.Instructions != "" {
		e.capabilities = e.capabilities.Raw(`,"instructions":`).Str(o.Instructions)
	}
	e.serverInfo = wire.Text(`{"name":`).Str(o.Name).Raw(`,"version":`).Str(o.Version).Raw(`}`)
	e.modernMeta = wire.Text(`"_meta":{"` + wire.MetaServerInfo + `":`).Bytes(e.serverInfo).Raw(`}`)
	return e
}

// declare appends the capabilities that a port's agent is told.
func (e *Engine) declare(text wire.Text, p *port) wire.Text {
	text = text.Raw(`"capabilities":{"resources":{`)
	if e.subscribes(p) {
		text = text.Raw(`"subscribe":true,`)
	}
	return text.Bytes(e.capabilities)
}

// enter begins every method that gets the time. It does the work that is due. So a late timer (in a hidden tab, timers
// fire once a second) does not delay work if a call comes earlier.
func (e *Engine) enter(now Time) {
	e.now = max(e.now, now)
	if at, ok := e.Deadline(); ok && at <= e.now {
		e.due()
	}
}

// Tick does the work that is due. Call it at Deadline; an early or late call does no harm.
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
	if restricts {
		e.heartbeats()
		if e.awaits && e.awaitEnd() <= e.now {
			e.awaits = e.now < e.awaitUntil
			e.proceed(nil)
		}
	}
	e.expire(&e.reads, e.opt.ReadTimeout)
	e.expire(&e.toolCalls, e.opt.ToolTimeout)
}

// Deadline returns the time at which Tick is next needed. ok is false if nothing is scheduled.
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
	if restricts && len(e.beats) > 0 {
		soonest(e.beats[0].beat, true)
	}
	if restricts && e.awaits {
		soonest(e.awaitEnd(), true)
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

// errPort is the error of methods on a port that is not open.
const errPort = failure("bridge: no such port")
