package mcpconn

import (
	"context"
	"io"
	"sync"
)

// An Outbox is a queue of messages. Push never blocks, so it may be called under a lock. The sums let a caller bound
// it.
type Outbox struct {
	mu       sync.Mutex
	messages [][]byte
	bytes    int
	taken    int // bytes of the message that is being written: the last from Next, until the next call
	closed   bool
	wake     chan struct{}
	count    func(bytes int)
}

// NewOutbox returns one that calls count when it holds more bytes, or fewer: those that were taken last are included.
// count must not call the Outbox.
func NewOutbox(count func(bytes int)) *Outbox {
	return &Outbox{wake: make(chan struct{}, 1), count: count}
}

// Push reports false when the outbox is closed.
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

// Next waits for a message. It returns io.EOF when the outbox is closed and empty. One goroutine at a time may wait.
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
	if o.taken = len(message); o.closed { // nobody may come back to ask for the next
		o.written()
	}
	return message, o.closed
}

// written counts that the message that was taken last is no longer held.
func (o *Outbox) written() {
	o.count(-o.taken)
	o.taken = 0
}

// Size is the number of bytes that wait.
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

// Close accepts no more messages. Those that wait are dropped, or still delivered.
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
