// Package inspect shows a gateway's state and work to a person, and to a monitoring system: the
// inspector page at /, metrics for Prometheus at /metrics, and a health check at /healthz. At /demo/
// is a page that agents can see, for a first try.
//
// It answers every request: package access decides which requests reach it. The page's files are
// the same for all users and hold no state. The state comes over the feed, after Options.Admit.
//
// Pages are not trusted. Their texts are shown only as text, under a policy that lets the inspector
// only run its own script and talk to its own server. The package observes only while an inspector
// is open: otherwise it taps no message and takes no snapshot. Its memory for each inspector is
// bounded. It never changes anything.
package inspect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"html"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"path"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/proof"
	"github.com/pagewire/pagewire/bridge/internal/quota"
)

// Options configure a Handler.
type Options struct {
	// Version is shown by the page and /metrics. Default "0".
	Version string
	// Log receives a record of each opened inspector. Default none.
	Log *slog.Logger
	// Admit is called for each feed before anything is sent on it. It may exchange messages; the
	// client's first message is for Admit. An error refuses the feed, and the client gets its text.
	// Nil admits all.
	Admit func(ctx context.Context, r *http.Request, m proof.Messages) error
	// Refused, if it is set, counts refused requests by reason, for /metrics.
	Refused func() map[string]int64
	// Files are the page's files, for its developers. Default: the files in the binary.
	Files fs.FS
}

// A Handler serves the inspector of a gateway. Make one with New.
type Handler struct {
	http.Handler
	g      *gateway.Gateway
	opt    Options
	taps   taps
	places chan struct{} // one for each open inspector
	// strangers are the feeds before Admit. Above maxStrangers, one of the origin with most of them
	// is closed.
	strangers *quota.Backlog[*websocket.Conn]
}

// maxInspectors is how many may be open at once. Each holds up to 1 MiB of messages.
const maxInspectors, maxStrangers = 16, 16

// New returns a gateway's Handler. A gateway can have only one, since it takes the gateway's Tap.
func New(g *gateway.Gateway, o Options) *Handler {
	o.Version, o.Log = cmp.Or(o.Version, "0"), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	h := &Handler{g: g, opt: o, places: make(chan struct{}, maxInspectors)}
	h.strangers = quota.NewBacklog(maxStrangers, func(ws *websocket.Conn) { _ = ws.CloseNow() })
	h.taps.g, h.taps.logs = g, map[*ring]bool{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, "index.html")
	})
	mux.HandleFunc("GET /inspector/{file}", func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, r.PathValue("file"))
	})
	mux.HandleFunc("GET /demo/{$}", func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, "demo.html")
	})
	mux.HandleFunc("GET /feed", h.feed)
	mux.HandleFunc("GET /metrics", h.serveMetrics)
	mux.HandleFunc("GET /healthz", h.health)
	h.Handler = headers(mux)
	return h
}

// Busy reports whether an inspector is open.
func (h *Handler) Busy() bool { return len(h.places) > 0 }

// policy is the page's Content-Security-Policy. 'self' covers the feed, a WebSocket of the same
// origin.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers adds the security headers to every answer.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{"Content-Security-Policy": policy,
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control":                "no-store",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin"} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

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
	if errors.Is(err, assets.ErrNone) && path.Ext(name) == ".html" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte(unbuilt))
		return
	}
	var content []byte
	if err == nil {
		content, err = fs.ReadFile(files, name)
	}
	if layer, none := assets.FS(); err != nil && none == nil {
		content, err = fs.ReadFile(layer, name) // the demo is a page of Pagewire
	}
	if err != nil {
		http.NotFound(w, r)
		return
	}
	// This list is our own, because the system's type of .js differs between machines.
	w.Header().Set("Content-Type", map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".css": "text/css; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml",
	}[path.Ext(name)])
	if name == "demo.html" {
		content = bytes.ReplaceAll(content, []byte("127.0.0.1:7433"), []byte(html.EscapeString(r.Host)))
	}
	w.Write(content)
}

// health answers that the gateway works. It needs no token.
func (h *Handler) health(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"ok"}`+"\n") // the client may have gone
}
