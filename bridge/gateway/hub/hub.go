//go:build !js

// Package hub makes the gateways of one machine one. Every agent starts its own `pagewire serve`, and all of them shall
// show the same pages: the first that runs listens on a port of loopback and is the hub, the others join it, and when it
// dies one of them takes its place.
//
// The port is the election. Whoever can listen on it is the hub; whoever cannot dials it. There is no vote, no lock file and
// nothing that a killed process leaves behind: the kernel closes what it held, which the others see at once, as the end of their
// connections. A joiner keeps its own agents' sessions; to its Gateway the hub is one page that has all the resources.
// Subscriptions survive since the joiner's engine has them.
//
// It never kills what has the port, never lets a browser or a process without the token join, and never repairs a token file
// whose permissions are wrong.
package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
)

// DefaultAddr is where the hub listens.
const DefaultAddr = "127.0.0.1:7433"

// What Dial and Run fail with, wrapped in a sentence that says what to do.
var (
	// ErrNoHub: nothing listens at the address.
	ErrNoHub = errors.New("no pagewire serve is running")
	// ErrNotPagewire: something else listens there.
	ErrNotPagewire = errors.New("another program has the port")
	// ErrToken: the hub was started with another token.
	ErrToken = errors.New("the hub refuses the token")
)

const (
	joinPath = "/join"
	// hubHeader is in every answer at joinPath, so that a refusal of ours is not taken for another program's.
	hubHeader = "Pagewire-Hub"
	// handshakeTimeout is how long a hub may take to answer.
	handshakeTimeout = 3 * time.Second
	// maxToJoiner bounds a message of the hub: the largest result that a gateway passes on is 32 MiB of contents.
	maxToJoiner = 48 << 20
	// maxToHub bounds a message of a joiner: an agent's may have 4 MiB.
	maxToHub = 8 << 20
)

