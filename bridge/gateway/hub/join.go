//go:build !js

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
)

const (
	joinPath, statusPath = "/join", "/status"
	// silence is how long a hub may say nothing, in which it would have spoken four times. Then it hangs.
	silence = 2 * time.Second
	// listenEvery is how often that is looked at, and what counts of a time in which this process itself did not run.
	listenEvery = 100 * time.Millisecond
	// maxToJoiner bounds a message of the hub: the largest result that a gateway passes on is 32 MiB of contents.
	maxToJoiner = 48 << 20
	// lasting is how long a life as a joiner is that was worth beginning.
	lasting = time.Second
)

// Connect connects to the socket of the hub that runs for addr (default DefaultAddr), and gives its generation. It
// fails with ErrNoHub, with ctx's error, or with a sentence.
func Connect(ctx context.Context, addr string) (net.Conn, uint64, error) {
	dir, at, err := find(addr)
	if err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	c, err := reach(ctx, dir, at)
	return c, at, err
}

// Client makes requests to what the hub serves on its socket: Options.Local. The host in their URLs says nothing.
func Client(addr string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, // the next one may be to another hub
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, _, err := Connect(ctx, addr)
			return c, err
		},
	}}
}

// Dial connects to the hub as an agent does: the Conn is an MCP session with the hub's gateway, which shows all that it
// shows its own agents. build is what the hub is told that this is. It fails with ErrNoHub, ErrSilent, ErrVersion,
// ErrRefused, with ctx's error, or with a sentence, within some 2 s. The Conn ends when the hub is silent for as long.
func Dial(ctx context.Context, addr, build string) (mcpconn.Conn, error) {
	dir, at, err := find(addr)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	c, err := dial(ctx, dir, at, hello{Build: build, As: asAgent}, nil)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// A Status is what a hub says of itself.
type Status struct {
	Build      string `json:"build"`
	Protocol   int    `json:"protocol"`
	Generation uint64 `json:"generation"`
	// Addr is where pages find it, or "" while something else has the port.
	Addr   string `json:"addr"`
	Pages  int    `json:"pages"`
	Agents int    `json:"agents"`
}

// Ask asks the hub that runs for addr how it is. It fails as Connect does, or with ErrSilent.
func Ask(ctx context.Context, addr string) (s Status, err error) {
	limited, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, http.MethodGet, "http://hub"+statusPath, nil)
	if err != nil {
		return Status{}, err
	}
	answer, err := Client(addr).Do(r)
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return Status{}, fmt.Errorf("%w (for %v)", ErrSilent, silence)
	case err != nil:
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err // without the URL, which says nothing
		}
		return Status{}, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxHello)).Decode(&s); err != nil {
		return Status{}, fmt.Errorf("%w to say its state: it answers %.80q", ErrRefused, answer.Status)
	}
	return s, nil
}

// find opens the directory, and says which generation it is.
func find(addr string) (*userdir.Dir, uint64, error) {
	if addr == "" {
		addr = DefaultAddr
	}
	dir, err := userdir.Open(addr, nil)
	if err != nil {
		return nil, 0, err
	}
	at, err := present(dir, 0)
	if err != nil {
		dir.Close()
		return nil, 0, err
	}
	return dir, at, nil
}

// reach connects to the hub of a generation.
func reach(ctx context.Context, dir *userdir.Dir, at uint64) (net.Conn, error) {
	c, err := dir.Dial(ctx, socketOf(at))
	var op *net.OpError
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	// the latter: more wait for it than the system lets wait
	case errors.Is(err, userdir.ErrNobody), errors.As(err, &op):
		return nil, fmt.Errorf("%w: %w", ErrNoHub, err)
	}
	return nil, err
}

// A line is a connection to a hub that knows when that is silent: when this process has listened for silence, and
// nothing has come.
type line struct {
	net.Conn
	listening, heard, silent atomic.Bool
	once                     sync.Once
	closed                   chan struct{}
}

func (l *line) Read(p []byte) (int, error) {
	l.listening.Store(true)
	n, err := l.Conn.Read(p)
	l.listening.Store(false)
	if n > 0 {
		l.heard.Store(true)
	}
	return n, err
}

func (l *line) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

