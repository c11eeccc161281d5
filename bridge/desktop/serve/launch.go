package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/retry"
	"github.com/pagewire/pagewire/bridge/pages/cdp"
)

// A launcher has this process's browser, which all agents share that ask for one. The browser runs
// from the first of them to the last. If it crashes, another one is launched. If it is closed, that
// waits for the next agent that asks.
type launcher struct {
	g          *gateway.Gateway
	log        *slog.Logger
	attached   *attached
	takesPages func() bool // of the process: it waits

	mu      sync.Mutex
	closed  bool
	wants   []*daemon.Launch // of the agents that are connected, in the order of their coming
	asked   bool             // an agent has come that the browser, or its start, does not know yet
	ctx     context.Context  // of the browser; nil while there is none
	end     context.CancelFunc
	browser *launched.Started // while the gateway is attached to it
	opened  map[string]bool   // the addresses that the browser was told to open
	tasks   sync.WaitGroup
}

const (
	launchedBrowser = "the launched browser"
	// launchSubject is the subject of the notice about the launched browser.
	launchSubject = "launch"
	// After more than maxCrashes in a row no browser is launched again. One that was usable for
	// crashTime breaks the row.
	maxCrashes, crashTime = 3, time.Minute
)

// lacks reports whether this daemon cannot show the window that an agent asks for, and a daemon of
// that agent could.
func lacks(h daemon.Hello) bool {
	return h.Launch != nil && h.Launch.Window && h.Launch.Display && !launched.HasDisplay()
}

// The notices about the launched browser. A pipe repeats the last one to the next daemon, which
// launches no browser that was closed.
const (
	closedNotice = "The launched browser was closed. It is launched again for the next agent that " +
		"asks for one."
	newNotice = "The launched browser is a new one, since the last one has crashed, or ended with " +
		"the process that had it. Its tabs, logins and drafts are lost; the addresses of --open are " +
		"open again."
	crashesNotice = "The browser dies again and again, and is not launched any more: start it by " +
		"hand to see why."
)

// want makes the browser run, with the addresses that it was not told to open yet, until release is
// called. After a lost connection the browser waits a moment for the same agent.
func (l *launcher) want(o daemon.Launch) (release func(lost bool), err error) {
	if err := checkLaunch(o); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wants = append(l.wants, &o)
	switch {
	case l.browser != nil && l.ctx.Err() == nil && !l.browser.Ended():
		l.open()
	case o.Notice == closedNotice && l.ctx == nil:
		o.Again = false // nothing was lost
		l.g.Notice(launchSubject, closedNotice)
	default:
		l.asked = true
		l.begin()
	}
	return func(lost bool) {
		l.mu.Lock()
		l.wants = slices.DeleteFunc(l.wants, func(other *daemon.Launch) bool { return other == &o })
		l.mu.Unlock()
		if lost {
			time.AfterFunc(daemon.Linger, l.endUnwanted)
		} else {
			l.endUnwanted()
		}
	}, nil
}

// begin launches the browser if an agent has asked for it and there is none. mu is held.
func (l *launcher) begin() {
	if l.ctx != nil || !l.asked || l.closed {
		return
	}
	seen := l.g.Look()
	l.ctx, l.end = context.WithCancel(context.Background())
	ctx := l.ctx
	l.tasks.Go(func() {
		l.run(ctx, seen)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.end()
		l.ctx = nil
		l.begin()
	})
}

func (l *launcher) endUnwanted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wants) == 0 {
		l.g.Notice(launchSubject, "")
		if l.asked = false; l.ctx != nil {
			l.end()
		}
	}
}

// run launches a browser and attaches the gateway to it, until ctx ends or the browser is closed.
func (l *launcher) run(ctx context.Context, seen func()) {
	var row crashes
	for {
		o := l.options(ctx, row > 0)
		b, err := launched.Start(ctx, o)
		if err != nil {
			why := fmt.Sprintf("%.300s.", err)
			if o.Window && !launched.HasDisplay() {
				why = "There is no display: --headless needs none. (" + why + ")"
			}
			l.say(ctx, "No browser could be launched: "+why)
			seen()
			return
		}
		l.log.Info("a browser has been launched", "url", b.URL)
		usable := time.Now()
		l.attach(ctx, b, seen)
		lived := time.Since(usable)
		b.Close()
		if !b.Crashed() || ctx.Err() != nil {
			l.say(ctx, closedNotice)
			return
		}
		if row.tooMany(lived) {
			l.say(ctx, crashesNotice)
			return
		}
		seen = l.g.Look()
	}
}

