package process

import (
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pagewire/pagewire/bridge/node/endpoint"
)

// figures are the metrics of a process. No client can make a new series: each label has few values,
// fixed in the code or in the configuration.
type figures struct {
	health      *health
	agents      *endpoint.Handler
	version     string
	registry    *prometheus.Registry
	requests    *prometheus.HistogramVec
	connections *prometheus.GaugeVec
}

func newFigures(h *health, agents *endpoint.Handler, version string) *figures {
	f := &figures{health: h, agents: agents, version: version,
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pagewire_node_request_seconds",
			Help:    "Time until the answer to a request at /mcp begins, by method and status.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30},
		}, []string{"method", "code"}),
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pagewire_node_connections",
			Help: "Open connections of HTTP, by the address's option. Those of pages are not " +
				"among them.",
		}, []string{"address"}),
	}
	f.registry.MustRegister(f, f.requests, f.connections, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return f
}

// timed measures the time until answers begin. plain hides Flush, of which promhttp would make one
// without an error.
func (f *figures) timed(next http.Handler) http.Handler {
	measured := promhttp.InstrumentHandlerTimeToWriteHeader(f.requests, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { measured(plain{w}, r) })
}

type plain struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (p plain) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Describe and Collect make figures a prometheus.Collector of the metrics of the process's parts.
func (f *figures) Describe(chan<- *prometheus.Desc) {}

func (f *figures) Collect(to chan<- prometheus.Metric) {
	say := func(name, help, label, of string, value float64) {
		var labels prometheus.Labels
		if label != "" {
			labels = prometheus.Labels{label: of}
		}
		kind := prometheus.GaugeValue
		if strings.HasSuffix(name, "_total") {
			kind = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("pagewire_node_"+name, help, nil,
			labels), kind, value)
	}
	// all sends the metrics of a struct, by its tags.
	all := func(prefix string, stats any) {
		for field, v := range reflect.ValueOf(stats).Fields() {
			name, help := prefix+field.Tag.Get("metric"), field.Tag.Get("help")
			switch of := v.Interface().(type) {
			case map[string]int64:
				for reason, count := range of {
					say(name, help, "reason", reason, float64(count))
				}
			case time.Duration:
				say(name, help, "", "", of.Seconds())
			default:
				say(name, help, "", "", float64(v.Int()))
			}
		}
	}
	one := map[bool]float64{true: 1}
	keyless, _ := f.health.keys.Keys()
	say("ready", "1 if more pages and agents may come; /readyz says why not.", "", "",
		one[f.health.unready() == ""])
	say("draining", "1 if the node is to end.", "", "", one[f.health.leaves.Load()])
	say("bus_up", "1 if the bus is connected.", "", "", one[f.health.node.Up()])
	say("issuers_without_keys", "Issuers whose tokens are refused until their keys can be had.", "",
		"", float64(keyless))
	say("build_info", "1, labelled with the version.", "version", f.version, 1)
	for issuer, had := range f.health.keys.KeyTimes() {
		say("keys_timestamp_seconds", "When the keys of an issuer were had last, as Unix time.",
			"issuer", issuer, float64(had.Unix()))
	}
	all("", f.health.node.Stats())
	if hooks := f.agents.Webhooks(); hooks != nil {
		all("webhook_", hooks.Stats())
	}
}
