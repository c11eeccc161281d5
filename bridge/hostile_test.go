package bridge

import (
	"fmt"
	"strings"
	"testing"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// With the sizes in this file, linear work ends immediately, and quadratic work does not end before
// the test's own time limit. No test here reads a clock.

// Answered calls are not kept until an older one ends: a tool may wait ten minutes for a person.
func TestEndedCallsAreNotKept(t *testing.T) {
	e, _ := newRecorded(t, 1, "https://x.test/a", "https://x.test/b")
	read := func(id int, uri string) {
		_ = e.Receive(0, 1,
			fmt.Appendf(nil,
				`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":%q}}`,
				id, uri))
	}
	read(1, "https://x.test/a") // never answered
	for i := range 1000 {
		read(2+i, "https://x.test/b")
		e.Complete(0, e.lastCall, Result{Size: 10})
	}
	n := 0
	for c := e.reads.first; c != nil; c = c.next {
		n++
	}
	if n != 1 || len(e.calls) != 1 {
		t.Errorf("%d calls are kept, %d are under way", n, len(e.calls))
	}
	read(9999, "https://x.test/b")
	e.Tick(30_000)
	if len(e.calls) != 0 || e.reads.first != nil || e.reads.last != nil {
		t.Errorf("%d calls have not expired", len(e.calls))
	}
}

// A listen takes time in proportion to its URIs.
func TestListenOfManyURIs(t *testing.T) {
	e := New(
		Options{Rule: Rule{Origin: "https://x.test"},
			Limits: Limits{Subscriptions: -1, MessageBytes: -1}},
		&recorder{})
	if err := e.Open(0, 1); err != nil {
		t.Fatal(err)
	}
	const n = 60_000
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"https://x.test/a/rather/long/path/%06d"`, i)
	}
	m := []byte(`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{` + modernMeta +
		`,"notifications":{"resourceSubscriptions":[` + strings.Join(list, ",") + `]}}}`)
	_ = e.Receive(0, 1, m)
	if s := e.Stats(); s.Subscriptions != n {
		t.Errorf("%d subscriptions", s.Subscriptions)
	}
}

// Many subscriptions to URIs without a resource do not slow down the registration of templates, and
// subscriptions to URIs of one template come and go in linear time.
func TestManyWatchesAndTemplates(t *testing.T) {
	r := &recorder{}
	e := New(Options{Rule: Rule{Origin: "https://x.test"}}, r)
	const ports, each = 40, 1000
	for p := range ports {
		if err := e.Open(0, PortID(p)); err != nil {
			t.Fatal(err)
		}
		var list []string
		for i := range each {
			list = append(list, fmt.Sprintf(`"https://x.test/item/%d-%d"`, p, i))
		}
		_ = e.Receive(0, PortID(p),
			[]byte(`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{`+modernMeta+
				`,"notifications":{"resourceSubscriptions":[`+strings.Join(list, ",")+`]}}}`))
	}
	if s := e.Stats(); s.Watched != ports*each {
		t.Fatalf("%d watched", s.Watched)
	}
	register := func(uri string) {
		if err := e.Register(0, Resource{URI: uri, Name: "n"}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		register(fmt.Sprintf("https://x.test/%d/{id}", i))
	}
	register("https://x.test/item/{id}")
	e.Unregister(0, "https://x.test/item/{id}")
	for p := range ports {
		e.Close(0, PortID(p))
	}
	if err := e.check(); err != nil {
		t.Error(err)
	}
}

// A Shutdown from within a Host call sends the same messages as one from outside.
func TestShutdownFromWithin(t *testing.T) {
	e, r := newRecorded(t, 1, "https://x.test/a")
	_ = e.Receive(0, 1,
		[]byte(`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{`+modernMeta+
			`,"notifications":{"resourcesListChanged":true}}}`))
	_ = e.Receive(0, 1,
		[]byte(`{"jsonrpc":"2.0","id":"r","method":"resources/read","params":{"uri":"https://x.test/a"}}`))
	r.sent = nil
	r.onSend = func(PortID) {
		r.onSend = nil
		e.Shutdown(0)
	}
	e.Touch(0, "https://x.test/a")
	if len(r.sent) != 4 || !strings.Contains(r.sent[1], `"shutdown"`) ||
		!strings.Contains(r.sent[2], `"result"`) ||
		!strings.Contains(r.sent[3], `cancelled`) {
		t.Errorf(
			"sent %q, want the update, the read's error, the listen's result and its cancellation",
			r.sent)
	}
	if s := e.Stats(); s.Ports+s.Subscriptions+s.Listens+s.Calls != 0 {
		t.Errorf("left %+v", s)
	}
}

// The id in the beginning of a message may itself be cut off.
func TestOversizeIDThatIsCut(t *testing.T) {
	e, r := newRecorded(t, 1)
	text := `{"jsonrpc":"2.0","method":"ping","params":{"a":"`
	text += strings.Repeat("a", 512-len(text)-len(`"},"id":12`)) + `"},"id":12`
	_ = e.Oversize(0, 1, []byte(text+"34,"))
	_ = e.Oversize(0, 1, []byte(text))
	for _, m := range r.sent {
		if strings.Contains(m, `"id"`) {
			t.Errorf("answered an id that may go on: %s", m)
		}
	}
}
