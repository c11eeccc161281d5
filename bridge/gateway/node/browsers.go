//go:build !js

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/gateway/cdp"
	"github.com/pagewire/pagewire/bridge/gateway/hub"
)

// Which browsers the hub attaches to: the one that its own options name, those that joiners have been started with, and those of
// the hub before it. A browser that a gateway has launched belongs to all of them: it is closed by the last one.

// A wish is a browser that pages come from. It travels between gateways.
type wish struct {
	// URL is the browser's, or "auto" for one that is looked for each time.
	URL    string `json:"url"`
	Inject bool   `json:"inject,omitempty"`
	// Launched says that a gateway has launched it, with its profile in that directory.
	Launched bool   `json:"launched,omitempty"`
	Profile  string `json:"profile,omitempty"`
}

type browsers struct {
	g *gateway.Gateway
	o Options

	mu      sync.Mutex
	own     *wish            // what the options want; with Launch once it runs
	started *browser.Browser // what we launched
	known   []wish           // what the hub attaches to
	wake    chan struct{}    // closed when known grows
	leading bool
	asking  bool
	closed  bool
	// What close decides by: when a joiner that leaves was last told that we stay, and whether we do not any more.
	trusted time.Time
	left    bool
}

const browsersPath = "/browsers"

func newBrowsers(g *gateway.Gateway, o Options) *browsers {
	b := &browsers{g: g, o: o, wake: make(chan struct{})}
	if o.Chrome != "" {
		b.own = &wish{URL: o.Chrome, Inject: o.Inject}
	}
	return b
}

// lead attaches to every browser that is known, until ctx ends.
func (b *browsers) lead(ctx context.Context) error {
	b.mu.Lock()
	b.leading = true
	if b.own != nil {
		b.add(*b.own)
	}
	launch := b.o.Launch && b.started == nil && !slices.ContainsFunc(b.known, func(w wish) bool { return w.Launched })
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.leading = false
		b.mu.Unlock()
	}()
	if launch {
		if err := b.launch(ctx); err != nil {
			return err
		}
	}
	following := map[string]bool{}
	var all sync.WaitGroup
	defer all.Wait()
	for {
		b.mu.Lock()
		wake := b.wake
		for _, w := range b.known {
			if !following[w.URL] {
				following[w.URL] = true
				all.Go(func() { b.follow(ctx, w) })
			}
		}
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		}
	}
}

// add makes a browser known. The lock is held.
func (b *browsers) add(w wish) {
	if slices.ContainsFunc(b.known, func(k wish) bool { return k.URL == w.URL }) {
		return
	}
	b.known = append(b.known, w)
	close(b.wake)
	b.wake = make(chan struct{})
}

func (b *browsers) forget(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = slices.DeleteFunc(b.known, func(w wish) bool { return w.URL == url })
}

// reattachEvery is the pause between two attempts to reach a browser that is not there.
const reattachEvery = 250 * time.Millisecond

// follow attaches to a browser, again and again: a user's own one may be restarted. One that was launched and is gone is
// gone; whoever launched it launches another, if it has not been closed by the user.
func (b *browsers) follow(ctx context.Context, w wish) {
	said := ""
	for ctx.Err() == nil {
		err := b.attach(ctx, w)
		b.mu.Lock()
		closed := b.closed
		b.mu.Unlock()
		if closed || ctx.Err() != nil {
			return
		}
		if w.Launched && !reachable(w.URL) {
			b.o.Log.Info("a launched browser has ended", "url", w.URL)
			b.forget(w.URL)
			return
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			b.o.Log.Warn("no browser, and try again", "url", w.URL, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reattachEvery):
		}
	}
}

func (b *browsers) attach(ctx context.Context, w wish) error {
	url := w.URL
	if url == "auto" {
		var err error
		if url, err = browser.Running(); err != nil {
			return err
		}
	}
	return cdp.Run(ctx, b.g, cdp.Options{URL: url, Inject: w.Inject, Gateway: b.o.Hub, Log: b.o.Log})
}

// launch starts a browser and makes it known, and another one if it dies without having been closed.
func (b *browsers) launch(ctx context.Context) error {
	profile, err := os.MkdirTemp("", "pagewire-browser-")
	if err != nil {
		return fmt.Errorf("make a profile for the browser: %w", err)
	}
	started, err := browser.Start(ctx, browser.StartOptions{
		Options: browser.Options{Window: !b.o.Headless, Flags: b.o.BrowserFlags}, Open: b.o.Open, Profile: profile,
	})
	if err != nil {
		removeProfile(profile, shortly)
		return err
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		end(context.Background(), started, profile)
		return nil
	}
	b.started = started
	b.own = &wish{URL: started.URL, Inject: b.o.Inject, Launched: true, Profile: profile}
	b.add(*b.own)
	b.mu.Unlock()
	b.o.Log.Info("a browser has been launched", "url", started.URL)
	go func() {
		<-started.Done()
		b.mu.Lock()
		again := b.started == started && !b.closed && started.Crashed()
		if b.started == started {
			b.started, b.own = nil, nil
		}
		closed := b.closed
		b.mu.Unlock()
		if closed {
			return // end removes the profile
		}
		go removeProfile(profile, patiently)
		if again && ctx.Err() == nil {
			b.forget(started.URL)
			if err := b.launch(ctx); err != nil {
				b.o.Log.Error("the browser has died, and another cannot be launched", "error", err)
			}
		}
	}()
	return nil
}

// share is what joiners are told.
func (b *browsers) share() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, err := json.Marshal(b.known)
	if err != nil {
		return nil
	}
	return map[string]string{"browsers": string(text)}
}

