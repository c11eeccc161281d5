//go:build !js

package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/fleet/bus"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A node that has just begun waits until it hears where the others are, and no longer than they take to say so.
func TestNewNodeWaitsForTheOthers(t *testing.T) {
	old := openNode(t, Options{URL: "http://127.0.0.1:1", Interval: 50 * time.Millisecond,
		Bus: bus.Options{Cluster: "127.0.0.1:0"}})
	if url, _, ok := old.AwaitURLOf(t.Context(), "none"); ok {
		t.Errorf("a node that is not there is at %q", url)
	}
	// One that stays new for as long as the bus may take to connect the two.
	begun := openNode(t, Options{Interval: testkit.Patience,
		Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{old.ClusterAddr()}}})
	if url, _, ok := begun.AwaitURLOf(t.Context(), old.ID()); !ok || url != "http://127.0.0.1:1" {
		t.Errorf("a node that is there is at %q: %v", url, ok)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, ok := begun.AwaitURLOf(ended, "none"); ok {
		t.Error("a node that is not there is found")
	}
}
