//go:build !js

package gateway

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// A Conn carries whole JSON-RPC messages, one per call, as JSON text. Every road into and out of the gateway is one:
// stdio, WebSocket, a CDP binding, native messaging.
//
// Write may be called concurrently with Read and with itself, and may block until the other end takes the message.
// Read returns io.EOF when the other end has closed. Close makes both return, and may be called more than once. A
// message is the receiver's: nobody changes it any more.
type Conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, message []byte) error
	Close() error
}

// An outbox holds messages that wait to be taken. Putting one in never blocks, so that it may be done under a lock; what bounds
// it is told by full.
type outbox struct {
	mu       sync.Mutex
	messages [][]byte
	bytes    int
	taken    int // bytes of the message that was taken last, until the next is asked for: it is being written
	closed   bool
	wake     chan struct{}
	sums     []*atomic.Int64
}

// newOutbox returns one whose bytes, those that were taken last included, are added to sums.
func newOutbox(sums ...*atomic.Int64) *outbox {
	return &outbox{wake: make(chan struct{}, 1), sums: sums}
}

// add counts bytes in the sums. It is called with mu held.
func (o *outbox) add(n int) {
	for _, sum := range o.sums {
		sum.Add(int64(n))
	}
}

// push reports false when the outbox is closed.
func (o *outbox) push(message []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.messages = append(o.messages, message)
	o.bytes += len(message)
	o.add(len(message))
	o.signal()
	return true
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// next waits for a message. It returns io.EOF when the outbox is closed and empty. Only one may wait.
func (o *outbox) next(ctx context.Context) ([]byte, error) {
	for {
		o.mu.Lock()
		o.add(-o.taken)
		o.taken = 0
		if len(o.messages) > 0 {
			message := o.messages[0]
			o.messages[0] = nil
			if o.messages = o.messages[1:]; len(o.messages) == 0 {
				o.messages = nil
			}
			o.bytes -= len(message)
			if o.taken = len(message); o.closed { // nobody may come back to ask for the next
				o.add(-o.taken)
				o.taken = 0
			}
			o.mu.Unlock()
			return message, nil
		}
		closed := o.closed
		o.mu.Unlock()
		if closed {
			return nil, io.EOF
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// size is the number of bytes that wait.
func (o *outbox) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// held is size with what is being written.
func (o *outbox) held() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes + o.taken
}

// close takes no more messages; those that wait are dropped, or still delivered.
func (o *outbox) close(drop bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.add(-o.taken)
	o.taken = 0
	if drop {
		o.add(-o.bytes)
		o.messages, o.bytes = nil, 0
	}
	o.signal()
}
