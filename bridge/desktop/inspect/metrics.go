package inspect

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/VictoriaMetrics/metrics"

	"github.com/pagewire/pagewire/bridge/gateway"
)

// serveMetrics answers with the gateway's counts and the process's costs, in Prometheus' text
// format 0.0.4. Prometheus' own library needs protobuf, and would be 2.1 MB of the 15 MB of each
// gateway's binary.
//
// Why does the gateway write its metrics with VictoriaMetrics/metrics? Linked code is resident,
// used or not: the kernel maps 64 KB around each touched page. Prometheus' client brings protobuf:
// 23.7 MB with 10 tabs instead of 21.2. A node has that client, since it has protobuf already, for
// traces.
func (h *Handler) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	var b bytes.Buffer
	s := h.g.Snapshot()
	for _, f := range h.families(&s) {
		f.write(&b)
	}
	writeLatency(&b, s.Latency)
	metrics.WriteProcessMetrics(&b)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}

// values are a family's numbers by their labels in the text format, `transport="cdp"`, or by "" for
// a single number.
type values map[string]uint64

// A family is a metric. Its labels have few values, which we choose: no page or agent can make a
// new series.
type family struct {
	kind, name, help string
	values
}

const gauge, counter = "gauge", "counter"

// wayLabels are the ways in words, because arrows are inconvenient in queries.
var wayLabels = map[gateway.Way]string{gateway.FromAgent: "from_agent", gateway.ToAgent: "to_agent",
	gateway.FromPage: "from_page", gateway.ToPage: "to_page"}

func (h *Handler) families(s *gateway.Snapshot) []family {
	one := func(n int) values { return values{"": uint64(n)} }
	pages, agents, messages, sent, refused, tabs, ended := values{}, values{}, values{}, values{},
		values{}, map[int]bool{}, 0
	for _, p := range s.Pages {
		pages[label("transport", p.Transport)]++
		tabs[p.Number] = true
	}
	for _, a := range s.Agents {
		agents[label("transport", a.Transport)]++
	}
	for _, p := range s.Passed {
		way := label("way", wayLabels[p.Way])
		messages[way], sent[way] = uint64(p.Messages), uint64(p.Bytes)
	}
	if h.opt.Refused != nil {
		for reason, n := range h.opt.Refused() {
			refused[label("reason", reason)] = uint64(n)
		}
	}
	for _, n := range s.Ended {
		ended += n
	}
	return []family{
		{gauge, "build_info", "1, labelled with the version.",
			values{label("version", h.opt.Version): 1}},
		{gauge, "pages",
			"Pages (documents and frames) that are attached, by the transport on which they came.",
			pages},
		{gauge, "tabs", "Tabs that have a page attached.", one(len(tabs))},
		{gauge, "resources", "Resources and templates that agents see.", one(len(s.Resources))},
		{gauge, "page_tools", "Names by which agents can call tools of pages.", one(len(s.Tools))},
		{gauge, "page_tools_unlisted",
			"Tools of pages that are not listed to agents, for want of places.", one(s.Unlisted)},
		{gauge, "agents", "Agents that are connected, by the transport on which they came.",
			agents},
		{gauge, "subscriptions", "Subscriptions that agents hold, those of listens included.",
			one(s.Stats.Subscriptions)},
		{gauge, "listens", "Listens that agents hold.", one(s.Stats.Listens)},
		{gauge, "event_streams", "Streams of MCP Events that agents hold.", one(s.Stats.Streams)},
		{gauge, "watched", "URIs that at least one agent watches.", one(len(s.Watched))},
		{gauge, "calls_waiting", "Reads and tool calls that wait for a page.", one(s.Stats.Calls)},
		{gauge, "inspectors", "Inspector pages that are open.", one(len(h.places))},
		{gauge, "descriptor_bytes", "Bytes of descriptors that are kept of all pages.",
			one(s.Descriptors)},
		{counter, "reads_total", "Reads that agents asked for.", one(s.Reads)},
		{counter, "tool_calls_total", "Tool calls that agents asked for.", one(s.ToolCalls)},
		{counter, "page_updates_total", "Changes that pages told.", one(s.Updates)},
		{counter, "updates_sent_total", "Updates that were sent to agents.",
			one(int(s.Stats.Updates))},
		{counter, "events_sent_total", "Events that were sent to agents on streams.",
			one(s.Stats.Events)},
		{counter, "messages_total", "Messages, by the way they go.", messages},
		{counter, "message_bytes_total", "Bytes of messages, by the way they go.", sent},
		{counter, "refused_total", "Requests that were refused, by reason.", refused},
		{counter, "links_ended_total",
			"Links with pages that were ended for what the page said. The inspector has the " +
				"reasons.", one(ended)},
	}
}

// write appends a family with its help, or nothing if it has no values.
func (f family) write(b *bytes.Buffer) {
	if len(f.values) == 0 {
		return
	}
	head(b, f.name, f.kind, f.help)
	for _, labels := range slices.Sorted(maps.Keys(f.values)) {
		name := "pagewire_" + f.name
		if labels != "" {
			name += "{" + labels + "}"
		}
		metrics.WriteCounterUint64(b, name, f.values[labels]) // a gauge's line looks the same
	}
}

func head(b *bytes.Buffer, name, kind, help string) {
	fmt.Fprintf(b, "# HELP pagewire_%s %s\n# TYPE pagewire_%[1]s %[3]s\n", name, help, kind)
}

func label(name, value string) string { return fmt.Sprintf("%s=%q", name, value) }

// writeLatency appends the histogram of reads.
func writeLatency(b *bytes.Buffer, l gateway.Latency) {
	head(b, "read_seconds", "histogram", "Time from an agent's read until it has its answer.")
	buckets := l.Buckets()
	for _, bound := range slices.Sorted(maps.Keys(buckets)) {
		metrics.WriteCounterUint64(b, fmt.Sprintf(`pagewire_read_seconds_bucket{le="%g"}`, bound),
			buckets[bound])
	}
	metrics.WriteCounterUint64(b, `pagewire_read_seconds_bucket{le="+Inf"}`, l.Count)
	metrics.WriteGaugeFloat64(b, "pagewire_read_seconds_sum", l.Seconds)
	metrics.WriteCounterUint64(b, "pagewire_read_seconds_count", l.Count)
}
