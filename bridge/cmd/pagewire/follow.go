package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/internal/retry"
)

const (
	// rateOver is the time over which the updates per second are averaged.
	rateOver = 10 * time.Second
	// retryFirst and retryLast are the first and the longest pause between two attempts to connect to a daemon.
	retryFirst, retryLast = 10 * time.Millisecond, 200 * time.Millisecond
)

// A watcher follows resources, and reconnects when a session ends. One goroutine runs it.
type watcher struct {
	watchFlags
	hub       hubFlags
	ctx       context.Context
	done      func() // ends ctx
	cmd       *cobra.Command
	output    func(io.Writer, change, bool) error
	failed    error // the error of a write to the output; it ends the watch
	updates   updates
	resources []*resource // in the order of the command line, or of the daemon's lists
	byURI     map[string]*resource

	started bool   // all resources were read once, or the first session has ended: it then waits for missing ones
	told    string // the last message about the connection
	left    int    // the changes until it ends; 0: it does not end

	unlisted bool // the resources must be listed before the next reads

	// With --min-interval a change waits until due, which is never earlier than next.
	due, next time.Time
	printed   bool     // something was printed since the last flush
	batch     []string // --lines: URIs of changes since the last flush
}

// resourceState is the state of a resource in a session. Each session begins with unsubscribed.
//
//	unsubscribed -- subscribe --> stale -- read --> current -- updated --> stale
//	unsubscribed -- subscribe fails --> absent -- list changed --> unsubscribed
type resourceState int

const (
	unsubscribed resourceState = iota
	absent
	stale
	current
)

type resource struct {
	uri     string
	state   resourceState
	updated []time.Time // times of updates in the last rateOver

	seen    bool // read at least once
	last    time.Time
	content []byte
	binary  bool
	failed  string // the error of the last read; "" if it succeeded
}

func newWatcher(ctx context.Context, done func(), cmd *cobra.Command, h hubFlags, o watchFlags,
	uris []string) *watcher {
	w := &watcher{watchFlags: o, hub: h, ctx: ctx, done: done, cmd: cmd, left: o.count, output: printChange,
		updates: updates{more: make(chan struct{}, 1), times: map[string][]time.Time{}},
		byURI:   map[string]*resource{}}
	if o.json {
		w.output = printJSON
	}
	for _, uri := range uris {
		w.add(uri)
	}
	return w
}

func (w *watcher) add(uri string) {
	if w.byURI[uri] == nil {
		w.byURI[uri] = &resource{uri: uri}
		w.resources = append(w.resources, w.byURI[uri])
	}
}

// strict reports whether a missing daemon, or a resource that cannot be read, is an error. Otherwise the watcher waits.
func (w *watcher) strict() bool { return !w.started && !w.changes }

// run follows the resources until ctx ends.
func (w *watcher) run() error {
	for range retry.Attempts(w.ctx, retryFirst, retryLast) {
		session, err := w.hub.connect(w.ctx, &mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
				w.updates.add(r.Params.URI)
			},
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
				w.updates.add("")
			},
		})
		if err == nil {
			if w.started {
				w.printStatus("connected again")
			}
			if err := w.follow(session); err != nil || w.ctx.Err() != nil {
				return err
			}
			w.printStatus("the connection to " + w.hub.addr + " ended; trying again")
			w.started = true
		}
		switch {
		case w.ctx.Err() != nil:
			return nil
		case err != nil && (w.strict() || errors.Is(err, daemon.ErrOther)):
			return err
		case err != nil && !w.started:
			w.printStatus(err.Error() + "; waiting for one")
		}
		if errors.Is(err, daemon.ErrNone) {
			_ = daemon.Wait(w.ctx, w.hub.addr) // if that fails, only the pause of retry is left
		}
	}
	return nil
}

// printStatus prints a message about the connection, unless it is the same as the last one.
func (w *watcher) printStatus(message string) {
	if w.told != message {
		w.told = message
		fmt.Fprintln(w.cmd.ErrOrStderr(), "pagewire:", message)
	}
}

// follow watches until the session ends. It fails only while strict is true.
func (w *watcher) follow(session *mcp.ClientSession) error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		session.Wait()
		cancel()
		close(ended)
	}()
	defer func() {
		session.Close()
		<-ended
	}()
	for _, r := range w.resources {
		r.state = unsubscribed // so it is read again, which shows the changes between the sessions
	}
	w.unlisted = true
	for {
		w.note(w.updates.drain())
		wait, err := w.look(ctx, session)
		if err != nil || ctx.Err() != nil {
			return err
		}
		w.started = true
		select {
		case <-ctx.Done():
			return nil
		case <-w.updates.more:
		case <-wait:
		}
	}
}

