//go:build !js

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/gateway/browser/keeper"
	"github.com/pagewire/pagewire/bridge/gateway/hub"
	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
	"github.com/pagewire/pagewire/bridge/gateway/pages/cdp"
)

// Which browsers the hub attaches to: the one that its own options name, those that joiners have been started with, and
// those of the hub before it. A browser that a gateway has launched is everybody's: each gateway has a hold on it, and
// it ends with the last.

type browsers struct {
	g     *gateway.Gateway
	o     Options
	dir   *userdir.Dir // nil where it cannot be used: then what is launched is for this process alone
	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup // what has to have ended before close may return

	mu      sync.Mutex
	known   []*source
	wake    chan struct{} // closed when known grows
	leading bool
	busy    bool        // provide runs
	again   bool        // and is to run once more
	wanted  bool        // a browser is to be launched, by our options
	crashes []time.Time // of launched browsers
	turn    int         // grows with each launched browser that comes or goes
	closed  bool
}

// A source is a browser that the hub attaches to.
type source struct {
	wish
	ours   bool          // our options want it: the hub is to attach to it
	mine   bool          // we have launched it
	joined chan struct{} // closed when hold is set, or cannot be
	hold   *keeper.Hold  // of a launched one
}

func (s *source) ended() bool {
	select {
	case <-s.hold.Done():
		return true
	default:
		return false
	}
}

const browsersPath = "/browsers"

func newBrowsers(g *gateway.Gateway, o Options) *browsers {
	b := &browsers{g: g, o: o, wake: make(chan struct{}), wanted: o.Launch}
	b.ctx, b.stop = context.WithCancel(context.Background())
	var err error
	if b.dir, err = userdir.Open(o.Hub, o.Log); err != nil {
		o.Log.Warn("browsers are not shared with other agents", "error", err)
	}
	if o.Chrome != "" {
		b.add(wish{URL: o.Chrome, Inject: o.Inject}, nil).ours = true
	}
	return b
}

