//go:build !js

// Package inspect shows a person, and a monitoring system, what a gateway holds and does: the inspector page at /,
// metrics for Prometheus at /metrics, and a word of life at /healthz.
//
// It answers every request: package access decides which ones come here. The page itself holds nothing, and its files
// are the same for everybody. What it shows comes over the feed, behind Options.Admit.
//
// The inspector shows a person what pages say, and pages are not trusted. What they say is shown as text and nothing
// else, under a policy that lets the inspector run its own script and talk to its own server, and no more. The
// package watches only while somebody looks. Without an open inspector it taps no message and takes no snapshot. What
// it holds for one is bounded. It never changes anything.
package inspect

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"path"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/assets"
	"github.com/pagewire/pagewire/bridge/gateway/internal/proof"
)

// Options say how a Handler behaves.
type Options struct {
	// Version is what the page and /metrics tell. Default "0".
	Version string
	// Log receives who opens the inspector. Default none.
	Log *slog.Logger
	// Admit is asked about each feed before anything is sent on it; it may speak with the other end, whose first
	// message is for it. An error refuses the feed, and its text is for the other end. Nil admits all.
	Admit func(ctx context.Context, r *http.Request, m proof.Messages) error
	// Refused, if it is set, says how many requests were refused, by reason, for /metrics.
	Refused func() map[string]int64
	// Files are those of the page, for its developers. Default: those in the binary.
	Files fs.FS
}

// A Handler serves the inspector of a gateway. Make one with New.
type Handler struct {
	http.Handler
	g      *gateway.Gateway
	opt    Options
	taps   taps
	places chan struct{} // one for each open inspector
}

// maxInspectors is how many may be open at once. Each holds up to 1 MiB of messages.
const maxInspectors = 16

// New returns a gateway's Handler. There must be one for a gateway, since it takes the gateway's Tap.
func New(g *gateway.Gateway, o Options) *Handler {
	if o.Version == "" {
		o.Version = "0"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{g: g, opt: o, places: make(chan struct{}, maxInspectors)}
	h.taps.g = g
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.page)
	mux.HandleFunc("GET /inspector/{file}", h.file)
	mux.HandleFunc("GET /feed", h.feed)
	mux.HandleFunc("GET /metrics", h.serveMetrics)
	mux.HandleFunc("GET /healthz", h.health)
	h.Handler = headers(mux)
	return h
}

// Busy reports whether an inspector is open.
func (h *Handler) Busy() bool { return len(h.places) > 0 }

// policy is the page's. The feed is a WebSocket of the same origin, which 'self' covers.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers puts on everything what a browser is to keep to.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (h *Handler) page(w http.ResponseWriter, r *http.Request) { h.serve(w, r, "index.html") }

func (h *Handler) file(w http.ResponseWriter, r *http.Request) { h.serve(w, r, r.PathValue("file")) }

const unbuilt = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Pagewire</title>
<h1>Pagewire runs, without its inspector</h1>
<p>This binary was built without its page files. Build it with <code>make build</code> (<code>go build -tags pagewire_assets</code>).</p>
<p>What a program can use is here all the same: /metrics, with the token, and <a href="/healthz">/healthz</a>.</p>
`

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, name string) {
	files, err := h.opt.Files, error(nil)
	if files == nil {
		files, err = assets.Inspector()
	}
	if errors.Is(err, assets.ErrNone) && name == "index.html" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte(unbuilt))
		return
	}
	var content []byte
	if err == nil {
		content, err = fs.ReadFile(files, name)
	}
	if err != nil {
		http.NotFound(w, r)
		return
	}
	// By a list of our own: what the system's says of .js differs from machine to machine.
	w.Header().Set("Content-Type", map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	}[path.Ext(name)])
	w.Write(content)
}

// health says that the gateway answers, and nothing else: no token is needed for it.
func (h *Handler) health(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"ok"}`+"\n") // the client may have gone
}
