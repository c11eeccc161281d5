package socket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/proof"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Options set which pages a desktop's gateway admits.
type Options struct {
	// Extensions lists the ids of extensions that may bring pages of any origin: they ask their
	// user, and know Secret.
	Extensions []string
	// Secret returns the secret of the extension, for each connection. If nil, or on an error, the
	// extension is refused.
	Secret func() (string, error)
	// Refused is called for each refused connection, with "origin" or "proof". May be nil.
	Refused func(reason string, r *http.Request)
	// Log receives what happens. Default none.
	Log *slog.Logger
}

const (
	// maxPerOrigin and maxPages bound the connected documents; of the latter origins have shares.
	// Chromium allows 255 WebSockets in all.
	maxPerOrigin, maxPages = 256, 1024
	// frames bounds the frames under way of all pages together, as a multiple of the largest frame.
	frames = 2
)

// A Handler admits pages to a desktop's gateway. Pages of this machine may connect at once; others
// only if the user has allowed their origin, to all agents or to one that is connected. It takes no
// cookie and no token: a page has neither, and cannot forge its origin. Programs of other users can
// forge one: package access refuses them before. The extension speaks for pages of any origin that
// its user allows. Its worker connects with the extension's origin. Before it names a page, both
// ends prove that they know the secret that `pagewire extension install` has made (package proof).
// The extension's native host has no origin. It connects by a socket that only this user's programs
// reach (Host). Mount the Handler at /page.
type Handler struct {
	*Server
	g *gateway.Gateway
	o Options

	places  quota.Places // of documents, by origin
	origins origins
}

// New returns a Handler that attaches pages to g.
func New(g *gateway.Gateway, o Options) *Handler {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Refused == nil {
		o.Refused = func(string, *http.Request) {}
	}
	return &Handler{Server: NewServer(Limits{Frames: frames}), g: g, o: o,
		origins: origins{all: map[string]*origin{}}}
}

// ServeHTTP serves a page, or the extension.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, is := strings.CutPrefix(r.Header.Get("Origin"), extensionScheme)
	is = is && slices.Contains(h.o.Extensions, id)
	h.serve(w, r, is, is)
}

const extensionScheme = "chrome-extension://"

// Host serves pages of any origin from the extension's native host. Only a socket of this user may
// serve it.
func (h *Handler) Host() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, true, false)
	})
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, extension, proves bool) {
	origin := r.Header.Get("Origin")
	if why := h.refuse(origin, extension); why != "" {
		h.o.Refused("origin", r)
		h.o.Log.Warn("refused a page", "origin", origin, "reason", why)
		http.Error(w, why, http.StatusForbidden)
		return
	}
	h.Take(w, r, &visitor{h: h, r: r, from: origin, extension: extension, proves: proves})
}

// refuse returns the reason why pages of an origin may not connect, and the remedy; or "".
func (h *Handler) refuse(origin string, extension bool) string {
	switch {
	case extension:
		return "" // the hello has the page's origin
	case origin == "":
		return "Only pages connect here, from a browser, which sends an Origin."
	case origin == "null":
		return "A page of no origin of its own, such as a file or a sandboxed frame, may not " +
			"connect."
	}
	allowed := weborigin.IsLoopback(origin)
	for _, pattern := range h.g.AllowedOrigins() {
		allowed = allowed || weborigin.Match(pattern, origin)
	}
	switch {
	case strings.HasPrefix(origin, extensionScheme):
		return "This extension is not one that the gateway knows."
	case !allowed:
		return "Pages of " + origin + " may not connect: start the gateway with --allow-origin " +
			origin +
			" if they should."
	case !h.g.Admits(origin):
		return "Pages of " + origin + " are not served: the gateway was started so."
	}
	return ""
}

// A visitor is a page that connects to a desktop: a Guest, and then a Page.
type visitor struct {
	h         *Handler
	r         *http.Request
	from      string // of the connection
	extension bool   // the connection is the extension's, and the page has another origin
	proves    bool
	conn      *wsconn.Conn
	of        *origin // of the page; nil until it is known
	leave     func()  // gives back its place
	*gateway.Page
}

// Greet makes the extension prove itself, and makes a page wait for its turn.
func (v *visitor) Greet(ctx context.Context, c *wsconn.Conn) error {
	v.conn = c
	if v.h.Len() > maxPages {
		return v.refuse(fmt.Sprintf("the gateway has %d documents, and takes no more", maxPages),
			true)
	}
	if v.proves {
		if err := v.h.prove(ctx, v.r, c); err != nil {
			v.h.o.Refused("proof", v.r)
			v.h.o.Log.Info("the extension did not prove itself", "error", err)
			return v.refuse(notProved, false)
		}
	}
	if v.extension {
		return nil
	}
	return v.enter(v.from)
}

func (v *visitor) refuse(says string, later bool) error {
	v.h.o.Log.Warn("refused a page", "origin", v.from, "reason", says)
	return &Refusal{says, later}
}

const notProved = "it is not proved that this is the extension of the gateway's user: pagewire " +
	"extension install"

