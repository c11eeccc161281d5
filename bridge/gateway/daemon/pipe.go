//go:build !js

package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/retry"
)

const (
	// maxToDaemon is how much of a line of the agent passes, in bytes. A gateway refuses what is half as long.
	maxToDaemon = 8 << 20
	// maxToAgent bounds a line of the daemon: the largest result that a gateway passes on is 32 MiB of contents.
	maxToAgent = 64 << 20
	// redialFirst and redialLast are the first and the longest pause between two attempts to find or start a daemon.
	redialFirst, redialLast = time.Millisecond, time.Second
	// aloneFirst and aloneLast are those of a pipe that serves alone.
	aloneFirst, aloneLast = time.Second, 30 * time.Second
	// lastAnswers is how long an agent that has closed its input is given answers. Some clients kill a server 2 s after
	// that.
	lastAnswers = 1500 * time.Millisecond
)

// What a daemon says to a pipe between the agent's lines: none of these begins as a message does.
const (
	beatLine     = "\n"
	retireLine   = "!retire\n"
	snapshotHead = "!snapshot "
)

// PipeOptions say what a pipe connects.
type PipeOptions struct {
	// In and Out are the agent's: messages, one on each line.
	In  io.Reader
	Out io.Writer
	// Hello is what a daemon is told of the agent.
	Hello Hello
	// Dial connects to the daemon.
	Dial func(context.Context, Hello) (*Conn, error)
	// Probe connects to the daemon that runs, and starts none.
	Probe func(context.Context, Hello) (*Conn, error)
	// Alone serves the agent in this process, where there can be no daemon. The reason is shown to people. AloneEnded is
	// called when that has ended and the agent has not, for which a daemon was found. May be nil.
	Alone      func(h Hello, reason error) *Conn
	AloneEnded func()
	// Log receives what happens. Default none.
	Log *slog.Logger
}

