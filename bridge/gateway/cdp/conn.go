//go:build !js

package cdp

import (
	"context"
	"io"
	"sync"
)

// A conn is the gateway's end of a document's session: a gateway.Conn.
type conn struct {
	in inbox
	// take has a message of the gateway.
	take func(message []byte) error
	// gone is called once, when the gateway has closed it.
	gone func()
	once sync.Once
}

func newConn(take func([]byte) error, gone func()) *conn {
	return &conn{in: inbox{wake: make(chan struct{}, 1)}, take: take, gone: gone}
}

func (c *conn) Read(ctx context.Context) ([]byte, error) { return c.in.next(ctx) }

func (c *conn) Write(_ context.Context, message []byte) error {
	if c.in.over() {
		return io.ErrClosedPipe
	}
	return c.take(message)
}

func (c *conn) Close() error {
	c.in.close()
	c.once.Do(c.gone)
	return nil
}

// An inbox holds what a page has said until the gateway takes it. Putting something in never blocks; bytes says how much waits.
type inbox struct {
	mu       sync.Mutex
	messages [][]byte
	bytes    int
	closed   bool
	wake     chan struct{}
}

// push returns the number of bytes that wait.
func (b *inbox) push(message []byte) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0
	}
	b.messages = append(b.messages, message)
	b.bytes += len(message)
	b.signal()
	return b.bytes
}

func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// next waits for a message; io.EOF says that there are no more.
func (b *inbox) next(ctx context.Context) ([]byte, error) {
	for {
		b.mu.Lock()
		if len(b.messages) > 0 {
			message := b.messages[0]
			b.messages[0] = nil
			if b.messages = b.messages[1:]; len(b.messages) == 0 {
				b.messages = nil
			}
			b.bytes -= len(message)
			b.mu.Unlock()
			return message, nil
		}
		closed := b.closed
		b.mu.Unlock()
		if closed {
			return nil, io.EOF
		}
		select {
		case <-b.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *inbox) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// close takes no more. What waits is still delivered: it may be the answer that somebody waits for.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.signal()
}
