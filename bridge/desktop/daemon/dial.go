package daemon

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/pagewire/pagewire/bridge/internal/retry"
	"github.com/pagewire/pagewire/bridge/internal/userdir"
)

// ErrNone is the error of Dial if no daemon runs and Dial has not started one.
var ErrNone = errors.New("no pagewire serve is running")

// ErrSilent is the error of Dial and Messages if the daemon does not answer.
var ErrSilent = errors.New("the daemon does not answer")

// ErrOther is the error of Dial if the daemon has another protocol, or refuses this process.
var ErrOther = errors.New("the daemon does not serve this process")

// ErrRuns is the error of Run if another daemon runs.
var ErrRuns = userdir.ErrHeld

const (
	socketName, startLock = "daemon", "start"
	// helloTimeout bounds the time for the other end's hello. It is long because that process may
	// be busy.
	helloTimeout = 10 * time.Second
	// startTimeout bounds the start of a daemon, which takes 10 ms, and up to a second on a busy
	// machine.
	startTimeout = 5 * time.Second
	// retireEvery is the pause between two attempts to connect while a daemon retires.
	retireEvery = 5 * time.Millisecond
)

// A Conn is a connection between a client and a daemon. All reads go through In, whose buffer may
// have more than a hello.
type Conn struct {
	net.Conn
	In     *bufio.Reader
	Daemon Hello       // the daemon's, at a client; without PID if Alone serves
	heard  atomic.Bool // data has come since this was last cleared
	// waiting begins to measure how long this process, or the other one, waits for a processor
	waiting func() (since func() time.Duration)
}

func newConn(c net.Conn) *Conn {
	conn := &Conn{Conn: c, waiting: func() func() time.Duration { return waiting(c) }}
	conn.In = bufio.NewReaderSize(heardReader{conn}, 64<<10)
	return conn
}

func (c *Conn) Read(p []byte) (int, error) { return c.In.Read(p) }

// A heardReader reads from the connection itself, and records that data has come.
type heardReader struct{ *Conn }

func (r heardReader) Read(p []byte) (n int, err error) {
	n, err = r.Conn.Conn.Read(p)
	r.heard.Store(true)
	return n, err
}

// Messages returns the daemon's MCP messages, for a command, until the daemon retires (io.EOF) or
// hangs (ErrSilent).
func (c *Conn) Messages() io.ReadCloser { return &messages{c: c} }

