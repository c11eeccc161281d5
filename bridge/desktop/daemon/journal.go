package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pagewire/pagewire/bridge"
)

// A journal is a pipe's copy of its agent's session, so that the session outlives a daemon: the
// handshake, the log level, the subscriptions, and the requests without an answer. It is plain
// data: messages go in, and messages to send come out. Its methods are not safe for concurrent use.
type journal struct {
	handshake   bridge.JSON // the params of initialize, once it is answered; nil in the modern era
	version     string      // the negotiated version
	initialized bool
	level       bridge.JSON         // the params of the last logging/setLevel
	subscribed  map[string]bool     // by URI
	waiting     map[string]*request // by the text of the id
	requests    int                 // the number of the last request
	kept        int                 // the bytes of all lines in waiting

	asked map[string]bool // ids of the daemon's requests that the agent has not answered

	// The fields below are for a daemon that replaces another.
	own     map[string]ownRequest // open requests of the journal, by id
	last    int                   // the number of the last of them
	refused map[string]bool       // URIs that this daemon has no page for yet
}

// A request is a request of the agent without an answer.
type request struct {
	number  int // in the order of the agent's requests
	method  string
	params  bridge.JSON
	line    []byte // nil if it must not be sent again
	granted bool   // a listen has been acknowledged, or an events/stream is active
	cursor  string // the last cursor that the agent got on an events/stream
	again   bool   // sent to another daemon, which has not acknowledged it
	ended   bool   // a subscribe whose agent has unsubscribed since
}

// An ownRequest repeats a request of the agent that an earlier daemon has answered.
type ownRequest struct{ method, uri string }

// maxKept bounds the lines that are kept for the next daemon, in bytes. A request above it gets an
// error there.
const maxKept = 8 << 20

func newJournal() *journal {
	return &journal{subscribed: map[string]bool{}, waiting: map[string]*request{},
		asked: map[string]bool{}}
}

// An output is the messages to send after a message or a daemon's end. Each ends in a line feed.
type output struct{ toDaemon, toAgent [][]byte }

// fromAgent records a line of the agent. It reports whether to pass it on: false for an answer to
// an earlier daemon.
func (j *journal) fromAgent(line []byte) (pass bool) {
	m, ok := bridge.DecodeMessage(bytes.TrimSpace(line))
	if !ok {
		return true // the daemon answers with the fault
	}
	id := string(m.ID)
	if m.Method == "" {
		pass = j.asked[id]
		delete(j.asked, id)
		return pass
	}
	switch m.Method {
	case "notifications/initialized":
		j.initialized = true
	case "notifications/cancelled":
		j.answer(string(m.Params.Get("requestId")))
	case "resources/unsubscribe":
		j.unsubscribe(m.Params.Get("uri"))
	}
	if id != "" {
		j.answer(id) // if the id is in use, the daemon answers with an error
		j.requests++
		q := &request{number: j.requests, method: m.Method, params: slices.Clone(m.Params)}
		if m.Method != "tools/call" && j.kept+len(line) <= maxKept {
			q.line = slices.Clone(line)
			j.kept += len(line)
		}
		j.waiting[id] = q
	}
	return true
}

// unsubscribe ends a subscription, whether it is granted, refused or not answered yet.
func (j *journal) unsubscribe(uri bridge.JSON) {
	text, _ := uri.Text()
	delete(j.subscribed, text)
	delete(j.refused, text)
	for _, q := range j.waiting {
		if q.method == "resources/subscribe" {
			asked, _ := q.params.Get("uri").Text()
			q.ended = q.ended || asked == text
		}
	}
}

// answer removes an open request and returns it, or nil if none has the id.
func (j *journal) answer(id string) *request {
	q := j.waiting[id]
	if q != nil {
		j.kept -= len(q.line)
		delete(j.waiting, id)
	}
	return q
}

// notificationHead is the beginning of a gateway's notification. Results, which may have megabytes,
// begin with the id.
var notificationHead = []byte(`{"jsonrpc":"2.0","method":`)

