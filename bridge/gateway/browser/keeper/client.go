//go:build !js

package keeper

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"
)

// A client is one that speaks with the browser by way of a relay.
type client struct {
	conn io.ReadWriteCloser
	raw  syscall.RawConn // conn's, or nil
	// Guarded by the relay's lock, but for who reads session after it has been set.
	session  string          // its own with the browser as a whole
	sessions map[string]bool // that, and those below

	mu     sync.Mutex
	queue  [][]byte
	bytes  int  // of queue
	busy   bool // somebody writes to conn
	more   *sync.Cond
	less   chan struct{} // has a value when something of the queue has been taken
	closed bool
	why    error
}

const (
	// maxQueue is how much may wait for a client, or one frame: more makes the relay wait.
	maxQueue = 32 << 20
	// stallTime is how long it waits while the client takes nothing. A client that is stopped is cut off then, at the
	// first byte too much: it loses its place, and the others lose that time.
	stallTime = 2 * time.Second
)

var errStalled = errors.New("it does not read what the browser says")

func newClient(conn io.ReadWriteCloser) *client {
	c := &client{conn: conn, sessions: map[string]bool{}, less: make(chan struct{}, 1)}
	c.more = sync.NewCond(&c.mu)
	if s, ok := conn.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
	}
	return c
}

// put sends a frame, which may be changed afterwards.
func (c *client) put(frame []byte) {
	c.mu.Lock()
	for !c.closed && c.bytes > 0 && c.bytes+len(frame) > maxQueue {
		c.mu.Unlock()
		select {
		case <-c.less:
		case <-time.After(stallTime):
			c.close(errStalled)
		}
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	// Mostly the client waits, and takes a frame at once: a goroutine less on the way of each answer.
	if len(c.queue) == 0 && !c.busy {
		n := writeNow(c.raw, frame)
		if frame = frame[n:]; len(frame) == 0 {
			return
		}
	}
	c.queue = append(c.queue, bytes.Clone(frame))
	c.bytes += len(frame)
	c.more.Signal()
}

// write sends what could not be sent at once, until the client is closed.
func (c *client) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.queue) == 0 && !c.closed {
			c.more.Wait()
		}
		if c.closed {
			return
		}
		frame := c.queue[0]
		c.queue = c.queue[1:]
		c.busy = true
		c.mu.Unlock()
		err := c.drain(frame)
		c.mu.Lock()
		c.busy = false
		if err != nil {
			c.shut(err)
		}
	}
}

// piece is what is written between two words of progress.
const piece = 256 << 10

func (c *client) drain(frame []byte) error {
	for len(frame) > 0 {
		n, err := c.conn.Write(frame[:min(len(frame), piece)])
		frame = frame[n:]
		c.mu.Lock()
		c.bytes -= n
		c.mu.Unlock()
		select {
		case c.less <- struct{}{}:
		default:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// close ends the connection. Only the first reason counts.
func (c *client) close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut(why)
}

func (c *client) shut(why error) {
	if c.closed {
		return
	}
	c.closed, c.why, c.queue = true, why, nil
	c.more.Broadcast()
	c.conn.Close()
}
