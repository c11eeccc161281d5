//go:build !js

package launched

import (
	"context"
	"errors"
	"log/slog"
	"net"
)

// Windows has sockets between processes that carry no descriptors, and pipes of which a read cannot be interrupted.
var errNone = errors.New("this system hands no browser from one process to another: start one with " +
	"--remote-debugging-port=9222 --user-data-dir=DIR, and use --chrome")

// A Holder holds nothing on this system.
type Holder struct{}

// NewHolder says in the log what to do instead.
func NewHolder(o Options) *Holder {
	if o.Log != nil {
		o.Log.Error("a browser cannot be launched", "error", errNone)
	}
	return &Holder{}
}

// Serve fails.
func (h *Holder) Serve(conn *net.UnixConn) error { return errors.Join(errNone, conn.Close()) }

// Release does nothing.
func (h *Holder) Release(context.Context) {}

// A Server serves nobody on this system.
type Server struct{}

// NewServer returns one.
func NewServer(func(ctx context.Context, b *Browser, inject bool) error, *slog.Logger) *Server {
	return &Server{}
}

// Serve refuses.
func (s *Server) Serve(conn *net.UnixConn) { conn.Close() }

// Held reports false.
func (s *Server) Held() bool { return false }

// Close does nothing.
func (s *Server) Close() {}
