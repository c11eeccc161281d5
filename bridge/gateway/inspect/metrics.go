//go:build !js

package inspect

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pagewire/pagewire/bridge/gateway"
)

// metrics serves what a gateway counts, taken when it is asked for, and what the process costs. The registry is the handler's own:
// a program that embeds a gateway keeps its default one to itself.
func metrics(h *handler) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister((*collector)(h), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(h.opt.Log.Handler(), slog.LevelWarn)})
}

type collector handler

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pagewire_"+name, help, labels, nil)
}

// Labels are of few values, each chosen by us: no page or agent can make a new series.
var (
	buildInfo     = desc("build_info", "1, labelled with the version.", "version")
	pages         = desc("pages", "Pages (documents and frames) that are attached, by the transport on which they came.", "transport")
	tabs          = desc("tabs", "Tabs that have a page attached.")
	resources     = desc("resources", "Resources and templates that agents see.")
	tools         = desc("page_tools", "Names by which agents can call tools of pages.")
	agents        = desc("agents", "Agents that are connected, by the transport on which they came.", "transport")
	subscriptions = desc("subscriptions", "Subscriptions that agents hold, those of listens included.")
	listens       = desc("listens", "Listens that agents hold.")
	watched       = desc("watched", "URIs that at least one agent watches.")
	waiting       = desc("calls_waiting", "Reads and tool calls that wait for a page.")
	inspectors    = desc("inspectors", "Inspector pages that are open.")
	reads         = desc("reads_total", "Reads that agents asked for.")
	toolCalls     = desc("tool_calls_total", "Tool calls that agents asked for.")
	told          = desc("page_updates_total", "Changes that pages told.")
	sent          = desc("updates_sent_total", "Updates that were sent to agents.")
	messages      = desc("messages_total", "Messages, by the way they go.", "way")
	messageBytes  = desc("message_bytes_total", "Bytes of messages, by the way they go.", "way")
	refused       = desc("refused_total", "Requests that were refused, by reason.", "reason")
	descriptors   = desc("descriptor_bytes", "Bytes of descriptors that are kept of all pages.")
	ended         = desc("links_ended_total", "Links with pages that were ended for what the page said. The inspector has the reasons.")
	readSeconds   = desc("read_seconds", "Time from an agent's read until it has its answer.")
)

var all = []*prometheus.Desc{
	buildInfo, pages, tabs, resources, tools, agents, subscriptions, listens, watched, waiting, inspectors,
	reads, toolCalls, told, sent, messages, messageBytes, refused, descriptors, ended, readSeconds,
}

// wayLabels are the ways in words, since signs are clumsy in queries.
var wayLabels = map[gateway.Way]string{
	gateway.FromAgent: "from_agent", gateway.ToAgent: "to_agent", gateway.FromPage: "from_page", gateway.ToPage: "to_page",
}

func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d
	}
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := c.g.Snapshot()
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	transports, numbers := map[string]int{}, map[int]bool{}
	for _, p := range s.Pages {
		transports[p.Transport]++
		if p.Number != 0 {
			numbers[p.Number] = true
		}
	}
	for transport, n := range transports {
		gauge(pages, n, transport)
	}
	transports = map[string]int{}
	for _, a := range s.Agents {
		transports[a.Transport]++
	}
	for transport, n := range transports {
		gauge(agents, n, transport)
	}
	gauge(buildInfo, 1, c.opt.Version)
	gauge(tabs, len(numbers))
	gauge(resources, len(s.Resources))
	gauge(tools, len(s.Tools))
	gauge(subscriptions, s.Stats.Subscriptions)
	gauge(listens, s.Stats.Listens)
	gauge(watched, len(s.Watched))
	gauge(waiting, s.Stats.Calls)
	gauge(inspectors, len(c.places))
	count(reads, int64(s.Reads))
	count(toolCalls, int64(s.ToolCalls))
	count(told, int64(s.Updates))
	count(sent, int64(s.Stats.Updates))
	for _, p := range s.Passed {
		count(messages, p.Messages, wayLabels[p.Way])
		count(messageBytes, p.Bytes, wayLabels[p.Way])
	}
	gauge(descriptors, s.Descriptors)
	links := 0
	for _, n := range s.Ended {
		links += n
	}
	count(ended, int64(links))
	if c.opt.Refused != nil {
		for reason, n := range c.opt.Refused() {
			count(refused, n, reason)
		}
	}
	to <- prometheus.MustNewConstHistogram(readSeconds, s.Latency.Count, s.Latency.Seconds, s.Latency.Buckets())
}
