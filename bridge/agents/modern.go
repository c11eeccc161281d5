package agents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// The modern era has no sessions: each POST is one request with an engine's port of its own. A
// client cancels its request by closing the connection. Between requests only the engine's
// knowledge of pages is kept.

func (h *server) serveModern(w http.ResponseWriter, r *http.Request, body []byte,
	m bridge.Incoming) {
	if len(m.ID) == 0 || m.Method == "" { // only requests are answered
		w.WriteHeader(http.StatusAccepted)
		return
	}
	q := question{who: who(r, m), text: body, id: m.ID, meta: wellFormed(m),
		stream: m.Method == eventsStream, final: bridge.DeclaresEvents(m.Params)}
	q.listen = q.stream || m.Method == "subscriptions/listen"
	if q.listen && !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, m.ID, codeInvalidRequest,
			"Accept must have text/event-stream", nil)
		return
	}
	if q.meta {
		if wrong := h.mismatch(r.Header, m); wrong != "" {
			refuse(w, http.StatusBadRequest, m.ID, codeHeaderMismatch, "Header mismatch: "+wrong,
				nil)
			return
		}
	} else if !claims(m) {
		refuse(w, http.StatusBadRequest, m.ID, codeInvalidParams,
			"Invalid params: _meta must have "+metaVersion, nil)
		return
	}
	h.ask(w, r, q)
}

// wellFormed reports whether a message has the _meta that the modern era requires. Without it the
// engine refuses the message, and the HTTP status must be 400.
func wellFormed(m bridge.Incoming) bool {
	meta := m.Params.Get("_meta")
	object := func(name string) (v bridge.JSON, ok bool) {
		v = meta.Get("io.modelcontextprotocol/" + name)
		return v, len(v) > 0 && v[0] == '{'
	}
	_, version := meta.Get(metaVersion).Text()
	_, capabilities := object("clientCapabilities")
	info, ok := object("clientInfo")
	if ok {
		_, name := info.Get("name").Text()
		_, version := info.Get("version").Text()
		ok = name && version
	}
	return version && capabilities && (ok || len(info) == 0)
}

// mismatch says which header contradicts the body, or returns "". Intermediaries route by the
// headers, so the headers must be true.
func (h *server) mismatch(head http.Header, m bridge.Incoming) string {
	version, _ := m.Params.Get("_meta").Get(metaVersion).Text()
	wrong := cmp.Or(differs(head, "Mcp-Protocol-Version", version),
		differs(head, "Mcp-Method", m.Method))
	member := map[string]string{"resources/read": "uri", "tools/call": "name",
		"prompts/get": "name"}[m.Method]
	name, ok := m.Params.Get(member).Text()
	if wrong != "" || member == "" || !ok { // the engine reports a missing member
		return wrong
	}
	wrong = differs(head, "Mcp-Name", name)
	if wrong == "" && m.Method == "tools/call" {
		schema := h.g.InputSchema(name, h.opt.Agent)
		if bytes.Contains(schema, []byte(paramHeader)) {
			wrong = differsInParams(head, bridge.JSON(schema), m.Params.Get("arguments"))
		}
	}
	return wrong
}

// paramHeader is the member of an argument's schema that names a header, without its prefix
// Mcp-Param-. Clients repeat the argument in that header.
const paramHeader = "x-mcp-header"

// differsInParams compares the headers that a schema requires with the arguments, at any depth.
func differsInParams(head http.Header, schema, args bridge.JSON) (wrong string) {
	schema.Get("properties").Members(func(key, property bridge.JSON) bool {
		name, _ := key.Text()
		arg := args.Get(name)
		if header, ok := property.Get(paramHeader).Text(); ok {
			header = "Mcp-Param-" + header
			want, isText := arg.Text()
			switch {
			case len(arg) > 0 && string(arg) != "null":
				if !isText {
					want = string(arg) // a number, true or false
				}
				wrong = differs(head, header, want)
			case len(head.Values(header)) > 0:
				wrong = header + " is there, and its argument is not"
			}
		}
		if wrong == "" {
			wrong = differsInParams(head, property, arg)
		}
		return wrong == ""
	})
	return wrong
}

