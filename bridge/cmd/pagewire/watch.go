//go:build !js

package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/gateway/agents"
	"github.com/pagewire/pagewire/bridge/gateway/daemon"
)

const (
	// rateOver is what updates per second are counted over.
	rateOver = 10 * time.Second
	// maxDiff is the text up to which changes are shown: longer ones take the diff seconds, and nobody reads them here.
	maxDiff = 256 << 10
	// retryEvery is the pause between two attempts to find the daemon again. Another one takes over within a second.
	// After retryFast attempts it is retrySlow: there may be none for hours.
	retryEvery, retrySlow, retryFast = 200 * time.Millisecond, 2 * time.Second, 50
)

// watchFlags are what is asked of watch.
type watchFlags struct {
	json, changes, all, lines bool
	every                     time.Duration
	count                     int
}

func watchCommand() *cobra.Command {
	var h hubFlags
	var o watchFlags
	cmd := &cobra.Command{
		Use:   "watch URI...",
		Short: "Show changes of resources as they happen",
		Long: "Subscribes to resources and prints each change: the time, the time since the last change, the new size,\n" +
			"updates per second, and the difference in the text. It goes on when the daemon is restarted. Ctrl+C ends it.\n\n" +
			"--changes --all --lines is for programs that wake an agent. Each line names what has changed and was not\n" +
			"yet told to the agent that started this process. Nothing else is printed. It waits for pagewire serve,\n" +
			"and ends with the program that started it.",
		Example: "  pagewire watch https://shop.example/state/cart",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.all {
				return nil
			}
			return atLeastOne("URI")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return usageError{cmd, err}
			}
			ctx, done := context.WithCancel(cmd.Context())
			defer done()
			// Who says nohup means it.
			if o.lines && !isTerminal(cmd.OutOrStdout()) && !signal.Ignored(syscall.SIGHUP) {
				var stop context.CancelFunc
				ctx, stop = agents.Orphaned(ctx)
				defer stop()
			}
			return newWatcher(ctx, done, cmd, h, o, args).run()
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print one JSON object per line")
	f.IntVar(&o.count, "count", 0, "end after this `number` of changes")
	f.BoolVar(&o.changes, "changes", false, "print changes alone, not what there is first, and wait for what is not "+
		"there yet")
	f.BoolVar(&o.all, "all", false, "watch all that is listed, also what comes later; 1,000 resources at most")
	f.BoolVar(&o.lines, "lines", false, "print one short line of URIs for what has changed")
	f.DurationVar(&o.every, "min-interval", 0, "print what has changed at most once in this `time`, "+
		"such as 30s (default with --lines 30s, on a terminal none)")
	h.add(cmd)
	return cmd
}

// check finds what contradicts itself, and fills in what depends on what was said.
func (o *watchFlags) check(cmd *cobra.Command) error {
	switch {
	case o.count < 0:
		return fmt.Errorf("--count %d: want a number of changes", o.count)
	case o.every < 0:
		return fmt.Errorf("--min-interval %v: want a time such as 30s", o.every)
	case o.json && o.lines:
		return errors.New("--json and --lines: choose one")
	}
	if o.lines && !cmd.Flags().Changed("min-interval") && !isTerminal(cmd.OutOrStdout()) {
		o.every = wakeEvery
	}
	return nil
}

// A watcher follows resources over as many sessions as it takes.
type watcher struct {
	watchFlags
	hub    hubFlags
	ctx    context.Context
	done   func() // ends ctx
	cmd    *cobra.Command
	print  func(io.Writer, change, bool)
	color  bool
	left   int // changes to go; 0 for no end
	order  []string
	reread chan struct{} // something is dirty

	next    time.Time // before which nothing more is printed
	due     time.Time // when what is dirty is read; zero if nothing is
	printed bool      // since then
	batch   []string  // URIs that have changed since then, of --lines
	said    string    // what was said last of how it goes

	mu      sync.Mutex // guards what go-sdk's goroutines touch: dirty and stamps, and unlisted
	watched map[string]*watched
	// unlisted says that what there is has to be listed, of --all.
	unlisted bool
}

func newWatcher(ctx context.Context, done func(), cmd *cobra.Command, h hubFlags, o watchFlags,
	uris []string) *watcher {
	w := &watcher{watchFlags: o, hub: h, ctx: ctx, done: done, cmd: cmd, left: o.count, reread: make(chan struct{}, 1),
		watched: map[string]*watched{}}
	if w.print = printChange; o.json {
		w.print = printJSON
	}
	w.color = isTerminal(cmd.OutOrStdout())
	for _, uri := range uris {
		w.add(uri)
	}
	return w
}

// add watches one more.
func (w *watcher) add(uri string) {
	if w.watched[uri] == nil {
		w.watched[uri] = &watched{uri: uri, dirty: true}
		w.order = append(w.order, uri)
	}
}

