package process

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/tickets"
)

// A health says whether the process runs (/healthz), and whether more pages and agents may come to
// it (/readyz).
type health struct {
	node   *node.Node
	keys   *tickets.Verifier
	leaves atomic.Bool // the node is to end; stays true
}

func (p *health) handle(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // the client may have gone
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := p.unready(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
}

// unready says why no more pages and agents should come; "" if they may.
func (p *health) unready() string {
	_, keys := p.keys.Keys()
	switch {
	case p.leaves.Load():
		return "the node ends"
	case !p.node.Up():
		return "the bus is not there"
	case p.node.Mismatch():
		return "an older node has another version of the bus"
	case !p.node.Met():
		return "no other node has been heard"
	case !keys:
		return "there are no keys of issuers"
	}
	return ""
}
