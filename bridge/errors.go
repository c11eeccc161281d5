package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// The engine's reasons in data.reason, by which programs tell its errors apart. The Reasons of
// package resource and the Failures appear there too.
const (
	reasonTimeout       = "timeout"
	reasonResultSize    = "result_size"
	reasonCalls         = "call_limit"
	reasonRefused       = "subscription_refused"
	reasonShutdown      = "shutdown"
	reasonSubscriptions = "subscription_limit"
	reasonListens       = "listen_limit"
	reasonMessageSize   = "message_size"
	reasonIDSize        = "id_size"
)

// A failure is an error whose value is its text. Package errors would bring in reflection, for its
// Is and As.
type failure string

func (f failure) Error() string { return string(f) }

func invalidParams(what string) *wire.Error {
	return &wire.Error{Code: wire.InvalidParams, Message: "Invalid params: " + what}
}

func noSubscriptions() *wire.Error {
	return &wire.Error{Code: wire.MethodNotFound,
		Message: "Method not found: subscriptions are off"}
}

// limited is the error for a request above a limit. MCP defines no code for it; TypeScript's server
// answers InternalError, and so does the engine, with data that a program can read.
func limited(message, reason, limit string, max int) *wire.Error {
	data := reasonData(reason).Raw(`,"`).Raw(limit).Raw(`":`).Int(max).Raw(`}`)
	return &wire.Error{Code: wire.InternalError, Message: message, Data: data}
}

// tooLarge is limited for a message that is refused unread.
func tooLarge(message, reason, limit string, max int) *wire.Error {
	err := limited(message, reason, limit, max)
	err.Code = wire.InvalidRequest
	return err
}

// notFound is the error for a URI without a resource. Modern clients recognise it if its data is
// exactly {uri}, so data must have no other member.
func notFound(modern bool, uri string) *wire.Error {
	e := &wire.Error{Code: wire.NotFoundLegacy, Message: "Resource not found"}
	if modern {
		e.Code = wire.InvalidParams
	}
	e.Data = wire.Text(`{"uri":`).Str(uri).Raw(`}`)
	return e
}

// refused turns an error of package resource into an answer.
func refused(modern bool, uri string, err error) *wire.Error {
	e := err.(*resource.Error)
	switch e.Reason {
	case resource.Unknown, resource.Foreign: // a foreign URI has no resource here
		return notFound(modern, uri)
	case resource.BadCursor:
		return &wire.Error{Code: wire.InvalidParams, Message: e.Message}
	}
	return &wire.Error{Code: wire.InvalidParams, Message: e.Message,
		Data: reasonData(string(e.Reason)).Raw(`}`)}
}

// readError is the error of a failed read or tool call.
func readError(reason, message string) *wire.Error {
	return &wire.Error{Code: wire.InternalError, Message: message,
		Data: reasonData(reason).Raw(`}`)}
}

// reasonData begins the data of an error; a closing brace completes it.
func reasonData(reason string) wire.Text { return wire.Text(`{"reason":`).Str(reason) }

func unknownTool(name string) *wire.Error {
	return &wire.Error{Code: wire.InvalidParams, Message: "Unknown tool: " + name}
}

// An EventError is an error of the events' methods. The engine chooses its code, since there are
// two sets of codes.
type EventError struct {
	Kind    EventErrorKind
	Message string
	Data    Text // the JSON text of data, or nil
}

func (x *EventError) Error() string { return x.Kind.String() + ": " + x.Message }

// An EventErrorKind is a row of the table of errors.
type EventErrorKind byte

// The kinds of errors: SEP-3415, "Errors".
const (
	EventInvalid     EventErrorKind = iota
	EventNotFound                   // data: kind, event or subscription
	EventForbidden                  // data: reason
	EventExhausted                  // data: limit, max
	EventUnsupported                // data: feature, value
	EventCallback                   // data: reason
)

// eventErrors has each kind's name, its code in the SEP, and its code in the earlier sketch, which
// ChatGPT and the servers of October 2026 use.
var eventErrors = [...]struct {
	name         string
	code, sketch int
}{
	EventInvalid:     {"InvalidParams", wire.InvalidParams, wire.InvalidParams},
	EventNotFound:    {"NotFound", -32023, -32011},
	EventForbidden:   {"Forbidden", -32024, -32012},
	EventExhausted:   {"ResourceExhausted", -32025, -32013},
	EventUnsupported: {"Unsupported", -32026, -32014},
	EventCallback:    {"CallbackEndpointError", -32027, -32015},
}

func (k EventErrorKind) String() string { return eventErrors[k].name }

// Code is the error code in the set that a client knows: the SEP's (final) or the sketch's.
func (k EventErrorKind) Code(final bool) int {
	if final {
		return eventErrors[k].code
	}
	return eventErrors[k].sketch
}

func (x *EventError) wire(final bool) *wire.Error {
	return &wire.Error{Code: x.Kind.Code(final), Message: x.Error(), Data: x.Data}
}
