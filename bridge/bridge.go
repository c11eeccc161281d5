package bridge

import "github.com/pagewire/pagewire/bridge/coalesce"

// A Time is a number of milliseconds on the host's clock, which must not go back: performance.now in a page, the
// time since start in a process.
type Time = coalesce.Time

// A PortID names a port: one MCP session. The host chooses it, and never uses it twice.
type PortID uint32

// A CallID names a question of the engine to its host. It is never 0.
type CallID uint32

// A Host answers the engine's questions. The engine calls its methods one after the other. They may call the engine
// again: the engine queues the resulting work after the current work, and never nests it. They must not block. Byte
// slices belong to the engine again when the call returns.
type Host interface {
	// Send hands over one message for a port.
	Send(to PortID, m Message)
	// Read asks for the contents of a resource. The host answers with Complete, now or later, unless End comes first.
	Read(call CallID, r Request)
	// End reports that the engine needs nothing more of a call: the host aborts its work on it and drops its data. The
	// engine calls End once for every question that has a call, after it has sent the answers with the call's contents.
	End(call CallID)
	// Watched reports that the first watcher of a URI came, or that the last one left. So a host can produce changes
	// only while an agent watches.
	Watched(uri string, on bool)
}

// A Message is one outgoing JSON-RPC message, as JSON text in up to three pieces that follow each other. Only an answer
// to resources/read or tools/call that carries contents has more than Head.
type Message struct {
	Head []byte
	// Call, if it is not 0, is the read or tool call whose contents belong between Head and Tail.
	Call CallID
	// Contents is Result.Contents as given to Complete for Call; nil if the host holds the contents itself.
	Contents []byte
	Tail     []byte
}

// AppendTo appends the whole message to dst.
func (m Message) AppendTo(dst []byte) []byte {
	return append(append(append(dst, m.Head...), m.Contents...), m.Tail...)
}

// A SubscriptionHost is a Host that consents to each subscription, or keeps a store of its own (platformatic/mcp#96).
// The engine calls its methods once for each subscription. A port may have several to one URI: a legacy one, and one
// for each of its listens. Notify notifies a single port of a change.
type SubscriptionHost interface {
	Host
	// Subscribe asks whether a port may subscribe. The host answers with Complete, now or later, unless End comes
	// first: the zero Result is consent, a Failure refuses. A legacy agent that is refused gets an error, a listen an
	// acknowledgement without the URI.
	Subscribe(call CallID, port PortID, uri string)
	// Unsubscribe reports that a subscription has ended. If call is not 0, the agent asked for the end and waits for
	// Complete. If it is 0, the port has closed or its listen has ended, and the host answers nothing.
	Unsubscribe(call CallID, port PortID, uri string)
}

// A WatchHost is a Host that watches resources itself, in addition to its agents.
type WatchHost interface {
	Host
	// Changed reports that a URI watched by Watch reads differently now.
	Changed(uri string)
}

// A Request is the engine's request for a read.
type Request struct {
	// Key is the URI or template that the resource was registered under.
	Key string
	// URI is the URI that the agent reads. It equals Key unless the resource is a template or takes parameters.
	URI string
	// Params is the JSON text of an object, the parameters of URI as the resource's schema types them; "" if the
	// resource takes none.
	Params string
	// Port is the port that reads, if the resource has Resource.PerPort; otherwise 0.
	Port PortID
}

// A Result answers a question of the engine. The zero value is a failure of a Read or a CallTool, and consent to a
// Subscribe or Unsubscribe.
type Result struct {
	// Contents is the JSON text of MCP's contents, an array of one or more, or of a tool's result, an object that is
	// not empty; any other text is InvalidContents. The host must not change it after Complete. A host that keeps the
	// contents out of the engine leaves it nil and sets Size. The host then puts the contents (of a tool's result the
	// members, without the braces) into the messages itself.
	Contents []byte
	// Sound means that the caller has checked that Contents are such JSON text.
	Sound bool
	// Meta has the members of a tool's result's _meta, as JSON text without the braces. Contents has no _meta then.
	Meta []byte
	// Size is the length of the contents' JSON text in bytes. Complete sets it if Contents is set.
	Size int
	// Failure is the reason of a failed read.
	Failure Failure
	// Detail is a sentence about Failure. Agents see it only with Options.ExposeErrors.
	Detail string
	// Refused is the error of a request to an EventHost that has no result.
	Refused *EventError
	// Owner is whose the answer is: a port that does not see it gets none. The zero Owner is for every port.
	Owner Owner
}

// A Failure is a way for a read to fail. Its text is the data.reason that agents see.
type Failure string

// A host's reasons for a failed read; the engine's own are in errors.go.
const (
	ReadFailed      Failure = "read_failed"      // the read threw, or could not be done
	InvalidContents Failure = "invalid_contents" // the result is not contents
	NotFound        Failure = "not_found"        // it does not exist; needs Options.Several or UnlistedTools
)

