package agents

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrOrphaned is the cause of Orphaned's context when the parent has gone.
var ErrOrphaned = errors.New("the process that started this one has gone")

// parent is the process that started this one, read as early as possible.
var parent = os.Getppid()

// orphanedEvery is the interval at which Orphaned looks. It costs four system calls a second.
const orphanedEvery = 250 * time.Millisecond

// Orphaned returns a context that ends at most 250 ms after this process's parent has gone, so that
// no gateway outlives its agent. The end of stdin is not enough: if an agent is killed, a child of
// it may keep the other end open. On Windows the parent's id does not change, so only the end of
// stdin shows that the agent has gone.
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
