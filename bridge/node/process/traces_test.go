package process

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A receiver receives traces, by OTLP over HTTP.
type receiver struct {
	mu    sync.Mutex
	spans []*trace.Span
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var from io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		if unpacked, err := gzip.NewReader(r.Body); err == nil {
			from = unpacked
		}
	}
	text, err := io.ReadAll(from)
	var m collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(text, &m) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range m.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// find returns the span with a name in a trace, below another; nil if there is none yet.
func (c *receiver) find(name, of string, below []byte) *trace.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.spans, func(s *trace.Span) bool {
		return s.Name == name && hex.EncodeToString(s.TraceId) == of && string(s.ParentSpanId) == string(below)
	})
	if i < 0 {
		return nil
	}
	return c.spans[i]
}

func attribute(s *trace.Span, name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// An agent's read of a page at another node is one trace, the agent's own, without a name, a URI or contents.
func TestTraces(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	var to receiver
	server := httptest.NewServer(&to)
	t.Cleanup(server.Close)
	f := newFleet(t, 0)
	f.traces = server.URL
	f.start()
	f.start()
	f.page(f.nodes[0], testkit.NewPage(t, map[string]string{app + "/doc": "one"}), "alice")
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	by := withToken(f.login.Token("alice", "pages:read"))
	by["Traceparent"] = []string{"00-" + id + "-" + span + "-01"}
	a := f.agentBy(f.nodes[1], by, testkit.Modern)
	a.Shows(app + "/doc")
	if got := a.Text(app + "/doc"); got != "one" {
		t.Errorf("read %q", got)
	}
	if text, err := a.Read(app + "/none"); err == nil {
		t.Errorf("read %q of what there is not", text)
	}
	above, err := hex.DecodeString(span)
	if err != nil {
		t.Fatal(err)
	}
	var read, answer *trace.Span
	testkit.Eventually(t, "the read is traced from the agent to the page", func() bool {
		to.mu.Lock()
		spans := slices.Clone(to.spans)
		to.mu.Unlock()
		for _, request := range spans {
			if request.Name != "agent's request" || string(request.ParentSpanId) != string(above) {
				continue
			}
			if read = to.find("page's read", id, request.SpanId); read != nil {
				if answer = to.find("answer to read", id, read.SpanId); answer != nil {
					return true
				}
			}
		}
		return false
	})
	user := tickets.UserOf(f.login.Name, "alice")
	for _, s := range []*trace.Span{read, answer} {
		if got := attribute(s, "pagewire.user"); got != user || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("a span is of %q: %v", got, s)
		}
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for _, s := range to.spans {
		for _, word := range []string{"/doc", "alice", "one", app} {
			if text := s.String(); strings.Contains(strings.ReplaceAll(text, user, ""), word) {
				t.Errorf("a span has %q: %s", word, text)
			}
		}
	}
}
