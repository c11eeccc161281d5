package bridge

import (
	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A Time is a number of milliseconds on the host's clock, which must not go back: performance.now
// in a page, the time since start in a process.
type Time = coalesce.Time

// A PortID names a port: one MCP session. The host chooses it, and never uses it twice.
type PortID uint32

// A CallID names a question of the engine to its host. It is never 0.
type CallID uint32

// A Host answers the engine's questions. The engine calls its methods one after the other. They may
// call the engine again: the engine queues the resulting work after the current work, and never
// nests it. They must not block. Byte slices belong to the engine again when the call returns.
type Host interface {
	// Send hands over one message for a port.
	Send(to PortID, m Message)
	// Read asks for the contents of a resource. The host answers with Complete, now or later,
	// unless End comes first.
	Read(call CallID, r Request)
	// End reports that the engine needs nothing more of a call: the host aborts its work on it and
	// drops its data. The engine calls End once for every question that has a call, after it has
	// sent the answers with the call's contents.
	End(call CallID)
	// Watched reports that the first watcher of a URI came, or that the last one left. So a host
	// can produce changes only while an agent watches.
	Watched(uri string, on bool)
}

// A Message is one outgoing JSON-RPC message, as JSON text in up to three pieces that follow each
// other. Only an answer to resources/read or tools/call that carries contents has more than Head.
type Message struct {
	Head []byte
	// Call, if it is not 0, is the read or tool call whose contents belong between Head and Tail.
	Call CallID
	// Contents is Result.Contents as given to Complete for Call; nil if the host holds the contents
	// itself.
	Contents []byte
	Tail     []byte
}

// AppendTo appends the whole message to dst.
func (m Message) AppendTo(dst []byte) []byte {
	return append(append(append(dst, m.Head...), m.Contents...), m.Tail...)
}

// A SubscriptionHost is a Host that consents to each subscription, or keeps a store of its own
// (platformatic/mcp#96). The engine calls its methods once for each subscription. A port may have
// several to one URI: a legacy one, and one for each of its listens. Notify notifies a single port
// of a change.
type SubscriptionHost interface {
	Host
	// Subscribe asks whether a port may subscribe. The host answers with Complete, now or later,
	// unless End comes first: the zero Result is consent, a Failure refuses. A legacy agent that is
	// refused gets an error, a listen an acknowledgement without the URI.
	Subscribe(call CallID, port PortID, uri string)
	// Unsubscribe reports that a subscription has ended. If call is not 0, the agent asked for the
	// end and waits for Complete. If it is 0, the port has closed or its listen has ended, and the
	// host answers nothing.
	Unsubscribe(call CallID, port PortID, uri string)
}

// A ToolHost is a Host that has tools.
type ToolHost interface {
	Host
	// CallTool asks the host to run a tool. The host answers with Complete, now or later, unless
	// End comes first; until then it may call Progress. The Contents of the Result are the JSON
	// text of MCP's CallToolResult, an object without resultType and _meta. A tool that fails has
	// isError in it; Failure is for a tool that could not be run.
	CallTool(call CallID, t ToolCall)
}

// An EventHost is a Host that has events.
type EventHost interface {
	Host
	// Events asks for the answer to a request. The host answers with Complete, now or later, unless
	// End comes first. Contents is the JSON text of an object, whose members become the result's;
	// otherwise Refused is the error. For events/stream, Contents has the members of the first
	// active notification, and from then until End the call names the stream.
	Events(call CallID, r EventRequest)
	// NextEvent takes the next notification of a stream. ok is false if there is none; the host
	// calls Wake when there is one. The engine asks only when the port accepts more, so the host
	// can merge events until then.
	NextEvent(stream CallID) (n EventNote, ok bool)
	// EventCursor is the cursor that a stream's heartbeat carries.
	EventCursor(stream CallID) string
}

// A Request is the engine's request for a read.
type Request struct {
	// Key is the URI or template that the resource was registered under.
	Key string
	// URI is the URI that the agent reads. It equals Key unless the resource is a template or takes
	// parameters.
	URI string
	// Params is the JSON text of an object, the parameters of URI as the resource's schema types
	// them; "" if the resource takes none.
	Params string
	// Port is the port that reads, if the resource has Resource.PerPort; otherwise 0.
	Port PortID
}

// A Result answers a question of the engine. The zero value is a failure of a Read or a CallTool,
// and consent to a Subscribe or Unsubscribe.
type Result struct {
	// Contents is the JSON text of MCP's contents, an array of one or more, or of a tool's result,
	// an object that is not empty; any other text is InvalidContents. The host must not change it
	// after Complete. A host that keeps the contents out of the engine leaves it nil and sets Size.
	// The host then puts the contents (of a tool's result the members, without the braces) into the
	// messages itself.
	Contents []byte
	// Sound means that the caller has checked that Contents are such JSON text.
	Sound bool
	// Meta has the members of a tool's result's _meta, as JSON text without the braces. Contents
	// has no _meta then.
	Meta []byte
	// Size is the length of the contents' JSON text in bytes. Complete sets it if Contents is set.
	Size int
	// Failure is the reason of a failed read.
	Failure Failure
	// Detail is a sentence about Failure. Agents see it only with Options.ExposeErrors.
	Detail string
	// Refused is the error of a request to an EventHost that has no result.
	Refused *EventError
	// Owner is whose the answer is: a port that does not see it gets none. The zero Owner is for
	// every port.
	Owner Owner
}

// A Failure is a way for a read to fail. Its text is the data.reason that agents see.
type Failure string

// A host's reasons for a failed read; the engine's own are in errors.go.
const (
	ReadFailed      Failure = "read_failed"      // the read threw, or could not be done
	InvalidContents Failure = "invalid_contents" // the result is not contents
	// it does not exist; needs Options.Several or UnlistedTools
	NotFound Failure = "not_found"
)

// A ToolCall is an agent's call of a tool.
type ToolCall struct {
	Name string
	// Arguments is the JSON text of an object. It belongs to the engine again when the call
	// returns.
	Arguments []byte
	// Port is the calling agent's port, and Meta the JSON text of its request's _meta, or "".
	Port PortID
	Meta string
}

// A Tool is a tool that a host offers.
type Tool struct {
	Name string
	// JSON is MCP's Tool object, with the name.
	JSON []byte
	// Owner returns whose the tool is now. Restricted ports see the tool by it. nil is for every
	// port.
	Owner func() Owner
	// First tools come before all others, on a list's first page: some agents read only that page.
	First bool
	// Debugging tools exist only for ports with ShowDebugging.
	Debugging bool
	// Typed is what a host has made of JSON. The engine does not use it.
	Typed any
	// listed is whose the tool was at the last SetTools. Who saw it then is told when it is hidden.
	listed Owner
}

// owner is whose the tool is now.
func (t *Tool) owner() (o Owner) {
	if t.Owner != nil {
		o = t.Owner()
	}
	return o
}

// A Progress is what a tool says of a call that runs.
type Progress struct {
	Progress, Total wire.Value // numbers; Total may be absent
	Message         string     // or ""
}

// An EventRequest is a request of one of the events methods. Its members have the right types.
type EventRequest struct {
	Method string // wire.EventsPoll and so on
	Port   PortID
	Name   string
	// the JSON text of an object. Like Delivery, it belongs to the engine again when the call
	// returns
	Arguments []byte
	Cursor    string // "" is null
	MaxAge    Time   // in ms; -1 if absent
	Max       int    // of maxEvents; 0 if absent
	Delivery  JSON   // of a webhook, an object or absent
	TTL       Time   // in ms; -1 if absent, 0 if null
}

// An EventNote is a notification on a stream: an event, unless Gap or Refused is set.
type EventNote struct {
	// Members is the JSON text of the notification's members, without _meta. It is not used with
	// Refused.
	Members []byte
	Gap     bool        // another active notification, with truncated
	Refused *EventError // an error that does not end the stream
}

// An Owner is whose a resource or a tool is: that of the pages of an origin, in a profile of a
// browser. The zero Owner is the host.
type Owner struct {
	Origin, Profile string
	// Shown means that the user offers it: it is what a page shows, and not what a page offers.
	// Launched means that Pagewire launched the page's browser. Granted means that the user offers
	// it to all agents, in the browser's extension.
	Shown, Launched, Granted bool
}

// A Sight is what a restricted port sees. What it does not see does not exist for it. The engine's
// methods call it, at the begin of a request and again when something is sent, since the answers
// may change: a URI may lead to another page, and a page to another profile.
type Sight interface {
	// Sees reports whether the port sees the resource or template that has a URI now.
	Sees(uri string) bool
	// Permits reports whether the port sees what is the owner's.
	Permits(Owner) bool
	// HidesTools says why the port sees no tool that has an owner, or "". It never changes.
	HidesTools() (why string)
}
