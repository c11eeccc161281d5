package launched

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// A Pipe is our ends of a browser's pipe. One Conn at a time uses it.
type Pipe struct {
	to, from end
	in       *bufio.Reader
	whole    bool // the last message has been read to its end

	mu   sync.Mutex
	user *Conn // that is not closed, or nil
}

// An end is an *os.File, or a test's.
type end interface {
	io.ReadWriteCloser
	SetDeadline(time.Time) error
}

func newPipe(to, from end) *Pipe {
	return &Pipe{to: to, from: from, in: bufio.NewReaderSize(from, readSize), whole: true}
}

// close closes our ends: the browser ends.
func (p *Pipe) close() { _ = errors.Join(p.to.Close(), p.from.Close()) }

// A Conn is a connection to the browser: JSON texts, each followed by a NUL. One goroutine may read
// while one writes.
type Conn struct{ *Pipe }

// readSize is the capacity of a pipe.
const readSize = 64 << 10

// Dial connects to a browser in an unknown state: the last Conn may have left half a command,
// answers, and sessions. So Dial sends a NUL first: it ends half a command, and the browser refuses
// it in an answer without an id. Then Dial ends all sessions of the pipe, with everything that they
// enabled in pages, and skips all messages before the answer to that. The last Conn must be closed,
// and nobody may read from it any more.
func (p *Pipe) Dial(ctx context.Context) (*Conn, error) {
	c := &Conn{p}
	p.mu.Lock()
	p.user = c
	// Windows has none
	_ = errors.Join(p.to.SetDeadline(time.Time{}), p.from.SetDeadline(time.Time{}))
	p.mu.Unlock()
	err := c.within(ctx, func() error {
		if _, err := p.to.Write([]byte{0}); err != nil {
			return err
		}
		return c.call("Target.setAutoAttach",
			`{"autoAttach":false,"waitForDebuggerOnStart":false,"flatten":true}`)
	})
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("reach the launched browser: %w", err)
	}
	return c, nil
}

// within runs f. If ctx ends before f does, it closes c, and returns the context's cause.
func (c *Conn) within(ctx context.Context, f func() error) error {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	if err := f(); stop() {
		return err
	}
	return context.Cause(ctx)
}

// open makes the browser open a URL. Whoever reads from the Conn gets the answer, to a command that
// is not its own.
func (p *Pipe) open(url string) error {
	_, err := p.to.Write(append(command(1<<30+rand.Int32N(1<<30), openTab, opened(url)), 0))
	return err
}

const openTab = "Target.createTarget"

// opened is the params of openTab. Strings cannot fail to encode.
func opened(url string) string {
	params, _ := json.Marshal(map[string]string{"url": url})
	return string(params)
}

func command(id int32, method, params string) []byte {
	return fmt.Appendf(nil, `{"id":%d,"method":%q,"params":%s}`, id, method, params)
}

// maxAnswer is how many bytes of an answer are read: enough for the reason of a refusal.
const maxAnswer = 256

// call runs a command of the browser itself, and skips messages before its answer. The id is
// random, so that an answer to another Conn's command is not mistaken for it.
func (c *Conn) call(method, params string) error {
	id := rand.Int32()
	if err := c.Write(command(id, method, params)); err != nil {
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

// Next waits for the next message. Its reader returns io.EOF at its end. The next call of Next
// skips the rest of it. A Conn holds at most readSize bytes of a message.
func (c *Conn) Next() (io.Reader, error) {
	if !c.whole {
		if _, err := io.Copy(io.Discard, (*message)(c.Pipe)); err != nil {
			return nil, err
		}
	}
	if _, err := c.in.Peek(1); err != nil {
		return nil, err
	}
	c.whole = false
	return (*message)(c.Pipe), nil
}

// A message reads one message.
type message Pipe

func (m *message) Read(p []byte) (int, error) {
	if m.whole {
		return 0, io.EOF
	}
	if _, err := m.in.Peek(1); err == io.EOF {
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
	_, err := c.to.Write(append(message, 0))
	return err
}

// Close interrupts reading and writing, and leaves the browser as it is. On Windows, where a pipe
// cannot be interrupted, it closes our ends, and the browser ends.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.user != c {
		return nil
	}
	c.user = nil
	past := time.Unix(1, 0)
	err := errors.Join(c.to.SetDeadline(past), c.from.SetDeadline(past))
	if errors.Is(err, os.ErrNoDeadline) {
		c.Pipe.close()
		return nil
	}
	return err
}
