//go:build !js

// Package socket brings in the pages that come by themselves, by WebSocket: those with data-gateway in their script tag, and
// those that a browser extension speaks for. One WebSocket is one document, and one MCP session with it.
//
// Who a page is says the browser, in the Origin header, and nobody else: a page's own word counts for what concerns
// nobody but it, such as its title. Pages of this machine may connect at once; others only when the user has allowed their
// origin. It takes no cookie and no token of a page: one has neither, and the origin cannot be forged by one. A program can
// forge it; package access, before this one, lets no other user's in where the kernel tells.
//
// The extension speaks for pages of any origin that its user allows: by its worker, which a browser gives the extension's
// origin, or by its native host, which has none. Both ends then prove first that they know the secret that
// `pagewire extension install` has made (package proof), before anything of a page is said.
//
// The protocol is that of package wsconn at /page, with three notes. A page begins with
//
//	{"type":"pagewire:page","tab":ID,"frame":"0.1","title":…,"url":…,"focused":MS}
//
// and sends it again, with what is new in it, when its title or its focus changes. tab is what its sessionStorage holds, so
// that it survives a reload; focused is when its window had the focus last (milliseconds since 1970; 0: never). An
// extension adds "origin", and says "gone":true when its user has withdrawn what was allowed, so that the page is not waited
// for. The gateway's only note is {"type":"pagewire:tab","tab":ID}: the page is in a tab of its own, namely one that was
// duplicated, sessionStorage included, and has this id from now on.
package socket

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/proof"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
)

// Options say whose pages are taken.
type Options struct {
	// AllowOrigins lists the origins, besides those of this machine, whose pages may connect; patterns as in
	// gateway.Options.Allow.
	AllowOrigins []string
	// Extensions lists the ids of browser extensions that may bring pages of any origin: they ask their user, and prove that
	// they know Secret.
	Extensions []string
	// Secret gives what the extension and its native host must prove that they know. It is asked for each time: the extension
	// may be installed while the gateway runs. Nil, or an error, refuses both.
	Secret func() (string, error)
	// Refused is told of each connection that is refused, for who counts them: "origin" or "proof". May be nil.
	Refused func(reason string, r *http.Request)
	// Log receives what happens. Default none.
	Log *slog.Logger
}

const (
	// maxHello bounds what comes before a page is known: a title may be long, and is cut.
	maxHello = 64 << 10
	// maxMessage bounds a message of a page, in bytes. Its engine gives out 16 MiB of contents at most, which is more in UTF-8.
	maxMessage = 32 << 20
	// maxPerOrigin and maxPages bound the documents that are connected. Chromium has 255 WebSockets in all.
	maxPerOrigin, maxPages = 256, 1024
	// helloTimeout is how long a page may take to introduce itself.
	helloTimeout = 10 * time.Second
	// aliveTimeout is how long a document may take to show that it still has a tab that another one claims.
	aliveTimeout = 2 * time.Second
	// rate is how many messages a document may send in a second; burst at once. What comes faster waits in its browser. A
	// page's engine sends 1,000 updates in a second at most, and reads one behind the other take about 0.8 ms each.
	rate, burst = 5_000, 10_000
	maxTitle    = 1 << 10
	maxURL      = 8 << 10
)

// A Handler takes the WebSockets of pages. Mount it at /page.
type Handler struct {
	g *gateway.Gateway
	o Options

	mu      sync.Mutex
	closing bool
	pages   map[*document]bool
	origins map[string]int     // how many of each
	seats   map[seat]*document // who is where
	focused float64            // when the window that had the focus last had it
	gone    sync.WaitGroup
}

// A seat is a place for one document.
type seat struct{ tab, frame string }

// A document is one that is connected.
type document struct {
	h      *Handler
	conn   *wsconn.Conn
	log    *slog.Logger
	tokens float64 // of the rate; whoever reads has them
	filled time.Time
	slowed bool
	done   chan struct{}

	mu    sync.Mutex
	tab   string // gateway.PageInfo.Tab
	title string
	gone  bool          // hello.Gone was said
	page  *gateway.Page // once it is attached
}

// New returns a Handler that attaches pages to g.
func New(g *gateway.Gateway, o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(string, *http.Request) {}
	}
	return &Handler{g: g, o: o, pages: map[*document]bool{}, origins: map[string]int{}, seats: map[seat]*document{}}
}

