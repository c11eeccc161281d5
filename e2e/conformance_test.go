package e2e

import (
	"context"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A suite is a version of the protocol's own conformance suite, run for one version of the
// protocol.
type suite struct {
	name, dir string
	version   string // of the protocol; "" for all versions of the suite
}

// All are in e2e/conformance, with the Node version that they need.
var suites = []suite{
	{"0.1.16", "conformance-latest", ""},
	{"0.2.0-alpha.12 legacy", "conformance-alpha", "2025-11-25"},
	{"0.2.0-alpha.12 modern", "conformance-alpha", "2026-07-28"},
}

// inapplicable are the scenarios that do not apply to a gateway to pages, each with the reason. A
// name that ends in * is a prefix. A name that is in no suite any more fails, and so does an
// applicable scenario that checks nothing.
var inapplicable = map[string]string{
	"completion-complete":     "there are no completions: the capability is not declared",
	"prompts-*":               "there are no prompts: the capability is not declared",
	"logging-set-level":       "there is no log: the capability is not declared",
	"tools-call-with-logging": "a page has no way to write to its agent's log",
	"tools-call-sampling":     "a page has no way to ask its agent for a sample",
	"tools-call-elicitation":  "a page has no way to ask its agent for input: it asks the person in front of it",
	"elicitation-*":           "likewise",
	"input-required-result-*": "likewise, in the modern era",
	"json-schema-2020-12": "a page's schema is written anew: $defs and allOf take the lists of some clients and models, " +
		"with the tools of all pages",
	"server-sse-polling": "streams are not replayed: a subscription outlives its stream, and the next one has " +
		"what has changed meanwhile",
}

func whyNot(scenario string) string {
	for name := range inapplicable {
		if stem, all := strings.CutSuffix(name, "*"); scenario == name ||
			all && strings.HasPrefix(scenario, stem) {
			return name
		}
	}
	return ""
}

func node22(t *testing.T) string {
	t.Helper()
	node, err := filepath.Abs("conformance/node_modules/.bin/node")
	if err == nil {
		_, err = exec.LookPath(node)
	}
	if err != nil {
		t.Fatalf("%v; make test-browser installs it", err)
	}
	return node
}

// The lines at the end of a suite's run: the checks of each scenario, and the failed checks and
// warnings that are not in conformance/expected-failures.yml.
var (
	ofScenario = regexp.MustCompile(`(?m)^[✓✗] (\S+): (\d+) passed, \d+ failed$`)
	unexpected = regexp.MustCompile(`(?m)^  ✗ ([^\s:]+)`)
)

// Every scenario of both suites that applies to a gateway passes, over HTTP, against the binary
// with the page of clients/page. The checks within a scenario that cannot apply are in
// conformance/expected-failures.yml, and fail the test once they pass. A suite is one process of
// Node: each costs half a second of processor time to start.
func TestConformance(t *testing.T) {
	t.Parallel()
	conforms(t, agentsHub(t, "--no-token").url) // the suites cannot send a token
}

// The requests go to two nodes in turn.
func TestConformanceOfAFleet(t *testing.T) {
	t.Parallel()
	nodes := agentsFleet(t, "https://login.example", func(*issuertest.Issuer) {})
	to, err := url.Parse(nodes.url)
	if err != nil {
		t.Fatal(err)
	}
	bearer := httptest.NewServer(passes(func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
		r.Out.Header.Set("Authorization", nodes.header)
	}))
	t.Cleanup(bearer.Close)
	conforms(t, bearer.URL+to.Path)
}

func conforms(t *testing.T, url string) {
	unused := map[string]bool{}
	for name := range inapplicable {
		unused[name] = true
	}
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
			defer cancel()
			args := []string{"conformance/node_modules/" + s.dir + "/dist/index.js", "server",
				"--url", url, "--suite",
				"all", "--expected-failures", "conformance/expected-failures.yml"}
			if s.version != "" {
				args = append(args, "--spec-version", s.version)
			}
			out, err := testcmd.CommandContext(ctx, node22(t), args...).CombinedOutput()
			text := string(out)
			failed := map[string]bool{}
			for _, m := range unexpected.FindAllStringSubmatch(text, -1) {
				failed[m[1]] = true
			}
			applied := 0
			for _, m := range ofScenario.FindAllStringSubmatch(text, -1) {
				if name := whyNot(m[1]); name != "" {
					delete(unused, name)
					continue
				}
				applied++
				if failed[m[1]] || m[2] == "0" {
					t.Errorf("%s fails, or checks nothing", m[1])
				}
			}
			if applied < 10 || strings.Contains(text, "Stale baseline") ||
				len(failed) > 0 == (err == nil) {
				t.Errorf("%d scenarios apply; it ends with %v", applied, err)
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
	for name := range unused {
		t.Errorf("no suite has %s any more", name)
	}
}