// differs says how a header differs from the body's value, or returns "". A value that headers
// cannot carry is wrapped in =?base64?...?=.
func differs(head http.Header, name, want string) string {
	values := head.Values(name)
	switch len(values) {
	case 0:
		return name + " is missing"
	case 1:
	default:
		return name + " is there more than once"
	}
	got := values[0]
	if inner, ok := strings.CutPrefix(got, "=?base64?"); ok {
		if inner, ok = strings.CutSuffix(inner, "?="); ok {
			text, err := base64.StdEncoding.DecodeString(inner)
			if err != nil {
				return name + " is not valid base64"
			}
			got = string(text)
		}
	}
	if got != want {
		return name + " is not what the body says"
	}
	return ""
}

// A question is one message with an engine's port of its own.
type question struct {
	who      string
	id       bridge.JSON // empty if the message has no readable one
	listen   bool        // the answer is a stream that the client ends
	stream   bool        // the method is events/stream
	final    bool        // errors have the codes of the SEP
	text     []byte
	oversize []byte // in place of text: the beginning of a message above the limit
	meta     bool   // _meta is valid
}

// status is the HTTP status of an answer: 200, except for errors at HTTP's level.
func (q question) status(answer []byte) int {
	if len(answer) > 64<<10 { // an error is shorter
		return http.StatusOK
	}
	m, _ := bridge.DecodeMessage(answer)
	code, failed := m.Failure.Get("code").Int()
	switch {
	case !failed:
		return http.StatusOK
	case q.oversize != nil:
		return http.StatusRequestEntityTooLarge
	case !q.meta, code == codeVersion, code == codeMissing:
		return http.StatusBadRequest
	case code == codeNotFound:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// ask asks the engine, and sends its messages to the client: as JSON if the first is the answer; as
// an event stream if notifications come before the answer, or if the answer takes longer than
// aliveEvery.
func (h *server) ask(w http.ResponseWriter, r *http.Request, q question) {
	of := ofRequests
	if q.listen {
		of = ofListens
	}
	release, full := h.shares.acquire(of, q.who)
	if full != nil {
		full.refuse(w, q.id, q.stream, q.final)
		return
	}
	defer release()
	if q.listen {
		h.streams(r)
	}
	agent, err := h.connect(gateway.TransportRequest, q.who)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, q.id, codeInternal,
			"Too many requests at once: "+err.Error(), reason{"session_limit"})
		return
	}
	defer agent.Close()
	ctx := r.Context()
	defer h.forget(agent)
	if !h.keep(agent) {
		refuse(w, http.StatusServiceUnavailable, q.id, codeInternal, "The server goes away",
			reason{"shutdown"})
		return
	}
	h.giveWebhooks(agent, r)

	if q.oversize != nil {
		err = agent.Oversize(q.oversize)
	} else {
		err = agent.Write(ctx, q.text)
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, q.id, codeInternal, "The server goes away",
			reason{"shutdown"})
		return
	}
	s := &stream{w: w, control: http.NewResponseController(w), every: h.opt.aliveEvery,
		events: accepts(r, "text/event-stream")}
	for {
		message, err := s.next(ctx, agent)
		switch {
		case errors.Is(err, errSilent):
			err = s.alive()
		case err != nil && q.stream && errors.Is(ctx.Err(), context.DeadlineExceeded):
			s.revoke(agent)
			return
		case err != nil && s.begun && q.listen:
			return // without a result, so that the client listens again
		case err != nil:
			s.answer(http.StatusServiceUnavailable,
				failure(q.id, codeInternal, endedUnanswered, reason{"shutdown"}), agent.Dropped())
			return
		case bytes.HasPrefix(message, notification):
			err = s.event(message)
		default:
			s.answer(q.status(message), message, agent.Dropped())
			return
		}
		if err != nil {
			return // the client has gone
		}
	}
}
