package inspect

import (
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pagewire/pagewire/bridge/gateway"
)

// Prometheus can read the metrics, and its linter finds no fault in ours.
func TestMetricsAreWhatPrometheusReads(t *testing.T) {
	refused := func() map[string]int64 { return map[string]int64{"user": 3, "origin": 1} }
	s := serve(t, gateway.New(gateway.Options{}), Options{Version: `1.0 "x"`, Refused: refused})
	_, _, body := get(t, s.URL+"/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	if f := families["pagewire_refused_total"]; f.GetType() != dto.MetricType_COUNTER || len(f.Metric) != 2 ||
		f.Metric[1].Counter.GetValue() != 3 {
		t.Errorf("refusals: %v", f)
	}
	if f := families["pagewire_build_info"]; len(f.GetMetric()) != 1 || f.Metric[0].Label[0].GetValue() != `1.0 "x"` {
		t.Errorf("version: %v", f)
	}
	latency := families["pagewire_read_seconds"]
	if latency.GetType() != dto.MetricType_HISTOGRAM || len(latency.Metric[0].Histogram.Bucket) < 5 {
		t.Errorf("latency: %v", latency)
	}
	if families["go_goroutines"] == nil || families["process_resident_memory_bytes"] == nil &&
		runtime.GOOS != "darwin" { // without cgo the library has none there
		t.Error("nothing of the process")
	}
	ours := body[:strings.Index(body, "\ngo_")+1]
	problems, err := promlint.New(strings.NewReader(ours)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}
