//go:build !js

// Package inspect shows a person, and a monitoring system, what a gateway holds and does: the inspector page at /, metrics for
// Prometheus at /metrics, and a word of life at /healthz.
//
// The page is data's way out to a person's eyes, and pages are not trusted: what they say is shown as text and nothing else, under
// a policy that lets the inspector run its own script and talk to its own server, no more. The package watches only while
// somebody looks: without an open inspector it taps no message, takes no snapshot and holds no session; all that it holds for
// one is bounded. It never changes anything: it lists, reads and subscribes, as an agent does.
package inspect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/assets"
	"github.com/pagewire/pagewire/bridge/gateway/internal/bearer"
)

// Options say how a Handler behaves.
type Options struct {
	// Version is what /healthz and the page tell. Default "0".
	Version string
	// Log receives who opens the inspector. Default none.
	Log *slog.Logger
	// Token, if it is set, is asked of everybody: as a bearer token, or once as ?token= in the address of the page.
	// Without it only requests from this machine, to a loopback name, are answered.
	Token string
	// Origins are those, besides its own, whose pages may have the feed: the extension's side panel.
	Origins []string
	// Files are those of the page, for who works on it. Default: those in the binary.
	Files fs.FS
}

type handler struct {
	g      *gateway.Gateway
	opt    Options
	start  time.Time
	cookie string // what a browser holds in place of the token
	taps   taps
	places chan struct{} // one for each open inspector
}

// maxInspectors is how many may be open at once. Each holds a session of the gateway, and up to 1 MiB of messages.
const maxInspectors = 16

// Handler serves the inspector of a gateway. There must be one for a gateway, since it takes the gateway's Tap.
func Handler(g *gateway.Gateway, o Options) http.Handler {
	if o.Version == "" {
		o.Version = "0"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{g: g, opt: o, start: time.Now(), places: make(chan struct{}, maxInspectors)}
	h.taps.g = g
	// Derived from the token and not the token: a browser sends the cookies of 127.0.0.1 to every port of it.
	sum := sha256.Sum256([]byte("pagewire inspector\n" + o.Token))
	h.cookie = hex.EncodeToString(sum[:])
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.page)
	mux.HandleFunc("GET /inspector/{file}", h.file)
	mux.HandleFunc("GET /feed", h.feed)
	mux.Handle("GET /metrics", metrics(h))
	mux.HandleFunc("GET /healthz", h.health)
	return h.admit(mux)
}

// policy is the page's. The feed is a WebSocket of the same origin, which 'self' covers.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// admit lets those in who may look, and puts the headers on everything.
func (h *handler) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		switch {
		case h.opt.Token == "":
			// The name keeps out a site that has pointed its own name here, the address whoever writes what he likes into Host.
			if !gateway.IsLoopback("http://"+r.Host) || !fromLoopback(r.RemoteAddr) {
				http.Error(w, "pagewire: the inspector is only at http://127.0.0.1 and http://localhost, for this machine", http.StatusForbidden)
				return
			}
		case r.URL.Path == "/healthz": // says nothing of pages
		case r.URL.Path == "/" && bearer.Same(r.URL.Query().Get("token"), h.opt.Token):
			http.SetCookie(w, &http.Cookie{Name: cookieName, Value: h.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, "/", http.StatusSeeOther) // the token leaves the address bar
			return
		case !h.hasToken(r):
			header.Set("WWW-Authenticate", "Bearer")
			http.Error(w, "pagewire: the inspector needs the token: open /?token=… once, with what is in the token file", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const cookieName = "pagewire_inspector"

func (h *handler) hasToken(r *http.Request) bool {
	if bearer.Has(r, h.opt.Token) {
		return true
	}
	cookie, err := r.Cookie(cookieName)
	return err == nil && bearer.Same(cookie.Value, h.cookie)
}

func fromLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (h *handler) page(w http.ResponseWriter, r *http.Request) { h.serve(w, r, "index.html") }

func (h *handler) file(w http.ResponseWriter, r *http.Request) { h.serve(w, r, r.PathValue("file")) }

const unbuilt = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Pagewire</title>
<h1>Pagewire runs, without its inspector</h1>
<p>This binary was built without its page files. Build it with <code>make build</code> (<code>go build -tags pagewire_assets</code>).</p>
<p>What a program can use is here all the same: <a href="/metrics">metrics</a>, <a href="/healthz">health</a>.</p>
`

func (h *handler) serve(w http.ResponseWriter, r *http.Request, name string) {
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

// health says that the gateway answers, and how much it has to do.
func (h *handler) health(w http.ResponseWriter, r *http.Request) {
	s := h.g.Snapshot()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct { // whoever asked may have gone
		Version   string `json:"pagewire"`
		Status    string `json:"status"`
		Uptime    int64  `json:"uptimeSeconds"`
		Pages     int    `json:"pages"`
		Agents    int    `json:"agents"`
		Resources int    `json:"resources"`
	}{h.opt.Version, "ok", int64(time.Since(h.start).Seconds()), len(s.Pages), len(s.Agents), len(s.Resources)})
}
