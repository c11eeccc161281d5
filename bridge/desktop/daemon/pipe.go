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
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/retry"
)

const (
	// maxToDaemon is the longest part of an agent's line that passes, in bytes. A gateway refuses
	// more than 4 MiB.
	maxToDaemon = 8 << 20
	// redialFirst and redialLast are the first and the longest pause between two attempts to find
	// or start a daemon.
	redialFirst, redialLast = time.Millisecond, time.Second
	// aloneFirst and aloneLast are these pauses while this process serves its agent alone.
	aloneFirst, aloneLast = time.Second, 30 * time.Second
	// lastAnswers is the time for answers after an agent has closed its input. Some clients kill
	// the pipe after 2 s.
	lastAnswers = 1500 * time.Millisecond
)

// PipeOptions configure a Pipe.
type PipeOptions struct {
	// In and Out are the agent's messages, one on each line.
	In  io.Reader
	Out io.Writer
	// Hello describes the agent to a daemon.
	Hello Hello
	// Dial connects to the daemon.
	Dial func(context.Context, Hello) (*Conn, error)
	// Probe connects to the running daemon, and starts none.
	Probe func(context.Context, Hello) (*Conn, error)
	// Alone serves the agent in this process if no daemon can run, for a reason that is shown to
	// people. AloneEnded (may be nil) is called when a daemon has taken over the session.
	Alone      func(h Hello, reason error) *Conn
	AloneEnded func()
	// Notice is called when the daemon has another sentence about the agent's browser, or none
	// ("").
	Notice func(sentence string)
	// Log receives the log. Default none.
	Log *slog.Logger
}

// Pipe carries an agent's messages to the daemon and back, unchanged but for a byte order mark. It
// returns nil when the agent has ended its input, or ctx is cancelled. When the daemon dies, hangs
// or retires, the session goes on at the next one. If no daemon can run, Alone serves the agent,
// and the pipe looks for a daemon again later. Pipe fails with the error of In or Out, with the
// cause of ctx's end, or with the reason why no daemon can continue the session. A Read of In or a
// Write to Out that is under way then goes on until the owner of In or Out closes it.
func Pipe(ctx context.Context, o PipeOptions) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &pipe{o: o, ctx: ctx, cancel: cancel, journal: newJournal(),
		out: bufio.NewWriterSize(o.Out, 64<<10)}
	p.changed.L = &p.mu
	go p.fromAgent()
	go func() { cancel(p.run(ctx)) }()
	<-ctx.Done()
	p.mu.Lock()
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

// errEnded is the cause of a pipe's end when the agent has ended.
var errEnded = errors.New("the agent has ended")

// A pipe has two parties that do not wait for each other: fromAgent, which reads the agent, and
// run, which serves it at one daemon after the other. Between two daemons fromAgent waits, so that
// no line of the agent overtakes the replay.
type pipe struct {
	o      PipeOptions
	ctx    context.Context // ends with the pipe
	cancel context.CancelCauseFunc

	mu      sync.Mutex // guards the fields below; not held during a read or write
	changed sync.Cond  // signals a change of c or sending, and the end of ctx
	c       *Conn      // receives the agent's lines; nil between two daemons, and before begin
	sending bool       // fromAgent writes a line to a daemon, without the lock
	retired *Conn      // gets no more of the agent's lines, or none if begin has not run for it
	// a daemon that was found while Alone served the agent, until connect takes it
	next     *Conn
	ended    bool     // set once: the agent has closed its input
	journal  *journal // has every line of the agent before a daemon gets it
	handover []byte   // what all agents share, as a daemon has last said it; nil before that
	again    bool     // set once: a daemon has had the hello
	noticed  string   // the last notice; "" before that

	outMu   sync.Mutex // guards out, and is held for whole lines
	out     *bufio.Writer
	writing atomic.Bool // a write to the agent is under way
}

func (p *pipe) fromAgent() {
	in := bufio.NewReaderSize(p.o.In, 64<<10)
	for {
		line, _, err := readLine(in, maxToDaemon)
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
		if len(line) > 0 && !p.toDaemon(line) {
			return
		}
		if err == io.EOF {
			p.inputClosed()
			return
		} else if err != nil {
			p.cancel(fmt.Errorf("read from the agent: %w", err))
			return
		}
	}
}

