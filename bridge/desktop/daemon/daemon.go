// Package daemon gives a user one process that has the pages, and each agent a pipe to it.
//
// An agent program starts `pagewire serve`, which is a Pipe: it connects to the daemon's Unix
// socket in the user's directory (package userdir), or starts the daemon first. Each end sends one
// line, its Hello. Then the agent's messages pass unchanged in both directions. Between them the
// daemon sends a heartbeat twice a second, and what all agents share. The pipe does not read that,
// but keeps it for the next daemon.
//
// When the daemon dies, hangs or retires for a newer build, the pipe goes on with the next one. It
// repeats the handshake, the log level, the subscriptions, and the requests without an answer. Tool
// calls get an error instead, since they may have run (journal.go). A pipe ends a daemon that hangs
// only after a probe on a new connection, not while it waits for a processor, and only the process
// that the kernel names (pipe.go). If no daemon can run, the same code serves the agent within its
// own process, and looks for a daemon again later.
//
// The package never runs, opens or writes to anything that a hello names, and deletes only files
// that it has made. It sends no secret: the kernel confirms that both ends of the socket are this
// user's.
package daemon

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/mod/semver"

	"github.com/pagewire/pagewire/bridge/internal/retry"
	"github.com/pagewire/pagewire/bridge/internal/userdir"
)

const (
	// Linger is the time that a daemon waits for another agent after its last, firstLinger the time
	// for its first.
	Linger, firstLinger = 300 * time.Millisecond, 3 * time.Second
	// acceptFirst and acceptLast are the first and the longest pause after a failed accept.
	acceptFirst, acceptLast = 5 * time.Millisecond, time.Second
	// retireTimeout bounds the time in which a daemon that retires answers open requests.
	retireTimeout = time.Second
)

// Options configure a daemon.
type Options struct {
	// Hub is the address at which pages find the daemon. Processes with the same hub share a
	// daemon.
	Hub     string
	Version string
	// Foreground is the address of a daemon that a person has started. "" is a daemon on demand,
	// which retires for it.
	Foreground string
	// Serve serves an agent until in or ctx ends. It calls work with the agent's session.
	Serve func(ctx context.Context, h Hello, in io.Reader, out io.Writer, work func(Session)) error
	// Lacks reports whether the daemon cannot do what an agent asks for, as one of an older build.
	// Keeps reports whether agents use what would be lost with the daemon: until it does not, no
	// daemon on demand retires for another. Each may be nil.
	Lacks func(Hello) bool
	Keeps func() bool
	// Local serves HTTP to processes of this user. May be nil.
	Local http.Handler
	// Busy reports whether the daemon is needed for more than agents' pipes. It does not return if
	// the gateway hangs.
	Busy func() bool
	// Started is called when the daemon listens.
	Started func()
	Log     *slog.Logger
}

// A Session is an agent's session.
type Session interface {
	// Handover is what all agents share, for the next daemon. HandoverVersion counts its changes.
	Handover() []byte
	HandoverVersion() uint64
	// Notice is a sentence about the agent's browser for people, or "", if that is known.
	Notice() (sentence string, known bool)
}

// Run runs the daemon until ctx ends, the last agent has gone, or another daemon takes its place.
func Run(ctx context.Context, o Options) error {
	// The process that has started this one may have gone, or waits no longer: Started then writes to
	// a closed pipe. SIGPIPE is not ignored, since children would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	dir, err := userdir.Open(o.Hub)
	if err != nil {
		return err
	}
	defer dir.Close()
	l, err := dir.Listen(socketName)
	if err != nil {
		return err
	}
	defer removeStartLock(dir)
	defer l.Remove()
	d := &daemon{o: o, l: l, local: newInbox(l.Addr()), agents: map[*beating]bool{}}
	d.linger = time.AfterFunc(firstLinger, d.idle)
	if o.Foreground != "" {
		d.linger.Stop()
	}
	var all sync.WaitGroup
	server := &http.Server{Handler: o.Local, ReadHeaderTimeout: helloTimeout,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)}
	all.Go(func() { server.Serve(d.local) })
	stop := context.AfterFunc(ctx, d.retire)
	defer stop()
	o.Started()
	// A failed accept ends nothing: without descriptors (EMFILE) the next one waits until
	// connections have ended.
	for range retry.Attempts(ctx, acceptFirst, acceptLast) {
		c, err := l.Accept()
		for ; err == nil; c, err = l.Accept() {
			conn := newConn(c)
			all.Go(func() { d.serve(conn) })
		}
		if d.retires() {
			break
		}
		o.Log.Warn("no process can connect for a moment", "error", err)
	}
	defer time.AfterFunc(retireTimeout, d.closeAgents).Stop()
	server.Close()
	all.Wait()
	return nil
}

// removeStartLock removes the lock of a process that was killed while it was to start a daemon.
func removeStartLock(dir *userdir.Dir) {
	if lock, err := dir.TryLock(startLock); err == nil {
		lock.Remove()
	}
}

