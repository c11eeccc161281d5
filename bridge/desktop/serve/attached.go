package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/retry"
	"github.com/pagewire/pagewire/bridge/pages/cdp"
	"github.com/pagewire/pagewire/bridge/pages/extension"
)

// attached are the running browsers that agents have asked for with --chrome. The gateway is
// attached to each while at least one of its agents is connected.
type attached struct {
	g   *gateway.Gateway
	hub string
	log *slog.Logger
	// picks are of all browsers.
	picks *cdp.Picks

	mu     sync.Mutex
	closed bool
	at     map[string]*attachment // by the URL that the agents named
	tasks  sync.WaitGroup
}

// An attachment is the gateway's connection to one browser.
type attachment struct {
	agents map[bool]int       // the number of agents that want it, by inject
	inject bool               // of the current connection
	stop   context.CancelFunc // ends the current connection; nil before the first
}

// want attaches the gateway to the browser at a DevTools URL ("auto": the running one), until
// release is called. With inject, pages without a page layer get one. While one agent wants that,
// it applies to all pages of the browser.
func (a *attached) want(url string, inject bool) (release func(), err error) {
	if !IsBrowser(url) {
		return nil, fmt.Errorf("%.80q is no DevTools URL of a browser", url)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, gateway.ErrClosed
	}
	if a.at[url] == nil {
		a.at[url] = &attachment{agents: map[bool]int{}}
	}
	a.count(url, inject, 1)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.closed {
			a.count(url, inject, -1)
		}
	}, nil
}

// IsBrowser reports whether a text names a running browser: auto, or a DevTools URL.
func IsBrowser(text string) bool {
	u, err := url.Parse(text)
	return text == "auto" || err == nil && u.Host != "" &&
		slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme)
}

// count adds by to an attachment's agents, and begins, ends or changes the attachment. mu must be
// held.
func (a *attached) count(url string, inject bool, by int) {
	one := a.at[url]
	one.agents[inject] += by
	wanted, injects := one.agents[true]+one.agents[false] > 0, one.agents[true] > 0
	if one.stop != nil && wanted && one.inject == injects {
		return
	}
	if !wanted {
		one.stop()
		delete(a.at, url)
		a.g.Notice(noticeOf(url), "")
		return
	}
	seen := a.g.Look() // before the connection that this one replaces ends its look
	if one.stop != nil {
		one.stop()
	}
	one.inject = injects
	var ctx context.Context
	ctx, one.stop = context.WithCancel(context.Background())
	a.tasks.Go(func() { a.follow(ctx, seen, cdp.Options{URL: url, Inject: injects}) })
}

func (a *attached) close() {
	a.mu.Lock()
	a.closed = true
	for _, one := range a.at {
		one.stop()
	}
	a.mu.Unlock()
	a.tasks.Wait()
}

// reattachEvery is the pause between two attempts to attach to a browser.
const reattachEvery = 250 * time.Millisecond

// follow attaches to a browser until ctx ends, also after the user has restarted it. It calls seen
// after the first look at the browser, or when no browser answers.
func (a *attached) follow(ctx context.Context, seen func(), o cdp.Options) {
	defer seen()
	o.Gateway, o.Log, o.Source, o.Looked, o.Picks = a.hub, a.log, o.URL, seen, a.picks
	o.Extension = extension.ExtensionOrigin
	a.say(ctx, o, errSilent) // until it answers: it may accept the connection, and no more
	said := ""
	var err error
	for range retry.Attempts(ctx, reattachEvery, reattachEvery) {
		if err != nil && err.Error() != said && !errors.Is(err, context.Canceled) {
			// not after a launched browser has ended: that ends ctx during the pause
			said = err.Error()
			a.log.Warn("no browser, and try again", "browser", o.URL, "error", err)
		}
		if err = a.attach(ctx, o); err != nil {
			a.say(ctx, o, err)
		}
		seen()
	}
}

func (a *attached) attach(ctx context.Context, o cdp.Options) (err error) {
	if asked := o; o.Dial == nil {
		o.Connected = func() { a.say(ctx, asked, nil) }
	}
	if o.URL == "auto" {
		if o.URL, err = browser.Running(); err != nil {
			return err
		}
	}
	return cdp.Run(ctx, a.g, o)
}

var errSilent = errors.New("it has not answered yet")

// noticeOf is the subject of the notice that a browser of --chrome does not answer.
func noticeOf(url string) string { return "browser " + url }

// secret matches the part of a DevTools address that lets its reader control the browser.
var secret = regexp.MustCompile(`/devtools/browser/[^\s:"]*`)

// say tells agents and people why the pages of a browser of --chrome are missing, or with nil that
// they are not. It does nothing once the connection is not wanted any more.
func (a *attached) say(ctx context.Context, o cdp.Options, err error) {
	sentence := ""
	if err != nil {
		sentence = secret.ReplaceAllString(fmt.Sprintf("The pages of the browser at %s "+
			"(--chrome) are missing, and it is tried again: %v.", o.URL, err), "")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.Dial == nil && ctx.Err() == nil {
		a.g.Notice(noticeOf(o.Source), sentence)
	}
}
