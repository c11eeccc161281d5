package main

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"

	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/demo/step"
)

// page is the service's page for a user.
const page = `<!doctype html><html lang=en><title>Cart of %[1]s</title><link rel=icon href=data:,>
<script src=/pagewire.js data-gateway="%[2]s" data-ticket="/pagewire-ticket?user=%[1]s"></script>
<h1>Cart of %[1]s</h1><input id=cart value="bread">
<script>
	const cart = document.getElementById("cart"), uri = location.origin + "/cart";
	navigator.modelContext.registerResource({
		uri, name: "Cart", mimeType: "application/json", read: () => JSON.stringify({ of: "%[1]s", items: cart.value }),
	});
	addEventListener("input", () => navigator.modelContext.notifyResourceUpdated(uri));
</script>`

// serveSite serves the service's pages and tickets until the listener is closed.
func serveSite(gateway string, login *issuertest.Issuer) net.Listener {
	l := step.Must(net.Listen("tcp", "127.0.0.1:0"))
	origin := "http://" + l.Addr().String()
	files := http.FileServer(http.Dir(dist))
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := r.URL.Query().Get("user")
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, page, html.EscapeString(url.QueryEscape(user)), gateway)
		case "/pagewire-ticket": // a real service checks its own session here
			_, _ = io.WriteString(w, login.Ticket(user, origin))
		default:
			files.ServeHTTP(w, r)
		}
	}))
	return l
}

// A balancer passes each request to the next node that accepts connections. It does not know
// sessions.
type balancer struct {
	nodes []*node

	mu    sync.Mutex
	turn  int
	pages []*node // nodes that got pages' connections, in order
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The body is read before the request is passed on: a ReverseProxy that streams it may cut off
	// an early answer.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	for range b.nodes {
		n := b.next()
		c, err := net.Dial("tcp", n.listen)
		if err != nil {
			continue // it is dead
		}
		c.Close()
		if r.URL.Path == "/page" {
			b.mu.Lock()
			b.pages = append(b.pages, n)
			b.mu.Unlock()
		}
		p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: n.listen})
		p.FlushInterval = -1
		p.ErrorLog = log.New(io.Discard, "", 0) // errors of the killed node
		p.ServeHTTP(w, r)
		return
	}
	http.Error(w, "no node", http.StatusBadGateway)
}

func (b *balancer) next() *node {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	return b.nodes[b.turn%len(b.nodes)]
}

func (b *balancer) passed() []*node {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.pages)
}