// eventsHead is the beginning of the method of an event stream's notification, in JSON.
var eventsHead = []byte(`"notifications/events/`)

const subscriptionID = "io.modelcontextprotocol/subscriptionId"

// fromDaemon records a line of the daemon. It reports whether to pass it on. An error ends the
// session.
func (j *journal) fromDaemon(line []byte) (pass bool, out output, err error) {
	text := bridge.JSON(line)
	if bytes.HasPrefix(line, notificationHead) {
		switch method := text.Get("method"); {
		case bytes.HasPrefix(method, eventsHead):
			j.streamed(text.Get("params"))
		case method.Is("notifications/subscriptions/acknowledged"):
			pass, out = j.acknowledged(text.Get("params"))
			return pass, out, nil
		case method.Is("notifications/resources/list_changed"):
			for _, uri := range slices.Sorted(maps.Keys(j.refused)) {
				out.toDaemon = append(out.toDaemon, j.subscribe(uri))
			}
			clear(j.refused)
		}
		return true, out, nil
	}
	id := string(text.Get("id"))
	if own, ok := j.own[id]; ok {
		delete(j.own, id)
		out, err = j.repeated(own, text)
		return false, out, err
	}
	q := j.answer(id)
	if q == nil {
		if id != "" && len(text.Get("method")) > 0 {
			j.asked[id] = true
		}
		return true, out, nil
	}
	switch q.method {
	case "initialize", "logging/setLevel", "resources/subscribe":
		j.granted(q, text.Get("result"))
	}
	return true, out, nil
}

// granted records a request that the next daemon must grant too. result is empty if the daemon has
// refused it. A subscription that has ended meanwhile is not granted again.
func (j *journal) granted(q *request, result bridge.JSON) {
	switch {
	case len(result) == 0, q.ended:
	case q.method == "initialize":
		j.handshake = q.params
		j.version, _ = result.Get("protocolVersion").Text()
	case q.method == "logging/setLevel":
		j.level = q.params
	default:
		uri, _ := q.params.Get("uri").Text()
		j.subscribed[uri] = true
	}
}

// acknowledged records that a listen has begun. If the listen was first sent to an earlier daemon,
// it may have missed changes since, so out notifies the agent of each. If that daemon had
// acknowledged it, pass is false.
func (j *journal) acknowledged(params bridge.JSON) (pass bool, out output) {
	id := params.Get("_meta").Get(subscriptionID)
	q := j.waiting[string(id)]
	if q == nil {
		return true, out
	}
	pass = !q.granted
	if q.granted = true; !q.again {
		return pass, out
	}
	q.again = false
	meta := map[string]any{subscriptionID: json.RawMessage(id)}
	granted := params.Get("notifications")
	for _, list := range []string{"resources", "tools"} {
		if granted.Get(list + "ListChanged").True() {
			out.toAgent = append(out.toAgent,
				message{Method: "notifications/" + list + "/list_changed",
					Params: map[string]any{"_meta": meta}}.line())
		}
	}
	for uri := range granted.Get("resourceSubscriptions").Elements {
		out.toAgent = append(out.toAgent, message{Method: "notifications/resources/updated",
			Params: map[string]any{"_meta": meta, "uri": json.RawMessage(uri)}}.line())
	}
	return pass, out
}

// streamed records the cursor of an events/stream: the next daemon goes on from there.
func (j *journal) streamed(params bridge.JSON) {
	if q := j.waiting[string(params.Get("_meta").Get(subscriptionID))]; q != nil {
		q.granted = true
		if cursor, ok := params.Get("cursor").Text(); ok {
			q.cursor = cursor
		}
	}
}

// resumed returns the line of a request for another daemon, with the recorded cursor.
func (q *request) resumed(id string) []byte {
	if q.cursor == "" {
		return q.line
	}
	params := map[string]any{}
	for key, value := range q.params.Members {
		name, _ := key.Text()
		params[name] = json.RawMessage(value)
	}
	params["cursor"] = q.cursor
	return message{ID: json.RawMessage(id), Method: q.method, Params: params}.line()
}

