//go:build !js

package hub

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
)

// DefaultAddr is where pages find the hub.
const DefaultAddr = "127.0.0.1:7433"

// What Connect, Dial and Ask fail with, wrapped in a sentence.
var (
	// ErrNoHub: none runs.
	ErrNoHub = errors.New("no pagewire serve is running")
	// ErrSilent: it does not answer.
	ErrSilent = errors.New("the hub does not answer")
	// ErrVersion: it speaks another version of the protocol.
	ErrVersion = errors.New("the hub is of another version")
	// ErrRefused: it does not take us in now.
	ErrRefused = errors.New("the hub refuses")
)

// Options say how a process takes part.
type Options struct {
	// Addr is where pages find the hub, host and port. Those who say another one are as on another machine. Default
	// DefaultAddr.
	Addr string
	// Build is what the others are told that this one is. Default "0".
	Build string
	// Gateway is this process's own.
	Gateway *gateway.Gateway
	// Handler is what the hub serves at Addr. May be nil. It checks who asks. The contexts of its requests end when
	// this process is no longer the hub.
	Handler http.Handler
	// Local is what the hub serves on its socket, besides what is in this package: to processes of this user alone. May
	// be nil.
	Local http.Handler
	// Lead runs while this process is the hub, or serves alone: it brings pages in. It returns when its context ends,
	// and may be called again later. An error that it returns before ends Run. May be nil.
	Lead func(ctx context.Context) error
	// Share says what a successor must know, such as where the launched browser is. The hub asks when somebody joins,
	// and every half second for each joiner. At most 64 things. May be nil.
	Share func() map[string]string
	// Learn is told on joiners what the hub shares, whenever that has changed. May be nil.
	Learn func(map[string]string)
	// Settled is called whenever it is decided what this process is: it is the hub, it has joined and has the hub's
	// list, or it serves alone (0). Connect gives the same number for the same hub. May be nil.
	Settled func(generation uint64)
	// Log receives what happens. Default none.
	Log *slog.Logger
}

const (
	// retryEvery, with up to as much again by chance, is the pause between two attempts to be the hub or to join it: an
	// attempt costs some ten system calls. After retryFast of them in vain it is retrySlow.
	retryEvery, retrySlow = 20 * time.Millisecond, 500 * time.Millisecond
	retryFast             = 5 * time.Second
)

// A member is one process's part.
type member struct {
	o Options
	// least is the lowest generation that can still be: one below has hung.
	least uint64
	// vacant is how long somebody has held the lock, and nobody has listened.
	vacant time.Duration
	// failing is how long neither has worked; said what was logged of it.
	failing time.Duration
	said    string
}

// Run takes part until ctx ends, and then returns nil: as the hub if it can be, else as a joiner; when the hub dies or
// hangs it tries both again, at once. It fails with Lead's error, or if its socket does. It ends nothing but what it
// has begun.
func Run(ctx context.Context, o Options) error {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	if o.Build == "" {
		o.Build = "0"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Settled == nil {
		o.Settled = func(uint64) {}
	}
	m := &member{o: o}
	for ctx.Err() == nil {
		again, err := m.live(ctx)
		if !again {
			return err
		}
	}
	return nil
}

// live is one life: as the hub, as a joiner, alone, or an attempt. It reports whether another is to follow.
func (m *member) live(ctx context.Context) (again bool, err error) {
	// Each life looks for the directory anew: it may have been removed.
	dir, err := userdir.Open(m.o.Addr, m.o.Log)
	if err != nil {
		return false, m.alone(ctx, err)
	}
	defer dir.Close()
	at, err := present(dir, m.least)
	if err != nil {
		return false, m.alone(ctx, err)
	}
	l, err := dir.Listen(socketOf(at))
	switch {
	case err == nil:
		return m.lead(ctx, &seat{dir, l, at})
	case !errors.Is(err, userdir.ErrHeld):
		return false, m.alone(ctx, err)
	}
	err = m.join(ctx, dir, at)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, ErrSilent):
		m.depose(at, err)
	case errors.Is(err, ErrNoHub):
		m.wait(ctx, at, err)
	case errors.Is(err, ErrRefused):
		m.pause(ctx, err)
	default:
		return false, m.alone(ctx, err)
	}
	return true, nil
}

// settle forgets what has not worked.
func (m *member) settle() { m.vacant, m.failing, m.said = 0, 0, "" }

// depose gives a generation up: from now on the hub is who has a higher one.
func (m *member) depose(at uint64, why error) {
	m.o.Log.Warn("the hub hangs, and is replaced", "generation", at, "reason", why)
	m.least = at + 1
	m.settle()
}

// wait is for somebody who has the lock and does not listen: about to, or about to end. After as long as a hub may be
// silent, it hangs. What counts is the pauses and not the time, so that a process that was stopped meanwhile accuses
// nobody.
func (m *member) wait(ctx context.Context, at uint64, why error) {
	if m.vacant += m.pause(ctx, why); m.vacant > silence {
		m.depose(at, why)
		m.vacant = 0
	}
}

// pause waits before the next attempt, and says once what does not work, if it goes on.
func (m *member) pause(ctx context.Context, why error) time.Duration {
	pause := retryEvery
	if m.failing > retryFast {
		pause = retrySlow
		if m.said != why.Error() {
			m.said = why.Error()
			m.o.Log.Warn("could not join the hub, and try again", "reason", why)
		}
	}
	pause += rand.N(pause)
	m.failing += pause
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	return pause
}

// alone serves without the others, since there is no way to them.
func (m *member) alone(ctx context.Context, why error) error {
	m.o.Log.Warn("this process serves alone: its agents do not see the pages of the others, nor they its", "reason",
		why)
	return m.solo(ctx)
}