// A daemon is the process that all agents of a user share.
type daemon struct {
	o     Options
	l     *userdir.Listener
	local *inbox
	// calls idle; it is stopped while an agent needs a daemon that is not outdated
	linger *time.Timer

	mu       sync.Mutex // guards the fields below; Busy and Keeps are called without it
	retiring bool       // set once: it takes no more agents, and does not listen
	outdated bool       // set once: it retires as soon as Keeps allows it
	// agents are those that were accepted and have not left; true for those that keep the daemon
	// running.
	agents map[*beating]bool
}

// retire sends all agents to the next daemon.
func (d *daemon) retire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.retiring {
		return
	}
	d.retiring = true
	d.l.Remove() // now another daemon can begin
	for b := range d.agents {
		go b.writeLine(retireLine)
	}
}

// closeAgents closes the remaining connections. This ends no listen: the pipes repeat listens at
// the next daemon.
func (d *daemon) closeAgents() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for b := range d.agents {
		b.c.Close()
	}
}

func (d *daemon) retires() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.retiring
}

// idle retires a daemon that is not needed, or outdated.
func (d *daemon) idle() {
	busy, keeps := d.o.Busy(), d.keeps()
	d.mu.Lock()
	needed, outdated := d.needed(), d.outdated
	d.mu.Unlock()
	switch {
	case outdated && !keeps, !needed && !busy: // an agent that comes now starts another daemon
		d.retire()
	case outdated, !needed:
		d.linger.Reset(Linger)
	}
}

func (d *daemon) keeps() bool { return d.o.Keeps != nil && d.o.Keeps() }

// enter registers an agent, and reports whether the daemon takes it.
func (d *daemon) enter(b *beating, stays bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.retiring {
		return false
	}
	if d.agents[b] = stays; stays && !d.outdated {
		d.linger.Stop()
	}
	return true
}

// needed reports whether an agent keeps the daemon running. mu must be held.
func (d *daemon) needed() bool {
	for _, stays := range d.agents {
		if stays {
			return true
		}
	}
	return false
}

func (d *daemon) leave(b *beating) {
	d.mu.Lock()
	defer d.mu.Unlock()
	stayed := d.agents[b]
	delete(d.agents, b)
	if stayed && !d.needed() && d.o.Foreground == "" {
		d.linger.Reset(Linger)
	}
}

func (d *daemon) serve(c *Conn) {
	c.SetReadDeadline(time.Now().Add(helloTimeout))
	h, err := readHello(c.In)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			d.o.Log.Warn("refused a process at the daemon's socket", "reason", err)
		}
		c.Close()
		return
	}
	c.SetReadDeadline(time.Time{})
	b := &beating{c: c, notices: h.Notices}
	b.mu.Lock() // the hello goes before the line of a retire at this moment
	mine := d.answer(h, b)
	err = writeHello(c, mine)
	b.mu.Unlock()
	defer d.leave(b)
	if err != nil || mine.Error != "" || mine.Retires || mine.Outdated || h.As == AsProbe {
		c.Close()
		return
	}
	if h.As == AsHTTP {
		d.local.put(c)
		return
	}
	defer c.Close()
	defer b.stop()
	// Not Run's ctx: while the daemon retires, a session goes on until its requests are answered.
	if err := d.o.Serve(context.Background(), h, b, b, b.begin); err != nil {
		d.o.Log.Info("an agent's session has ended", "reason", err)
	}
}

// answer returns the daemon's hello to a client. It registers an agent that it accepts.
func (d *daemon) answer(h Hello, b *beating) (mine Hello) {
	mine = Hello{Version: d.o.Version, PID: os.Getpid(),
		Flags: Flags{NoPageTools: h.Flags.NoPageTools}}
	isOnDemand := d.o.Foreground == ""
	switch {
	case h.Protocol != Protocol:
		mine.Error = otherProtocol(Hello{Protocol: Protocol, Version: d.o.Version}, h)
	case h.As == AsSuccessor && !isOnDemand:
		mine.Error = fmt.Sprintf(
			"pagewire serve --http runs already at %s (process %d): end that one first, or choose "+
				"another --hub", d.o.Foreground, os.Getpid())
	case h.As == AsSuccessor && d.keeps():
		mine.Error = fmt.Sprintf(
			"agents use the browser that process %d has launched, which would "+
				"end with it: end them first, or choose another --hub", os.Getpid())
	case h.As == AsSuccessor:
		d.retire()
		mine.Retires = true
	case h.As == AsAgent && isOnDemand && d.isOutdated(h):
		if mine.Outdated = !d.keeps(); !mine.Outdated {
			mine.Retires, mine.Stays = !d.enter(b, true), true
			d.retireLater()
		}
	case h.As == AsAgent, h.As == AsCommand:
		mine.Retires = !d.enter(b, h.As == AsAgent)
	case h.As == AsProbe:
		d.o.Busy() // in a gateway that hangs it does not return
	case h.As == AsHTTP:
		mine.Retires = d.retires()
	default:
		mine.Error = fmt.Sprintf("this pagewire serves nobody as %.40q", h.As)
	}
	return mine
}