// note applies the updates of a session; the key "" is the list.
func (w *watcher) note(times map[string][]time.Time) {
	list := len(times[""]) > 0
	w.unlisted = w.unlisted || list
	for _, r := range w.resources {
		if got := times[r.uri]; len(got) > 0 {
			r.updated = append(r.updated, got...)
			if r.state == current {
				r.state = stale
			}
		}
		r.updated = recent(r.updated, time.Now())
		if list && r.state == absent {
			r.state = unsubscribed
		}
	}
}

// look reads stale resources and prints changes. The caller calls it again after wait, or after an update.
func (w *watcher) look(ctx context.Context, session *mcp.ClientSession) (wait <-chan time.Time, err error) {
	if w.list(ctx, session) != nil { // the session has ended, or the next attempt works
		return time.After(settleTime), nil
	}
	hold := w.hold()
	for _, r := range w.resources {
		if !r.toRead() || hold > 0 && r.seen {
			continue
		}
		if err := w.read(ctx, session, r); err != nil || ctx.Err() != nil {
			return nil, err
		}
	}
	if hold > 0 {
		return time.After(hold), nil
	}
	w.flush()
	return nil, nil
}

func (r *resource) toRead() bool { return r.state == unsubscribed || r.state == stale }

// read subscribes to a resource and then reads it, so that no change is lost.
func (w *watcher) read(ctx context.Context, session *mcp.ClientSession, r *resource) error {
	if r.state == unsubscribed {
		if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: r.uri}); err != nil {
			r.state = absent
			return w.fail(ctx, r, err)
		}
	}
	r.state = current
	result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.uri})
	if err != nil {
		return w.fail(ctx, r, err)
	}
	w.report(r, result)
	return nil
}

func (w *watcher) fail(ctx context.Context, r *resource, err error) error {
	switch {
	case ctx.Err() != nil: // the next session reads it
	case !r.seen && isAbsent(err) && couldCome(r.uri):
		if r.failed == "" && !w.changes {
			fmt.Fprintf(w.cmd.ErrOrStderr(), "pagewire: no open page offers %s yet; waiting for one\n", plain(r.uri))
		}
		r.failed = err.Error()
	case w.strict():
		return resourceError(r.uri, err)
	default:
		w.reportError(r, err)
	}
	return nil
}

// couldCome reports whether a page could offer a resource later: it is at a web origin, in lower case.
func couldCome(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Host != "" && u.Fragment == "" && (u.Scheme == "http" || u.Scheme == "https") &&
		strings.HasPrefix(uri, u.Scheme+"://"+strings.ToLower(u.Host)+"/")
}

// hold returns how long changes still wait, so that they are printed together, and at most once in w.every.
func (w *watcher) hold() time.Duration {
	if w.every == 0 || !slices.ContainsFunc(w.resources, func(r *resource) bool { return r.seen && r.toRead() }) {
		return 0
	}
	now := time.Now()
	if w.due.IsZero() {
		if w.due = now.Add(settleTime); w.due.Before(w.next) {
			w.due = w.next
		}
	}
	return max(w.due.Sub(now), 0)
}

// flush ends a round of reads: it prints the line of --lines and sets the time of the next round.
func (w *watcher) flush() {
	w.due = time.Time{}
	w.printLine()
	if w.printed {
		w.printed, w.next = false, time.Now().Add(w.every)
	}
}

func (r *resource) rate(now time.Time) float64 {
	return float64(len(recent(r.updated, now))) / rateOver.Seconds()
}

func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > rateOver {
		times = times[1:]
	}
	return times
}

// updates are the reports of a session's goroutines to the watcher.
type updates struct {
	more chan struct{} // has an element after add, until the watcher takes it

	mu    sync.Mutex
	times map[string][]time.Time // by URI, of the last rateOver; "" is the list
}

// add notes an update of a URI; "" is the list.
func (u *updates) add(uri string) {
	u.mu.Lock()
	now := time.Now()
	u.times[uri] = append(recent(u.times[uri], now), now)
	u.mu.Unlock()
	select {
	case u.more <- struct{}{}:
	default:
	}
}

func (u *updates) drain() map[string][]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	times := u.times
	u.times = map[string][]time.Time{}
	return times
}