type messages struct {
	c    *Conn
	rest []byte
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		m.c.SetReadDeadline(time.Now().Add(maxSilence + probeTimeout))
		line, over, err := readLine(m.c.In, maxToAgent)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return 0, ErrSilent
		case err != nil:
			return 0, err
		case over || string(line) == retireLine:
			return 0, io.EOF
		case line[0] != '!':
			m.rest = line
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (m *messages) Close() error { return m.c.Close() }

// CloseWrite ends the output. Answers to earlier messages still come.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// A Dialer connects to this user's daemon for a hub.
type Dialer struct {
	Hub string
	// Start is the command line that runs a daemon. nil starts none.
	Start []string
}

// errOutdated means that the daemon is of an older build than the client, or cannot do what its
// agent asks for.
var errOutdated = errors.New("the daemon is of an older build")

// Dial connects to the daemon. It starts one if none runs, or if the running one is outdated. Of
// several processes at the same time, only one starts it. A command waits while another process
// starts one. Dial fails with ErrNone, ErrOther, ErrSilent, ctx's error, or a sentence.
func (d Dialer) Dial(ctx context.Context, mine Hello) (*Conn, error) {
	dir, err := userdir.Open(d.Hub)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	c, err := greet(ctx, dir, mine)
	if mine.As == AsCommand && errors.Is(err, ErrNone) {
		return greetStarted(ctx, dir, mine)
	}
	if d.Start == nil || !errors.Is(err, ErrNone) && !errors.Is(err, errOutdated) {
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	lock, err := dir.Lock(ctx, startLock)
	if err != nil {
		return nil, fmt.Errorf("start a daemon: %w", err)
	}
	defer lock.Remove()
	if c, err = greet(ctx, dir, mine); errors.Is(err, errOutdated) {
		c, err = greet(ctx, dir, Hello{Version: mine.Version, As: AsSuccessor})
		if errors.Is(err, ErrOther) { // an agent has just begun to use its browser
			c, err = greet(ctx, dir, mine)
		}
	}
	if !errors.Is(err, ErrNone) {
		return c, err
	}
	if err := start(ctx, d.Start); err != nil {
		return nil, fmt.Errorf("start a daemon: %w", err)
	}
	return greet(ctx, dir, mine)
}

// Succeed makes the running daemon retire. Until release is called no other is started. It fails
// with ErrOther if a person has started the daemon.
func Succeed(ctx context.Context, hub, version string) (release func(), err error) {
	dir, err := userdir.Open(hub)
	if err != nil {
		return nil, err
	}
	lock, err := dir.Lock(ctx, startLock)
	if err != nil {
		dir.Close()
		return nil, err
	}
	release = sync.OnceFunc(func() {
		lock.Remove()
		dir.Close()
	})
	if _, err = greet(ctx, dir, Hello{Version: version, As: AsSuccessor}); !errors.Is(err,
		ErrNone) {
		release()
		return nil, err
	}
	return release, nil
}

// Clear removes the files of a killed daemon, unless another one runs or is being started.
func Clear(hub string) {
	dir, err := userdir.Open(hub)
	if err != nil {
		return
	}
	defer dir.Close()
	lock, err := dir.TryLock(startLock)
	if err != nil {
		return
	}
	defer lock.Remove()
	if l, err := dir.Listen(socketName); err == nil {
		l.Remove()
	}
}

// greet connects and exchanges hellos. While the daemon retires, it connects again.
func greet(ctx context.Context, dir *userdir.Dir, mine Hello) (*Conn, error) {
	for range retry.Attempts(ctx, retireEvery, retireEvery) {
		c, err := greetOnce(ctx, dir, mine)
		if err != nil {
			return nil, err
		}
		if !c.Daemon.Retires {
			return c, nil
		}
		c.Close()
	}
	return nil, context.Cause(ctx)
}

// greetStarted is greet for a command that has found no daemon: another process may be replacing it
// at this moment.
func greetStarted(ctx context.Context, dir *userdir.Dir, mine Hello) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	lock, err := dir.Lock(ctx, startLock)
	if errors.Is(err, userdir.ErrHeld) {
		return nil,
			fmt.Errorf("another process is starting a daemon, which does not listen yet: %w", err)
	} else if err == nil {
		lock.Remove()
	}
	return greet(ctx, dir, mine)
}

func greetOnce(ctx context.Context, dir *userdir.Dir, mine Hello) (*Conn, error) {
	raw, err := dir.Dial(ctx, socketName)
	if errors.Is(err, userdir.ErrNobody) {
		return nil, ErrNone
	} else if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c := newConn(raw)
	raw.SetReadDeadline(time.Now().Add(helloTimeout))
	if err = writeHello(raw, mine); err == nil {
		c.Daemon, err = readHello(c.In)
	}
	switch {
	case err != nil:
		defer raw.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, endSilent(ctx, dir, mine, c)
		} else if errors.Is(err, errNotHello) {
			return nil, fmt.Errorf("%w: %w", ErrOther, err)
		}
		return nil, ErrNone // the daemon has just ended
	case c.Daemon.Protocol != Protocol:
		err = fmt.Errorf("%w: %s", ErrOther,
			otherProtocol(c.Daemon, Hello{Protocol: Protocol, Version: mine.Version}))
	case c.Daemon.Outdated, mine.Flags.NoPageTools && !c.Daemon.Flags.NoPageTools:
		err = errOutdated
	case c.Daemon.Error != "":
		err = fmt.Errorf("%w: %s", ErrOther, c.Daemon.Error)
	}
	if err != nil {
		raw.Close()
		return nil, err
	}
	raw.SetReadDeadline(time.Time{})
	return c, nil
}