// errVersion means that the next daemon negotiates another version, so that the session cannot go
// on.
var errVersion = errors.New("the pagewire that runs now cannot go on with this session")

// repeated handles the answer to a request of the journal.
func (j *journal) repeated(own ownRequest, answer bridge.JSON) (out output, err error) {
	result := answer.Get("result")
	switch own.method {
	case "initialize":
		if version, _ := result.Get("protocolVersion").Text(); version != j.version {
			return out, fmt.Errorf(
				"%w: it speaks MCP %q, and the agent was promised %q; start the agent again",
				errVersion, version, j.version)
		}
	case "resources/subscribe":
		switch {
		case !j.subscribed[own.uri]: // the agent has unsubscribed
		case len(result) == 0:
			j.refused[own.uri] = true
		default: // it may have changed while no daemon ran
			out.toAgent = append(out.toAgent, message{Method: "notifications/resources/updated",
				Params: map[string]any{"uri": own.uri}}.line())
		}
	}
	return out, nil
}

// replay returns the messages for a new daemon and the agent. Tool calls get an error, since they
// may have run.
func (j *journal) replay() (out output) {
	j.own, j.refused = map[string]ownRequest{}, map[string]bool{}
	clear(j.asked)
	if j.handshake != nil {
		out.toDaemon = append(out.toDaemon,
			j.repeat(ownRequest{method: "initialize"}, json.RawMessage(j.handshake)))
		if j.initialized {
			out.toDaemon = append(out.toDaemon, message{Method: "notifications/initialized"}.line())
			for _, list := range []string{"resources", "tools"} {
				out.toAgent = append(out.toAgent,
					message{Method: "notifications/" + list + "/list_changed"}.line())
			}
		}
		if j.level != nil {
			out.toDaemon = append(out.toDaemon,
				j.repeat(ownRequest{method: "logging/setLevel"}, json.RawMessage(j.level)))
		}
		for _, uri := range slices.Sorted(maps.Keys(j.subscribed)) {
			out.toDaemon = append(out.toDaemon, j.subscribe(uri))
		}
	}
	byNumber := func(a, b string) int { return j.waiting[a].number - j.waiting[b].number }
	for _, id := range slices.SortedFunc(maps.Keys(j.waiting), byNumber) {
		if q := j.waiting[id]; q.line != nil {
			q.again = true
			out.toDaemon = append(out.toDaemon, q.resumed(id))
			continue
		}
		j.answer(id)
		out.toAgent = append(out.toAgent, message{ID: json.RawMessage(id), Error: restarted}.line())
	}
	return out
}

// repeat returns the line of a request of the journal.
func (j *journal) repeat(own ownRequest, params any) []byte {
	j.last++
	id := strconv.Quote("pagewire:" + strconv.Itoa(j.last)) // no agent's id begins with pagewire:
	j.own[id] = own
	return message{ID: json.RawMessage(id), Method: own.method, Params: params}.line()
}

func (j *journal) subscribe(uri string) []byte {
	return j.repeat(ownRequest{"resources/subscribe", uri}, map[string]string{"uri": uri})
}

// restarted is the error of a request that may have run and is not run again.
var restarted = map[string]any{
	"code": -32603,
	"message": "Pagewire was restarted while this ran, so it may have been done or not: look at the page before you " +
		"ask for it again",
	"data": map[string]string{"reason": "restarted"},
}

// settled reports whether every request has its answer, except for granted listens and streams.
func (j *journal) settled() bool {
	for _, q := range j.waiting {
		if !q.granted {
			return false
		}
	}
	return true
}

// A message is a message that the journal makes.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Error   any             `json:"error,omitempty"`
}

// line returns the message as a line. It cannot fail: all parts are parsed JSON, strings and
// numbers.
func (m message) line() []byte {
	m.Version = "2.0"
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}
