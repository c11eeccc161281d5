//go:build !js

package testkit

import (
	"context"
	"io"
	"sync"
)

// A Conn is an end of a Pipe. It is a mcpconn.Conn.
type Conn struct {
	in    <-chan []byte
	out   chan<- []byte
	ended <-chan struct{}
	end   func()
}

// Pipe returns the two ends of a connection within the process. Closing either ends both; what was written before is
// still read.
func Pipe() (*Conn, *Conn) {
	// As long as no test makes them: a page's connection does not wait for its reader either.
	a, b := make(chan []byte, 10_000), make(chan []byte, 10_000)
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	return &Conn{a, b, ended, end}, &Conn{b, a, ended, end}
}

// Read returns the next message, or io.EOF when there will be none.
func (c *Conn) Read(ctx context.Context) ([]byte, error) {
	select {
	case message := <-c.in:
		return message, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.ended:
	}
	select {
	case message := <-c.in:
		return message, nil
	default:
		return nil, io.EOF
	}
}

// Write hands a message to the other end.
func (c *Conn) Write(ctx context.Context, message []byte) error {
	select {
	case <-c.ended:
		return io.ErrClosedPipe
	default:
	}
	select {
	case c.out <- message:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return io.ErrClosedPipe
	}
}

// Close ends the connection. It may be called more than once.
func (c *Conn) Close() error {
	c.end()
	return nil
}