// Close ends all connections and takes no more. It returns when they are gone, within a second.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.closing = true
	for d := range h.pages {
		go d.conn.CloseWith(websocket.StatusGoingAway, "the gateway goes away")
	}
	h.mu.Unlock()
	h.gone.Wait()
	return nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	extension := h.isExtension(origin) || len(r.Header.Values("Origin")) == 0 // no browser leaves it out: it is the native host
	if why := h.refuse(origin, extension); why != "" {
		h.o.Refused("origin", r)
		h.o.Log.Warn("refused a page", "origin", origin, "reason", why)
		http.Error(w, why, http.StatusForbidden)
		return
	}
	d := &document{h: h, log: h.o.Log.With("origin", origin), tokens: burst, filled: time.Now(), done: make(chan struct{})}
	conn, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxHello, Note: d.note})
	if err != nil {
		return // it has been answered
	}
	d.conn = conn
	if why := h.enter(d, origin, extension); why != "" {
		d.log.Warn("refused a page", "reason", why)
		conn.CloseWith(websocket.StatusTryAgainLater, why)
		return
	}
	defer h.leave(d, origin)
	if extension {
		if err := h.prove(r, conn); err != nil {
			h.o.Refused("proof", r)
			d.log.Warn("refused who says that it is the extension", "error", err)
			conn.CloseWith(websocket.StatusPolicyViolation, notProved)
			return
		}
	}
	d.serve(origin, extension)
}

const notProved = "it is not proved that this is the extension of the gateway's user: pagewire extension install"

// prove has the extension, or its native host, and this end prove to each other that they know the secret.
func (h *Handler) prove(r *http.Request, conn *wsconn.Conn) error {
	if h.o.Secret == nil {
		return errors.New("there is no secret")
	}
	secret, err := h.o.Secret()
	if err != nil {
		return err
	}
	ctx, end := context.WithTimeout(context.Background(), helloTimeout)
	defer end()
	hello, err := conn.ReadNote(ctx)
	if err != nil {
		return err
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr) // net/http has put it there
	return proof.Accept(ctx, conn.Notes(), hello, secret, local.String())
}

func (h *Handler) isExtension(origin string) bool {
	for _, id := range h.o.Extensions {
		if origin == "chrome-extension://"+id {
			return true
		}
	}
	return false
}

// refuse says why pages of an origin may not connect, and what to do; or nothing.
func (h *Handler) refuse(origin string, extension bool) string {
	switch {
	case extension:
		return "" // it says later whose page it is
	case origin == "":
		return "A page sends its Origin, and here it is empty."
	case origin == "null":
		return "A page of no origin of its own, such as a file or a sandboxed frame, may not connect."
	}
	allowed := gateway.IsLoopback(origin)
	for _, pattern := range h.o.AllowOrigins {
		allowed = allowed || gateway.MatchOrigin(pattern, origin)
	}
	switch {
	case strings.HasPrefix(origin, "chrome-extension://"):
		return "This extension is not one that the gateway knows."
	case !allowed:
		return "Pages of " + origin + " may not connect: start the gateway with --allow-origin " + origin + " if they should."
	case !h.g.Admits(origin):
		return "Pages of " + origin + " are not served: the gateway was started so."
	}
	return ""
}

// enter returns why one more document cannot be taken, or "".
func (h *Handler) enter(d *document, origin string, extension bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closing:
		return "the gateway goes away"
	case len(h.pages) >= maxPages:
		return fmt.Sprintf("the gateway has %d documents, and takes no more", maxPages)
	case h.origins[origin] >= maxPerOrigin && !extension:
		return fmt.Sprintf("the gateway has %d documents of %s, and takes no more", maxPerOrigin, origin)
	}
	h.pages[d] = true
	h.origins[origin]++
	h.gone.Add(1)
	return ""
}

func (h *Handler) leave(d *document, origin string) {
	d.conn.Close()
	h.mu.Lock()
	delete(h.pages, d)
	if h.origins[origin]--; h.origins[origin] == 0 {
		delete(h.origins, origin)
	}
	for s, holder := range h.seats {
		if holder == d {
			delete(h.seats, s)
		}
	}
	h.mu.Unlock()
	close(d.done)
	h.gone.Done()
}

// A hello is what a page says of itself.
type hello struct {
	Type    string
	Tab     string
	Frame   string
	Title   *string
	URL     string
	Origin  string // of an extension's page
	Focused float64
	Gone    bool // of an extension's page: it will not come back
}

var (
	tabShape   = regexp.MustCompile(`^[A-Za-z0-9-]{8,64}$`)
	frameShape = regexp.MustCompile(`^([0-9]{1,4}(\.[0-9]{1,4}){0,7})?$`)
)

