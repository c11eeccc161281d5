package view_test

import (
	"fmt"
	"testing"

	"github.com/pagewire/pagewire/bridge/view"
)

// The table of the proposal's security requirements (ext-apps#659), a test for each of its rows. The conversations
// that the rows name are their text; the counts stand here.

// Row 1: the host enforces maxSubscriptions, ten if nothing else is said.
func TestSecurityPerViewSubscriptionCap(t *testing.T) {
	converse(t, "testdata/security_cap.txtar")
	converse(t, "testdata/security_cap_placeholder.txtar")

	w := newWorld(t, 1, view.Legacy, view.Options{})
	id := w.open()
	for i := range 11 {
		uri := fmt.Sprintf("data://%d", i)
		w.host.Learn(0, uri)
		w.send(id, "resources/subscribe", uri)
	}
	for w.deliver() {
	}
	if s := w.host.Stats(); s.Subscriptions != 10 || s.Subscribes != 10 {
		t.Errorf("of eleven, %d were granted", s.Subscriptions)
	}
}

// Row 2: a View does not get notifications of another server's resources: a Host knows one server, and two Hosts with
// the same URI share nothing.
func TestSecurityScoping(t *testing.T) {
	converse(t, "testdata/security_scope.txtar")

	one, other := newWorld(t, 1, view.Legacy, view.Options{}), newWorld(t, 2, view.Legacy, view.Options{})
	for _, w := range []*world{one, other} {
		w.host.Learn(0, "data://same")
		w.subscribe(w.open(), "data://same")
		w.settle()
	}
	before := other.host.Stats().Updates
	one.change("data://same")
	one.settle()
	other.settle()
	if one.host.Stats().Updates != 1 || other.host.Stats().Updates != before {
		t.Errorf("a change at one server: its View was told %d times, that of the other server %d times",
			one.host.Stats().Updates, other.host.Stats().Updates-before)
	}
}

// Row 3: at most ten updates a second reach a View for each URI.
func TestSecurityRateLimiting(t *testing.T) {
	converse(t, "testdata/security_rate.txtar")

	w := newWorld(t, 1, view.Legacy, view.Options{})
	w.host.Learn(0, "data://fast")
	id := w.open()
	w.subscribe(id, "data://fast")
	w.settle()
	before := w.host.Stats().Updates
	for range 1000 { // one a millisecond, for a second
		w.pass(1)
		w.change("data://fast")
		for w.deliver() {
		}
	}
	if n := w.host.Stats().Updates - before; n != 10 {
		t.Errorf("of 1,000 announcements in a second %d were passed on", n)
	}
	w.settle() // the last one, and what the View then reads is the newest
}

// Row 4: everything is unsubscribed from when a View is torn down, by whichever way.
func TestSecurityCleanupOnTeardown(t *testing.T) {
	converse(t, "testdata/security_teardown.txtar")

	ways := map[string]func(*world, view.ID){
		"ui/resource-teardown": func(w *world, id view.ID) { w.host.Teardown(w.now, id) },
		"ui/notifications/request-teardown": func(w *world, id view.ID) {
			w.host.Receive(w.now, id, []byte(`{"jsonrpc":"2.0","method":"ui/notifications/request-teardown"}`))
		},
		"the frame is gone": func(w *world, id view.ID) { w.host.Close(w.now, id) },
		"another document": func(w *world, id view.ID) {
			w.host.Receive(w.now, id, []byte(`{"jsonrpc":"2.0","id":0,"method":"ui/initialize","params":{}}`))
		},
	}
	for name, leave := range ways {
		for _, era := range []view.Era{view.Legacy, view.Modern} {
			t.Run(fmt.Sprintf("%s/%d", name, era), func(t *testing.T) {
				w := newWorld(t, 1, era, view.Options{})
				id := w.open()
				for i := range 10 {
					uri := fmt.Sprintf("data://%d", i)
					w.host.Learn(0, uri)
					w.subscribe(id, uri)
					w.settle()
				}
				if s := w.host.Stats(); s.Upstream != 10 {
					t.Fatalf("%d subscriptions at the server, want 10", s.Upstream)
				}
				leave(w, id)
				for w.deliver() {
				}
				if s := w.host.Stats(); s.Upstream != 0 || s.Streams != 0 || s.Subscriptions != 0 ||
					len(w.subscribed)+len(w.streams) != 0 {
					t.Errorf("%+v; the server has %d and %d", s, len(w.subscribed), len(w.streams))
				}
			})
		}
	}
}

// Row 5: only what the server has listed or answered a read of can be subscribed to.
func TestSecurityURIValidation(t *testing.T) {
	converse(t, "testdata/security_uri.txtar")
	converse(t, "testdata/forgets.txtar")
}
