package agents

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrOrphaned is the cause when Orphaned ends its context.
var ErrOrphaned = errors.New("the process that started this one has gone")

// parent is the process that started this one, read as early as possible.
var parent = os.Getppid()

// orphanedEvery is how often Orphaned looks: four system calls a second, and an orphan is gone within a second.
const orphanedEvery = 250 * time.Millisecond

// Orphaned returns a context that ends within 250 ms after this process's parent has gone, so that no gateway outlives
// its agent. An agent that is killed may leave the other end of stdin to a child of its own, and then stdin does not
// end. Windows does not tell; there only the end of stdin does.
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
