package bridge

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// recorder is a host that keeps the messages, and calls onSend after each.
type recorder struct {
	sent   []string
	onSend func(to PortID)
}

func (r *recorder) Send(to PortID, m Message) {
	r.sent = append(r.sent, string(m.AppendTo(nil)))
	if r.onSend != nil {
		r.onSend(to)
	}
}
func (r *recorder) Read(CallID, Request) {}
func (r *recorder) End(CallID)           {}
func (r *recorder) Watched(string, bool) {}

func newRecorded(t *testing.T, ports int, uris ...string) (*Engine, *recorder) {
	t.Helper()
	r := &recorder{}
	e := New(Options{Rule: Rule{Origin: "https://x.test"}, Limits: Limits{Calls: -1}}, r)
	for _, uri := range uris {
		if err := e.Register(0, Resource{URI: uri, Name: "n"}); err != nil {
			t.Fatal(err)
		}
	}
	for p := PortID(1); p <= PortID(ports); p++ {
		if err := e.Open(0, p); err != nil {
			t.Fatal(err)
		}
		for _, m := range []string{
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"https://x.test/a"}}`,
		} {
			if err := e.Receive(0, p, []byte(m)); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.sent = nil
	return e, r
}

// A port that is closed while a message for it is queued does not get the message.
func TestNothingIsSentToAPortThatClosesMeanwhile(t *testing.T) {
	e, r := newRecorded(t, 2, "https://x.test/a")
	r.onSend = func(to PortID) { e.Close(0, 3-to) }
	e.Touch(0, "https://x.test/a")
	if len(r.sent) != 1 {
		t.Errorf("sent %q, want one message: the other port was closed by then", r.sent)
	}
}

// Re-entry is queued, not nested: a host that answers every message with another request does not
// grow the stack.
func TestReentryIsIterative(t *testing.T) {
	e, r := newRecorded(t, 1, "https://x.test/a")
	depth, deepest, pings := 0, 0, 0
	r.onSend = func(PortID) {
		depth++
		deepest = max(deepest, depth)
		if pings++; pings < 100_000 {
			_ = e.Receive(0, 1, []byte(`{"jsonrpc":"2.0","id":"p","method":"ping"}`))
		}
		depth--
	}
	e.Touch(0, "https://x.test/a")
	if pings != 100_000 || deepest != 1 {
		t.Errorf("%d pings, %d deep", pings, deepest)
	}
	if cap(e.queue.text) > 1<<20 {
		t.Errorf("the buffer still holds %d bytes", cap(e.queue.text))
	}
}

// A call does the work that is due even if the timer is late: timers of a hidden tab fire once a
// second.
func TestACallDoesWhatIsDue(t *testing.T) {
	e, r := newRecorded(t, 1, "https://x.test/a")
	for range 10 { // more than a burst
		e.Touch(0, "https://x.test/a")
	}
	r.sent = nil
	_ = e.Receive(1000, 1, []byte(`{"jsonrpc":"2.0","id":2,"method":"ping"}`))
	if len(r.sent) != 2 || !strings.Contains(r.sent[0], "updated") ||
		!strings.Contains(r.sent[1], `"id":2`) {
		t.Errorf("sent %q, want the update that was due, and then the answer", r.sent)
	}
}

// Call ids wrap around and are never 0.
func TestCallIDsWrapAround(t *testing.T) {
	e, _ := newRecorded(t, 1, "https://x.test/a")
	e.lastCall = ^CallID(0)
	_ = e.Receive(0, 1,
		[]byte(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"https://x.test/a"}}`))
	if e.calls[1] == nil {
		t.Errorf("calls %v", e.calls)
	}
}

// A host that has seen that a message is too large need not copy it in.
func TestOversize(t *testing.T) {
	e, r := newRecorded(t, 1)
	if err := e.Oversize(0, 1, []byte(`{"id":5,"method":"ping","params":{"aaaa`)); err != nil {
		t.Fatal(err)
	}
	if len(r.sent) != 1 || !strings.Contains(r.sent[0], `"id":5`) ||
		!strings.Contains(r.sent[0], "message_size") {
		t.Errorf("sent %q", r.sent)
	}
	if e.Oversize(0, 9, nil) == nil {
		t.Error("a port that is not open took a message")
	}
	if e.MessageBytes() != 1<<20 {
		t.Errorf("the limit is %d", e.MessageBytes())
	}
}

func TestNew(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Options.Tools was accepted from a host that has none")
		}
	}()
	New(Options{Tools: true}, &recorder{})
}

