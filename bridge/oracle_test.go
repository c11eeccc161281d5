package bridge_test

// The oracle holds all messages of the engine, in all conversations, against MCP's rules for every
// server. It reads the transcripts with encoding/json and knows nothing of the engine. So an
// expected line that -update wrote can be wrong only if the oracle is wrong too.
//
// It does not judge whether an answer is the right one: the conversations do that.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/pagewire/pagewire/bridge/testkit/script"
)

const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

func TestAllThatTheEngineSaysIsWellFormed(t *testing.T) { wellFormed(t, "testdata", 100) }

// wellFormed checks an engine's messages in the conversations of a directory: at least so many as
// least says.
func wellFormed(t *testing.T, dir string, least int) {
	t.Helper()
	said := 0
	script.EachIn(t, dir, func(t *testing.T, file string) {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name != "conversation" {
				continue
			}
			o := newOracle()
			for i, complaint := range o.transcript(string(f.Data)) {
				if i < 5 { // one mistake causes others
					t.Error(complaint)
				}
			}
			said += o.said
		}
	})
	if said < least {
		t.Errorf("only %d messages looked at: the oracle does not find them", said)
	}
}

// An oracle has the state of a conversation so far.
type oracle struct {
	sessions   map[string]*session
	complaints []string
	line       string
	said       int
}

// A session is one port.
type session struct {
	initialized bool
	subscribed  map[string]bool
	asked       map[string][]asked // by id: not answered yet
	nonsense    int                // unanswered messages that only an error can answer
	listens     map[string]*stream // by id: open
	events      map[string]bool    // by id: streams of events, and whether they are active
	// listens that a result has ended, and that the server may cancel
	ended map[string]bool
}

type asked struct {
	method   string
	modern   bool
	declares bool // MCP Events
	uri      string
	progress string
	filter   filter
}

type stream struct {
	acknowledged bool
	filter       filter
}

type filter struct {
	ResourcesListChanged  bool     `json:"resourcesListChanged"`
	ToolsListChanged      bool     `json:"toolsListChanged"`
	ResourceSubscriptions []string `json:"resourceSubscriptions"`
}

type envelope struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

type params struct {
	Meta          map[string]json.RawMessage `json:"_meta"`
	URI           string                     `json:"uri"`
	RequestID     json.RawMessage            `json:"requestId"`
	ProgressToken json.RawMessage            `json:"progressToken"`
	Notifications json.RawMessage            `json:"notifications"`
}

func newOracle() *oracle { return &oracle{sessions: map[string]*session{}} }

// transcript reads a conversation, and returns the faults of the engine's messages.
func (o *oracle) transcript(text string) []string {
	for line := range strings.Lines(text) {
		o.line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(o.line, " ")
		port, isTheirs := strings.CutSuffix(word, ">")
		ours, isOurs := strings.CutSuffix(word, "<")
		switch {
		case isTheirs && !strings.HasPrefix(line, " "):
			if s := o.sessions[port]; s != nil {
				s.hears(message(rest))
			}
		case isOurs:
			o.said++
			if s := o.sessions[ours]; s == nil {
				o.complain("sent to a port that is not open")
			} else {
				o.says(s, rest)
			}
		case word == "open":
			if o.sessions[rest] == nil {
				o.sessions[rest] = &session{subscribed: map[string]bool{},
					asked: map[string][]asked{}, listens: map[string]*stream{},
					events: map[string]bool{},
					ended:  map[string]bool{}}
			}
		case word == "close":
			delete(o.sessions, rest)
		case word == "initialize":
			o.sessions[rest].initialized = true
		}
	}
	return o.complaints
}

func (o *oracle) complain(format string, args ...any) {
	o.complaints = append(o.complaints, fmt.Sprintf(format, args...)+": "+o.line)
}

// key is an id in a spelling that is the same for equal ids.
func key(id json.RawMessage) string {
	var s string
	if json.Unmarshal(id, &s) == nil {
		b, _ := json.Marshal(s) // a string can be marshalled
		return string(b)
	}
	return string(id)
}

