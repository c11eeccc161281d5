//go:build !js

package daemon

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
)

// listenTime is how long a daemon takes to listen on its socket when that has a name: less than a millisecond, where the
// machine is not busy.
const listenTime = 100 * time.Millisecond

// Wait returns when a daemon listens, or ctx ends. It costs nothing meanwhile: the system tells of a new socket.
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
		// There may be a socket that a dead daemon has left.
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
				// On Linux the change of its mode says that the daemon listens. Elsewhere only its name is told, which is
				// there a moment before.
				again = time.After(listenTime)
			}
		}
	}
}
