// Package retry paces the attempts of a loop, so that another attempt follows one that failed.
package retry

import (
	"context"
	"time"
)

// Attempts yields until ctx ends. The first pause between two attempts is first. Each further pause
// is twice as long as the one before it, and at most last. After an attempt that took longer than
// last, the pauses begin with first again.
func Attempts(ctx context.Context, first, last time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		for pause := first; ctx.Err() == nil; pause = min(2*pause, last) {
			began := time.Now()
			if !yield() {
				return
			}
			if time.Since(began) > last {
				pause = first
			}
			Sleep(ctx, pause)
		}
	}
}

// Sleep returns after a pause, or when ctx ends.
func Sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}
