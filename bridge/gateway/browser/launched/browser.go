//go:build !js

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
	"sync"
	"sync/atomic"
	"time"
)

// ErrGone is what Dial fails with when the browser has ended.
var ErrGone = errors.New("the launched browser is gone")

// A Browser is a launched one as the process uses it that speaks with it. That is one process at a time.
type Browser struct {
	to, from *os.File

	dialing          sync.Mutex
	reading, writing sync.Mutex
	mu               sync.Mutex
	conn             *Conn       // the one that is open
	orderly          atomic.Bool // its last message was one of lastMessages
	once             sync.Once
	done             chan struct{}
}

// newBrowser takes over the two ends of a browser's pipe.
func newBrowser(to, from *os.File) *Browser {
	return &Browser{to: to, from: from, done: make(chan struct{})}
}

// Done is closed when the browser is known to have ended, which only a Conn that is read can find out.
func (b *Browser) Done() <-chan struct{} { return b.done }

func (b *Browser) end() { b.once.Do(func() { close(b.done) }) }

// Dial begins anew with the browser, of which nothing is known: the process that used it before may have been killed at
// any moment, and have left half a command, half a message, answers to its commands, and sessions. So a NUL comes first,
// which ends half a command: the browser refuses that, as it refuses the empty command where there was no half, in an
// answer without an id. Then all sessions of the pipe are ended, and with them all that was switched on in pages. What
// the browser sends before its answer to that is skipped. Of two Conns at a time the first one is closed.
func (b *Browser) Dial(ctx context.Context) (*Conn, error) {
	b.dialing.Lock()
	defer b.dialing.Unlock()
	c := &Conn{b: b, ends: true}
	c.in = bufio.NewReaderSize((*source)(c), readSize)
	b.use(c)
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err := c.send([]byte{0})
	if err == nil {
		err = c.call("Target.setAutoAttach", `{"autoAttach":false,"waitForDebuggerOnStart":false,"flatten":true}`)
	}
	if !stop() {
		err = fmt.Errorf("reach the launched browser: %w", context.Cause(ctx))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// call runs a command of the browser as a whole, and skips what comes before its answer. The id is random: an answer to
// somebody else's command is none to this.
func (c *Conn) call(method, params string) error {
	id := rand.Int32()
	if err := c.Write(fmt.Appendf(nil, `{"id":%d,"method":%q,"params":%s}`, id, method, params)); err != nil {
		return c.why(err)
	}
	// The browser writes an answer from its id on.
	begin := fmt.Appendf(nil, `{"id":%d,"`, id)
	text := make([]byte, len(begin)+maxAnswer)
	for {
		from, err := c.Next()
		if err != nil {
			return c.why(err)
		}
		n, err := io.ReadFull(from, text)
		switch {
		case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
			return c.why(err)
		case !bytes.HasPrefix(text[:n], begin):
		case bytes.HasPrefix(text[len(begin):n], []byte(`result"`)):
			return nil
		default:
			return fmt.Errorf("the browser refuses %s: %s", method, text[:n])
		}
	}
}

// maxAnswer is how much of an answer is looked at: as much as says why a command was refused.
const maxAnswer = 256

// why is ErrGone where the browser has ended, and says so.
func (c *Conn) why(err error) error {
	select {
	case <-c.b.done:
		return ErrGone
	default:
		return err
	}
}

// use makes c, or none, the Conn that is open, and returns when no other one reads or writes any more.
func (b *Browser) use(c *Conn) {
	b.mu.Lock()
	before := b.conn
	b.mu.Unlock()
	if before != nil {
		before.Close()
	}
	b.reading.Lock()
	defer b.reading.Unlock()
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = c
	b.from.SetReadDeadline(time.Time{})
	b.to.SetWriteDeadline(time.Time{})
}

// close gives the ends up, and waits until the browser has ended, which it does if these were the last, or ctx ends. It
// reports which. Until then it reads what the browser says, which may wait for that.
func (b *Browser) close(ctx context.Context) (ended bool) {
	b.dialing.Lock()
	defer b.dialing.Unlock()
	b.use(nil)
	defer b.from.Close()
	b.to.Close()
	stop := context.AfterFunc(ctx, func() { b.from.SetReadDeadline(time.Now()) })
	defer stop()
	if _, err := io.Copy(io.Discard, b.from); err != nil {
		return false
	}
	b.end()
	return true
}
