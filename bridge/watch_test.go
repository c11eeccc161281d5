//go:build !js

package bridge

import (
	"fmt"
	"slices"
	"testing"
)

// A watcher is a host that notes the calls of Changed and Watched.
type watcher struct{ told []string }

func (w *watcher) Send(PortID, Message)        {}
func (w *watcher) Read(CallID, Request)        {}
func (w *watcher) End(CallID)                  {}
func (w *watcher) Changed(uri string)          { w.told = append(w.told, uri) }
func (w *watcher) Watched(uri string, on bool) { w.told = append(w.told, fmt.Sprint(uri, " ", on)) }

// The host is notified at the pace of a subscriber, and a URI is watched as long as the host or an
// agent watches it.
func TestWatch(t *testing.T) {
	const a, b = "https://x.test/a", "https://x.test/b"
	w := &watcher{}
	e := New(
		Options{Rule: Rule{Origin: "https://x.test"}, UpdateBurst: 1,
			Limits: Limits{Subscriptions: 1}}, w)
	told := func(when string, want ...string) {
		t.Helper()
		if !slices.Equal(w.told, want) {
			t.Errorf("%s: the host was told %q, want %q", when, w.told, want)
		}
		w.told = nil
	}
	if err := e.Watch(0, a); err == nil || err.Error() != "Resource not found" {
		t.Errorf("what is not there: %v", err)
	}
	for _, uri := range []string{a, b} {
		if err := e.Register(0, Resource{URI: uri, Name: uri}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := e.Watch(0, a); err != nil { // the second does nothing
			t.Error(err)
		}
	}
	told("watched", a+" true")
	if n := e.Stats().Subscriptions; n != 0 {
		t.Errorf("%d subscriptions are counted: none is an agent's", n)
	}
	if err := e.Watch(0, b); err == nil || err.Error() != "Subscription limit reached" {
		t.Errorf("above the limit: %v", err)
	}
	for range 3 {
		e.Touch(0, a)
		e.Touch(0, b)
	}
	told("a burst", a)
	e.Tick(100)
	told("its end", a)
	e.Open(100, 1)
	e.ports[1].legacy = "2025-11-25"
	e.Receive(100, 1,
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+a+`"}}`))
	e.Unwatch(300, a)
	e.Unwatch(300, a)
	e.Touch(300, a)
	told("an agent still watches")
	e.Close(300, 1)
	told("nobody does", a+" false")
	if err := e.Watch(300, b); err != nil {
		t.Error(err)
	}
	told("there is room again", b+" true")
}
