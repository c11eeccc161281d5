//go:build !js

package daemon

import (
	"context"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
)

// Wait returns when a daemon listens, or ctx ends. It costs nothing meanwhile: the system tells of a new socket.
func Wait(ctx context.Context, hub string) error {
	dir, err := userdir.Open(hub, nil)
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
	for {
		// There may be a socket that a dead daemon has left.
		c, err := dir.Dial(ctx, socketName)
		if err == nil {
			return c.Close()
		}
		for changed := false; !changed; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case err := <-news.Errors:
				return err
			case e := <-news.Events: // a daemon changes its socket's mode when it listens
				changed = e.Has(fsnotify.Create|fsnotify.Chmod) && strings.HasSuffix(e.Name, socketName)
			}
		}
	}
}