// crashes counts a row of them. It does not count how long the starts took, which take seconds on a
// busy machine.
type crashes int

// tooMany counts one more, of a browser that was usable for a time.
func (row *crashes) tooMany(lived time.Duration) bool {
	if lived > crashTime {
		*row = 0
	}
	*row++
	return *row > maxCrashes
}

// attach attaches the gateway to a browser, until ctx or the browser ends.
func (l *launcher) attach(ctx context.Context, b *launched.Started, seen func()) {
	defer seen()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		select {
		case <-b.Exited():
		case <-ctx.Done():
		}
	}()
	l.mu.Lock()
	inject := slices.ContainsFunc(l.wants, func(o *daemon.Launch) bool { return o.Inject })
	l.mu.Unlock()
	if !l.takesPages() {
		return
	}
	l.attached.follow(ctx, seen, cdp.Options{URL: launchedBrowser, Launched: true, Inject: inject,
		Dial: func(ctx context.Context) (cdp.Conn, error) { return b.Pipe.Dial(ctx) },
		Connected: func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if ctx.Err() == nil {
				l.browser, l.asked = b, false
				l.open()
			}
		}})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.browser = nil
}

// options returns the options of a browser. crashed means that the last one has crashed.
func (l *launcher) options(ctx context.Context, crashed bool) launched.Options {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := func(o *daemon.Launch) bool { return o.Again }
	sentence := ""
	if slices.ContainsFunc(l.wants, again) || crashed {
		sentence = newNotice
		l.log.Warn(sentence)
		l.mu.Unlock()
		retry.Sleep(ctx, comeBack) // the other agents of the last daemon come back
		l.mu.Lock()
	}
	l.g.Notice(launchSubject, sentence)
	l.opened = map[string]bool{}
	l.asked = l.asked && ctx.Err() != nil // who asks after the end asks for the next browser
	o := launched.Options{Open: l.unopened(), Log: l.log}
	windows := 0
	for _, want := range l.wants {
		o.DebugPort = cmp.Or(o.DebugPort, want.DebugPort)
		if want.Window {
			windows++
		}
	}
	o.Window = windows > 0 && (windows == len(l.wants) || launched.HasDisplay())
	return o
}

// unopened returns the addresses that the browser, which is now that of all its agents, was not
// told to open yet. mu is held.
func (l *launcher) unopened() (addresses []string) {
	for _, o := range l.wants {
		o.Again = false
		known := len(addresses)
		for _, address := range o.Open {
			if !l.opened[address] {
				addresses = append(addresses, address)
			}
		}
		for _, address := range addresses[known:] {
			l.opened[address] = true
		}
	}
	return addresses
}

// open makes the browser open the addresses that it does not know. mu is held.
func (l *launcher) open() {
	b := l.browser
	for _, address := range l.unopened() {
		go func() { // a browser that stands still does not read
			if err := b.Open(address); err != nil {
				l.log.Warn("the launched browser opens no further tab", "url", address, "error",
					err)
			}
		}()
	}
}

// say tells agents and people why there is no browser, unless nobody wants it any more.
func (l *launcher) say(ctx context.Context, sentence string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() == nil && len(l.wants) > 0 {
		l.log.Warn(sentence)
		l.g.Notice(launchSubject, sentence)
	}
}

// isWanted reports whether there is a browser that an agent wants.
func (l *launcher) isWanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx != nil && l.ctx.Err() == nil
}

// isThere reports whether there is a browser, even if it is about to end.
func (l *launcher) isThere() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx != nil
}

// close ends the browser for good, and removes what killed processes have left.
func (l *launcher) close() {
	l.mu.Lock()
	l.closed = true
	if l.ctx != nil {
		l.end()
	}
	l.mu.Unlock()
	l.tasks.Wait()
	launched.Sweep(l.log)
}

// subjectOf is the subject of the notice about an agent's browser.
func subjectOf(h daemon.Hello) string {
	if h.Launch != nil {
		return launchSubject
	}
	return noticeOf(h.Flags.Chrome)
}
