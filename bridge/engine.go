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

// A port is one session: the state of one agent. It ends with the port.
type port struct {
	id       PortID
	index    int    // in Engine.order
	legacy   string // the version negotiated by initialize; "" before that
	writable bool
	held     bool                // it accepts only answers and progress
	lists    [listKinds]interest // legacy: all of them, once it is initialized
	sight    Sight               // nil sees all
	// debugging shows it the tools with Tool.Debugging.
	debugging bool
	forgoes   bool // subscriptions

	subscribed map[string]*sub // legacy: URI -> subscription
	listens    []*listen
	streams    []*stream // of events
	openings   int       // listens that wait for consent
	granted    int       // subscriptions of such listens that have consent
	subs       []*sub    // all subscriptions, legacy and of listens, each at its portIndex
	waits      []*wait

	first, last *sub // pending updates, in the order in which they were due
	throttled   bool // in Engine.throttled
	credit      int  // thousandths of an update that may be sent now
	counted     Time // when credit was last brought up to date
}

// A listKind is a list with list_changed notifications.
type listKind byte

const (
	listResources listKind = iota
	listTools
	listKinds // the number of lists
)

// listNames are the names of the lists in the filter of a listen, and in notifications.
var listNames = [listKinds]struct{ flag, changed string }{
	{"resourcesListChanged", wire.ResourcesListChanged},
	{"toolsListChanged", wire.ToolsListChanged},
}

// An interest is the interest of one session, or of one listen, in one list.
type interest struct {
	wanted bool
	due    bool // a notification waits until the port is writable
	seen   int  // the last revision announced to it; at first, the revision when it began
}

// A listen is one open subscriptions/listen: a stream of the changes that its filter names, each with its id.
type listen struct {
	port  *port
	id    wire.Value // verbatim; sent as the subscriptionId
	subs  []*sub
	lists [listKinds]interest
}

// A watch is one URI that has a subscription or that the host watches.
type watch struct {
	uri   string
	entry *resource.Entry // the URI's entry now; nil while it has none
	subs  []*sub          // each at its watchIndex
	item  coalesce.Item[*watch]
	index int // its place in Engine.wide, if it is there
}

// A sub is one subscription to one URI: a legacy one, or one of a listen.
type sub struct {
	watch                 *watch
	port                  *port
	listen                *listen // nil for a legacy one
	prev, next            *sub    // among the port's pending updates
	watchIndex, portIndex int32
	waiting               bool
}

// A call is one question to the host, and the requests that its answer completes.
type call struct {
	id       CallID
	kind     callKind
	uri      string          // of a read or a subscription
	entry    *resource.Entry // of a read
	tool     string          // of a tool call, its name
	held     []byte          // of a request that waits for the host: its message
	fresh    bool            // it is one of Engine.fresh
	waits    []*wait
	deadline Time

	ages        *ages // its list
	older, next *call
}

type callKind byte

const (
	callRead callKind = iota
	callTool
	callSubscribe
	callUnsubscribe
	callEvents
	callStream // until the stream begins
	callAwait  // the host is not asked
)

// A wait is one request that a call answers. A listen that waits for consent has one for each URI, with one id.
type wait struct {
	port     *port
	call     *call
	id       wire.Value
	modern   bool
	skill    bool       // the answer is a page's skill, made from the contents
	opening  *opening   // the listen that waits for consent; nil for other requests
	progress wire.Value // the progressToken of a tool call, or absent
	final    bool       // an EventError has the code of the SEP, not of the sketch
}

// An opening is a listen whose URIs wait for the consent of a SubscriptionHost. After the last answer it is
// acknowledged with the URIs that were not refused.
type opening struct {
	listen  *listen
	uris    []string // the URIs that were not refused
	granted []string // the URIs that the host has consented to
	left    int      // missing answers
}

// ages lists the calls under way, oldest first. All calls of one list have the same timeout, so the first expires next.
// An ended call leaves immediately: one call that waits for a person would keep ten minutes of later ones listed.
type ages struct{ first, last *call }

// A freshReads has the reads of one URI that join no read that has begun (Options.Several): the number under way, and
// the next one, which begins when one of them ends. All readers that come meanwhile share the next one: many agents
// read at the same moment after a change, and the contents would otherwise be sent once for each.
type freshReads struct {
	running  int
	next     *call
	question op
}

// A stream is one open events/stream: one more kind of listen, whose notifications are events.
type stream struct {
	port    *port
	id      wire.Value // verbatim
	call    CallID     // its name at the host
	modern  bool
	final   bool // its errors have the codes of the SEP
	waiting bool // the host has a notification for it
	asked   bool // an opNextEvent is queued
	beat    Time // when the next heartbeat is due
}

// A queue holds the engine's calls to its Host until drain makes them. So a Host call that enters the engine again
// finds it in a consistent state, and the stack stays flat however often that happens. All messages share one buffer,
// which is reused, so a touch allocates nothing per subscriber.
type queue struct {
	ops      []op
	text     wire.Text
	draining bool

	// drain swaps them with ops and text, so that the two it works through do not grow when the host calls the engine.
	spareOps  []op
	spareText wire.Text
}

type op struct {
	kind     opKind
	on       bool   // opWatched
	port     PortID // opSend, opSubscribe, opUnsubscribe, opDrop
	call     CallID
	from, to int    // opSend: the message is text[from:to]
	hole     int    // opSend: the place of call's contents, if call is not 0
	contents []byte // opSend, and the arguments of opTool
	events   *EventRequest
	request  Request // opRead; opTool uses its Key and Params, and the subscriptions' ops its URI
}

type opKind byte

const (
	opSend opKind = iota
	opRead
	opEnd
	opWatched
	opTool
	opSubscribe
	opUnsubscribe
	opDrop
	opChanged
	opEvents
	opNextEvent
	opHeartbeat
)

// Stats count an engine's state and its work.
type Stats struct {
	// held now
	Resources     int `json:"resources"`
	Ports         int `json:"ports"`
	Subscriptions int `json:"subscriptions"`
	Listens       int `json:"listens"`
	Streams       int `json:"streams"` // of events
	Calls         int `json:"calls"`
	Watched       int `json:"watched"` // URIs that have a subscription or that the host watches
	// since New: Touch calls, Touch calls for URIs without a resource, updates sent, events sent
	Touches        int `json:"touches"`
	UnknownTouches int `json:"unknownTouches"`
	Updates        int `json:"updates"`
	Events         int `json:"events"`
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

// Stats returns the engine's counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Resources, s.Ports, s.Calls, s.Watched = e.registry.Len(), len(e.ports), len(e.calls), len(e.watches)
	return s
}
