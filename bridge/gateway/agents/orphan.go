//go:build !js

package agents

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrOrphaned is the cause of the end of a context that Orphaned returns.
var ErrOrphaned = errors.New("the process that started this one has gone")

// parent is who started this process, as early as can be known.
var parent = os.Getppid()

// orphanedEvery is how often Orphaned looks: often enough to be gone within a second, and four system calls a second.
const orphanedEvery = 250 * time.Millisecond

// Orphaned returns a context that ends within 250 ms when this process's parent has gone, so that no gateway outlives
// its agent: an agent that is killed may leave the other end of stdin to a child of its own, and then nothing ends
// there. Windows does not tell; there only the end of stdin does.
func Orphaned(ctx context.Context) (context.Context, context.CancelFunc) {
	return orphaned(ctx, os.Getppid)
}

func orphaned(ctx context.Context, current func() int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		look := time.NewTicker(orphanedEvery)
		defer look.Stop()
		for {
			if current() != parent {
				cancel(ErrOrphaned)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
