package daemon

import (
	"context"
	"io"
	"net"
)

// Alone serves an agent in this process, as a daemon would over its socket, until the Conn is closed or ctx ends.
func Alone(ctx context.Context, o Options, h Hello) *Conn {
	fromAgent, toDaemon := io.Pipe()
	fromDaemon, toAgent := io.Pipe()
	its := newConn(memory{r: fromAgent, w: toAgent})
	go func() {
		defer its.Close()
		b := &beating{c: its}
		defer b.stop()
		if err := o.Serve(ctx, h, its.In, b, b.begin); err != nil && ctx.Err() == nil {
			o.Log.Info("the agent's session has ended", "reason", err)
		}
	}()
	return newConn(memory{r: fromDaemon, w: toDaemon})
}

// A memory connection is one end of two pipes within this process. It has no addresses and no deadlines.
type memory struct {
	net.Conn
	r *io.PipeReader
	w *io.PipeWriter
}

func (m memory) Read(p []byte) (int, error)  { return m.r.Read(p) }
func (m memory) Write(p []byte) (int, error) { return m.w.Write(p) }
func (m memory) CloseWrite() error           { return m.w.Close() }

func (m memory) Close() error {
	m.r.Close()
	return m.w.Close()
}