// watched is one resource.
type watched struct {
	uri        string
	dirty      bool        // told to have changed, and not read since
	stamps     []time.Time // of updates, the last rateOver
	subscribed bool        // in this session

	seen    bool // read at least once
	last    time.Time
	content []byte
	binary  bool
	failed  string // why it cannot be read now
}

// A change is what is printed.
type change struct {
	Time    time.Time `json:"time"`
	URI     string    `json:"uri"`
	Event   string    `json:"event"`           // read (the first time), updated, error
	Age     int64     `json:"ageMs,omitempty"` // since the last change
	Size    int       `json:"size"`
	Rate    float64   `json:"rate"` // updates per second
	Text    *string   `json:"text,omitempty"`
	Blob    string    `json:"blob,omitempty"` // base64
	Diff    string    `json:"diff,omitempty"`
	Error   string    `json:"error,omitempty"`
	grown   int
	skipped bool // the diff is left out
}

func (w *watcher) run() error {
	failed := 0
	for first := true; ; {
		session, err := w.hub.connect(w.ctx, &mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
				w.touch(r.Params.URI)
			},
			// What was not there may be now.
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { w.touch("") },
		})
		switch {
		case w.ctx.Err() != nil:
			if err == nil {
				session.Close()
			}
			return nil
		case err != nil && (first && !w.changes || errors.Is(err, daemon.ErrOther)):
			return err
		case err != nil:
			if failed++; first {
				w.tell(err.Error() + "; waiting for one")
			}
			if errors.Is(err, daemon.ErrNone) && daemon.Wait(w.ctx, w.hub.addr) == nil {
				continue
			}
		default:
			if !first {
				w.tell("connected again")
			}
			err = w.follow(session, first)
			session.Close()
			if err != nil || w.ctx.Err() != nil {
				return err
			}
			w.tell("the connection to " + w.hub.addr + " ended; trying again")
			first, failed = false, 0
		}
		pause := retryEvery
		if failed > retryFast {
			pause = retrySlow
		}
		select {
		case <-w.ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// tell says how it goes, once as long as it goes so.
func (w *watcher) tell(what string) {
	if w.said != what {
		w.said = what
		fmt.Fprintln(w.cmd.ErrOrStderr(), "pagewire:", what)
	}
}

// touch marks a resource, or "" for those that could not be read, to be read again.
func (w *watcher) touch(uri string) {
	w.mu.Lock()
	if uri == "" {
		w.unlisted = true
	}
	for _, one := range w.watched {
		switch {
		case one.uri == uri:
			now := time.Now()
			one.dirty, one.stamps = true, append(recent(one.stamps, now), now)
		case uri == "" && !one.subscribed:
			one.dirty = true
		}
	}
	w.mu.Unlock()
	select {
	case w.reread <- struct{}{}:
	default:
	}
}

// follow watches until the session ends. It fails only if first is set and there is no such resource.
func (w *watcher) follow(session *mcp.ClientSession, first bool) error {
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
	w.mu.Lock()
	for _, one := range w.watched {
		one.subscribed, one.dirty = false, true // what was missed meanwhile is seen by reading
	}
	w.unlisted = true
	w.mu.Unlock()
	for {
		wait, err := w.look(ctx, session, first)
		if err != nil || ctx.Err() != nil {
			return err
		}
		first = false
		select {
		case <-ctx.Done():
			return nil
		case <-w.reread:
		case <-wait:
		}
	}
}

// look reads what is to be read now, and prints what is new of it. wait is when there is more to do; nil if that is not
// known.
func (w *watcher) look(ctx context.Context, session *mcp.ClientSession, first bool) (wait <-chan time.Time, err error) {
	if w.list(ctx, session) != nil { // the session has ended, or this is to be tried again
		return time.After(settleTime), nil
	}
	hold := w.hold()
	for _, uri := range w.order {
		one := w.watched[uri]
		w.mu.Lock()
		dirty := one.dirty && !(hold > 0 && one.seen)
		if dirty {
			one.dirty = false
		}
		w.mu.Unlock()
		if !dirty {
			continue
		}
		if err := w.renew(ctx, session, one, first && !w.changes); err != nil || ctx.Err() != nil {
			return nil, err
		}
	}
	if hold > 0 {
		return time.After(hold), nil
	}
	w.flush()
	return nil, nil
}

// renew reads a resource, to which it subscribes before: no change is lost. It fails only if strict is set and there is
// no such one.
func (w *watcher) renew(ctx context.Context, session *mcp.ClientSession, one *watched, strict bool) error {
	if !one.subscribed {
		switch err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: one.uri}); {
		case ctx.Err() != nil:
			return nil
		case err != nil && strict:
			return resourceError(one.uri, err)
		case err != nil:
			w.fail(one, err)
			return nil
		}
		w.mu.Lock()
		one.subscribed = true
		w.mu.Unlock()
	}
	r, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: one.uri})
	switch {
	case ctx.Err() != nil:
	case err != nil && strict && !one.seen:
		return resourceError(one.uri, err)
	case err != nil:
		w.fail(one, err)
	default:
		w.take(one, r)
	}
	return nil
}

