//go:build !js

package process

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/VictoriaMetrics/metrics"
)

// admin is what the node's operators reach.
func (p *process) admin() http.Handler {
	mux := http.NewServeMux()
	p.health(mux)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		p.measure(w)
	})
	return mux
}

// health says whether the process runs (/healthz), and whether more pages and agents may come to it (/readyz).
func (p *process) health(mux *http.ServeMux) {
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
func (p *process) unready() string {
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

// measure writes the metrics, in the format of Prometheus.
func (p *process) measure(w io.Writer) {
	s := p.node.Stats()
	keyless, _ := p.keys.Keys()
	up, ready := 0, 0
	if p.node.Up() {
		up = 1
	}
	if p.unready() == "" {
		ready = 1
	}
	for _, g := range []struct {
		name  string
		value int
	}{
		{"pagewire_node_ready", ready}, {"pagewire_node_issuers_without_keys", keyless},
		{"pagewire_node_bus_up", up}, {"pagewire_node_nodes", s.Nodes}, {"pagewire_node_pages", s.Pages},
		{"pagewire_node_nodes_of_other_version", s.Unlike},
		{"pagewire_node_users_with_pages", s.Users}, {"pagewire_node_users_with_agents", s.Readers},
		{"pagewire_node_cores", s.Cores}, {"pagewire_node_sessions", s.Sessions}, {"pagewire_node_watched", s.Watched},
		{"pagewire_node_agents", s.Agents}, {"pagewire_node_offered_bytes", int(s.OfferedBytes)},
		{"pagewire_node_waiting_bytes", int(s.WaitingBytes)},
	} {
		metrics.WriteGaugeUint64(w, g.name, uint64(g.value))
	}
	metrics.WriteGaugeFloat64(w, "pagewire_node_bus_latency_seconds", s.BusLatency.Seconds())
	for _, c := range []struct {
		name  string
		value int64
	}{
		{"pagewire_node_messages_said_total", s.Said}, {"pagewire_node_messages_unsaid_total", s.Unsaid},
		{"pagewire_node_messages_heard_total", s.Heard}, {"pagewire_node_touches_total", s.Touches},
		{"pagewire_node_gaps_total", s.Gaps}, {"pagewire_node_lost_total", s.Lost}, {"pagewire_node_pauses_total", s.Pauses},
		{"pagewire_node_announcements_total", s.Has},
	} {
		metrics.WriteCounterUint64(w, c.name, uint64(c.value))
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Refused)) {
		metrics.WriteCounterUint64(w, fmt.Sprintf("pagewire_node_refused_total{reason=%q}", reason),
			uint64(s.Refused[reason]))
	}
}
