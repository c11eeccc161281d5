//go:build !js

package launched

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// A Conn is a connection to the browser, which carries JSON texts with a NUL behind each. One goroutine may read while
// another writes.
type Conn struct {
	b      *Browser
	in     *bufio.Reader
	ends   bool // what was read last was the end of a message
	closed atomic.Bool
}

// readSize is what a pipe holds.
const readSize = 64 << 10

// Next waits for the next message. Reading gives io.EOF at its end; what is left of it is passed over when Next is
// called again. No more is held of one than is read at once.
func (c *Conn) Next() (io.Reader, error) {
	if !c.ends {
		if _, err := io.Copy(io.Discard, (*messageReader)(c)); err != nil {
			return nil, err
		}
	}
	if _, err := c.in.Peek(1); err != nil {
		return nil, err
	}
	c.ends = false
	begin, _ := c.in.Peek(min(c.in.Buffered(), len(lastMessages[0])))
	c.b.orderly.Store(slices.ContainsFunc(lastMessages, func(m string) bool { return bytes.HasPrefix(begin, []byte(m)) }))
	return (*messageReader)(c), nil
}

// lastMessages begin the last message of a browser that is closed, or that a signal terminates, while this process is
// attached to a page. One that is killed or crashes sends none.
var lastMessages = []string{`{"method":"Target.detachedFromTarget"`, `{"method":"Target.targetDestroyed"`,
	`{"method":"Inspector.detached"`}

// A messageReader reads one message.
type messageReader Conn

func (m *messageReader) Read(p []byte) (int, error) {
	if m.ends {
		return 0, io.EOF
	}
	if _, err := m.in.Peek(1); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	there, _ := m.in.Peek(min(len(p)+1, m.in.Buffered())) // with its NUL, if that is next
	i := bytes.IndexByte(there, 0)
	if m.ends = i >= 0; m.ends {
		there = there[:i]
	}
	n := copy(p, there)
	m.in.Discard(n)
	switch {
	case !m.ends:
		return n, nil
	case n < len(there): // there was no room for all of it
		m.ends = false
		return n, nil
	}
	m.in.Discard(1)
	return n, io.EOF
}

// Write sends a message. It may change what is behind it in its array.
func (c *Conn) Write(message []byte) error {
	if bytes.IndexByte(message, 0) >= 0 {
		return errors.New("a NUL in a message")
	}
	return c.send(append(message, 0))
}

func (c *Conn) send(text []byte) error {
	c.b.writing.Lock()
	defer c.b.writing.Unlock()
	if c.closed.Load() {
		return net.ErrClosed
	}
	_, err := c.b.to.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		c.b.end()
	}
	return err
}

// A source reads for a Conn, as long as that is open: what comes later is for the next one.
type source Conn

func (s *source) Read(p []byte) (int, error) {
	s.b.reading.Lock()
	defer s.b.reading.Unlock()
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := s.b.from.Read(p)
	if err == io.EOF {
		s.b.end()
	}
	return n, err
}

// Close ends reading and writing, wherever they are, and leaves the browser as it is.
func (c *Conn) Close() error {
	c.closed.Store(true)
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.b.conn != c {
		return nil // what would be interrupted is another one's
	}
	c.b.conn = nil
	now := time.Now()
	return errors.Join(c.b.from.SetReadDeadline(now), c.b.to.SetWriteDeadline(now))
}
