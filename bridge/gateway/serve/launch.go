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

// sharesBrowsers is true if processes can pass a launched browser to each other. Sockets of Windows pass no handles.
const sharesBrowsers = runtime.GOOS != "windows"

const (
	// holdEvery is the pause between two attempts to connect a daemon to the browser that this process holds.
	holdEvery = 20 * time.Millisecond
	// leaveTimeout bounds the end of a browser. It takes 0.2 s, and more than 1 s on a busy machine. Some clients kill
	// a server 2 s after they have closed its input.
	leaveTimeout = 1200 * time.Millisecond
)

// hold takes a share in the launched browser until leave is called, if the agent has asked for a browser. The browser
// belongs to the daemon, or to the process that serves this agent alone.
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

// holder connects a holder in this process to the process's own server of launched browsers.
func (p *process) holder() (*net.UnixConn, error) {
	ours, theirs, err := launched.Sockets()
	if err == nil {
		go p.browser(theirs)
	}
	return ours, err
}
