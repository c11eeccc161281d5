package launched

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// A Pipe is the two ends of a browser's pipe. One process at a time uses it, by one Conn at a time.
type Pipe struct {
	*ends
	ctx     context.Context // ends when a Conn has found that the browser has ended
	end     context.CancelFunc
	orderly atomic.Bool // the browser's last message was one of lastMessages
}

func newPipe(e *ends) *Pipe {
	p := &Pipe{ends: e}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// Done is closed when a Conn has found that the browser has ended.
func (p *Pipe) Done() <-chan struct{} { return p.ctx.Done() }

func (p *Pipe) over() bool { return p.ctx.Err() != nil }

// close closes the ends, and reports whether the browser ends within a time. It ends if no other process has ends.
func (p *Pipe) close(within time.Duration) bool {
	to, from, err := p.open()
	p.ends.close()
	if err != nil {
		return false
	}
	to.Close()
	defer from.Close()
	from.SetReadDeadline(time.Now().Add(within))
	_, err = io.Copy(io.Discard, from) // a browser that cannot write does not end
	return err == nil
}

// A Conn is a connection to the browser: JSON texts, each followed by a NUL. One goroutine may read while one writes.
type Conn struct {
	pipe     *Pipe
	to, from *os.File
	in       *bufio.Reader
	whole    bool // the last message has been read to its end
}

// readSize is the capacity of a pipe.
const readSize = 64 << 10

// Dial connects to a browser in an unknown state: the last process to use it may have been killed at any moment. It may
// have left half a command, half a message, answers, and sessions. So Dial sends a NUL first: it ends half a command,
// and the browser refuses it in an answer without an id. Then Dial ends all sessions of the pipe, with everything that
// they enabled in pages, and skips all messages before the answer to that.
func (p *Pipe) Dial(ctx context.Context) (*Conn, error) {
	to, from, err := p.open()
	if err != nil {
		return nil, err
	}
	c := &Conn{pipe: p, to: to, from: from, in: bufio.NewReaderSize(from, readSize), whole: true}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	if err = c.write([]byte{0}); err == nil {
		err = c.call("Target.setAutoAttach", `{"autoAttach":false,"waitForDebuggerOnStart":false,"flatten":true}`)
	}
	if !stop() {
		err = context.Cause(ctx)
	} else if err != nil && p.over() {
		err = errors.New("it has ended")
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("reach the launched browser: %w", err)
	}
	return c, nil
}

// maxAnswer is how many bytes of an answer are read: enough for the reason of a refusal.
const maxAnswer = 256

// call runs a command of the browser itself, and skips messages before its answer. The id is random, so that an answer
// to another process's command is not mistaken for it.
func (c *Conn) call(method, params string) error {
	id := rand.Int32()
	if err := c.Write(fmt.Appendf(nil, `{"id":%d,"method":%q,"params":%s}`, id, method, params)); err != nil {
		return err
	}
	begin := fmt.Appendf(nil, `{"id":%d,"`, id) // as the browser writes answers
	text := make([]byte, len(begin)+maxAnswer)
	for {
		from, err := c.Next()
		if err != nil {
			return err
		}
		n, err := io.ReadFull(from, text)
		switch {
		case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
			return err
		case !bytes.HasPrefix(text[:n], begin):
		case bytes.HasPrefix(text[len(begin):n], []byte(`result"`)):
			return nil
		default:
			return fmt.Errorf("the browser refuses %s: %s", method, text[:n])
		}
	}
}

// lastMessages are beginnings of the last message of a browser that is closed or terminated by a signal while this
// process is attached to a page. A browser that is killed or crashes sends none of these.
var lastMessages = []string{`{"method":"Target.detachedFromTarget"`, `{"method":"Target.targetDestroyed"`,
	`{"method":"Inspector.detached"`}

// Next waits for the next message. Its reader returns io.EOF at its end. The next call of Next skips the rest of it. A
// Conn holds at most readSize bytes of a message.
func (c *Conn) Next() (io.Reader, error) {
	if !c.whole {
		if _, err := io.Copy(io.Discard, (*message)(c)); err != nil {
			return nil, err
		}
	}
	if _, err := c.in.Peek(1); err != nil {
		return nil, c.failed(err)
	}
	c.whole = false
	begin, _ := c.in.Peek(min(c.in.Buffered(), len(lastMessages[0])))
	c.pipe.orderly.Store(slices.ContainsFunc(lastMessages, func(m string) bool { return bytes.HasPrefix(begin, []byte(m)) }))
	return (*message)(c), nil
}

// A message reads one message.
type message Conn

func (m *message) Read(p []byte) (int, error) {
	if m.whole {
		return 0, io.EOF
	}
	if _, err := m.in.Peek(1); (*Conn)(m).failed(err) == io.EOF {
		return 0, io.ErrUnexpectedEOF
	} else if err != nil {
		return 0, err
	}
	there, _ := m.in.Peek(min(len(p), m.in.Buffered()))
	n := bytes.IndexByte(there, 0)
	if m.whole = n >= 0; !m.whole {
		n = len(there)
	}
	copy(p, there[:n])
	m.in.Discard(n)
	if m.whole {
		m.in.Discard(1)
		return n, io.EOF
	}
	return n, nil
}

// Write sends a message. It may overwrite the byte after the message in its array.
func (c *Conn) Write(message []byte) error {
	if bytes.IndexByte(message, 0) >= 0 {
		return errors.New("a NUL in a message")
	}
	return c.write(append(message, 0))
}

func (c *Conn) write(text []byte) error {
	_, err := c.to.Write(text)
	return c.failed(err)
}

// failed notes the browser's end, and returns err.
func (c *Conn) failed(err error) error {
	if err == io.EOF || errors.Is(err, syscall.EPIPE) {
		c.pipe.end()
	}
	return err
}

// Close interrupts reading and writing, and leaves the browser as it is.
func (c *Conn) Close() error { return errors.Join(c.to.Close(), c.from.Close()) }