// take prints what is new in a resource.
func (w *watcher) take(one *watched, r *mcp.ReadResourceResult) {
	now := time.Now()
	content, binary := joined(r.Contents)
	c := change{Time: now, URI: one.uri, Event: "read", Size: len(content), Rate: w.rate(one, now)}
	if w.lines {
		sum := sha256.Sum256(content)
		content = sum[:] // of many resources, for long
	}
	before := string(one.content)
	same := one.seen && binary == one.binary && before == string(content)
	if same && (one.failed == "" || w.changes) { // told twice, or changed back
		one.failed = ""
		return
	}
	if one.seen {
		c.Event, c.Age, c.grown = "updated", now.Sub(one.last).Milliseconds(), len(content)-len(one.content)
		if c.skipped = max(len(content), len(one.content)) > maxDiff; !c.skipped && !binary && !one.binary {
			c.Diff = difference(before, string(content))
		}
	}
	if binary {
		c.Blob = base64.StdEncoding.EncodeToString(content)
	} else {
		text := string(content)
		c.Text = &text
	}
	counts := one.seen
	one.seen, one.last, one.content, one.binary, one.failed = true, now, content, binary, ""
	if !counts && w.changes {
		return
	}
	w.say(c)
	if counts && w.left > 0 {
		if w.left--; w.left == 0 {
			w.flush()
			w.done()
		}
	}
}

func (w *watcher) say(c change) {
	if w.lines {
		if c.Event == "updated" {
			w.batch = append(w.batch, c.URI)
		}
		return
	}
	w.printed = true
	w.print(w.cmd.OutOrStdout(), c, w.color)
}

// fail prints once that a resource cannot be read, which may pass.
func (w *watcher) fail(one *watched, err error) {
	why := resourceError(one.uri, err).Error()
	if one.failed == why {
		return
	}
	one.failed = why
	if one.seen || !w.changes {
		w.say(change{Time: time.Now(), URI: one.uri, Event: "error",
			Error: strings.TrimPrefix(why, plain(one.uri)+": ")})
	}
}

// rate is a resource's updates per second.
func (w *watcher) rate(one *watched, now time.Time) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	one.stamps = recent(one.stamps, now)
	return float64(len(one.stamps)) / rateOver.Seconds()
}

// recent are those of the last rateOver. No read need come for them to be trimmed: one that fails never comes.
func recent(stamps []time.Time, now time.Time) []time.Time {
	for len(stamps) > 0 && now.Sub(stamps[0]) > rateOver {
		stamps = stamps[1:]
	}
	return stamps
}

// difference is a unified diff without its header, which would say nothing.
func difference(before, after string) string {
	// a missing newline at the end is a state's normal form, and no difference to speak of
	end := func(s string) string {
		if s != "" && !strings.HasSuffix(s, "\n") {
			return s + "\n"
		}
		return s
	}
	text := udiff.Unified("before", "after", end(before), end(after))
	if _, rest, ok := strings.Cut(text, "+++ after\n"); ok {
		return rest
	}
	return text
}

const (
	dim, red, green, cyan, plainly = "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
)

// printChange prints for a person.
func printChange(to io.Writer, c change, color bool) {
	paint := func(code, text string) string {
		if !color {
			return text
		}
		return code + text + plainly
	}
	var b strings.Builder
	b.WriteString(paint(dim, c.Time.Format("15:04:05.000")))
	switch c.Event {
	case "error":
		fmt.Fprintf(&b, "  %s  %s\n", plain(c.URI), paint(red, plain(c.Error)))
	case "read":
		fmt.Fprintf(&b, "  %s  %s bytes\n", plain(c.URI), grouped(c.Size))
	default:
		fmt.Fprintf(&b, "  %s  +%s  %s bytes (%+d)  %.1f/s\n", plain(c.URI), age(c.Age), grouped(c.Size), c.grown,
			c.Rate)
		if c.skipped {
			b.WriteString(paint(dim, "  longer than 256 KiB: the difference is left out") + "\n")
		}
	}
	for line := range strings.Lines(c.Diff) {
		line = plain(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "+"):
			line = paint(green, line)
		case strings.HasPrefix(line, "-"):
			line = paint(red, line)
		case strings.HasPrefix(line, "@@"):
			line = paint(cyan, line)
		}
		b.WriteString("  " + line + "\n")
	}
	io.WriteString(to, b.String())
}

// age writes milliseconds as a person would.
func age(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func printJSON(to io.Writer, c change, _ bool) {
	out := json.NewEncoder(visible{to})
	out.SetEscapeHTML(false)
	_ = out.Encode(c) // a pipe that is closed ends the process by itself
}
