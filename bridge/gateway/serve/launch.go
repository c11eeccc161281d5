package serve

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/browser/launched"
	"github.com/pagewire/pagewire/bridge/gateway/daemon"
	"github.com/pagewire/pagewire/bridge/gateway/retry"
)

// sharesBrowsers says that processes can hand a launched browser to each other: a socket of Windows passes no handles.
const sharesBrowsers = runtime.GOOS != "windows"

const (
	// holdEvery is the pause between two attempts to have a daemon speak with the browser that this process holds.
	holdEvery = 20 * time.Millisecond
	// leaveTimeout is how long a browser has to end. It takes 0.2 s, and more than 1 s on a machine that is busy. Some
	// clients kill a server 2 s after they have closed its input.
	leaveTimeout = 1200 * time.Millisecond
)

// hold has a share in the launched browser, if the agent asked for it, until leave: the browser of the daemon, or of the
// process that serves this agent alone.
func hold(o Options, alone *atomic.Pointer[process]) (leave func()) {
	if o.Launch == nil {
		return func() {}
	}
	h := launched.NewHolder(*o.Launch)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		for range retry.Attempts(ctx, holdEvery, holdEvery) {
			var c *net.UnixConn
			var err error
			if p := alone.Load(); p != nil {
				c, err = p.holder()
			} else {
				c, err = daemon.Dialer{Hub: o.Hub}.DialBrowser(ctx, o.Version)
			}
			if err == nil {
				err = h.Serve(c)
			}
			if err != nil && !errors.Is(err, daemon.ErrNone) {
				o.Log.Debug("no daemon speaks with the browser", "reason", err)
			}
		}
	}()
	return func() {
		limited, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		h.Release(limited)
		stop()
	}
}

// holder connects a holder of this process to its server.
func (p *process) holder() (*net.UnixConn, error) {
	ours, theirs, err := launched.Sockets()
	if err == nil {
		go p.browser(theirs)
	}
	return ours, err
}