// isID reports whether id is a string or an integer.
func isID(id json.RawMessage) bool {
	return id[0] == '"' || strings.Trim(string(id), "-0123456789") == ""
}

// hears notes a message of an agent.
func (s *session) hears(text []byte) {
	var m envelope
	if err := json.Unmarshal(text, &m); err != nil || m.JSONRPC != "2.0" || m.Result != nil ||
		m.Error != nil ||
		m.Method == "" || m.ID != nil && !isID(m.ID) {
		s.nonsense++
		return
	}
	var p params
	// params of the wrong shape are refused, so their members do not matter
	_ = json.Unmarshal(m.Params, &p)
	if len(m.ID) == 0 {
		if m.Method == "notifications/cancelled" {
			delete(s.asked, key(p.RequestID))
			delete(s.listens, key(p.RequestID))
			delete(s.events, key(p.RequestID))
		}
		return
	}
	a := asked{method: m.Method, modern: p.Meta[metaVersion] != nil, uri: p.URI,
		progress: string(p.Meta["progressToken"])}
	a.declares = strings.Contains(string(p.Meta[metaCapabilities]),
		`"io.modelcontextprotocol/events":`)
	_ = json.Unmarshal(p.Notifications, &a.filter)
	id := key(m.ID)
	s.asked[id] = append(s.asked[id], a)
	if m.Method == "subscriptions/listen" && a.modern && s.listens[id] == nil {
		s.listens[id] = &stream{filter: a.filter}
	}
	if _, open := s.events[id]; m.Method == "events/stream" && !open {
		s.events[id] = false
	}
}

// says checks a message of the engine.
func (o *oracle) says(s *session, text string) {
	var m envelope
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		o.complain("not JSON (%v)", err)
		return
	}
	switch {
	case m.Method != "" && m.ID != nil:
		o.complain("a request by the server")
	case m.Method != "" && (m.Result != nil || m.Error != nil),
		(m.Method == "") == ((m.Result == nil) == (m.Error == nil)):
		o.complain("neither one of result and error, nor a notification")
	case m.Method != "":
		o.notification(s, m)
	case m.Error != nil:
		o.failure(s, m)
	default:
		o.result(s, m)
	}
}

func (o *oracle) failure(s *session, m envelope) {
	var e struct {
		Code    *int
		Message *string
		Data    map[string]any
	}
	if err := json.Unmarshal(m.Error, &e); err != nil || e.Code == nil || e.Message == nil ||
		*e.Message == "" {
		o.complain("an error without code or message (%v)", err)
		return
	}
	id := key(m.ID)
	var a asked
	switch waiting := s.asked[id]; {
	case len(waiting) == 0 || m.ID == nil:
		if s.nonsense == 0 {
			o.complain("an error that answers nothing")
		}
		s.nonsense--
	case len(waiting) > 1: // a second request with an id that waits: the error refuses the second
		a, s.asked[id] = waiting[len(waiting)-1], waiting[:len(waiting)-1]
	default:
		a = waiting[0]
		delete(s.asked, id)
		if l := s.listens[id]; l != nil {
			if l.acknowledged {
				o.complain("an error ends a listen that was acknowledged")
			}
			delete(s.listens, id)
		}
		if s.events[id] {
			o.complain("an error ends a stream that was active")
		}
		delete(s.events, id)
	}
	codes := []int{-32700, -32600, -32601, -32602, -32603, -32022}
	if !a.modern {
		codes = append(codes, -32002)
	}
	if strings.HasPrefix(a.method, "events/") {
		codes = append(codes, eventCodes(a.declares)...)
	}
	if !slices.Contains(codes, *e.Code) {
		o.complain("error code %d is not one of %v", *e.Code, codes)
	}
	// The TypeScript client takes -32602 for "not found" only if data has a uri and no other
	// member.
	_, hasURI := e.Data["uri"]
	notFound := *e.Code == -32002 || *e.Code == -32602 && hasURI && len(e.Data) == 1
	if isNotFound := *e.Message == "Resource not found"; notFound != isNotFound || isNotFound &&
		e.Data["uri"] != a.uri {
		o.complain("not found is said by a code and data.uri, and by nothing else")
	}
	if *e.Code == -32022 && (e.Data["supported"] == nil || e.Data["requested"] == nil) {
		o.complain(
			"an unsupported version, but not which ones are supported and which was requested")
	}
}