// toDaemon waits for a daemon, writes a line of the agent into the journal, and passes it on. If
// the daemon dies meanwhile, the journal repeats the line to the next one. It reports false when
// the pipe has ended.
func (p *pipe) toDaemon(line []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.c == nil && p.ctx.Err() == nil {
		p.changed.Wait()
	}
	if p.ctx.Err() != nil {
		return false
	}
	if c := p.c; p.journal.fromAgent(line) {
		p.sending = true
		p.mu.Unlock()
		_, _ = c.Write(line) // if the daemon has died, fromDaemon notices
		p.mu.Lock()
		p.sending = false
		p.changed.Broadcast()
	}
	return true
}

// inputClosed is called when the agent has closed its input.
func (p *pipe) inputClosed() {
	time.AfterFunc(lastAnswers, func() { p.cancel(errEnded) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.c != nil {
		p.c.CloseWrite()
	}
}

// run serves the agent at one daemon after another.
func (p *pipe) run(ctx context.Context) error {
	for range retry.Attempts(ctx, redialFirst, redialLast) {
		c, err := p.connect(ctx)
		if err != nil {
			return err
		}
		if c.Daemon.Stays {
			p.o.Log.Warn(
				"the daemon goes on until no agent uses the browser that it has launched, and "+
					"then another one is started", "build", c.Daemon.Version)
		}
		p.mu.Lock()
		p.again = true
		p.mu.Unlock()
		if err := p.serve(ctx, c); err != nil {
			return err
		}
		if c.Daemon.PID == 0 && p.o.AloneEnded != nil && ctx.Err() == nil {
			p.o.AloneEnded()
		}
	}
	return context.Cause(ctx)
}

// connect finds or starts a daemon, or else calls Alone.
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
			alone := p.o.Alone(p.hello(), err)
			go p.lookAgain(ctx, alone)
			return alone, nil
		}
	}
	return nil, context.Cause(ctx)
}

func (p *pipe) hello() Hello {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.o.Hello
	h.Notices = p.o.Notice != nil
	h.Handover = p.handover
	if h.Launch != nil {
		launch := *h.Launch
		launch.Again, launch.Notice = p.again, p.noticed
		h.Launch = &launch
	}
	return h
}

// lookAgain moves an agent from Alone to a daemon, as soon as one can run. Open requests have
// retireTimeout, as at a daemon that retires. The time is short because this process may have the
// port that the daemon needs.
func (p *pipe) lookAgain(ctx context.Context, alone *Conn) {
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
		time.AfterFunc(retireTimeout, func() { alone.Close() })
		p.retire(alone)
		return
	}
}

// retire ends the output to a daemon, which still answers open requests. Later requests go to the
// next daemon. If begin has not run for c yet, begin ends the output.
func (p *pipe) retire(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired = c; p.c != c {
		return
	}
	for p.c = nil; p.sending; {
		p.changed.Wait()
	}
	c.CloseWrite()
}

// serve carries messages until the daemon is gone. It returns nil if the session goes on at another
// daemon.
func (p *pipe) serve(ctx context.Context, c *Conn) error {
	defer c.Close()
	p.mu.Lock()
	out := p.journal.replay()
	p.mu.Unlock()
	if err := p.toAgent(true, out.toAgent...); err != nil {
		return err
	}
	gone := make(chan struct{}) // closed with the lock held
	if c.Daemon.PID != 0 {
		go p.watch(ctx, c, gone)
	}
	// at the same time as the reading: the repeated lines may exceed the socket's buffer
	go func() {
		if _, err := c.Write(bytes.Join(out.toDaemon, nil)); err == nil {
			p.begin(c, gone)
		}
	}()
	err := p.fromDaemon(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(gone)
	p.c = nil
	if err == nil && p.ended && p.journal.settled() {
		err = errEnded
	}
	return err
}

// begin directs the agent's lines to a daemon that has the state of the one before, unless it has
// gone or must retire.
func (p *pipe) begin(c *Conn, gone <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-gone:
		return
	default:
	}
	switch {
	case p.ctx.Err() != nil:
		c.Close()
		return
	case p.retired == c:
		c.CloseWrite()
		return
	}
	if p.c = c; p.ended {
		c.CloseWrite()
	}
	p.changed.Broadcast()
}

