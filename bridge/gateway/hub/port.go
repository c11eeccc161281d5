//go:build !js

package hub

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// portEvery is the pause between two attempts to have the port. Within portPatience it is portSoon: who has just
	// died, or ends, still has it for a moment.
	portEvery, portSoon = time.Second, 20 * time.Millisecond
	portPatience        = 500 * time.Millisecond
)

// A port is where pages, the inspector and agents on HTTP find the hub. Nothing else depends on it.
type port struct {
	o  Options
	at atomic.Pointer[string]
}

func newPort(o Options) *port { return &port{o: o} }

// addr is where the hub listens, or "" while it does not.
func (p *port) addr() string {
	if at := p.at.Load(); at != nil {
		return *at
	}
	return ""
}

// serve takes the port as soon as it is free, and serves there until ctx ends.
func (p *port) serve(ctx context.Context) {
	if p.o.Handler == nil {
		return
	}
	said := ""
	for waited := time.Duration(0); ctx.Err() == nil; {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.o.Addr)
		if err == nil {
			p.accept(ctx, l, said != "")
			said, waited = "", 0
			continue
		}
		pause := portSoon
		if waited >= portPatience {
			pause = portEvery
			if said != err.Error() {
				said = err.Error()
				p.without(err)
			}
		}
		waited += pause
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// without says that the hub does not have the port, and why.
func (p *port) without(err error) {
	if inUse(err) {
		p.o.Gateway.Notice("port", "Another program has "+p.o.Addr+": pages that connect by themselves do not get "+
			"here until it ends.")
		p.o.Log.Warn("something else has the port: agents go on, without pages that connect by themselves, the "+
			"inspector and agents on HTTP, until it is free", "addr", p.o.Addr, "error", err)
		return
	}
	why := err
	if failed := (*net.OpError)(nil); errors.As(err, &failed) {
		why = failed.Err // without the address, which is said
	}
	p.o.Gateway.Notice("port", "Pagewire cannot listen on "+p.o.Addr+" ("+why.Error()+"): pages that connect by "+
		"themselves do not get here until it can.")
	p.o.Log.Warn("the system does not let us have the port: agents go on, without pages that connect by themselves, "+
		"the inspector and agents on HTTP; choose another with --hub, or allow this one", "addr", p.o.Addr,
		"error", err)
}

// inUse reports whether listening has failed since somebody else listens there.
func inUse(err error) bool {
	const ofWindows = syscall.Errno(10048) // WSAEADDRINUSE, which syscall has no name for
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, ofWindows)
}

// accept serves at the port until ctx ends, or the listener fails.
func (p *port) accept(ctx context.Context, l net.Listener, late bool) {
	at := l.Addr().String()
	if late {
		p.o.Gateway.Notice("port", "")
		p.o.Log.Info("the port is free, and pages find the hub there", "addr", at)
	}
	p.at.Store(&at)
	server := newServer(ctx, p.o.Handler, p.o.Log)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		l.Close()
		shutdown(server)
	})
	err := server.Serve(l)
	p.at.Store(nil)
	if stop() { // ctx goes on
		server.Close()
		p.o.Log.Warn("listening on the port has failed, and is tried again", "addr", at, "error", err)
		return
	}
	<-ended
}