// eventCodes are the codes of MCP Events: the SEP's for a request that declares the extension.
func eventCodes(declared bool) []int {
	if declared {
		return []int{-32023, -32024, -32025, -32026, -32027}
	}
	return []int{-32011, -32012, -32013, -32014, -32015}
}

func (o *oracle) result(s *session, m envelope) {
	id := key(m.ID)
	if len(s.asked[id]) == 0 {
		o.complain("a result that answers nothing: never asked, answered already, or cancelled")
		return
	}
	a := s.asked[id][0]
	if s.asked[id] = s.asked[id][1:]; len(s.asked[id]) == 0 {
		delete(s.asked, id)
	}
	var r map[string]json.RawMessage
	if err := json.Unmarshal(m.Result, &r); err != nil {
		o.complain("a result that is no object (%v)", err)
		return
	}
	var meta map[string]json.RawMessage
	if r["_meta"] != nil {
		_ = json.Unmarshal(r["_meta"], &meta)
	}
	if a.modern {
		if t := string(r["resultType"]); t != `"complete"` {
			o.complain("a modern result without resultType, or with another one")
		}
		if a.method == "tools/call" && meta[metaServerInfo] == nil {
			o.complain("a modern result without serverInfo")
		}
		switch a.method {
		case "server/discover", "resources/list", "resources/templates/list", "resources/read",
			"tools/list":
			if string(r["ttlMs"]) != "0" || string(r["cacheScope"]) != `"private"` {
				o.complain("a modern result that may be cached")
			}
			if meta[metaServerInfo] == nil {
				o.complain("a modern result without serverInfo")
			}
		}
	} else {
		for _, member := range []string{"resultType", "ttlMs", "cacheScope", "_meta"} {
			ofHost := member == "_meta" &&
				(a.method == "events/stream" ||
					a.method == "tools/call" && meta[metaServerInfo] == nil)
			if r[member] != nil && !ofHost {
				o.complain("a legacy result with the modern member %s", member)
			}
		}
	}
	switch a.method {
	case "initialize":
		s.initialized = true
		if string(r["protocolVersion"]) >= `"2026` {
			o.complain("initialize settled on a modern version")
		}
	case "resources/subscribe":
		s.subscribed[a.uri] = true
	case "resources/unsubscribe":
		delete(s.subscribed, a.uri)
	case "resources/read":
		if contents := string(r["contents"]); contents == "" || contents == "[]" {
			o.complain("a read that is answered without contents")
		}
	case "events/stream":
		if !s.events[id] {
			o.complain("the result of a stream that was not active")
		}
		if delete(r, "resultType"); key(meta[metaSubscription]) != id || len(r) > 1 {
			o.complain("the result of a stream has its subscriptionId and nothing else")
		}
		delete(s.events, id)
	case "subscriptions/listen":
		if l := s.listens[id]; l == nil || !l.acknowledged {
			o.complain("the result of a listen that was not acknowledged")
		}
		if key(meta[metaSubscription]) != id {
			o.complain("the result of a listen without its subscriptionId")
		}
		delete(s.listens, id)
		s.ended[id] = true
	}
}

