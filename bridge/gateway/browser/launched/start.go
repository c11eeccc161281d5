//go:build !js

package launched

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
)

// Options say how a browser is started.
type Options struct {
	// Window shows one; else the browser is headless.
	Window bool
	// Open are the URLs of the first tabs; none means about:blank.
	Open []string
	// Flags are the browser's, besides ours.
	Flags []string
	// DebugPort is the TCP port where the browser listens besides, for every process of the machine. "0" is one that
	// the system chooses, "" none.
	DebugPort string
	// Inject says that pages which have no page layer are to get one.
	Inject bool
	// Log receives what happens. Default none.
	Log *slog.Logger
}

const (
	// startTime is how long a browser may take until it answers. Ours takes 0.3 s, an update's first start several.
	startTime = 30 * time.Second
	// listenTime is how long it may take to listen on its DebugPort when it answers already.
	listenTime = 5 * time.Second
	// closeTime is how long it may take to close, which takes 0.1 s.
	closeTime = 2 * time.Second
)

// An Ending is how a launched browser has ended.
type Ending string

const (
	// Closed: by its user, or since nobody needs it any more.
	Closed Ending = "closed"
	// Crashed: it has died.
	Crashed Ending = "crashed"
)

// A Started browser is a child of this process.
type Started struct {
	// URL is where it listens besides, if Options say that it should.
	URL string

	piped   *browser.Piped
	profile *profile
	clean   chan struct{}
}

// Start starts a browser, in the environment of this process, and returns when it can be used. ctx bounds the start
// alone. The browser ends when the last copy of its pipe is closed.
func Start(ctx context.Context, o Options) (*Started, *Browser, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	profile, err := newProfile()
	if err != nil {
		return nil, nil, err
	}
	go func() {
		_, left := sweep() // what killed processes have left
		for _, err := range left {
			o.Log.Warn("after a launched browser", "error", err)
		}
	}()
	adopt()
	s := &Started{profile: profile, clean: make(chan struct{})}
	if s.piped, err = browser.StartPiped(browser.StartOptions{
		Options: browser.Options{Window: o.Window, Flags: o.Flags}, Open: o.Open,
		Profile: profile.path, DebugPort: o.DebugPort,
	}, profile.mark); err != nil {
		profile.remove()
		return nil, nil, err
	}
	go func() {
		defer close(s.clean)
		<-s.piped.Done()
		reap()
		if err := profile.remove(); err != nil {
			o.Log.Warn("after a launched browser", "error", err)
		}
	}()
	b := newBrowser(s.piped.To, s.piped.From)
	if err := s.prepare(ctx, b, o); err != nil {
		s.piped.Kill()
		b.close(ctx)
		<-s.clean
		return nil, nil, err
	}
	return s, b, nil
}

// prepare waits until the browser answers, opens tabs, and finds out where it listens.
func (s *Started) prepare(ctx context.Context, b *Browser, o Options) error {
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	conn, err := b.Dial(limited)
	if err != nil {
		return fmt.Errorf("the browser has ended, or not answered within %v: %w: %s", startTime, err, s.piped.Said())
	}
	defer conn.Close()
	defer context.AfterFunc(limited, func() { conn.Close() })()
	for i, url := range o.Open {
		if i == 0 {
			continue // the browser's command line has it; without a window it takes one there
		}
		params, err := json.Marshal(map[string]string{"url": url})
		if err == nil {
			err = conn.call("Target.createTarget", string(params))
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", url, err)
		}
	}
	if o.DebugPort == "" {
		return nil
	}
	select {
	case s.URL = <-s.piped.Listens():
	case <-time.After(listenTime):
	}
	if s.URL == "" {
		return fmt.Errorf("the browser does not listen on port %s: %s", o.DebugPort, s.piped.Said())
	}
	return nil
}

// Done is closed when the browser has ended and nothing of it is left.
func (s *Started) Done() <-chan struct{} { return s.clean }

// How says how it has ended, behind Done.
func (s *Started) How() Ending {
	if s.piped.Crashed() {
		return Crashed
	}
	return Closed
}

// End closes the browser, of which this process alone has the pipe, and returns when nothing of it is left.
func (s *Started) End(b *Browser) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if !b.close(ctx) {
		s.piped.Kill()
	}
	<-s.clean
}