func TestDecodeResource(t *testing.T) {
	for _, text := range []string{``, `5`, `{"uri":`} {
		if _, err := DecodeResource([]byte(text)); err == nil || err.Error() == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
	r, err := DecodeResource([]byte(`{"uri":"u","name":"n","_meta":{"a":1}}`))
	if err != nil || string(r.Meta) != `{"a":1}` || r.Size != -1 {
		t.Errorf("%+v, %v", r, err)
	}
	const icons = `[{"src":"i.svg","mimeType":"image/svg+xml","sizes":["any"],"theme":"dark"},{"src":""}]`
	const annotations = `{"audience":["user","assistant"],"priority":5e-324,"lastModified":"2026-11-27T10:00:00Z","subscribeHint":true}`
	r, err = DecodeResource([]byte(`{"uri":"u","name":"n","contentSchema":{"type":"array"}}`))
	if err != nil || string(r.Meta) != `{"pagewire/schema":{"type":"array"}}` {
		t.Errorf("the schema of contents is in _meta: %v, %s", err, r.Meta)
	}
	if _, err := DecodeResource([]byte(`{"uri":"u","name":"n","contentSchema":5}`)); err == nil {
		t.Error("a schema that is no object is taken")
	}
	r, err = DecodeResource(
		[]byte(`{"uri":"u","name":"n","icons":` + icons + `,"annotations":` + annotations + `}`))
	if err != nil || string(r.Icons) != icons || string(r.Annotations) != annotations ||
		r.Mended != "" {
		t.Errorf("%+v, %v", r, err)
	}
	// Agents get the members that MCP defines alone, and times as clients take them.
	for given, want := range map[string][2]string{
		`"icons":[{"src":"a","x":1}]`: {`[{"src":"a"}]`, "icons.x is left out"},
		`"icons":[]`:                  {`[]`, ""},
		`"annotations":{"x":[]}`:      {`{}`, "annotations.x is left out"},
		`"annotations":{"lastModified":"2026-11-27"}`: {`{"lastModified":"2026-11-27T00:00:00Z"}`,
			""},
		`"annotations":{"lastModified":"","priority":1}`: {`{"priority":1}`,
			"annotations.lastModified is left out"},
		`"_meta":{"a":"\ud83d","ui":{},"pagewire/tab":5,"io.modelcontextprotocol/x":1,"mcp.dev/a":1,"x.y/z":{"ui":1}}`: {
			`{"a":"` + "\uFFFD" + `","x.y/z":{"ui":1}}`, "_meta.ui is left out"},
		"\"_meta\":{\"a\u2028\":[\"\u0085é\u2029\"]}": {`{"a\u2028":["\u0085é\u2029"]}`, ""},
		`"contentSchema":{"\ud83d":1}`: {`{"pagewire/schema":{"` + "\uFFFD" +
			`":1}}`, ""},
		`"_meta":{"\ud83d":1}`: {`{"` + "\uFFFD" + `":1}`, ""},
		// Of two members with one name the last counts.
		`"_meta":{"a":1,"b":2,"\u0061":3}`:          {`{"b":2,"a":3}`, ""},
		`"annotations":{"priority":0,"priority":1}`: {`{"priority":1}`, ""},
		`"icons":[{"src":"a","theme":"dark","src":"b"}]`: {`[{"theme":"dark","src":"b"}]`,
			""},
		`"_meta":{"ui":1,"ui":{},"traceparent":1,"pagewire":{}}`: {`{}`, "_meta.ui is left out"},
		// Numbers that a double does not hold are null.
		`"_meta":{"a":[1e999,-1E+400,1e308],"b":1e99,"c":"1e999"}`:  {`{"a":[null,null,null],"b":1e99,"c":"1e999"}`, ""},
		`"contentSchema":{"maximum":1e999}`:                         {`{"pagewire/schema":{"maximum":null}}`, ""},
		`"_meta":{"a":1e-999,"b":` + strings.Repeat("1", 310) + `}`: {`{"a":1e-999,"b":null}`, ""},
	} {
		r, err := DecodeResource([]byte(`{"uri":"u","name":"n",` + given + `}`))
		if got := string(r.Icons) + string(r.Annotations) + string(r.Meta); err != nil ||
			got != want[0] ||
			!strings.Contains(r.Mended, want[1]) || (r.Mended == "") != (want[1] == "") {
			t.Errorf("%s: %s, %q, %v", given, got, r.Mended, err)
		}
	}
}

// What registerResource accepts is registered and listed. js/test/page/registry.test.mjs reads the
// same vectors.
func TestAcceptedRegistrations(t *testing.T) {
	text, err := os.ReadFile("testdata/registrations.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var v struct {
			What     string
			Accepted bool
			Resource map[string]json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(line, err)
		}
		if !v.Accepted {
			continue
		}
		for member, value := range map[string]string{"uri": `"https://x.test/a"`, "name": `"n"`} {
			if v.Resource[member] == nil {
				v.Resource[member] = json.RawMessage(value)
			}
		}
		descriptor, _ := json.Marshal(v.Resource)
		e, _ := newRecorded(t, 1, "https://x.test/b")
		r, err := DecodeResource(descriptor)
		if err == nil {
			err = e.Register(100, r)
		}
		if key, found := e.Find(r.URI); err != nil || !found && !strings.Contains(r.URI, "{") {
			t.Errorf("%s: %v, found as %q", v.What, err, key)
		}
	}
}