// serve is the life of a document.
func (d *document) serve(origin string, extension bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	limited, end := context.WithTimeout(ctx, helloTimeout)
	text, err := d.conn.ReadNote(limited)
	end()
	var in hello
	if err == nil {
		err = json.Unmarshal(text, &in)
	}
	if err != nil || in.Type != "pagewire:page" || !tabShape.MatchString(in.Tab) || !frameShape.MatchString(in.Frame) {
		d.log.Warn("refused a page that did not introduce itself", "error", err)
		d.conn.CloseWith(websocket.StatusPolicyViolation, "the first message is to be the note that introduces the page")
		return
	}
	d.conn.Limit(maxMessage)
	info := gateway.PageInfo{Frame: in.Frame, Origin: origin, Road: "websocket"}
	if extension {
		info.Origin, info.Road = in.Origin, "extension"
		if u, err := url.Parse(in.Origin); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Scheme+"://"+u.Host != in.Origin || !d.h.g.Admits(in.Origin) {
			d.log.Warn("refused an extension's page", "page", in.Origin)
			d.conn.CloseWith(websocket.StatusPolicyViolation, "pages of this origin are not served")
			return
		}
	}
	if strings.HasPrefix(in.URL, info.Origin+"/") && len(in.URL) <= maxURL {
		info.URL = in.URL
	} else {
		info.URL = info.Origin + "/"
	}
	if in.Title != nil {
		info.Title = shorten(*in.Title)
	}
	// An id is unique among the pages of an origin. Nobody learns another's, but nothing may depend on that.
	info.Tab = d.sit(in, info.Origin)
	if info.Tab == "" {
		return // it has gone meanwhile
	}
	d.mu.Lock()
	d.tab, d.title = info.Tab, info.Title
	d.mu.Unlock()
	d.h.focus(info.Tab, in.Focused)
	page, err := d.h.g.Attach(ctx, info, d)
	if err != nil {
		d.log.Warn("a page that connected could not be attached", "url", info.URL, "error", err)
		return
	}
	d.mu.Lock()
	d.page = page
	title, gone := d.title, d.gone
	d.mu.Unlock()
	if gone {
		page.Close(withdrawn)
	}
	page.Retitle(title) // it may have changed while the page was being attached
	<-page.Done()
}

const withdrawn = "its user has withdrawn what was allowed"

func shorten(title string) string {
	return strings.ToValidUTF8(title[:min(len(title), maxTitle)], "")
}

// sit gives a document its place in a tab, and returns the tab's key. The tab that it names may have one: of the document that
// is being left (its connection is ending, and is waited for), or of the tab that was duplicated, whose document answers a
// ping; then the newcomer's tab is another one. "" means that the newcomer has gone.
func (d *document) sit(in hello, origin string) string {
	h := d.h
	for id := in.Tab; ; {
		s := seat{"page " + origin + " " + id, in.Frame}
		h.mu.Lock()
		holder := h.seats[s]
		if holder == nil {
			h.seats[s] = d
		}
		h.mu.Unlock()
		if holder == nil {
			return s.tab
		}
		if holder.conn.Ping(aliveTimeout) != nil {
			holder.conn.Close()
			<-holder.done
			continue
		}
		id = rand.Text()
		if d.conn.Write(context.Background(), []byte(`{"type":"pagewire:tab","tab":"`+id+`"}`)) != nil {
			return ""
		}
	}
}

// focus tells the gateway that a tab has the focus, if no other has had it since.
func (h *Handler) focus(tab string, at float64) {
	h.mu.Lock()
	at = min(at, float64(time.Now().UnixMilli()))
	newer := at > h.focused
	if newer {
		h.focused = at
	}
	h.mu.Unlock()
	if newer {
		h.g.Focus(tab)
	}
}

// note takes what a page says of itself later.
func (d *document) note(_ *wsconn.Conn, text []byte) {
	d.take()
	var in hello
	if json.Unmarshal(text, &in) != nil || in.Type != "pagewire:page" {
		return
	}
	d.mu.Lock()
	tab, page := d.tab, d.page
	if in.Title != nil {
		d.title = shorten(*in.Title)
	}
	title := d.title
	d.gone = d.gone || in.Gone
	d.mu.Unlock()
	if page != nil {
		page.Retitle(title)
	}
	if page != nil && in.Gone {
		go page.Close(withdrawn) // not here: it waits for who reads
	}
	if in.Focused > 0 {
		d.h.focus(tab, in.Focused)
	}
}

// Read, Write and Close are the document's gateway.Conn.

func (d *document) Read(ctx context.Context) ([]byte, error) {
	d.take()
	message, err := d.conn.Read(ctx)
	if err != nil && err != io.EOF && ctx.Err() == nil {
		d.log.Info("a page's connection failed", "error", err)
	}
	return message, err
}

func (d *document) Write(ctx context.Context, message []byte) error {
	return d.conn.Write(ctx, message)
}

func (d *document) Close() error { return d.conn.Close() }

// take waits until the document may send one more message.
func (d *document) take() {
	now := time.Now()
	d.tokens = min(burst, d.tokens+now.Sub(d.filled).Seconds()*rate) - 1
	d.filled = now
	if d.tokens >= 0 {
		return
	}
	if !d.slowed {
		d.slowed = true
		d.log.Warn("a page sends more than it may, and is slowed down", "messages per second", rate)
	}
	t := time.NewTimer(100 * time.Millisecond) // the tokens of a tenth of a second at a time
	defer t.Stop()
	select {
	case <-t.C:
	case <-d.conn.Closed():
	}
}