// lead attaches to every browser that is known, until ctx ends.
func (b *browsers) lead(ctx context.Context) error {
	b.mu.Lock()
	b.leading = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.leading = false
		b.mu.Unlock()
	}()
	b.adopt()
	if err := b.provide(); err != nil && b.ctx.Err() == nil {
		return err
	}
	following := map[*source]bool{}
	var all sync.WaitGroup
	defer all.Wait()
	for {
		b.mu.Lock()
		wake := b.wake
		for _, s := range b.known {
			if !following[s] {
				following[s] = true
				all.Go(func() { b.follow(ctx, s) })
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

// adopt makes the launched browsers known that the hub before us may not have told us of.
func (b *browsers) adopt() {
	if b.dir == nil {
		return
	}
	names, err := keeper.Names(b.dir)
	if err != nil {
		b.o.Log.Warn("look for launched browsers", "error", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		b.add(wish{Keeper: name}, nil)
	}
}

// add makes a browser known, with our hold on it if we have one. The lock is held.
func (b *browsers) add(w wish, hold *keeper.Hold) *source {
	if i := slices.IndexFunc(b.known, func(s *source) bool { return s.is(w) }); i >= 0 {
		if hold != nil {
			b.release(hold)
		}
		return b.known[i]
	}
	s := &source{wish: w, joined: make(chan struct{}), hold: hold}
	b.known = append(b.known, s)
	close(b.wake)
	b.wake = make(chan struct{})
	if hold == nil && w.Keeper != "" && b.dir != nil && !b.closed {
		b.tasks.Go(func() { b.join(s) })
	} else {
		close(s.joined)
	}
	if hold != nil {
		go b.watch(s)
	}
	return s
}

// release gives up a hold that is one too many.
func (b *browsers) release(hold *keeper.Hold) {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	b.tasks.Go(func() {
		defer cancel()
		hold.Leave(ctx)
	})
}

func (b *browsers) forget(s *source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = slices.DeleteFunc(b.known, func(k *source) bool { return k == s })
}

// join takes hold of a browser that another gateway has launched.
func (b *browsers) join(s *source) {
	defer close(s.joined)
	hold, err := keeper.Join(b.ctx, b.dir, s.Keeper, b.o.Log)
	if err != nil {
		if !errors.Is(err, keeper.ErrGone) && b.ctx.Err() == nil {
			b.o.Log.Warn("the pages of a launched browser are not served", "name", s.Keeper, "error", err)
		}
		b.forget(s)
		return
	}
	b.mu.Lock()
	b.turn++
	b.mu.Unlock()
	s.hold = hold
	go b.watch(s)
}

// watch waits for the end of a launched browser. One that its user has closed stays closed, until another gateway comes
// that wants one. One that has died is replaced, by who has launched it, or else by another who would have.
func (b *browsers) watch(s *source) {
	<-s.hold.Done()
	b.forget(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.o.Log.Info("a launched browser has ended", "name", s.Keeper, "how", s.hold.How())
	b.wanted = false
	b.turn++
	if !b.o.Launch || s.hold.How() != keeper.Crashed {
		return
	}
	old := func(t time.Time) bool { return time.Since(t) > crashTime }
	if b.crashes = slices.DeleteFunc(append(b.crashes, time.Now()), old); len(b.crashes) > maxCrashes {
		b.o.Log.Error("the browser dies again and again, and is not launched any more: start it by hand to see why",
			"times", len(b.crashes), "within", crashTime)
		return
	}
	wait := time.Duration(0)
	if !s.mine {
		wait = othersTime
	}
	turn := b.turn
	time.AfterFunc(wait, func() { b.replace(turn) })
}

// replace launches a browser in place of one that has died, unless another has come meanwhile, and may be gone again.
func (b *browsers) replace(turn int) {
	b.mu.Lock()
	if b.turn != turn {
		b.mu.Unlock()
		return
	}
	b.wanted = true
	b.mu.Unlock()
	if err := b.provide(); err != nil && b.ctx.Err() == nil {
		b.o.Log.Error("the browser has died, and another cannot be launched", "error", err)
	}
}

const (
	// More than maxCrashes within crashTime, and a browser is not launched again.
	maxCrashes, crashTime = 3, time.Minute
	// othersTime is how long those who have not launched a browser that has died leave it to who has.
	othersTime = 2 * time.Second
	// reattachEvery is the pause between two attempts to reach a browser that is not there.
	reattachEvery = 250 * time.Millisecond
)

// follow attaches to a browser, again and again: a user's own one may be restarted. A launched one that is gone is
// gone.
func (b *browsers) follow(ctx context.Context, s *source) {
	said := ""
	o := cdp.Options{URL: s.URL, Inject: s.Inject, Gateway: b.o.Hub, Log: b.o.Log}
	<-s.joined
	if s.Keeper != "" || s.hold != nil {
		if s.hold == nil {
			return
		}
		o.URL, o.Inject = s.Keeper, s.hold.Inject
		o.Dial = func(ctx context.Context) (cdp.Conn, error) { return s.hold.Dial(ctx) }
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-s.hold.Done():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	for ctx.Err() == nil {
		err := b.attach(ctx, o)
		select {
		case <-ctx.Done(): // it is known why
			return
		case <-time.After(reattachEvery):
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			b.o.Log.Warn("no browser, and try again", "browser", o.URL, "error", err)
		}
	}
}

func (b *browsers) attach(ctx context.Context, o cdp.Options) error {
	if o.URL == "auto" && o.Dial == nil {
		var err error
		if o.URL, err = browser.Running(); err != nil {
			return err
		}
	}
	return cdp.Run(ctx, b.g, o)
}

// share is what joiners are told.
func (b *browsers) share() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []wish{}
	for _, s := range b.known {
		if s.check() == nil {
			all = append(all, s.wish)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return map[string]string{"browsers": string(text)}
}

// learn is told by the hub what browsers there are, and asks it for those that are ours.
func (b *browsers) learn(shared map[string]string) {
	told, err := parseWishes(shared["browsers"])
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leading || b.closed {
		return
	}
	// What is launched is known as long as we have a hold on it.
	b.known = slices.DeleteFunc(b.known, func(s *source) bool {
		return s.URL != "" && !s.ours && !slices.ContainsFunc(told, s.is)
	})
	for _, w := range told {
		b.add(w, nil)
	}
	missing := slices.ContainsFunc(b.known, func(s *source) bool { return s.ours && !slices.ContainsFunc(told, s.is) })
	if missing || b.wanted {
		b.tasks.Go(func() {
			if err := b.provide(); err != nil && b.ctx.Err() == nil {
				b.o.Log.Warn("the hub has no browser of ours, and it is tried again", "error", err)
			}
		})
	}
}

// provide launches the browser that our options want, unless there is one, and has the hub attach to what is ours.
// While it runs, who calls it is served by a further turn of it.
func (b *browsers) provide() (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.again = true; b.busy || b.closed {
		return nil
	}
	b.busy = true
	b.tasks.Add(1)
	defer b.tasks.Done()
	for b.again && !b.closed {
		b.again = false
		b.mu.Unlock()
		if err = b.launch(); err == nil {
			err = b.tellOurs()
		}
		b.mu.Lock()
	}
	b.busy = false
	return err
}

// launch launches a browser if one is wanted and there is none, or takes hold of one that another gateway launches at
// the same time.
func (b *browsers) launch() error {
	b.mu.Lock()
	wanted, known := b.wanted, slices.Clone(b.known)
	b.mu.Unlock()
	if !wanted {
		return nil
	}
	for _, s := range known {
		if <-s.joined; s.hold != nil && !s.ended() {
			b.mu.Lock()
			b.wanted = false
			b.mu.Unlock()
			return nil
		}
	}
	hold, launched, err := keeper.Launch(b.ctx, b.dir, keeper.Options{
		Hub: b.o.Hub, Window: !b.o.Headless, Open: b.o.Open, Flags: b.o.BrowserFlags, DebugPort: b.o.DebugPort,
		Inject: b.o.Inject, Log: b.o.Log,
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		b.release(hold)
		return nil
	case hold.Name == "" && !b.leading:
		b.release(hold)
		return errors.New("the hub cannot reach a browser that is for this process alone")
	}
	b.wanted = false
	b.turn++
	s := b.add(wish{Keeper: hold.Name}, hold)
	s.ours, s.mine = true, launched
	switch {
	case !launched:
		b.o.Log.Info("there is a launched browser: its pages are served, and it is left as it is", "name", hold.Name)
	case hold.URL != "":
		b.o.Log.Info("a browser has been launched", "name", hold.Name, "url", hold.URL)
	default:
		b.o.Log.Info("a browser has been launched", "name", hold.Name)
	}
	return nil
}

// tellOurs has the hub attach to what is ours. It knows already, if it is this process.
func (b *browsers) tellOurs() error {
	b.mu.Lock()
	var ours []wish
	for _, s := range b.known {
		if s.ours && !b.leading {
			ours = append(ours, s.wish)
		}
	}
	b.mu.Unlock()
	for _, w := range ours {
		if err := b.tell(w); err != nil {
			return err
		}
	}
	return nil
}

// tellTimeout bounds how long the hub may take to hear of a browser.
const tellTimeout = 5 * time.Second

// tell has the hub attach to a browser.
func (b *browsers) tell(w wish) error {
	if w.check() != nil {
		return fmt.Errorf("the hub attaches to browsers of this machine only, and not to %s", w.URL)
	}
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(b.ctx, tellTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://hub"+browsersPath, bytes.NewReader(text))
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

// ServeHTTP is where a joiner asks the hub to attach to its browser.
func (b *browsers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked wish
	switch {
	case json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&asked) != nil || asked.check() != nil:
		http.Error(w, "Not the description of a browser of this machine.", http.StatusBadRequest)
	default:
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.closed || len(b.known) >= maxWishes {
			http.Error(w, "This hub takes no more browsers.", http.StatusServiceUnavailable)
			return
		}
		b.add(asked, nil)
		w.WriteHeader(http.StatusNoContent)
	}
}

// close gives up the holds on what was launched. Where one of them was the last, it returns when nothing is left of the
// browser, or ctx ends.
func (b *browsers) close(ctx context.Context) {
	b.mu.Lock()
	b.closed = true
	known := slices.Clone(b.known)
	b.mu.Unlock()
	b.stop() // what is about to be launched, or joined
	done := make(chan struct{})
	go func() {
		var all sync.WaitGroup
		for _, s := range known {
			all.Go(func() {
				if <-s.joined; s.hold != nil {
					s.hold.Leave(ctx)
				}
			})
		}
		all.Wait()
		b.tasks.Wait()
		if b.dir != nil {
			b.dir.Close()
		}
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
