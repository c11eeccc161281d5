package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/hook"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/retry"
)

const (
	// retryFirst and retryLast are the first and the longest pause between two attempts to connect
	// to a daemon.
	retryFirst, retryLast = 10 * time.Millisecond, 200 * time.Millisecond
)

// A watcher follows resources, and reconnects when a session ends. One goroutine runs it.
type watcher struct {
	watchFlags
	hub       hubFlags
	ctx       context.Context
	done      func() // ends ctx
	cmd       *cobra.Command
	output    func(to io.Writer, c change, color bool, width int) error
	failed    error // the error of a write to the output; it ends the watch
	updates   updates
	resources []*resource // in the order of the command line, or of the daemon's lists
	byURI     map[string]*resource

	// all resources were read once, or the first session has ended: it then waits for missing ones
	started bool
	told    string // the last message about the connection
	left    int    // the changes until it ends; 0: it does not end

	unlisted bool // the resources must be listed before the next reads

	// With --min-interval a change waits until due, which is never earlier than next.
	due, next time.Time
	printed   bool     // something was printed since the last flush
	batch     []string // --lines: URIs of changes since the last flush
}

func newWatcher(ctx context.Context, done func(), cmd *cobra.Command, h hubFlags, o watchFlags,
	uris []string) *watcher {
	w := &watcher{watchFlags: o, hub: h, ctx: ctx, done: done, cmd: cmd, left: o.count,
		output:  printChange,
		updates: updates{more: make(chan struct{}, 1), times: map[string][]time.Time{}},
		byURI:   map[string]*resource{}}
	if o.json {
		w.output = printChangeJSON
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

// strict reports whether a missing daemon, or a resource that cannot be read, is an error.
// Otherwise the watcher waits.
func (w *watcher) strict() bool { return !w.started && !w.changes }

// run follows the resources until ctx ends.
func (w *watcher) run() error {
	for range retry.Attempts(w.ctx, retryFirst, retryLast) {
		session, err := w.hub.connect(w.ctx, &mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context,
				r *mcp.ResourceUpdatedNotificationRequest) {
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
			w.printStatus(plain(err.Error()) + "; waiting for one")
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
		wait, err := w.round(ctx, session)
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

// round reads stale resources and prints changes. The caller calls it again after wait, or after an
// update.
func (w *watcher) round(ctx context.Context, session *mcp.ClientSession) (
	wait <-chan time.Time, err error) {
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
			fmt.Fprintf(w.cmd.ErrOrStderr(),
				"pagewire: no open page offers %s yet; waiting for one\n", cli.Plain(r.uri))
		}
		r.failed = err.Error()
	case w.strict():
		return askError(r.uri, err, "ls")
	default:
		w.reportError(r, err)
	}
	return nil
}

// couldCome reports whether a page could offer a resource later: it is at a web origin, in lower
// case.
func couldCome(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Host != "" && u.Fragment == "" &&
		(u.Scheme == "http" || u.Scheme == "https") &&
		strings.HasPrefix(uri, u.Scheme+"://"+strings.ToLower(u.Host)+"/")
}

// hold returns how long changes still wait, so that they are printed together, and at most once in
// w.every.
func (w *watcher) hold() time.Duration {
	if w.every == 0 ||
		!slices.ContainsFunc(w.resources, func(r *resource) bool { return r.seen && r.toRead() }) {
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

// report prints a resource that was read, if its content is new.
func (w *watcher) report(r *resource, result *mcp.ReadResourceResult) {
	now := time.Now()
	content, binary := joined(result.Contents)
	c := change{Time: now, URI: r.uri, Event: "read", Size: len(content), Rate: r.rate(now)}
	if w.lines {
		sum := sha256.Sum256(content)
		content = sum[:] // so a long watch of many resources keeps only hashes
	}
	before, seen := r.content, r.seen
	same := seen && binary == r.binary && bytes.Equal(before, content)
	// two updates for one change, or a change that was undone
	if same && (r.failed == "" || w.changes) {
		r.failed = ""
		return
	}
	if seen {
		c.Event, c.Age, c.grown = "updated", now.Sub(r.last).Milliseconds(),
			len(content)-len(before)
		if c.skipped = max(len(content), len(before)) > maxDiff; !c.skipped && !binary &&
			!r.binary {
			c.Diff = difference(string(before), string(content))
		}
	}
	if binary {
		c.Blob = base64.StdEncoding.EncodeToString(content)
	} else {
		text := string(content)
		c.Text = &text
	}
	r.seen, r.last, r.content, r.binary, r.failed = true, now, content, binary, ""
	if !seen && w.changes {
		return
	}
	w.print(c)
	if seen && w.left > 0 {
		if w.left--; w.left == 0 {
			w.flush()
			w.done()
		}
	}
}

// reportError prints the error of a read, unless it was the last one. The watch goes on, since the
// failure may pass.
func (w *watcher) reportError(r *resource, err error) {
	text := askError(r.uri, err, "ls").Error()
	if r.failed == text {
		return
	}
	r.failed = text
	if r.seen || !w.changes {
		w.print(change{Time: time.Now(), URI: r.uri, Event: "error",
			Error: strings.TrimPrefix(text, cli.Plain(r.uri)+": ")})
	}
}

func (w *watcher) print(c change) {
	switch to := w.cmd.OutOrStdout(); {
	case !w.lines:
		w.printed = true
		w.wrote(w.output(to, c, isColored(w.cmd), widthOf(w.cmd, w.wide)))
	case c.Event == "updated":
		w.batch = append(w.batch, c.URI)
	}
}

// wrote ends the watch if a write to the output has failed.
func (w *watcher) wrote(err error) {
	if err != nil {
		w.failed = err
		w.done()
	}
}

// What follows is for a program that wakes its agent with each line: all resources (--all), one
// line for all changes (--lines), at most one line in a time (--min-interval), and no changes that
// the agent already knows.

// list adds the listed resources, for --all. Above maxWatched it first drops resources that are no
// longer listed.
func (w *watcher) list(ctx context.Context, session *mcp.ClientSession) error {
	if !w.unlisted {
		return nil
	}
	w.unlisted = false
	if w.lines {
		w.unknown(nil)
	}
	if !w.all {
		return nil
	}
	listed := map[string]bool{}
	var fresh []string
	for r, err := range session.Resources(ctx, nil) {
		if err != nil {
			w.unlisted = true
			return err
		}
		listed[r.URI] = true
		if w.byURI[r.URI] == nil && !gateway.IsShown(r.URI) { // nobody has asked for that page
			fresh = append(fresh, r.URI)
		}
	}
	over := len(w.resources) + len(fresh) - maxWatched
	w.resources = slices.DeleteFunc(w.resources, func(r *resource) bool {
		gone := over > 0 && !listed[r.uri]
		if gone {
			over--
			delete(w.byURI, r.uri)
		}
		return gone
	})
	if room := max(maxWatched-len(w.resources), 0); len(fresh) > room {
		w.printStatus(fmt.Sprintf("%d resources are too many: %d are watched",
			len(w.resources)+len(fresh), maxWatched))
		fresh = fresh[:room]
	}
	for _, uri := range fresh {
		w.add(uri)
	}
	return nil
}

// printLine prints the line of --lines about the changes since the last line.
func (w *watcher) printLine() {
	if len(w.batch) == 0 {
		return
	}
	if uris := w.unknown(w.batch); len(uris) > 0 {
		w.printed = true
		_, err := fmt.Fprintln(cli.Visible(w.cmd.OutOrStdout()), nameLine(uris))
		w.wrote(err)
	}
	w.batch = nil
}

// unknown returns the changed URIs that the agent that started this process does not know of, or
// all if there is no such agent. It also makes the agent's record track all listed resources, so
// that no change is missed.
func (w *watcher) unknown(uris []string) []string {
	ctx, cancel := context.WithTimeout(w.ctx, hookTime)
	defer cancel()
	unknown, err := hook.Unknown(ctx, w.hub.client(), uris)
	if err != nil || len(unknown) == len(uris) {
		return uris
	}
	// The agent's session may be notified of a change a moment later than this one.
	select {
	case <-ctx.Done():
	case <-time.After(settleTime):
	}
	rest := slices.DeleteFunc(slices.Clone(uris),
		func(uri string) bool { return slices.Contains(unknown, uri) })
	if later, err := hook.Unknown(ctx, w.hub.client(), rest); err == nil {
		unknown = append(unknown, later...)
	}
	return unknown
}
