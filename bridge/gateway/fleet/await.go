//go:build !js

package fleet

import (
	"context"
	"time"
)

// AwaitURLOf is URLOf, but while this node is new it waits until it hears the other: else agents would end sessions
// that are alive, because a node that has just begun does not know where they are.
func (n *Node) AwaitURLOf(ctx context.Context, id string) (url string, dead <-chan struct{}, ok bool) {
	for {
		if url, dead, ok = n.URLOf(id); ok || !n.isNew() {
			return url, dead, ok
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return "", nil, false
		case <-n.stop:
			return "", nil, false
		}
	}
}
