// Package cdp brings the pages of a browser to a gateway by the Chrome DevTools Protocol.
//
// Run attaches to every tab and frame of a browser. A document becomes a page of the gateway in one
// of two ways. A document with Pagewire, its own or our page layer, speaks the link through a
// binding. A document without, in a browser with WebMCP, has its tools offered (webmcp.go). Where
// the user has named its origin, a document has a source of what it shows, too (shown.go,
// shown.js). link.go is the connection, and has the calls that wait for an answer; message.go
// decodes messages, and drops those that are too long; tabs.go is the state of the browser;
// document.go one document; attach.js is the script in each.
//
// The browser names a document's origin, never the page. One document cannot speak for another.
// Each document has a binding of its own: if it floods the gateway, only that binding is cut off.
//
// It enables no domains that make a browser keep a copy of a page or show that it is watched (CSS,
// Network, Debugger; DOM only while a person points at a part: pick.go), never closes a tab, never
// acts in a page, and never waits for a page while it reads from the browser.
package cdp

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// Options configure Run.
type Options struct {
	// URL is the browser's address: http://127.0.0.1:9222, or its WebSocket,
	// ws://HOST:PORT/devtools/browser/ID.
	URL string
	// Dial connects to a browser that does not listen. URL then only names the browser in errors.
	// Default: dial URL.
	Dial func(ctx context.Context) (Conn, error)
	// Source is PageInfo.Source of its pages. Launched means that Pagewire launched it.
	Source   string
	Launched bool
	// Inject gives the page layer to documents without Pagewire. It needs a binary with page files.
	Inject bool
	// Extension is the origin of Pagewire's extension, which is told the keys of its browser's
	// tabs.
	Extension string
	// Gateway is this gateway's host and port, or "". Of two gateways of one address, the later one
	// takes over a page.
	Gateway string
	// Connected is called when the browser has accepted the connection, and Looked when the pages
	// that were open then are known. Each may be nil. Run may end before it calls them.
	Connected, Looked func()
	// Picks let a person point at parts of pages. Default none.
	Picks *Picks
	// Log receives the log. Default none.
	Log *slog.Logger
}

// dialTimeout bounds how long the browser may take to accept us. Chrome 144 and later may ask its
// user.
const dialTimeout = 60 * time.Second

// pageLayer is dist/pagewire.inject.js. Tests, which are built without the page files, read it from
// dist.
var pageLayer = assets.Inject

// pageReader returns dist/pagewire.shown.js and dist/pagewire.pick.js.
var pageReader = assets.Shown

// Run attaches the present and future pages of all tabs and frames of a browser to g. It returns
// nil when ctx ends, or the reason when the browser is lost. The pages end with it; subscriptions
// wait in g for their return.
func Run(ctx context.Context, g *gateway.Gateway, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var script string
	if o.Inject {
		var err error
		if script, err = pageLayer(); err != nil {
			return fmt.Errorf("inject the page layer: %w", err)
		}
	}
	reader, picker, err := pageReader()
	if err != nil {
		o.Log.Debug("what pages show is not served", "reason", err)
	}
	conn, err := reach(ctx, o)
	if err != nil {
		return err
	}
	if o.Connected != nil {
		o.Connected()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	b := &attachment{link: newLink(conn), g: g, o: o, ctx: ctx, inject: script, reader: reader,
		picker: picker, looked: o.Looked, name: cryptorand.Text()[:8],
		sessions: map[string]*session{}, tabs: map[string]*tab{}}
	// The first id is random: a launched browser may still answer the connection before.
	// Started.Open has the upper half.
	b.link.last = rand.Int64N(1 << 30)
	var ended sync.WaitGroup
	defer ended.Wait()
	ended.Go(b.link.write)
	ended.Go(func() {
		<-ctx.Done()
		b.leave()
		conn.Close()
	})
	defer o.Picks.add(b)()
	b.start()
	err = b.link.read(b.handle)
	lost := ctx.Err() == nil
	stop()
	b.close()
	if !lost {
		return nil
	}
	return fmt.Errorf("the browser at %s is gone: %w", o.URL, err)
}

func reach(ctx context.Context, o Options) (Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if o.Dial != nil {
		return o.Dial(ctx)
	}
	address, err := socketOf(ctx, o.URL)
	if err != nil {
		return nil, err
	}
	return dialSocket(ctx, address)
}

// socketOf returns the WebSocket of a browser. It asks the browser if the URL does not have it.
func socketOf(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf(
			"%q is not the URL of a browser: it must be like http://127.0.0.1:9222", address)
	}
	switch u.Scheme {
	case "ws", "wss":
		if strings.HasPrefix(u.Path, "/devtools/browser/") {
			return address, nil
		}
		u.Scheme = "http" + strings.TrimPrefix(u.Scheme, "ws")
	case "http", "https":
	default:
		return "", fmt.Errorf("%q is not the URL of a browser: it must begin with http:// or ws://",
			address)
	}
	u.Path, u.RawQuery, u.Fragment = "/json/version", "", ""
	r, err := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err // without the address, which the message has
		}
		return "", fmt.Errorf(
			"no browser answers at %s (is it started with --remote-debugging-port?): %w", address,
			err)
	}
	defer response.Body.Close()
	var version struct {
		Socket string `json:"webSocketDebuggerUrl"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&version)
	if err != nil || !strings.HasPrefix(version.Socket, "ws") {
		return "", fmt.Errorf(
			"what listens at %s is no browser: it does not say its webSocketDebuggerUrl (HTTP %d)",
			address, response.StatusCode)
	}
	return version.Socket, nil
}