// Options configure an engine. The zero value works, except that its Rule admits nothing.
type Options struct {
	// Name and Version are shown to agents as serverInfo. Default "pagewire" and "0".
	Name, Version string
	// Instructions are shown to agents at the start of a session. Default none.
	Instructions string
	// Rule sets which URIs may be registered and read.
	Rule Rule
	// NoSubscriptions switches subscriptions off: the capability is not declared, resources/subscribe is
	// MethodNotFound, and a listen is acknowledged without resourceSubscriptions (platformatic/mcp#96).
	NoSubscriptions bool
	// Several means that several engines serve the same agents. A modern agent may use another engine with each
	// request, and may learn of a change there before this engine does. So its reads never join a read that has begun,
	// and the engine also asks the host for reads of URIs without a resource.
	Several bool
	// Tools offers the tools of the host, which must be a ToolHost.
	Tools bool
	// UnlistedTools means that the host has tools that it does not list. The engine passes it calls of any name, and it
	// answers NotFound for a tool that does not exist.
	UnlistedTools bool
	// Events offers MCP Events of the host, which must be an EventHost. A page's core has none.
	Events bool
	// HeartbeatInterval is the time between two heartbeats of an event stream. Default 15,000 ms: clients give up after
	// a minute.
	HeartbeatInterval Time
	// Skills are served to agents. Default none.
	Skills []Skill
	// ExposeErrors shows agents the host's Detail of a failed read. It is off because a page's messages may hold
	// secrets.
	ExposeErrors bool
	// UpdateInterval is the least time between two updates of one URI. Default 100 ms; negative means none, for a
	// host whose resources are coalesced already.
	UpdateInterval Time
	// UpdateBurst is the number of changes of one URI in quick succession that are announced immediately, one by one. A
	// longer series is announced once per UpdateInterval. Default 3: one action of a person rarely makes more. A
	// resource's own interval allows no burst.
	UpdateBurst int
	// ListInterval is the least time between two list_changed. Default 16 ms; negative means none.
	ListInterval Time
	// ReadTimeout is how long a read, or the consent to a subscription, may take. Default 30,000 ms.
	ReadTimeout Time
	// AwaitTimeout is how long requests wait for a host that does not know yet what it offers (Engine.Await). Default
	// 2,000 ms.
	AwaitTimeout Time
	// ToolTimeout is how long a tool may take. Default 600,000 ms: some ask a person.
	ToolTimeout Time
	// PageSize and PageBytes bound one page of a listing: the number of resources, or tools, and their size as JSON
	// text. A page holds at least one, and more than these if the list would otherwise have too many pages. Default
	// 200, and 1 MiB.
	PageSize, PageBytes int
	// Limits bound the memory that ports and hosts can take.
	Limits Limits
}

// Limits bound an engine. For each, 0 means the default and a negative number means no bound.
type Limits struct {
	MessageBytes  int // of a message from an agent. Default 1 MiB
	Depth         int // of nesting in a message. Default 64; never unbounded
	IDBytes       int // of the id of a request, or a progress token, as JSON text. Default 1,024
	URIBytes      int // of a URI. Default 8,192
	Resources     int // registered at once. Default 10,000
	Ports         int // open at once. Default 1,024
	Subscriptions int // of one port, its listens' URIs included. Default 1,024
	Listens       int // of one port. Default 64
	Streams       int // of events, of one port. Default 64
	Calls         int // of one port: reads, tool calls and consents under way. Default 64
	Tools         int // of the host. Default 1,000
	ResultBytes   int // of the contents of one read, as JSON text. Default 16 MiB
	UpdateRate    int // updates per second on one port, over all URIs; also the largest burst. Default 1,000
}

// maxDepth bounds the nesting of any JSON text: the scanner recurses.
const maxDepth = 1000

func (o Options) withDefaults() Options {
	pick := func(v *int, def int) {
		switch {
		case *v == 0:
			*v = def
		case *v < 0:
			*v = 1<<31 - 1
		}
	}
	l := &o.Limits
	pick(&l.MessageBytes, 1<<20)
	pick(&l.Depth, 64)
	l.Depth = min(l.Depth, maxDepth)
	pick(&l.IDBytes, 1024)
	pick(&l.URIBytes, 8192)
	pick(&l.Resources, 10_000)
	pick(&l.Ports, 1024)
	pick(&l.Subscriptions, 1024)
	pick(&l.Listens, 64)
	pick(&l.Streams, 64)
	pick(&l.Calls, 64)
	pick(&l.Tools, 1000)
	pick(&l.ResultBytes, 16<<20)
	pick(&l.UpdateRate, 1000)
	l.UpdateRate = min(l.UpdateRate, 1_000_000) // in thousandths it must fit 31 bits
	pick(&o.PageSize, 200)
	pick(&o.PageBytes, 1<<20)
	pickTime := func(v *Time, def Time) {
		switch {
		case *v == 0:
			*v = def
		case *v < 0:
			*v = 0
		}
	}
	pickTime(&o.UpdateInterval, 100)
	pick(&o.UpdateBurst, 3)
	pickTime(&o.ListInterval, 16)
	pickTime(&o.ReadTimeout, 30_000)
	pickTime(&o.AwaitTimeout, 2_000)
	pickTime(&o.ToolTimeout, 600_000)
	pickTime(&o.HeartbeatInterval, 15_000)
	if o.Name == "" {
		o.Name = "pagewire"
	}
	if o.Version == "" {
		o.Version = "0"
	}
	return o
}

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