func (o *oracle) notification(s *session, m envelope) {
	var p params
	if err := json.Unmarshal(m.Params, &p); err != nil {
		o.complain("params that are no object (%v)", err)
		return
	}
	id, onStream := p.Meta[metaSubscription]
	if kind, ok := strings.CutPrefix(m.Method, "notifications/events/"); ok {
		active, open := s.events[key(id)]
		switch {
		case !open:
			o.complain("of a stream of events that is not open")
		case !active && kind != "active":
			o.complain("a stream is active before anything else")
		case !slices.Contains([]string{"active", "event", "heartbeat", "error", "terminated"},
			kind):
			o.complain("a notification that servers do not send")
		}
		if open {
			s.events[key(id)] = true
		}
		return
	}
	l := s.listens[key(id)]
	switch {
	case onStream && l == nil:
		o.complain("on the stream of a listen that is not open")
		return
	case onStream && l.acknowledged == (m.Method == "notifications/subscriptions/acknowledged"):
		o.complain("a listen is acknowledged once, before anything else")
	}
	switch m.Method {
	case "notifications/subscriptions/acknowledged":
		var honored filter
		if err := json.Unmarshal(p.Notifications, &honored); err != nil || !onStream {
			o.complain("an acknowledgement without notifications or subscriptionId (%v)", err)
			return
		}
		more := slices.ContainsFunc(honored.ResourceSubscriptions, func(uri string) bool {
			return !slices.Contains(l.filter.ResourceSubscriptions, uri)
		})
		if more || honored.ResourcesListChanged && !l.filter.ResourcesListChanged ||
			honored.ToolsListChanged &&
				!l.filter.ToolsListChanged {
			o.complain("more is acknowledged than was asked for")
		}
		*l = stream{acknowledged: true, filter: honored}
	case "notifications/resources/updated":
		if onStream && !slices.Contains(l.filter.ResourceSubscriptions, p.URI) ||
			!onStream && !s.subscribed[p.URI] {
			o.complain("an update of what is not subscribed")
		}
		var members map[string]json.RawMessage
		_ = json.Unmarshal(m.Params, &members) // it was decoded above
		delete(members, "_meta")
		if delete(members, "uri"); len(members) > 0 {
			o.complain("an update that carries more than a URI")
		}
	case "notifications/resources/list_changed":
		if onStream && !l.filter.ResourcesListChanged || !onStream && !s.initialized {
			o.complain("a list_changed that was not asked for")
		}
	case "notifications/tools/list_changed":
		if onStream && !l.filter.ToolsListChanged || !onStream && !s.initialized {
			o.complain("a list_changed that was not asked for")
		}
	case "notifications/progress":
		asked := false
		for _, waiting := range s.asked {
			asked = asked ||
				waiting[0].progress != "" && waiting[0].progress == string(p.ProgressToken)
		}
		if !asked || onStream {
			o.complain("progress that nobody asked for, or on the stream of a listen")
		}
	case "notifications/cancelled":
		if id := key(p.RequestID); !s.ended[id] {
			o.complain("a server cancels nothing but a listen that it has ended")
		} else {
			delete(s.ended, id)
		}
	default:
		o.complain("a notification that servers do not send")
	}
}