// endSilent ends a daemon that answers neither an agent nor a probe, and returns ErrNone. Only
// other pipes would notice the silence, and there may be none.
func endSilent(ctx context.Context, dir *userdir.Dir, mine Hello, c *Conn) error {
	if mine.As != AsAgent {
		return ErrSilent
	}
	for had := time.Duration(0); had < enough; {
		var probe *Conn
		var err error
		had += c.atWork(func() {
			limited, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			probe, err = greetOnce(limited, dir, Hello{Version: mine.Version, As: AsProbe})
		})
		switch {
		case err == nil:
			probe.Close()
			return ErrSilent
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
	if err := endPeer(c.Conn); err != nil {
		return fmt.Errorf("%w, and is left alone: %w", ErrSilent, err)
	}
	c.SetReadDeadline(time.Now().Add(helloTimeout))
	io.Copy(io.Discard, c.Conn) // until the daemon has ended
	return ErrNone
}

// enough is how long a daemon and this process must have been able to work while probes failed. On
// a busy machine a daemon that works waits for a processor for seconds.
const enough = probeTimeout / 2

// atWork returns how much of the time of a probe neither the daemon nor this process has waited for
// a processor.
func (c *Conn) atWork(probe func()) time.Duration {
	began, waited := time.Now(), c.waiting()
	probe()
	return max(0, time.Since(began)-waited())
}

// environment lists the variables that a daemon inherits from the first agent: for the paths of
// this user's files, for Pagewire and Go, and for the browser that it launches: its display,
// language and proxies. Of secrets it has only those of a proxy's URL, as each program that is
// started here has.
var environment = []string{"HOME", "USER", "PATH", "TMPDIR", "LANG", "XDG_CONFIG_HOME",
	"XDG_CACHE_HOME",
	"XDG_RUNTIME_DIR", "PAGEWIRE_TOKEN_FILE", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK",
	"GOCOVERDIR",
	"SystemRoot", "SystemDrive", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP",
	"PAGEWIRE_BROWSER", "ProgramFiles", "ProgramFiles(x86)", "DISPLAY", "WAYLAND_DISPLAY",
	"XAUTHORITY", "XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP", "DBUS_SESSION_BUS_ADDRESS", "TZ",
	"LANGUAGE", "LC_ALL", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
	"NO_PROXY"}

// A daemon writes one of three to its standard output: started when it listens, runs if it ends
// because another daemon runs, or the reason why it does not listen.
const started, runs = "started\n", "runs\n"

// SayStarted tells the process that started this daemon that it listens.
func SayStarted(out io.Writer) {
	io.WriteString(out, started)
	if c, ok := out.(io.Closer); ok {
		c.Close()
	}
}

// SayFailed tells the process that started this daemon why it ends.
func SayFailed(out io.Writer, err error) {
	if errors.Is(err, ErrRuns) {
		io.WriteString(out, runs)
		return
	}
	fmt.Fprint(out, err)
}

// start runs a daemon, and returns when it listens. The daemon outlives this process.
func start(ctx context.Context, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(environment, name)
	})
	detach(cmd)
	said, its, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	cmd.Stdout = its
	err = cmd.Start()
	its.Close()
	if err != nil {
		return err
	}
	go cmd.Wait() // the daemon's log has the reason of its end
	stop := context.AfterFunc(ctx, func() { said.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	text, err := io.ReadAll(io.LimitReader(said, 4<<10))
	switch {
	case string(text) == started:
		return nil
	case string(text) == runs: // the kernel frees a killed daemon's lock a moment after its socket
		return ErrNone
	case ctx.Err() != nil:
		return errors.New("it does not listen in time")
	case err != nil:
		return err
	}
	return fmt.Errorf("it ended: %s",
		cmp.Or(strings.TrimSpace(string(text)), "its log may say why"))
}

// Command returns a command line of this program with other arguments. If its file is gone, PATH
// must have pagewire.
func Command(args ...string) ([]string, error) {
	path, err := os.Executable()
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		if path, err = exec.LookPath("pagewire"); err != nil {
			return nil,
				fmt.Errorf("the program's own file is gone, and there is none on PATH: %w", err)
		}
	}
	return append([]string{path}, args...), nil
}

// listenTime bounds the time from a socket's name to its listening: below 1 ms, if the machine is
// not busy.
const listenTime = 100 * time.Millisecond

// Wait returns nil when a daemon listens, or the cause of ctx's end. It does not poll: the system
// reports a new socket.
func Wait(ctx context.Context, hub string) error {
	dir, err := userdir.Open(hub)
	if err != nil {
		return err
	}
	defer dir.Close()
	news, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer news.Close()
	if err := news.Add(dir.String()); err != nil {
		return err
	}
	var again <-chan time.Time
	for {
		// A dead daemon may have left a socket.
		c, err := dir.Dial(ctx, socketName)
		if err == nil {
			return c.Close()
		} else if !errors.Is(err, userdir.ErrNobody) {
			return err
		}
		for changed := false; !changed; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case err := <-news.Errors:
				return err
			case <-again:
				changed = true
			case e := <-news.Events:
				changed = e.Has(fsnotify.Create|fsnotify.Chmod) &&
					strings.HasSuffix(e.Name, socketName)
				// On Linux the socket listens when its mode changes. Elsewhere its name comes
				// before it listens.
				again = time.After(listenTime)
			}
		}
	}
}
