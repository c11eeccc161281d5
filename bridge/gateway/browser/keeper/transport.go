//go:build !js

package keeper

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
)

// A Conn is a client's end of a connection to the browser, which carries JSON texts. One goroutine may read while
// another writes.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
	ends bool // what was read last was the end of a message
}

// newConn takes a connection, of which frames has read a beginning.
func newConn(conn net.Conn, said *frames) *Conn {
	return &Conn{conn: conn, in: bufio.NewReaderSize(said.rest(), readSize), ends: true}
}

// Next waits for the next message. Reading gives io.EOF at its end; what is left of it is passed over when Next is
// called again. No more is held of one than is read at once.
func (c *Conn) Next() (io.Reader, error) {
	if !c.ends {
		if _, err := io.Copy(io.Discard, (*message)(c)); err != nil {
			return nil, err
		}
	}
	if _, err := c.in.Peek(1); err != nil {
		return nil, err
	}
	c.ends = false
	return (*message)(c), nil
}

// A message is the one that is being read.
type message Conn

func (m *message) Read(p []byte) (int, error) {
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
	_, err := c.conn.Write(append(message, 0))
	return err
}

// Close ends both.
func (c *Conn) Close() error { return c.conn.Close() }