// An unlisted resource answers and can be replaced, and no list or list_changed shows it.
func TestUnlisted(t *testing.T) {
	e, r := newRecorded(t, 1, "https://x.test/a")
	if err := e.Register(100,
		Resource{URI: "https://x.test/b", Name: "n", Unlisted: true}); err != nil {
		t.Fatal(err)
	}
	e.Tick(1000)
	if len(r.sent) != 0 {
		t.Errorf("told of what no list shows: %q", r.sent)
	}
	if key, ok := e.Find("https://x.test/b"); !ok || key != "https://x.test/b" {
		t.Errorf("Find: %q, %t", key, ok)
	}
	_ = e.Receive(1000, 1, []byte(`{"jsonrpc":"2.0","id":2,"method":"resources/list"}`))
	if len(r.sent) != 1 || strings.Contains(r.sent[0], "x.test/b") {
		t.Errorf("listed: %q", r.sent)
	}
	if !e.Replace(2000, Resource{URI: "https://x.test/b", Name: "shown"}, Owner{}) ||
		e.Replace(2000, Resource{URI: "https://x.test/c", Name: "n"}, Owner{}) {
		t.Error("Replace must find b, and not c")
	}
	_ = e.Receive(3000, 1, []byte(`{"jsonrpc":"2.0","id":3,"method":"resources/list"}`))
	if last := r.sent[len(r.sent)-1]; !strings.Contains(last,
		`{"uri":"https://x.test/b","name":"shown"`) ||
		len(r.sent) != 3 {
		t.Errorf("after Replace: %q", r.sent)
	}
	told := len(r.sent)
	e.Replace(9000, Resource{URI: "https://x.test/b", Name: "shown", MinInterval: 100}, Owner{})
	e.Tick(20_000)
	if len(r.sent) != told {
		t.Errorf("told of what no list shows: %q", r.sent[told:])
	}
	if _, ok := e.Find("https://x.test/c"); ok {
		t.Error("found what is not there")
	}
}

// A change that the interval of an hour holds back is told soon after Replace has taken that
// interval away.
func TestReplacedInterval(t *testing.T) {
	const uri = "https://x.test/a"
	for _, key := range []string{uri, "https://x.test/{name}"} {
		e, r := newRecorded(t, 1, uri)
		e.Unregister(0, uri)
		if err := e.Register(0, Resource{URI: key, Name: "n", MinInterval: 3_600_000}); err != nil {
			t.Fatal(err)
		}
		e.Tick(1000) // that it has come is told
		r.sent = nil
		e.Touch(1000, uri)
		e.Replace(2000, Resource{URI: key, Name: "n"}, Owner{})
		e.Tick(2100)
		if len(r.sent) != 1 || !strings.Contains(r.sent[0], "resources/updated") {
			t.Errorf("%s: an interval after Replace %q is sent", key, r.sent)
		}
	}
}

// Dismiss ends one session as Shutdown ends all, and Waits reports whether a session has an open
// request.
func TestDismiss(t *testing.T) {
	e, r := newRecorded(t, 2, "https://x.test/a")
	if e.Waits(1) || e.Waits(3) {
		t.Error("a port waits that has asked nothing, or that is not there")
	}
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":"r","method":"resources/read","params":{"uri":"https://x.test/a"}}`,
		`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true},"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
	} {
		if err := e.Receive(0, 1, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	if !e.Waits(1) || e.Waits(2) {
		t.Error("not the port that has asked waits")
	}
	r.sent = nil
	e.Dismiss(0, 3) // not open
	e.Dismiss(0, 1)
	if len(r.sent) != 3 || !strings.Contains(r.sent[0], `"id":"r","error"`) ||
		!strings.Contains(r.sent[1], `"id":"l","result"`) ||
		!strings.Contains(r.sent[2], `"requestId":"l"`) {
		t.Errorf("sent %q, want the read's error, the listen's result, its cancellation", r.sent)
	}
	if s := e.Stats(); s.Ports != 1 || s.Calls != 0 || s.Listens != 0 || s.Subscriptions != 1 ||
		e.Waits(1) {
		t.Errorf("left: %+v", s)
	}
}

// Agents get the JSON of a page's descriptors and tools, so only valid JSON may be accepted.
func FuzzDescriptors(f *testing.F) {
	f.Add([]byte(
		`{"uri":"https://a.example/{x}","name":"n","size":1,"annotations":{"priority":1},"_meta":{"a":1},` +
			`"uriSchema":{"x":{"type":"integer","minimum":1}}}`))
	f.Add([]byte(`[{"name":"t","inputSchema":{"type":"object"}}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := DecodeResource(text); err == nil && !json.Valid(text) {
			t.Errorf("%q was taken for a resource", text)
		}
		tools, err := DecodeTools(text)
		for _, tool := range tools {
			if err != nil || !json.Valid(tool.JSON) {
				t.Errorf("%q has the tool %q, %v", text, tool.JSON, err)
			}
		}
	})
}