// isOutdated reports whether an agent needs another daemon.
func (d *daemon) isOutdated(h Hello) bool {
	return semver.Compare("v"+h.Version, "v"+d.o.Version) > 0 || d.o.Lacks != nil && d.o.Lacks(h)
}

// retireLater makes the daemon retire as soon as Keeps allows it.
func (d *daemon) retireLater() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outdated = true
	d.linger.Reset(Linger)
}

// A beating is the daemon's output to a pipe: the agent's messages, and between them heartbeats and
// what all agents share.
type beating struct {
	c       *Conn
	session Session // set by begin
	notices bool    // the pipe takes notices

	mu      sync.Mutex // held while a line is written
	within  bool       // a long line has been written in part
	version uint64     // the version of Handover that the pipe has
	quit    chan struct{}
}

// begin starts the heartbeat.
func (b *beating) begin(s Session) {
	b.session, b.quit = s, make(chan struct{})
	go func() {
		t := time.NewTicker(beatEvery)
		defer t.Stop()
		said := "\n" // no notice: the pipe may have one of the daemon before
		for {
			line := beatLine
			// It takes the gateway's lock: a gateway that hangs has no heartbeat.
			if notice, known := b.session.Notice(); b.notices && known && notice != said {
				said, line = notice, noticeHead+strconv.Quote(notice)+"\n"
			}
			if b.writeLine(line) != nil {
				return
			}
			select {
			case <-b.quit:
				return
			case <-t.C:
			}
		}
	}()
}

// Read reads the agent's messages. At their end it tells a pipe that still reads from one that is
// gone: nobody waits for what that has asked for.
func (b *beating) Read(to []byte) (n int, err error) {
	n, err = b.c.In.Read(to)
	if err == io.EOF && b.writeLine(beatLine) != nil {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *beating) stop() {
	if b.quit != nil {
		close(b.quit)
	}
}

// Write writes a message to the agent. No other line interrupts a long message, which comes in
// several calls. A changed state of all agents goes before the message: the next daemon must know
// every name that the agent knows.
func (b *beating) Write(p []byte) (n int, err error) {
	if !b.within { // within a message this goroutine has the lock already
		b.mu.Lock()
		err = b.writeHandover()
	}
	if err == nil {
		n, err = b.c.Write(p)
	}
	if b.within = err == nil && !bytes.HasSuffix(p, []byte("\n")); !b.within {
		b.mu.Unlock()
	}
	return n, err
}

// writeLine writes a line that is not one of the agent's messages.
func (b *beating) writeLine(line string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := io.WriteString(b.c, line)
	return err
}

// writeHandover writes what all agents share if the pipe has an older version. mu must be held.
func (b *beating) writeHandover() error {
	if b.session == nil {
		return nil
	}
	version := b.session.HandoverVersion()
	if version == b.version {
		return nil
	}
	handover := b.session.Handover()
	b.version = version
	_, err := b.c.Write(append(base64.StdEncoding.AppendEncode([]byte(handoverHead), handover),
		'\n'))
	return err
}

// An inbox is a listener for connections that another listener has accepted.
type inbox struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newInbox(addr net.Addr) *inbox {
	return &inbox{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *inbox) put(c *Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		c.Close()
	}
}

func (l *inbox) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *inbox) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *inbox) Addr() net.Addr { return l.addr }

// Alone serves an agent in this process, as a daemon would over its socket, until the Conn is
// closed or ctx ends.
func Alone(ctx context.Context, o Options, h Hello) *Conn {
	pipe, its := memoryConns()
	go func() {
		defer its.Close()
		b := &beating{c: its, notices: h.Notices}
		defer b.stop()
		if err := o.Serve(ctx, h, its.In, b, b.begin); err != nil && ctx.Err() == nil {
			o.Log.Info("the agent's session has ended", "reason", err)
		}
	}()
	return pipe
}

// memoryConns returns the ends of a connection within this process: the pipe's and the daemon's.
func memoryConns() (pipe, daemon *Conn) {
	fromAgent, toDaemon := io.Pipe()
	fromDaemon, toAgent := io.Pipe()
	return newConn(memory{r: fromDaemon, w: toDaemon}), newConn(memory{r: fromAgent, w: toAgent})
}

// A memory connection is one end of two pipes within this process. It has no addresses and no
// deadlines.
type memory struct {
	net.Conn
	r *io.PipeReader
	w *io.PipeWriter
}

func (m memory) Read(p []byte) (int, error)  { return m.r.Read(p) }
func (m memory) Write(p []byte) (int, error) { return m.w.Write(p) }
func (m memory) CloseWrite() error           { return m.w.Close() }

func (m memory) Close() error {
	m.r.Close()
	return m.w.Close()
}
