//go:build !js

package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
)

// Options say how Launch runs a browser.
type Options struct {
	// Hub is what userdir.Open was given.
	Hub string
	// Window shows one; else the browser is headless.
	Window bool
	// Open are the URLs of the first tabs; none means about:blank.
	Open []string
	// Flags are the browser's, besides ours.
	Flags []string
	// DebugPort is the TCP port where the browser listens besides, for every process of the machine. "0" is one that
	// the system chooses, "" none.
	DebugPort string
	// Inject is told to all gateways: whether pages that have no page layer are to get one.
	Inject bool
	// Command runs Main. Default: this program, with the argument keeper.
	Command []string
	// Log receives what happens. Default none.
	Log *slog.Logger
}

var (
	// ErrGone is what Join and Dial fail with if there is no such keeper, or none any more.
	ErrGone = errors.New("the launched browser is gone")
	// ErrName is what Join fails with for what cannot be a keeper's name.
	ErrName = errors.New("not the name of a launched browser")
)

// dialTime is how long a keeper may take to answer. It takes 0.2 ms.
const dialTime = 5 * time.Second

// A Hold is a gateway's hold on a launched browser, which lives while somebody has one.
type Hold struct {
	// Name is the keeper's. "" if nobody else can find it.
	Name string
	// URL is where the browser listens besides. Only who has launched it is told.
	URL string
	// Inject is that of Options.
	Inject bool

	dir *userdir.Dir
	log *slog.Logger
	to  io.WriteCloser

	once  sync.Once
	done  chan struct{}
	gone  chan struct{} // closed when the keeper's end of the connection is
	how   Ending
	mu    sync.Mutex
	alone net.Conn // without dir: the one client's connection, until it is used
}

// Launch gives the browser that gateways have launched which share dir, or launches one, and says which. Of several
// that do so at the same time, one launches. Where dir is nil, or cannot be used, nobody else can use the browser,
// which Log is told. ctx bounds the launch alone.
func Launch(ctx context.Context, dir *userdir.Dir, o Options) (h *Hold, launched bool, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if dir != nil {
		lock, err := dir.Lock(ctx, "launch")
		if err == nil {
			defer lock.Remove()
			h = joinAny(ctx, dir, o.Log)
		} else if ctx.Err() != nil {
			return nil, false, err
		} else {
			o.Log.Warn(aloneText, "error", err)
			dir = nil
		}
	}
	if h != nil {
		return h, false, nil
	}
	h, err = start(ctx, dir, o)
	return h, true, err
}

const aloneText = "the launched browser is of no use to other agents: the directory that they share cannot be used"

// joinAny takes hold of a browser that runs, if there is one, and removes the sockets that killed keepers have left:
// whoever starts one has the lock that we have.
func joinAny(ctx context.Context, dir *userdir.Dir, log *slog.Logger) *Hold {
	names, err := Names(dir)
	if err != nil {
		log.Warn("look for launched browsers", "error", err)
	}
	for _, name := range names {
		h, err := Join(ctx, dir, name, log)
		if err == nil {
			return h
		}
		log.Debug("a launched browser is not joined", "name", name, "error", err)
		if lock, err := dir.TryLock(name + ".lock"); err == nil {
			dir.Remove(name) // where it has not gone already
			lock.Remove()
		}
	}
	return nil
}

// Names lists the keepers of those who share dir. Some of them may be dead.
func Names(dir *userdir.Dir) (names []string, err error) {
	files, err := dir.Names()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if name := strings.TrimSuffix(file, ".lock"); ValidName(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// start starts a keeper.
func start(ctx context.Context, dir *userdir.Dir, o Options) (*Hold, error) {
	command := o.Command
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program, which is to keep the browser: %w", err)
		}
		command = []string{self, "keeper"}
	}
	cmd := exec.Command(command[0], command[1:]...)
	detach(cmd)
	h := &Hold{Inject: o.Inject, dir: dir, log: o.Log, done: make(chan struct{}), gone: make(chan struct{})}
	ours, theirs, err := connect(cmd)
	if err != nil {
		return nil, fmt.Errorf("connect to the process that keeps the browser: %w", err)
	}
	defer theirs.Close()
	h.alone = ours
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the process that keeps the browser: %w", err)
	}
	h.to = in
	said := newFrames(out, maxFirst)
	answered := make(chan error, 1)
	go func() {
		defer cmd.Wait()
		defer h.shut()
		err := h.first(said, options{
			Version: version, Hub: o.Hub, Window: o.Window, Open: o.Open, Flags: o.Flags, DebugPort: o.DebugPort,
			Inject: o.Inject, Alone: dir == nil,
		})
		answered <- err
		if err == nil {
			h.hear(said)
		}
	}()
	select {
	case err = <-answered:
	case <-ctx.Done():
		err = fmt.Errorf("launch a browser: %w", context.Cause(ctx))
	}
	if err != nil {
		h.to.Close() // it ends with what it has begun
		return nil, err
	}
	return h, nil
}