// watch ends the connection when the hub is silent. A time in which this process was stopped, had no processor or did
// not read is its own fault, and counts for little or nothing.
func (l *line) watch() {
	t := time.NewTicker(listenEvery)
	defer t.Stop()
	var quiet time.Duration
	for last := time.Now(); ; {
		select {
		case <-l.closed:
			return
		case <-t.C:
		}
		now := time.Now()
		if l.heard.Swap(false) || !l.listening.Load() {
			quiet = 0
		} else {
			quiet += min(now.Sub(last), listenEvery)
		}
		last = now
		if quiet >= silence {
			l.silent.Store(true)
			l.Close()
			return
		}
	}
}

// A conn is a connection to a hub that has answered.
type conn struct {
	*wsconn.Conn
	line *line
}

// why is what a failure of the connection means.
func (l *line) why(ctx context.Context, err error) error {
	var closed websocket.CloseError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case l.silent.Load():
		return fmt.Errorf("%w (for %v)", ErrSilent, silence)
	case errors.As(err, &closed) && closed.Reason != "":
		return fmt.Errorf("%w: %.123q", ErrRefused, closed.Reason)
	}
	return fmt.Errorf("%w: the connection ended (%w)", ErrRefused, err)
}

// dial connects to the hub of a generation, and exchanges hellos with it. note is called with what it says beside MCP.
func dial(ctx context.Context, dir *userdir.Dir, at uint64, mine hello, note func(note)) (*conn, error) {
	over, err := reach(ctx, dir, at)
	if err != nil {
		return nil, err
	}
	l := &line{Conn: over, closed: make(chan struct{})}
	go l.watch()
	ws, response,
		err := wsconn.Client(ctx, l, joinPath, nil, wsconn.Options{MaxMessage: maxToJoiner, Note: noted(note)})
	if err != nil {
		if response != nil && !l.silent.Load() && ctx.Err() == nil {
			return nil, fmt.Errorf("%w: it answers %.80q", ErrRefused, response.Status)
		}
		return nil, l.why(ctx, err)
	}
	mine.Type, mine.Protocol = typeHello, Protocol
	its, err := exchange(ctx, ws, mine)
	if err != nil {
		ws.Close()
		return nil, l.why(ctx, err)
	}
	if its.Protocol != Protocol {
		ws.Close()
		return nil, fmt.Errorf("%w: %s", ErrVersion, versions(mine, its))
	}
	return &conn{ws, l}, nil
}

func exchange(ctx context.Context, ws *wsconn.Conn, mine hello) (its hello, err error) {
	if err := ws.Write(ctx, encode(mine)); err != nil {
		return hello{}, err
	}
	text, err := ws.ReadNote(ctx)
	if err != nil {
		return hello{}, err
	}
	return decodeHello(text)
}

// noted makes a function of notes one of texts. A hub that says what makes no sense is left.
func noted(take func(note)) func(*wsconn.Conn, []byte) {
	return func(c *wsconn.Conn, text []byte) {
		n, err := decodeNote(text)
		if err != nil {
			// not here: who closes waits for who reads
			go c.CloseWith(websocket.StatusPolicyViolation, brief(err.Error()))
			return
		}
		if take != nil {
			take(n)
		}
	}
}

// brief is a reason for a close, which takes 123 bytes.
func brief(reason string) string { return reason[:min(len(reason), 123)] }

// join is one life as a joiner, as long as the hub's. It returns nil if that was one.
func (m *member) join(ctx context.Context, dir *userdir.Dir, at uint64) error {
	conn, err := dial(ctx, dir, at, hello{Build: m.o.Build, As: asGateway}, func(n note) {
		if n.Type == typeShare && m.o.Learn != nil {
			m.o.Learn(n.Share)
		}
	})
	if err != nil {
		return err
	}
	began := time.Now()
	page, err := m.o.Gateway.Join(ctx, gateway.PageInfo{
		Tab: "hub", URL: "the hub of " + m.o.Addr, Title: "hub", Transport: "gateway",
	}, conn)
	if err != nil {
		return conn.line.why(ctx, err)
	}
	m.o.Log.Info("joined the hub", "addr", m.o.Addr, "generation", at)
	m.o.Settled(at)
	select {
	case <-page.Done():
		m.o.Log.Info("the hub is gone", "addr", m.o.Addr, "generation", at)
	case <-ctx.Done():
		page.Close("this process goes away")
	}
	if conn.line.silent.Load() {
		return conn.line.why(ctx, nil)
	}
	if time.Since(began) < lasting {
		return conn.line.why(ctx, io.EOF)
	}
	m.settle()
	return nil
}