// The oracle must complain of each last line, in the given words, and must not complain without
// that line.
func TestOracleComplains(t *testing.T) {
	const (
		start  = "open 1\ninitialize 1\n"
		read   = `1> {"id":1,"method":"resources/read","params":{"uri":"u"}}` + "\n"
		modern = `1> {"id":1,"method":"resources/read","params":{MODERN,"uri":"u"}}` + "\n"
		listen = `1> {"id":1,"method":"subscriptions/listen","params":{MODERN,"notifications":{"resourceSubscriptions":["u"]}}}` + "\n"
		ack    = `    1< {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"resourceSubscriptions":["u"]}}}` + "\n"
		result = `    1< {"id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}` + "\n"
		update = `    1< {"method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"uri":"u"}}` + "\n"
		cancel = `1> {"method":"notifications/cancelled","params":{"requestId":1}}` + "\n"
		stream = `1> {"id":1,"method":"events/stream","params":{DECLARES,"name":"x"}}` + "\n"
		active = `    1< {"method":"notifications/events/active","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}` + "\n"
		event  = `    1< {"method":"notifications/events/event","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}` + "\n"
		answer = `    1< {"id":1,"result":{"contents":[{}]}}` + "\n"
	)
	for _, c := range []struct{ before, last, want string }{
		{start + read, `1< {"id":1,"method":"ping"}`, "a request by the server"},
		{start + read, `1< {"id":1,"result":{},"error":{}}`, "neither one of"},
		{start + read, `1< {"id":1}`, "neither one of"},
		{start + read, `1< {"id":"1","result":{"contents":[{}]}}`, "answers nothing"},
		{start + read, `1< {"id":1,"result":{"contents":[]}}`, "without contents"},
		{start + read + cancel, answer, "answers nothing"},
		{start + read + answer, answer, "answers nothing"},
		{start + read, `1< {"id":1,"result":{"contents":[{}],"ttlMs":0}}`, "modern member ttlMs"},
		{start + modern, answer, "without resultType"},
		{start + modern,
			`1< {"id":1,"result":{"resultType":"complete","contents":[{}],"ttlMs":0,"cacheScope":"public"}}`,
			"may be cached"},
		{start + modern,
			`1< {"id":1,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"u"}}}`,
			"error code -32002"},
		{start + read, `1< {"id":1,"error":{"code":0,"message":"x"}}`, "error code 0"},
		{start + read, `1< {"id":1,"error":{"code":-32042,"message":"x"}}`, "error code -32042"},
		{start + read, `1< {"id":1,"error":{"code":-32602,"message":"Bad","data":{"uri":"u"}}}`,
			"not found is said"},
		{start + read,
			`1< {"id":1,"error":{"code":-32602,"message":"Resource not found","data":{"uri":"u","more":1}}}`,
			"not found is said"},
		{start + read, `1< {"id":2,"error":{"code":-32603,"message":"x"}}`,
			"an error that answers nothing"},
		{start + listen, update, "acknowledged once, before anything else"},
		{start + listen, result, "was not acknowledged"},
		{start + listen,
			`1< {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"resourcesListChanged":true}}}`, "more is acknowledged"},
		{start + listen,
			`1< {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"},"notifications":{}}}`, "not open"},
		{start + listen + ack, ack, "acknowledged once"},
		{start + listen + ack, strings.Replace(update, `"u"`, `"v"`, 1), "not subscribed"},
		{start + listen + ack,
			`1< {"method":"notifications/resources/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`, "not asked for"},
		{start + listen + ack + cancel, update, "not open"},
		{start + listen + ack + cancel, result, "answers nothing"},
		{start + listen + ack + result, update, "not open"},
		{start + listen + ack, `1< {"id":1,"result":{"resultType":"complete"}}`,
			"without its subscriptionId"},
		{start + listen + ack, `1< {"method":"notifications/cancelled","params":{"requestId":1}}`,
			"cancels nothing but a listen that it has ended"},
		{start + listen + ack, `1< {"id":1,"error":{"code":-32603,"message":"x"}}`,
			"an error ends a listen"},
		{start + stream, event, "active before anything else"},
		{start + stream, `1< {"id":1,"error":{"code":-32012,"message":"x"}}`, "error code -32012"},
		{start + stream + active, `1< {"id":1,"error":{"code":-32602,"message":"x"}}`,
			"an error ends a stream"},
		{start + stream + active, `1< {"id":1,"result":{"resultType":"complete"}}`,
			"its subscriptionId"},
		{start + stream + active, strings.Replace(event, "/event\"", "/progress\"", 1),
			"servers do not send"},
		{start + stream + active + result, event, "not open"},
		{start + stream + active + cancel, event, "not open"},
		{start, `1< {"method":"notifications/resources/updated","params":{"uri":"u"}}`,
			"not subscribed"},
		{start, `1< {"method":"notifications/message","params":{}}`, "servers do not send"},
		{start, `1< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
			"nobody asked for"},
		{"open 1\n", `1< {"method":"notifications/resources/list_changed","params":{}}`,
			"not asked for"},
		{start + "close 1\n", `1< {"method":"notifications/resources/list_changed","params":{}}`,
			"not open"},
	} {
		if got := newOracle().transcript(c.before); len(got) > 0 {
			t.Errorf("it complains of what is right: %q\n%s", got, c.before)
		}
		got := newOracle().transcript(c.before + "    " + strings.TrimSpace(c.last) + "\n")
		if !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%s\n got %q\nwant %q", c.before+c.last, got, c.want)
		}
	}
}