// first tells a keeper what to launch, and takes the answer.
func (h *Hold) first(said *frames, o options) error {
	if err := writeFrame(h.to, o); err != nil {
		return fmt.Errorf("tell the process that keeps the browser what to launch: %w", err)
	}
	var s started
	if err := readFrame(said, &s); err != nil {
		return fmt.Errorf("the process that keeps the browser has ended and said nothing: %w", err)
	}
	if s.Failed != "" {
		return errors.New(s.Failed)
	}
	h.Name, h.URL = s.Name, s.URL
	if h.Name == "" {
		h.dir = nil
	} else if h.alone != nil {
		h.alone.Close()
	}
	if s.Alone != "" {
		h.log.Warn(aloneText, "error", s.Alone)
	}
	return nil
}

// Join takes hold of a browser that another gateway has launched. It fails with ErrName, ErrGone, or a sentence.
func Join(ctx context.Context, dir *userdir.Dir, name string, log *slog.Logger) (*Hold, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	conn, said, w, err := dial(ctx, dir, name, asGateway)
	if err != nil {
		return nil, err
	}
	h := &Hold{
		Name: name, Inject: w.Inject, dir: dir, log: log, to: conn, done: make(chan struct{}),
		gone: make(chan struct{}),
	}
	go func() {
		defer h.shut()
		h.hear(said)
	}()
	return h, nil
}

// dial connects to a keeper.
func dial(ctx context.Context, dir *userdir.Dir, name, as string) (net.Conn, *frames, welcome, error) {
	var w welcome
	if !ValidName(name) {
		return nil, nil, w, fmt.Errorf("%w: %.40q", ErrName, name)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := dir.Dial(ctx, name)
	if errors.Is(err, userdir.ErrNobody) {
		return nil, nil, w, ErrGone
	}
	if err != nil {
		return nil, nil, w, fmt.Errorf("reach the launched browser: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	said := newFrames(conn, maxFirst)
	if err = writeFrame(conn, hello{version, as}); err == nil {
		err = readFrame(said, &w)
	}
	switch {
	case !stop():
		err = fmt.Errorf("reach the launched browser: %w", context.Cause(ctx))
	case err != nil:
		err = ErrGone // while we came
	case w.Refused != "":
		err = errors.New(w.Refused)
	case w.Keeper != version:
		err = ErrGone // it says how it has ended
	}
	if err != nil {
		conn.Close()
		return nil, nil, w, err
	}
	return conn, said, w, nil
}

// hear takes what a keeper says, until its end.
func (h *Hold) hear(said *frames) {
	for {
		var n note
		if readFrame(said, &n) != nil {
			return
		}
		if n.Says != "" {
			h.log.Warn("of a launched browser", "name", h.Name, "says", n.Says)
		}
		if n.Ended != "" {
			h.end(n.Ended)
		}
	}
}

func (h *Hold) end(how Ending) {
	h.once.Do(func() {
		h.how = how
		close(h.done)
	})
}

// shut ends a hold whose connection has ended. A keeper that says nothing before has been killed.
func (h *Hold) shut() {
	h.end(Crashed)
	h.to.Close()
	close(h.gone)
}

// Done is closed when the browser has ended.
func (h *Hold) Done() <-chan struct{} { return h.done }

// How says how it has ended, behind Done.
func (h *Hold) How() Ending { return h.how }

// Leave gives the hold up. If it was the last one, the browser ends, and Leave returns when nothing is left of it, or
// ctx ends.
func (h *Hold) Leave(ctx context.Context) {
	writeFrame(h.to, leave{true})
	select {
	case <-h.gone:
	case <-ctx.Done():
		h.to.Close()
	}
}

// Dial connects to the browser as a client that speaks the Chrome DevTools Protocol, and has it to itself: whatever
// others do, or did before, is not seen, but in the pages. It fails with ErrGone if the browser has ended.
func (h *Hold) Dial(ctx context.Context) (*Conn, error) {
	if h.dir != nil {
		return Dial(ctx, h.dir, h.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alone == nil {
		return nil, ErrGone
	}
	conn := h.alone
	h.alone = nil
	return newConn(conn, newFrames(conn, maxFirst)), nil
}

// Dial is Hold.Dial for who has none.
func Dial(ctx context.Context, dir *userdir.Dir, name string) (*Conn, error) {
	conn, said, _, err := dial(ctx, dir, name, asClient)
	if err != nil {
		return nil, err
	}
	return newConn(conn, said), nil
}