// Dial connects to the hub at addr as an agent does: the Conn is an MCP session with the hub's gateway, which shows all
// that it shows its own agents. It fails with ErrNoHub, ErrNotPagewire or ErrToken, or with ctx's error, within 3 s.
func Dial(ctx context.Context, addr, token string) (gateway.Conn, error) {
	c, err := dial(ctx, addr, token, nil)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func dial(ctx context.Context, addr, token string, note func(*wsconn.Conn, []byte)) (*wsconn.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	header := http.Header{"Authorization": {"Bearer " + token}}
	c, response, err := wsconn.Dial(limited, addr, joinPath, header, wsconn.Options{MaxMessage: maxToJoiner, Note: note})
	var op *net.OpError
	switch {
	case err == nil && response.Header.Get(hubHeader) != "":
		return c, nil
	case err == nil:
		c.Close()
		return nil, fmt.Errorf("%w %s: it is not Pagewire, though it speaks WebSocket; %s", ErrNotPagewire, addr, whatToDo)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case response == nil && errors.As(err, &op) && op.Op == "dial":
		return nil, fmt.Errorf("%w: nothing listens at %s", ErrNoHub, addr)
	case response == nil && limited.Err() != nil:
		return nil, fmt.Errorf("%w %s: it has not answered for %v; %s", silentError{ErrNotPagewire}, addr, handshakeTimeout, whatToDo)
	case response == nil:
		return nil, fmt.Errorf("%w %s: it does not speak HTTP; %s", ErrNotPagewire, addr, whatToDo)
	case response.Header.Get(hubHeader) == "":
		return nil, fmt.Errorf("%w %s: it is not Pagewire (it answers %s); %s", ErrNotPagewire, addr, response.Status, whatToDo)
	case response.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%w: the one at %s was started with another token file; both need the same (%s, or the default)", ErrToken, addr, TokenFileEnv)
	}
	text, _ := io.ReadAll(response.Body)
	return nil, fmt.Errorf("the hub at %s refuses: %s", addr, strings.TrimSpace(string(text)))
}

const whatToDo = "stop it, or give Pagewire another port"

// silentError is ErrNotPagewire by suspicion only: a hub that is very busy, or stopped by a debugger, is silent too.
type silentError struct{ error }

func (e silentError) Unwrap() error { return e.error }

// Options say how a process takes part.
type Options struct {
	// Addr is where the hub listens, host and port. Default DefaultAddr.
	Addr string
	// Token is what all who take part must have: Token gives it.
	Token string
	// Gateway is this process's own.
	Gateway *gateway.Gateway
	// Handler is what the hub serves besides /join. May be nil. It checks who asks.
	Handler http.Handler
	// Lead runs while this process is the hub: it brings pages in. Its context ends when Run's does, and it returns then. An
	// error that it returns before ends Run. May be nil.
	Lead func(ctx context.Context) error
	// Share says what a successor must know, such as where the launched browser is. The hub asks when somebody joins, and
	// every half second while there are joiners. May be nil.
	Share func() map[string]string
	// Learn is told on joiners what the hub shares, whenever that has changed. May be nil.
	Learn func(map[string]string)
	// Settled is called whenever it is decided what this process is: it is the hub, or it has joined and has the hub's list. May
	// be nil.
	Settled func()
	// Log receives what happens. Default none.
	Log *slog.Logger
}

const (
	// retryEvery, with up to as much again by chance, is the pause between two attempts to be the hub or to join it: an
	// attempt costs two system calls. After retryFast of them in vain it is retrySlow.
	retryEvery, retrySlow = 20 * time.Millisecond, 500 * time.Millisecond
	retryFast             = 5 * time.Second
	// patience is how long another program must be seen at the port until it is believed: who has just died still shows for a
	// moment. silentPatience is that for one that says nothing.
	patience, silentPatience = time.Second, 5 * time.Second
)

// Run takes part until ctx ends, and then returns nil: as the hub if it can listen, else as a joiner; when the hub dies it
// tries both again, at once. It fails with ErrNotPagewire, ErrToken, Lead's error, or because it cannot listen; it ends nothing but
// what it has begun.
func Run(ctx context.Context, o Options) error {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Settled == nil {
		o.Settled = func() {}
	}
	if o.Token == "" {
		return errors.New("hub: no token: anything on this machine could join")
	}
	var failing time.Time // since when neither works; zero if it does
	for ctx.Err() == nil {
		l, listenErr := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Addr)
		if listenErr == nil {
			return lead(ctx, o, l)
		}
		joined, err := join(ctx, o)
		if ctx.Err() != nil {
			break
		}
		if joined {
			failing = time.Time{}
			continue
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		since := time.Since(failing)
		var silent silentError
		switch {
		case errors.Is(err, ErrToken):
			return err
		case errors.As(err, &silent):
			if since > silentPatience {
				return err
			}
		case errors.Is(err, ErrNotPagewire):
			if since > patience {
				return err
			}
		case errors.Is(err, ErrNoHub):
			if since > patience {
				return fmt.Errorf("the hub's port: %w", listenErr)
			}
		}
		pause := retryEvery
		if since > retryFast {
			pause = retrySlow
			o.Log.Warn("could not join the hub, and try again", "addr", o.Addr, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause + rand.N(pause)):
		}
	}
	return nil
}

// join is one life as a joiner, as long as the hub's. It reports whether that began.
func join(ctx context.Context, o Options) (joined bool, err error) {
	var note func(*wsconn.Conn, []byte)
	if o.Learn != nil {
		note = func(_ *wsconn.Conn, text []byte) {
			var n shareNote
			if json.Unmarshal(text, &n) == nil && n.Type == shareType {
				o.Learn(n.Share)
			}
		}
	}
	conn, err := dial(ctx, o.Addr, o.Token, note)
	if err != nil {
		return false, err
	}
	page, err := o.Gateway.Attach(ctx, gateway.PageInfo{Tab: "hub", Hub: true, URL: "the hub at " + o.Addr, Title: "hub", Road: "gateway"}, conn)
	if err != nil {
		return false, err
	}
	o.Log.Info("joined the hub", "addr", o.Addr)
	o.Settled()
	select {
	case <-page.Done():
		o.Log.Info("the hub is gone", "addr", o.Addr)
	case <-ctx.Done():
		page.Close("this process goes away")
	}
	return true, nil
}

const shareType = "pagewire:share"

// shareNote is what the hub tells its joiners beside MCP.
type shareNote struct {
	Type  string            `json:"type"` // first: it makes the text a note
	Share map[string]string `json:"share"`
}
