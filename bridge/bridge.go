package bridge

import (
	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A Time is a number of milliseconds on the host's clock, which must not go back: performance.now in a page, the
// time since start in a process.
type Time = coalesce.Time

// A PortID names a port: one MCP session. The host chooses it, and never uses it twice.
type PortID uint32

// A CallID names a question of the engine to its host. It is never 0.
type CallID uint32

// A Host is what the engine asks of its host. Its methods are called from within the engine's own, one after the
// other, and may call the engine again: what that brings about is queued behind what is under way, never nested.
// They must not block. Byte slices are the engine's again when the call returns.
type Host interface {
	// Send hands over one message for a port.
	Send(to PortID, m Message)
	// Read asks what a resource reads as. The host answers with Complete, now or later, unless End comes first.
	Read(call CallID, r Request)
	// End says that the engine needs nothing more of a call: the host aborts what still runs for it and drops what it
	// holds for it. It comes once for every question that has a call, after the answers that use its contents have been
	// sent.
	End(call CallID)
	// Watched says that the first watcher of a URI came, or that the last one left. A host may use it to produce
	// changes only while somebody listens.
	Watched(uri string, on bool)
}

// A Message is one JSON-RPC message on its way out, as JSON text in up to three pieces that follow each other.
// Only an answer to resources/read or tools/call that carries contents has more than Head.
type Message struct {
	Head []byte
	// Call, if it is not 0, is the read or tool call whose contents belong between Head and Tail.
	Call CallID
	// Contents is what Complete was given for Call: nil if the host holds the contents itself.
	Contents []byte
	Tail     []byte
}

// AppendTo appends the whole message to dst.
func (m Message) AppendTo(dst []byte) []byte {
	return append(append(append(dst, m.Head...), m.Contents...), m.Tail...)
}

// A SubscriptionHost is a Host that wants to be asked before an agent subscribes, or keeps a store of its own
// (platformatic/mcp#96). Its methods come once for each subscription: a port may hold several of one URI, a legacy one
// and one of each of its listens. Notify tells a single port of a change.
type SubscriptionHost interface {
	Host
	// Subscribe asks whether a port may subscribe. The host answers with Complete, now or later, unless End comes
	// first: the zero Result is consent, a Failure refuses. A legacy agent that is refused gets an error, a listen an
	// acknowledgement without the URI.
	Subscribe(call CallID, port PortID, uri string)
	// Unsubscribe says that a subscription has ended. With a call the agent asked for it and waits for Complete;
	// a call of 0 wants no answer: the port has closed, or its listen has ended.
	Unsubscribe(call CallID, port PortID, uri string)
}

// A WatchHost is a Host that watches resources itself, beside its agents.
type WatchHost interface {
	Host
	// Changed says that a URI which is watched by Watch reads differently now.
	Changed(uri string)
}

// A Request is a read that the engine asks of its host.
type Request struct {
	// Key is the URI or template that the resource was registered under.
	Key string
	// URI is what the agent wants to read. It equals Key unless the resource is a template or takes parameters.
	URI string
	// Params is the JSON text of an object, the parameters of URI as the resource's schema types them; "" if the
	// resource takes none.
	Params string
}

// A Result answers a question of the engine. For a Read or a CallTool the zero value is a failure, for a Subscribe or
// Unsubscribe it is consent.
type Result struct {
	// Contents is the JSON text of MCP's contents, an array of one or more, or of a tool's result, an object that is
	// not empty; anything else is InvalidContents. It must not change any more. A host that keeps it out of the engine
	// leaves it nil and says Size: it then puts the contents (of a tool's result the members, without the braces) into
	// the messages itself.
	Contents []byte
	// Sound says that the caller has checked Contents to be such JSON text.
	Sound bool
	// Size is the length of the contents' JSON text. It is taken from Contents where that is set.
	Size int
	// Failure says what went wrong, if the read failed.
	Failure Failure
	// Detail is a sentence on Failure. Agents see it only with Options.ExposeErrors.
	Detail string
}

// A Failure is a way for a read to fail. Its text is the data.reason that agents see.
type Failure string

// What a host may say of a failed read; the engine's own reasons are in errors.go.
const (
	ReadFailed      Failure = "read_failed"      // it threw, or could not be done
	InvalidContents Failure = "invalid_contents" // it returned something else than contents
	NotFound        Failure = "not_found"        // of a host that forwards reads, or has unlisted tools: there is none
)

// Options say how an engine behaves. The zero value is a working default, but for Rule, which admits nothing.
type Options struct {
	// Name and Version are what agents are told as serverInfo. Default "pagewire" and "0".
	Name, Version string
	// Instructions are shown to agents at the start of a session. Default none.
	Instructions string
	// Rule says which URIs may be registered and read.
	Rule Rule
	// NoSubscriptions switches subscriptions off: the capability is not declared, resources/subscribe is
	// MethodNotFound, and a listen is acknowledged without resourceSubscriptions (platformatic/mcp#96).
	NoSubscriptions bool
	// Relay says that the host stands before a server and does not know all that is there: it is asked for reads of
	// URIs that no resource answers for, too. Only what is registered can be subscribed to.
	Relay bool
	// Several says that several engines serve the same agents. A modern one may come to another with each request, and
	// may have been told of a change there before this engine is. So its reads share none that has begun, and the host
	// is asked for reads of URIs that no resource answers for, too.
	Several bool
	// SubscriptionLimitCode is the error code for a subscription above Limits.Subscriptions. Default InternalError.
	SubscriptionLimitCode int
	// Tools carries the tools of the host, which must be a ToolHost.
	Tools bool
	// UnlistedTools says that the host has tools besides those that it lists: it is asked for calls of any name, and
	// fails with NotFound where there is no such tool.
	UnlistedTools bool
	// ExposeErrors lets agents see why a read failed. Off, because a page's messages may hold secrets.
	ExposeErrors bool
	// UpdateInterval is the least time between two updates of one URI. Default 100 ms; negative means none, for a
	// host whose resources are coalesced already.
	UpdateInterval Time
	// UpdateBurst is how many changes of one URI in quick succession are announced at once, each; a stream of changes
	// is announced once per UpdateInterval. Default 3, as many as one act of a person mostly makes. An interval that a
	// resource names is strict.
	UpdateBurst int
	// ListInterval is the least time between two list_changed. Default 16 ms; negative means none.
	ListInterval Time
	// ReadTimeout is how long a read may take, and the consent to a subscription. Default 30,000 ms.
	ReadTimeout Time
	// ToolTimeout is how long a tool may take. Default 600,000 ms: some ask a person.
	ToolTimeout Time
	// PageSize and PageBytes bound one page of a listing: how many resources, or tools, and how large they are as JSON
	// text. A page holds one at least, and more than these where the list would have too many pages else. Default 200,
	// and 1 MiB.
	PageSize, PageBytes int
	// Limits bound what ports and hosts may make the engine hold.
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
	Calls         int // of one port: reads and tool calls that wait, and consents. Default 64
	Tools         int // of the host. Default 1,000
	ResultBytes   int // of the contents of one read, as JSON text. Default 16 MiB
	UpdateRate    int // updates per second on one port, all URIs together; so many may also come at once. Default 1,000
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
	pick(&l.Calls, 64)
	pick(&l.Tools, 1000)
	pick(&l.ResultBytes, 16<<20)
	pick(&l.UpdateRate, 1000)
	l.UpdateRate = min(l.UpdateRate, 1_000_000) // in thousandths it must fit 31 bits
	pick(&o.PageSize, 200)
	pick(&o.PageBytes, 1<<20)
	if o.SubscriptionLimitCode == 0 {
		o.SubscriptionLimitCode = wire.InternalError
	}
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
	pickTime(&o.ToolTimeout, 600_000)
	if o.Name == "" {
		o.Name = "pagewire"
	}
	if o.Version == "" {
		o.Version = "0"
	}
	return o
}

// Stats count what an engine holds and what it has done.
type Stats struct {
	// held now
	Resources     int `json:"resources"`
	Ports         int `json:"ports"`
	Subscriptions int `json:"subscriptions"`
	Listens       int `json:"listens"`
	Calls         int `json:"calls"`
	Watched       int `json:"watched"` // URIs that somebody subscribes to, or the host watches
	// since New: Touch calls, those of URIs that nothing answers for, updates sent
	Touches        int `json:"touches"`
	UnknownTouches int `json:"unknownTouches"`
	Updates        int `json:"updates"`
}
