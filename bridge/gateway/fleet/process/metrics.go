package process

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// figures are what Prometheus is told of a process. No client can make a new series: each label has few values, which we
// choose, or those of the configuration.
type figures struct {
	registry    *prometheus.Registry
	requests    *prometheus.HistogramVec
	connections *prometheus.GaugeVec
}

func (p *process) newFigures() *figures {
	f := &figures{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pagewire_node_request_seconds",
			Help:    "Time until the answer to a request at /mcp begins, by method and status.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30},
		}, []string{"method", "code"}),
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pagewire_node_connections",
			Help: "Open connections of HTTP, by the address's option. Those of pages are not among them.",
		}, []string{"address"}),
	}
	f.registry.MustRegister(p, f.requests, f.connections, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return f
}

// timed measures what agents ask. promhttp would offer a Flush that tells no error: it sees a writer that has none.
func (f *figures) timed(next http.Handler) http.Handler {
	measured := promhttp.InstrumentHandlerTimeToWriteHeader(f.requests, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { measured(plain{w}, r) })
}

type plain struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (p plain) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Describe and Collect make a process a prometheus.Collector, of what its parts count.
func (p *process) Describe(chan<- *prometheus.Desc) {}

func (p *process) Collect(to chan<- prometheus.Metric) {
	say := func(name, help, label, of string, value float64) {
		var labels prometheus.Labels
		if label != "" {
			labels = prometheus.Labels{label: of}
		}
		kind := prometheus.GaugeValue
		if strings.HasSuffix(name, "_total") {
			kind = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("pagewire_node_"+name, help, nil, labels), kind, value)
	}
	s := p.node.Stats()
	keyless, _ := p.keys.Keys()
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"ready", "1 if more pages and agents may come; /readyz says why not.", one(p.unready() == "")},
		{"draining", "1 if the node is to end.", one(p.leaves.Load())},
		{"bus_up", "1 if the bus is connected.", one(p.node.Up())},
		{"bus_latency_seconds", "Time of the last beat on the bus and back.", s.BusLatency.Seconds()},
		{"nodes", "Nodes that this one hears, itself among them.", float64(s.Nodes)},
		{"nodes_of_other_version", "Nodes that speak another version of the bus.", float64(s.Unlike)},
		{"issuers_without_keys", "Issuers whose tokens are refused until their keys can be had.", float64(keyless)},
		{"pages", "Pages that are connected.", float64(s.Pages)},
		{"users_with_pages", "Users that have pages here.", float64(s.Users)},
		{"agents", "Sessions and listens of agents.", float64(s.Agents)},
		{"users_with_agents", "Users that have agents here.", float64(s.Readers)},
		{"cores", "Agents' ends of pages here.", float64(s.Cores)},
		{"sessions", "Pages' ends of agents here.", float64(s.Sessions)},
		{"watched", "URIs of pages here that are watched.", float64(s.Watched)},
		{"offered_bytes", "Bytes that are held for pages.", float64(s.OfferedBytes)},
		{"waiting_bytes", "Bytes that wait for agents that do not read.", float64(s.WaitingBytes)},
		{"messages_said_total", "Messages that the bus took.", float64(s.Said)},
		{"messages_unsaid_total", "Messages that the bus did not take.", float64(s.Unsaid)},
		{"messages_heard_total", "Messages from the bus.", float64(s.Heard)},
		{"touches_total", "Changes in messages that the bus took.", float64(s.Touches)},
		{"announcements_total", "Words about which pages other nodes have.", float64(s.Has)},
		{"gaps_total", "Sessions of which something was lost, and which began anew.", float64(s.Gaps)},
		{"lost_total", "How often messages were dropped, since this node did not take them.", float64(s.Lost)},
		{"pauses_total", "How often a page had to wait, since its user's pages said too much.", float64(s.Pauses)},
	} {
		say(m.name, m.help, "", "", m.value)
	}
	say("build_info", "1, labelled with the version.", "version", p.o.Version, 1)
	for issuer, had := range p.keys.KeyTimes() {
		say("keys_timestamp_seconds", "When the keys of an issuer were had last, as Unix time.", "issuer", issuer,
			float64(had.Unix()))
	}
	for reason, count := range s.Refused {
		say("refused_total", "What was refused, by reason.", "reason", reason, float64(count))
	}
	if hooks := p.agents.Webhooks(); hooks != nil {
		sayWebhooks(hooks.Stats(), say)
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