// learn is told by the hub what browsers there are, and asks it for the one that our own options want.
func (b *browsers) learn(shared map[string]string) {
	var known []wish
	if err := json.Unmarshal([]byte(shared["browsers"]), &known); err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leading || b.closed {
		return
	}
	b.known = known
	wanted := b.own != nil && !slices.ContainsFunc(known, func(w wish) bool { return w.URL == b.own.URL }) ||
		b.own == nil && b.o.Launch && !slices.ContainsFunc(known, func(w wish) bool { return w.Launched })
	if wanted && !b.asking {
		b.asking = true
		go func() {
			defer func() {
				b.mu.Lock()
				b.asking = false
				b.mu.Unlock()
			}()
			if err := b.ask(); err != nil {
				b.o.Log.Warn("the hub could not be told of our browser, and is told again", "error", err)
			}
		}()
	}
}

// ask has the hub attach to our browser.
func (b *browsers) ask() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b.mu.Lock()
	launch := b.own == nil
	b.mu.Unlock()
	if launch {
		if err := b.launch(ctx); err != nil {
			return err
		}
	}
	b.mu.Lock()
	own := b.own
	b.mu.Unlock()
	if own == nil {
		return nil
	}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	return b.tell(ctx, http.MethodPost, text)
}

// tell sends the hub a request about browsers, and gives an error unless it agrees.
func (b *browsers) tell(ctx context.Context, method string, text []byte) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://hub"+browsersPath, bytes.NewReader(text))
	if err != nil {
		return err
	}
	answer, err := hub.Client(b.o.Hub).Do(request)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the hub answers %s", answer.Status)
	}
	return nil
}

// ServeHTTP is where a joiner asks the hub to attach to its browser (POST), and, when it leaves, whether the hub stays to close what is
// left of them (DELETE).
func (b *browsers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked wish
	switch {
	case r.Method == http.MethodDelete:
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.left {
			http.Error(w, "This hub leaves, too.", http.StatusServiceUnavailable)
			return
		}
		b.trusted = time.Now()
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPost:
		http.Error(w, "A browser is brought (POST) or left (DELETE).", http.StatusMethodNotAllowed)
	case json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&asked) != nil || asked.URL == "":
		http.Error(w, "Not the description of a browser.", http.StatusBadRequest)
	default:
		b.mu.Lock()
		b.add(asked)
		b.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}
}

// How long close looks who stays. Agents that are ended together leave within milliseconds of each other; a hub that
// leaves has a successor within 60.
const (
	leaveTime   = 200 * time.Millisecond
	vacancyTime = 150 * time.Millisecond
)

// close ends the browser that we launched, or that came to us, unless other gateways use it. Of gateways that leave at the same
// time, one has to be the last: a joiner leaves it to a hub that says that it stays, and the hub to those that are still there
// when all who asked it have had the time to go.
func (b *browsers) close(ctx context.Context) {
	b.mu.Lock()
	b.closed = true
	leading, started, own, known := b.leading, b.started, b.own, slices.Clone(b.known)
	b.mu.Unlock()
	launched := func(w wish) bool { return w.Launched }
	if started == nil && !slices.ContainsFunc(known, launched) || leading && b.succeeded() || !leading && b.handedOver(ctx) {
		return
	}
	if started != nil {
		end(ctx, started, own.Profile)
	}
	for _, w := range known {
		if launched(w) && (own == nil || w.URL != own.URL) {
			browser.Quit(w.URL)
			removeProfile(w.Profile, shortly)
		}
	}
}

// succeeded reports, for the hub, whether a joiner stays, which is the hub after us.
func (b *browsers) succeeded() bool {
	last := time.Now().Add(2 * leaveTime)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		joined := slices.ContainsFunc(b.g.Snapshot().Agents, func(a gateway.AgentState) bool { return a.Road == "gateway" })
		b.mu.Lock()
		if b.trusted.After(began) {
			began = b.trusted
		}
		if !joined || time.Since(began) > leaveTime || time.Now().After(last) {
			b.left = true
			b.mu.Unlock()
			return joined
		}
		b.mu.Unlock()
	}
}

// handedOver reports, for a joiner, whether a hub stays. There is none while one takes over, and none at all if we are the last.
func (b *browsers) handedOver(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*leaveTime)
	defer cancel()
	vacant := time.Time{}
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if b.tell(ctx, http.MethodDelete, nil) == nil {
			return true
		}
		c, _, err := hub.Connect(ctx, b.o.Hub)
		if err == nil {
			c.Close()
		}
		switch {
		case err == nil:
			vacant = time.Time{}
		case vacant.IsZero():
			vacant = time.Now()
		case time.Since(vacant) > vacancyTime:
			return false
		}
	}
	return false
}

// end closes a browser, the hard way if it takes longer than 500 ms: with one tab it takes 100.
func end(ctx context.Context, b *browser.Browser, profile string) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	go browser.Quit(b.URL)
	select {
	case <-b.Done():
	case <-ctx.Done():
		b.Process.Kill()
		<-b.Done()
	}
	removeProfile(profile, shortly)
}

// How long removeProfile tries: while this process ends, and while it goes on. A browser's last children may still write to
// its profile when it has been killed, on a busy machine for seconds.
const shortly, patiently = 400 * time.Millisecond, 10 * time.Second

func removeProfile(dir string, patience time.Duration) {
	if !strings.Contains(dir, "pagewire-browser-") {
		return // not one that we have made
	}
	gone := 0 // how often in a row
	for end := time.Now().Add(patience); gone < 3 && time.Now().Before(end); time.Sleep(patience / 40) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			gone++ // a child may make it anew
			continue
		}
		gone = 0
		os.RemoveAll(dir)
	}
}

// reachable reports whether something listens where a browser did.
func reachable(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	c, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}