// Pipe carries an agent's messages to the daemon and back, unchanged, until the agent ends its input or ctx is cancelled;
// both are nil. When the daemon dies, hangs or retires, the session goes on at the next one. Where there can be none, the
// agent is served alone, and a daemon is looked for again. It fails with the error of In or Out, with the cause of ctx's
// end, or with the reason why no daemon can go on with the session. It cannot end a Read of In or a Write to Out that is
// under way: those end when their owner closes them.
func Pipe(ctx context.Context, o PipeOptions) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &pipe{o: o, cancel: cancel, record: newRecord(), out: bufio.NewWriterSize(o.Out, 64<<10)}
	p.changed.L = &p.mu
	go p.fromAgent()
	go func() { cancel(p.run(ctx)) }()
	<-ctx.Done()
	p.mu.Lock()
	p.over = true
	p.changed.Broadcast()
	for _, c := range []*Conn{p.c, p.next} {
		if c != nil {
			c.Close()
		}
	}
	p.mu.Unlock()
	if err := context.Cause(ctx); !errors.Is(err, errEnded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// errEnded is the cause of the end of a pipe whose agent has ended.
var errEnded = errors.New("the agent has ended")

type pipe struct {
	o      PipeOptions
	cancel context.CancelCauseFunc

	mu       sync.Mutex // guards what follows, and is held for no read or write
	changed  sync.Cond  // c, sending or over has
	c        *Conn      // where the agent's lines go; nil between two daemons
	sending  bool       // a line of the agent is on its way to a daemon
	next     *Conn      // a daemon that was found while the agent was served alone
	ended    bool       // the agent has closed its input
	over     bool       // the pipe has ended
	record   *record
	snapshot []byte

	outMu   sync.Mutex // guards out, in whole lines
	out     *bufio.Writer
	writing atomic.Bool // whether the agent is to take something
}

// fromAgent passes on what the agent says.
func (p *pipe) fromAgent() {
	in := bufio.NewReaderSize(p.o.In, 64<<10)
	for {
		line, _, err := readLine(in, maxToDaemon)
		if len(line) > 0 && !p.toDaemon(line) {
			return
		}
		if err == io.EOF {
			p.end()
			return
		} else if err != nil {
			p.cancel(fmt.Errorf("read from the agent: %w", err))
			return
		}
	}
}

// toDaemon notes a line of the agent and passes it on, as soon as there is a daemon. If that dies meanwhile, the next one
// is told by what is noted. It reports false when the pipe has ended.
func (p *pipe) toDaemon(line []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.c == nil && !p.over {
		p.changed.Wait()
	}
	if p.over {
		return false
	}
	if c := p.c; p.record.fromAgent(line) {
		p.sending = true
		p.mu.Unlock()
		_, _ = c.Write(line) // it may have died, which its reader finds out
		p.mu.Lock()
		p.sending = false
		p.changed.Broadcast()
	}
	return true
}

// end is for an agent that says no more.
func (p *pipe) end() {
	time.AfterFunc(lastAnswers, func() { p.cancel(errEnded) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.c != nil {
		p.c.CloseWrite()
	}
}

// run serves the agent at one daemon after the other.
func (p *pipe) run(ctx context.Context) error {
	for range retry.Attempts(ctx, redialFirst, redialLast) {
		c, err := p.connect(ctx)
		if err != nil {
			return err
		}
		if err := p.serve(ctx, c); err != nil {
			return err
		}
		if c.Daemon.PID == 0 && p.o.AloneEnded != nil && ctx.Err() == nil {
			p.o.AloneEnded()
		}
	}
	return context.Cause(ctx)
}

// connect finds or starts a daemon, or has the agent served alone.
func (p *pipe) connect(ctx context.Context) (*Conn, error) {
	p.mu.Lock()
	next := p.next
	p.next = nil
	p.mu.Unlock()
	if next != nil {
		return next, nil
	}
	began := time.Now()
	for range retry.Attempts(ctx, redialFirst, redialLast) {
		c, err := p.o.Dial(ctx, p.hello())
		if err == nil {
			return c, nil
		}
		if ctx.Err() == nil && (!errors.Is(err, ErrNone) || time.Since(began) > startTimeout) {
			go p.lookAgain(ctx)
			return p.o.Alone(p.hello(), err), nil
		}
	}
	return nil, context.Cause(ctx)
}

// hello is what the next daemon is told.
func (p *pipe) hello() Hello {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.o.Hello
	h.Snapshot = p.snapshot
	return h
}

// lookAgain moves an agent that is served alone to a daemon, as soon as there can be one.
func (p *pipe) lookAgain(ctx context.Context) {
	retry.Sleep(ctx, aloneFirst)
	for range retry.Attempts(ctx, aloneFirst, aloneLast) {
		c, err := p.o.Dial(ctx, p.hello())
		if err != nil {
			continue
		}
		p.o.Log.Info("there is a daemon now, which goes on serving this agent")
		p.mu.Lock()
		p.next = c
		p.mu.Unlock()
		p.retire()
		return
	}
}

// retire ends the session at this daemon in order: what it was asked it answers, and the rest is for the next one.
func (p *pipe) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.c
	for p.c = nil; p.sending; {
		p.changed.Wait()
	}
	if c != nil {
		c.CloseWrite()
	}
}

// serve carries messages until the daemon is gone; nil says that there is to be another.
func (p *pipe) serve(ctx context.Context, c *Conn) error {
	defer c.Close()
	p.mu.Lock()
	out := p.record.replay()
	p.mu.Unlock()
	if err := p.toAgent(true, out.toAgent...); err != nil {
		return err
	}
	gone := make(chan struct{}) // closed with the lock held
	if c.Daemon.PID != 0 {
		go p.watch(ctx, c, gone)
	}
	go func() { // beside the reading: what is said again may be more than the socket holds
		if _, err := c.Write(bytes.Join(out.toDaemon, nil)); err == nil {
			p.begin(c, gone)
		}
	}()
	err := p.fromDaemon(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(gone)
	p.c = nil
	if err == nil && p.ended && p.record.settled() {
		err = errEnded
	}
	return err
}

// begin has the agent's lines go to a daemon that has been told what the one before knew, unless it has gone already.
func (p *pipe) begin(c *Conn, gone <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-gone:
		return
	default:
	}
	if p.over {
		c.Close()
		return
	}
	if p.c = c; p.ended {
		c.CloseWrite()
	}
	p.changed.Broadcast()
}

// fromDaemon passes on what the daemon says, until it ends. An error is the agent's, or says that the session cannot go
// on.
func (p *pipe) fromDaemon(c *Conn) error {
	var snapshot []byte // the next message's
	for {
		if !hasLine(c.In) { // what has come goes out together
			if err := p.toAgent(true); err != nil {
				return err
			}
		}
		line, over, err := readLine(c.In, maxToAgent)
		switch {
		case err != nil || over:
			return nil // half a line is none: it is asked for again
		case string(line) == beatLine:
			continue
		case string(line) == retireLine:
			go p.retire()
			continue
		case bytes.HasPrefix(line, []byte(snapshotHead)):
			snapshot = decodeSnapshot(line[len(snapshotHead):])
			continue
		}
		p.mu.Lock()
		if snapshot != nil { // it says what the agent knows with this message
			p.snapshot, snapshot = snapshot, nil
		}
		pass, out, err := p.record.fromDaemon(line)
		p.mu.Unlock()
		if err != nil {
			return err
		}
		for _, more := range out.toDaemon {
			_, _ = c.Write(more) // it may have died, which the next read finds out
		}
		if pass {
			_ = p.toAgent(false, line) // flushing has the error
		}
		_ = p.toAgent(false, out.toAgent...)
	}
}

// hasLine reports whether a whole line has come that is not read yet.
func hasLine(in *bufio.Reader) bool {
	text, _ := in.Peek(in.Buffered())
	return bytes.IndexByte(text, '\n') >= 0
}

// decodeSnapshot is nil for what is none: the one before is as good as can be had then.
func decodeSnapshot(text []byte) []byte {
	snapshot, err := base64.StdEncoding.AppendDecode(nil, bytes.TrimSpace(text))
	if err != nil || len(snapshot) > maxSnapshot {
		return nil
	}
	return snapshot
}

// toAgent writes lines to the agent, now or together with the next.
func (p *pipe) toAgent(now bool, lines ...[]byte) error {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	p.writing.Store(true)
	defer p.writing.Store(false)
	for _, line := range lines {
		p.out.Write(line) // Flush has its error
	}
	if !now {
		return nil
	}
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write to the agent: %w", err)
	}
	return nil
}
