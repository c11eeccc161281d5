package mcpconn

import (
	"context"
	"io"
	"sync"
)

// An Outbox is a queue of messages. Push never blocks, so a caller may hold a lock. Size and Held
// let a caller bound it.
type Outbox struct {
	mu       sync.Mutex
	messages [][]byte
	bytes    int
	// the bytes of the last message from Next, which is being written until Next is called again
	taken  int
	closed bool
	wake   chan struct{}
	count  func(bytes int)
}

// NewOutbox returns an Outbox that calls count with each change of Held, in bytes. count must not
// call the Outbox.
func NewOutbox(count func(bytes int)) *Outbox {
	return &Outbox{wake: make(chan struct{}, 1), count: count}
}

// Push adds a message, or reports false if the outbox is closed.
func (o *Outbox) Push(message []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.messages = append(o.messages, message)
	o.bytes += len(message)
	o.count(len(message))
	o.signal()
	return true
}

func (o *Outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Next waits for a message. It returns io.EOF when the outbox is closed and empty. One goroutine at
// a time may wait.
func (o *Outbox) Next(ctx context.Context) ([]byte, error) {
	for {
		if message, closed := o.next(); message != nil {
			return message, nil
		} else if closed {
			return nil, io.EOF
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (o *Outbox) next() (message []byte, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written()
	if len(o.messages) == 0 {
		return nil, o.closed
	}
	message, o.messages[0] = o.messages[0], nil
	if o.messages = o.messages[1:]; len(o.messages) == 0 {
		o.messages = nil
	}
	o.bytes -= len(message)
	if o.taken = len(message); o.closed { // Next may not be called again
		o.written()
	}
	return message, o.closed
}

// written counts the last message from Next as written.
func (o *Outbox) written() {
	o.count(-o.taken)
	o.taken = 0
}

// Size is the number of waiting bytes.
func (o *Outbox) Size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// Held is Size plus the message that is being written.
func (o *Outbox) Held() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes + o.taken
}

// Close ends the accepting of messages. It drops waiting messages; without drop, Next still returns
// them.
func (o *Outbox) Close(drop bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.written()
	if drop {
		o.count(-o.bytes)
		o.messages, o.bytes = nil, 0
	}
	o.signal()
}
