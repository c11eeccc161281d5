package daemon

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
)

// listenTime is the time between a socket's name and its listening: below 1 ms, if the machine is not busy.
const listenTime = 100 * time.Millisecond

// Wait returns when a daemon listens, or ctx ends. It does not poll: the system reports a new socket.
func Wait(ctx context.Context, hub string) error {
	dir, err := userdir.Open(hub)
	if err != nil {
		return err
	}
	defer dir.Close()
	news, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer news.Close()
	if err := news.Add(dir.String()); err != nil {
		return err
	}
	var again <-chan time.Time
	for {
		// A dead daemon may have left a socket.
		c, err := dir.Dial(ctx, socketName)
		if err == nil {
			return c.Close()
		} else if !errors.Is(err, userdir.ErrNobody) {
			return err
		}
		for changed := false; !changed; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case err := <-news.Errors:
				return err
			case <-again:
				changed = true
			case e := <-news.Events:
				changed = e.Has(fsnotify.Create|fsnotify.Chmod) && strings.HasSuffix(e.Name, socketName)
				// On Linux the change of its mode says that it listens; elsewhere its name comes a moment before.
				again = time.After(listenTime)
			}
		}
	}
}
