package bridge

import (
	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// An Engine is one MCP server. Create it with New. Its methods run one after the other, on one
// goroutine at a time: the host sees to that. This file has all that an engine remembers.
type Engine struct {
	// What New was given; never changed.
	opt  Options
	host Host
	asks bool // the host is a SubscriptionHost
	// The same JSON for every session, written once by New. Capabilities begin after resources'
	// subscribe.
	capabilities, serverInfo, modernMeta wire.Text

	// now is the latest time that a host has given. enter alone moves it, and never back.
	now Time
	// queue has what the host is still to be called for. It is empty between two calls of the host.
	queue queue
	stats Stats

	// What the host offers: resources by register.go, and tools, ordered by name, by SetTools.
	registry *resource.Registry
	tools    []Tool
	// revision counts the changes of each list. list and lists say when agents are told of the last
	// one: list[k] is in lists while that is still to come. listchanged.go alone changes them.
	revision [listKinds]int
	list     [listKinds]coalesce.Item[listKind]
	lists    coalesce.Queue[listKind]

	// The open ports: Open adds to both, drop takes from both. A port is at its port.index of
	// order.
	ports map[PortID]*port
	order []*port
	// restricted counts the open ports that have a sight.
	restricted int
	// throttled has each port with port.throttled once: its next update or event waits for its
	// rate.
	throttled []*port

	// watches has each URI with a subscription, and no other. watch.go alone
	// changes it and wide.
	watches map[string]*watch
	// wide has the watches under a template or a resource with parameters, by that entry; and under
	// nil those without a resource. A watch is at its watch.index.
	wide map[*resource.Entry][]*watch
	// updates has the watches whose change is still to be told: each has an entry.
	updates coalesce.Queue[*watch]

	// calls are the questions under way: newCall adds, endCall and openStream remove. Each has one
	// wait or more, and is in one of the three lists of ages: toolCalls has tool calls, awaiting
	// the requests that wait for Await, and reads all others. lastCall is the newest id.
	calls                      map[CallID]*call
	reads, toolCalls, awaiting ages
	lastCall                   CallID
	// joinable has, by URI, the read that later readers may share: it has begun, and its resource
	// has not changed since. seal removes it.
	joinable map[string]*call
	// fresh has the URIs with a fresh call under way.
	fresh map[string]*freshReads

	// awaits is set between Await and its end, at awaitUntil or later (awaitEnd); never in a page.
	// Meanwhile requests are in awaiting.
	awaits     bool
	awaitUntil Time

	// streams has the open event streams by the call that began each; none in a page. beats has the
	// same, the one whose heartbeat is due first at the front. openStream adds, endStream removes.
	streams map[CallID]*stream
	beats   []*stream
}

// A port is one session: the state of one agent. It ends with the port.
type port struct {
	id    PortID
	index int // in Engine.order

	// Set before the first message (Restrict, ShowDebugging, ForgoSubscriptions), and kept.
	sight     Sight // nil sees all
	debugging bool  // it sees the tools with Tool.Debugging
	forgoes   bool  // it has no subscriptions

	// legacy is the version negotiated by initialize; "" before that. Modern requests leave it
	// alone.
	legacy string
	// lists are the legacy session's: all of them, once it is initialized.
	lists [listKinds]interest

	// What the host has said last, by Writable and Hold. Updates are sent only while it is writable
	// and not held; answers always.
	writable bool
	held     bool

	// What is open. Each subscription is in subs, at its portIndex: a legacy one also in
	// subscribed, one of a listen also in listen.subs.
	subs       []*sub
	subscribed map[string]*sub // by URI
	listens    []*listen       // acknowledged and not ended
	streams    []*stream       // of events
	// waits has each request without an answer once for each call that it waits for.
	waits []*wait
	// openings counts the listens that wait for consent, and granted those of their URIs that wait
	// for no answer: the host has consented, or is not asked since the port does not see them yet.
	// They count against the limits, since they may open at any moment.
	openings, granted int

	// first to last are the subscriptions with an update that waits, in the order in which they
	// fell due. While there is one, later updates wait behind it.
	first, last *sub
	// throttled is true while the port is in Engine.throttled.
	throttled bool
	// credit is in thousandths of an update: what was left at counted. spend alone brings it up to
	// date, and it is never above one second's worth.
	credit  int
	counted Time
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
	wanted bool // set once, by initialize or the filter
	// due is true while an announcement waits until the port accepts it.
	due bool
	// seen is the last revision that was announced to it, or hidden from it (markSeen); at first
	// the revision when it began. So what came before is never announced.
	seen int
}

// A listen is one open subscriptions/listen: a stream of the changes that its filter names, each
// with its id.
type listen struct {
	port  *port
	id    wire.Value // verbatim; sent as the subscriptionId
	subs  []*sub     // of the URIs that the port saw when it began
	lists [listKinds]interest
}

// A watch is one URI that has a subscription. It ends with the last of
// these (unwatched), and outlives the resource.
type watch struct {
	uri string
	// entry is what answers for the URI now, or nil. It is looked up again (rebind) whenever a
	// resource comes or goes that could change it.
	entry *resource.Entry
	subs  []*sub // each at its watchIndex
	// item is in Engine.updates while a change is still to be told.
	item  coalesce.Item[*watch]
	index int // its place in Engine.wide, if it is there
}

// A sub is one subscription to one URI: a legacy one, or one of a listen. watch adds it to the
// lists of its watch and of its port, and forget takes it out of both.
type sub struct {
	watch  *watch
	port   *port
	listen *listen // nil for a legacy one
	// waiting means that it is among its port's updates that wait, between prev and next.
	prev, next            *sub
	watchIndex, portIndex int32
	waiting               bool
}

// A call is one question to the host, and the requests that its answer completes. It ends once, by
// endCall: with the answer, with its deadline, or with its last request.
type call struct {
	// Set when it is made. uri and entry are of a read (uri of a subscription, too): entry is what
	// answered for the URI when the read began, and a read that has not begun follows it.
	id       CallID
	kind     callKind
	uri      string
	entry    *resource.Entry
	tool     string // of a tool call, its name
	held     []byte // of callAwait, the message of its request
	fresh    bool   // it is counted in Engine.fresh
	deadline Time

	waits []*wait // never empty between two calls of the host; only a read may have several

	ages        *ages // its list
	older, next *call // its neighbours there
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

// A wait is one request that a call answers. A listen that waits for consent has one for each URI,
// with one id. Nothing in it changes, except opening.left.
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

// An opening is a listen whose URIs wait for the consent of a SubscriptionHost. After the last
// answer it is acknowledged with the URIs that were not refused.
type opening struct {
	listen  *listen
	uris    []string // the URIs that were not refused
	granted []string // the URIs that the host has consented to, or was not asked about
	left    int      // missing answers; 0 once it is over, also by abandon
}

// ages lists the calls under way, oldest first. All calls of one list have the same timeout, so the
// first expires next. An ended call leaves immediately: one call that waits for a person would keep
// ten minutes of later ones listed.
type ages struct{ first, last *call }

// A freshReads has the reads of one URI that join no read that has begun (Options.Several). All
// readers that come meanwhile share the next one: many agents read at the same moment after a
// change, and the contents would otherwise be sent once for each.
//
// Such an agent listens at one node and may read at another. There its read once joined an earlier
// one that the touch had not reached: it got an old state, without a correction (TestRandomOrder).
// Without any sharing, twenty agents that asked for 600 KB got no answer
// (TestAgentsThatReadNothing).
type freshReads struct {
	running int // those that have begun: 1 to maxFresh
	// next begins when one of them ends, with question; nil if nobody waits.
	next     *call
	question op
}

// A stream is one open events/stream: one more kind of listen, whose notifications are events.
//
// It takes each event from the host, and is not given it: a slow agent would have a queue of
// outdated states. The host says only that there are events (Wake), and the engine asks when the
// port takes more: 1,001 changes at once make 4 events (TestEventLimits).
type stream struct {
	port   *port
	id     wire.Value // verbatim
	call   CallID     // its name at the host
	modern bool
	final  bool // its errors have the codes of the SEP
	// waiting means that the host may have a notification for it; asked, that an opNextEvent is
	// queued. asked is set only while waiting is.
	waiting bool
	asked   bool
	beat    Time // when the next heartbeat is due
}

// A queue holds the engine's calls to its Host until drain makes them. So a Host call that enters
// the engine again finds it in a consistent state, and the stack stays flat however often that
// happens. All messages share one buffer, which is reused, so a touch allocates nothing per
// subscriber.
type queue struct {
	ops []op
	// text has the messages of the opSends in ops, one after the other.
	text wire.Text
	// draining is true while drain is on the stack: only that one hands over.
	draining bool

	// drain swaps these with ops and text, so that the two it works through do not grow when the
	// host calls the engine. Both are empty.
	spareOps  []op
	spareText wire.Text
}

// An op is one call to the host, or a piece of work that comes after such calls.
type op struct {
	kind     opKind
	on       bool   // opWatched
	port     PortID // opSend, opSubscribe, opUnsubscribe, opDrop
	call     CallID
	from, to int    // opSend: the message is text[from:to]
	hole     int    // opSend: the place of call's contents, if call is not 0
	contents []byte // opSend, and the arguments of opTool
	events   *EventRequest
	// request is of opRead. opTool uses its Key and Params, and the subscriptions' ops its URI.
	request Request
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
	Watched       int `json:"watched"` // URIs that have a subscription
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

// extensions appends the extensions that are declared: events in two places, since ChatGPT looks at
// the second.
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
	s.Resources, s.Ports = e.registry.Len(), len(e.ports)
	s.Calls, s.Watched = len(e.calls), len(e.watches)
	return s
}
