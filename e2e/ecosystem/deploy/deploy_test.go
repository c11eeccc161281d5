// Package deploy reads the files that deploy nodes, with the packages of the programs that use
// them: Kubernetes' types, the parsers of containers' files and of Prometheus' rules, and the
// engine of its queries. TestEcosystemDeploy starts the nodes, for their metrics. It never starts a
// cluster.
package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	promqlparser "github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../demo/fleet/deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Each object has only members of its kind, and the pods have the labels that all others select.
func TestKubernetes(t *testing.T) {
	set, budget, wall := &apps.StatefulSet{}, &policy.PodDisruptionBudget{},
		&networking.NetworkPolicy{}
	kinds := map[string]any{"StatefulSet": set, "PodDisruptionBudget": budget,
		"NetworkPolicy": wall}
	for part := range bytes.SplitSeq(read(t, "kubernetes.yaml"), []byte("\n---\n")) {
		var of struct{ Kind string }
		if err := yaml.Unmarshal(part, &of); err != nil {
			t.Fatal(err)
		}
		object := kinds[of.Kind]
		if of.Kind == "Service" {
			object = &core.Service{}
		}
		if err := yaml.UnmarshalStrict(part, object); err != nil {
			t.Errorf("%s: %v", of.Kind, err)
		}
	}
	pods := set.Spec.Template.Labels
	for name, looked := range map[string]map[string]string{"the set": set.Spec.Selector.MatchLabels,
		"the budget": budget.Spec.Selector.MatchLabels,
		"the policy": wall.Spec.PodSelector.MatchLabels} {
		if !maps.Equal(looked, pods) {
			t.Errorf("%s looks for %v, and pods are %v", name, looked, pods)
		}
	}
	c := set.Spec.Template.Spec.Containers[0]
	if c.Resources.Limits.Memory().IsZero() || c.ReadinessProbe == nil {
		t.Error("a pod has no limit, or no probe")
	}
	if c.Lifecycle != nil && slices.Contains(c.Args, "--drain-delay=5s") {
		t.Error("a pod waits twice before its end: in preStop, and for --drain-delay")
	}
}

func TestContainerfile(t *testing.T) {
	file, err := parser.Parse(bytes.NewReader(read(t, "Containerfile")))
	if err != nil {
		t.Fatal(err)
	}
	if stages, _, err := instructions.Parse(file.AST, nil); err != nil || len(stages) != 2 ||
		len(file.Warnings) > 0 {
		t.Errorf("%d stages, %v, %v", len(stages), err, file.Warnings)
	}
}

// scrape reads nodes' metrics three times, and writes them in the notation of Prometheus' tests.
func scrape(t *testing.T, urls []string) string {
	t.Helper()
	series := map[string][]string{}
	for range 3 {
		for i, url := range urls {
			answer, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			p := expfmt.NewTextParser(model.UTF8Validation)
			families, err := p.TextToMetricFamilies(answer.Body)
			answer.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range families {
				vector, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, family)
				if err != nil {
					t.Fatal(err)
				}
				for _, sample := range vector {
					sample.Metric["job"], sample.Metric["instance"] = "node",
						model.LabelValue(fmt.Sprint(i))
					name := sample.Metric.String()
					series[name] = append(series[name], fmt.Sprintf("%g", float64(sample.Value)))
				}
			}
		}
	}
	var text strings.Builder
	text.WriteString("load 15s\n")
	for name, values := range series {
		fmt.Fprintln(&text, " ", name, strings.Join(values, " "))
	}
	return text.String()
}

// ask returns the labels of a query's result, from Prometheus' engine with the nodes' metrics.
func ask(t *testing.T, query string, urls ...string) []labels.Labels {
	t.Helper()
	store := promqltest.LoadedStorage(t, scrape(t, urls))
	defer store.Close()
	engine := promqltest.NewTestEngine(t, false, 0, 1_000_000)
	q, err := engine.NewInstantQuery(t.Context(), store, nil, query, time.Unix(30, 0))
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	result := q.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var list []labels.Labels
	for _, sample := range vector {
		list = append(list, sample.Metric)
	}
	return list
}

// nodes returns the URLs of the metrics of a healthy node, and of one without peers and keys.
func nodes(t *testing.T) (well, sick string) {
	t.Helper()
	well, sick = os.Getenv("PAGEWIRE_NODE"), os.Getenv("PAGEWIRE_SICK_NODE")
	if well == "" || sick == "" {
		t.Skip("make test-ecosystem RUN=TestEcosystemDeploy starts the nodes")
	}
	return well, sick
}

// Each panel shows data of a node.
func TestDashboard(t *testing.T) {
	well, _ := nodes(t)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "dashboard.json"), &board); err != nil ||
		len(board.Panels) < 10 {
		t.Fatalf("%d panels, %v", len(board.Panels), err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			query := strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")
			if len(ask(t, query, well)) == 0 {
				t.Errorf("%s: nothing for %s", panel.Title, query)
			}
		}
	}
}

// Each alert has instructions, is silent about a healthy node, and names a sick one.
func TestAlerts(t *testing.T) {
	well, sick := nodes(t)
	groups, errs := rulefmt.Parse(read(t, "alerts.yaml"), false, model.UTF8Validation,
		promqlparser.NewParser(promqlparser.Options{}), slog.Default())
	if len(errs) > 0 || len(groups.Groups) != 1 || len(groups.Groups[0].Rules) != 3 {
		t.Fatal(errs)
	}
	for _, rule := range groups.Groups[0].Rules {
		if rule.Annotations["action"] == "" {
			t.Errorf("%s: no action", rule.Alert)
		}
		if got := ask(t, rule.Expr, well); len(got) > 0 {
			t.Errorf("%s, for a node that is well: %v", rule.Alert, got)
		}
		if got := ask(t, rule.Expr, well, sick); !slices.ContainsFunc(got,
			func(of labels.Labels) bool {
				return of.Get("instance") == "1"
			}) {
			t.Errorf("%s does not name the node that is not well: %v", rule.Alert, got)
		}
	}
}