// prove lets the extension and this end prove to each other that they know the secret.
func (h *Handler) prove(ctx context.Context, r *http.Request, conn *wsconn.Conn) error {
	if h.o.Secret == nil {
		return errors.New("there is no secret")
	}
	secret, err := h.o.Secret()
	if err != nil {
		return err
	}
	hello, err := conn.ReadNote(ctx)
	if err != nil {
		return err
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr) // net/http has put it there
	return proof.Accept(ctx, conn.Notes(), hello, secret, local.String())
}

// enter counts the page for its origin, and waits until the origin may connect.
func (v *visitor) enter(name string) error {
	of, pages, pause, why := v.h.origins.enter(name)
	v.of = of
	if pages > maxPerOrigin && !v.extension {
		why = fmt.Sprintf("the gateway has %d documents of %s, and takes no more", maxPerOrigin,
			name)
	}
	var ok bool
	if v.leave, ok = v.h.places.Try(name, quota.Room{Places: maxPages}); !ok {
		why = fmt.Sprintf("the gateway has places for %d documents, and takes no more of %s: it "+
			"leaves some to others",
			maxPages, name)
	}
	switch {
	case why != "":
		return v.refuse(why, true)
	case pause == 0:
		return nil
	}
	select {
	case <-time.After(pause):
		return nil
	case <-v.conn.Closed():
		return net.ErrClosed
	}
}

// Admit accepts the hello's origin only from the extension.
func (v *visitor) Admit(about link.About) (owner, origin string, err error) {
	if !v.extension {
		return v.from, v.from, nil
	}
	name := strings.Clone(about.Origin) // so that the frame can be freed
	if name != frontOrigin && name != tabsOrigin && (!isWebOrigin(name) || !v.h.g.Admits(name)) {
		return "", "", v.refuse("pages of this origin are not served", false)
	}
	if about.Shown {
		return name, name + " shown", v.enter(name) // beside the page's own document in the tab
	}
	return name, name, v.enter(name)
}

// Attach attaches the page to the gateway. The extension's connection without a page becomes a
// front.
func (v *visitor) Attach(about link.About, tab, given string, send func([]byte)) (Page, error) {
	origin := v.of.name
	info := gateway.PageInfo{Tab: tabKey(origin, tab), Given: given, Frame: about.Frame,
		Origin: origin,
		URL:    origin + "/", Transport: "websocket", Focused: about.Focused}
	info.Browser = gateway.BrowserOf(v.r.UserAgent())
	if v.extension {
		info.Transport, info.Browser = "extension", gateway.BrowserOf(about.Browser)
		info.Profile, info.Window = strings.Clone(about.Profile), strings.Clone(about.Window)
		info.Shown, info.Granted = about.Shown, about.Shown
		info.Target = strings.Clone(about.Target)
		if origin == frontOrigin {
			return &front{g: v.h.g, conn: v.conn, browser: info, end: v.h.g.TellsFront()}, nil
		}
		if origin == tabsOrigin {
			return newCounter(v.h.g, v.conn, info, send), nil
		}
	}
	if strings.HasPrefix(about.URL, info.URL) {
		info.URL = about.URL
	}
	if about.Title != nil {
		info.Title = *about.Title
	}
	var err error
	v.Page, err = v.h.g.Attach(info, send)
	return v, err
}

// Note refuses every note: a desktop's page sends none.
func (v *visitor) Note([]byte) error {
	return v.refuse("a note where the link's frames are to be", false)
}

// LetGo counts the pages of an origin that were dropped for breaking the rules.
func (v *visitor) LetGo(err error) {
	v.h.o.Log.Warn("a page was let go", "origin", v.from, "reason", err)
	if errors.Is(err, wsconn.ErrNoRoom) || v.Page == nil && errors.Is(err, wsconn.ErrTooLong) {
		v.h.g.CountRefused(err.Error())
	}
	if v.of != nil {
		v.h.origins.dropped(v.of)
	}
}

// Lost tells the end of a page from that of the extension's worker or host, which for a document
// that has gone close in order.
func (v *visitor) Lost(err error) {
	code := websocket.CloseStatus(err)
	if v.extension && code != websocket.StatusNormalClosure && code != websocket.StatusNoStatusRcvd {
		v.Away("its extension's connection ended")
		return
	}
	v.Page.Lost("its connection ended")
}

// Leave counts the page off its origin.
func (v *visitor) Leave() {
	if v.leave != nil {
		v.leave()
	}
	if v.of != nil {
		v.h.origins.leave(v.of)
	}
}

// Receive passes a frame on when it is the origin's turn. Calls also wait until the origin has
// credit. Answers do not.
func (v *visitor) Receive(frame []byte) error {
	o := v.of
	calls := len(frame) > 0 && frame[0] == '['
	if calls {
		if !o.await(v.conn.Closed()) {
			return nil
		}
		defer o.awaited()
	}
	o.turn.Lock()
	defer o.turn.Unlock()
	before := v.Worked()
	err := v.Page.Receive(frame)
	if calls {
		now := time.Now()
		o.rests = now.Add(o.spend(now, v.Worked()-before))
	}
	return err
}