// fromDaemon passes on the daemon's lines until the daemon ends. Its errors end the session.
func (p *pipe) fromDaemon(c *Conn) error {
	for {
		if !hasLine(c.In) { // lines that have come together go out together
			if err := p.toAgent(true); err != nil {
				return err
			}
		}
		line, over, err := readLine(c.In, maxToAgent)
		switch {
		case err != nil || over:
			return nil // half a line is dropped: the next daemon gets its request again
		case string(line) == beatLine:
			continue
		case string(line) == retireLine:
			go p.retire(c)
			continue
		case bytes.HasPrefix(line, []byte(handoverHead)):
			p.keep(line[len(handoverHead):])
			continue
		case bytes.HasPrefix(line, []byte(noticeHead)):
			notice, err := strconv.Unquote(string(bytes.TrimSpace(line[len(noticeHead):])))
			p.mu.Lock()
			isNew := err == nil && notice != p.noticed && p.o.Notice != nil
			if isNew {
				p.noticed = notice
			}
			p.mu.Unlock()
			if isNew {
				p.o.Notice(notice)
			}
			continue
		}
		p.mu.Lock()
		pass, out, err := p.journal.fromDaemon(line)
		p.mu.Unlock()
		if err != nil {
			return err
		}
		for _, more := range out.toDaemon {
			_, _ = c.Write(more) // if the daemon has died, the next read notices
		}
		if pass {
			_ = p.toAgent(false, line) // the flush returns the error
		}
		_ = p.toAgent(false, out.toAgent...)
	}
}

// hasLine reports whether a whole unread line has come.
func hasLine(in *bufio.Reader) bool {
	text, _ := in.Peek(in.Buffered())
	return bytes.IndexByte(text, '\n') >= 0
}

// keep keeps what all agents share for the next daemon, unless it is invalid.
func (p *pipe) keep(text []byte) {
	handover, err := base64.StdEncoding.AppendDecode(nil, bytes.TrimSpace(text))
	if err != nil || len(handover) > maxHandover {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handover = handover
}

// toAgent writes lines to the agent: now, or later with the next lines.
func (p *pipe) toAgent(now bool, lines ...[]byte) error {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	p.writing.Store(true)
	defer p.writing.Store(false)
	for _, line := range lines {
		p.out.Write(line) // Flush returns its error
	}
	if !now {
		return nil
	}
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write to the agent: %w", err)
	}
	return nil
}

const (
	// measureEvery is the interval at which silence is measured. A pause of this process counts for
	// at most twice as long.
	measureEvery = 100 * time.Millisecond
)

// A silence measures the time in which a daemon sends nothing, this process runs, and its agent
// reads.
type silence struct {
	last time.Time
	long time.Duration
	had  time.Duration // see enough
}

// measure is called every measureEvery. heard breaks the silence. It reports whether the silence is
// too long.
func (s *silence) measure(now time.Time, heard bool) bool {
	s.long += min(now.Sub(s.last), 2*measureEvery)
	s.last = now
	if heard {
		s.long, s.had = 0, 0
	}
	return s.long >= maxSilence
}

// watch ends a daemon that hangs, so that another can be started. If a silent daemon answers a
// probe, watch only closes the connection. If another daemon answers, the silent one hung while it
// retired. It is ended too: it may have the port.
func (p *pipe) watch(ctx context.Context, c *Conn, gone <-chan struct{}) {
	t := time.NewTicker(measureEvery)
	defer t.Stop()
	s := silence{last: time.Now()}
	for {
		select {
		case <-gone:
			return
		case <-t.C:
		}
		// While the agent does not read, this process cannot read from the daemon.
		if !s.measure(time.Now(), c.heard.Swap(false) || p.writing.Load()) {
			continue
		}
		var answers int
		s.had += c.atWork(func() { answers = p.probe(ctx, c.Daemon.PID) })
		works := answers == c.Daemon.PID
		if works {
			time.Sleep(measureEvery) // until what it has sent beside its answer is read
		}
		switch {
		case c.heard.Load():
			continue
		case works:
			p.o.Log.Warn("the daemon works, and this connection to it does not: another is made")
			c.Close()
			return
		case s.had < enough:
			continue
		}
		s.long, s.had = 0, 0
		if err := endPeer(c.Conn); err != nil {
			p.o.Log.Warn("the daemon is silent, and is left alone", "reason", err)
		} else {
			p.o.Log.Warn("the daemon hung, and was ended")
		}
		if answers != 0 {
			c.Close()
			return
		}
	}
}

// probe returns the pid of the daemon that answers on a new connection; 0 if none does. The daemon
// with this pid has all of probeTimeout.
func (p *pipe) probe(ctx context.Context, pid int) (answers int) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	hello := p.o.Hello
	hello.As = AsProbe
	if c, err := p.o.Probe(ctx, hello); err == nil {
		c.Close()
		answers = c.Daemon.PID
	}
	if answers != pid {
		<-ctx.Done()
	}
	return answers
}
