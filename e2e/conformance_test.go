package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A suite is a version of the protocol's own conformance suite, asked for one version of the protocol.
type suite struct {
	name, dir string
	version   string // of the protocol, "" for all that the suite knows
}

// Both are in e2e/conformance, with the Node that they need.
var suites = []suite{
	{"0.1.16", "conformance-latest", ""},
	{"0.2.0-alpha.12 legacy", "conformance-alpha", "2025-11-25"},
	{"0.2.0-alpha.12 modern", "conformance-alpha", "2026-07-28"},
}

// inapplicable are the scenarios that ask for what a gateway to pages is not: each with the reason. A name that ends in
// * stands for all that begin so. What is in neither suite any more fails, as does what can be run and is not.
var inapplicable = map[string]string{
	"completion-complete":     "there are no completions: the capability is not declared",
	"prompts-*":               "there are no prompts: the capability is not declared",
	"logging-set-level":       "there is no log: the capability is not declared",
	"tools-call-with-logging": "a page has no way to write to its agent's log",
	"tools-call-sampling":     "a page has no way to ask its agent for a sample",
	"tools-call-elicitation":  "a page has no way to ask its agent for input: it asks the person in front of it",
	"elicitation-*":           "likewise",
	"input-required-result-*": "likewise, in the modern era",
	"server-sse-polling": "streams are not replayed: a subscription outlives its stream, and the next one has " +
		"what has changed meanwhile",
	"tasks-*":           "an extension that is not offered",
	"sep-2640-skills-*": "an extension that is not offered",
}

func isInapplicable(scenario string) bool {
	for name := range inapplicable {
		if stem, all := strings.CutSuffix(name, "*"); scenario == name || all && strings.HasPrefix(scenario, stem) {
			return true
		}
	}
	return false
}

// node22 is what the suites and MCP Inspector run in.
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

func (s suite) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, node22(t),
		append([]string{"conformance/node_modules/" + s.dir + "/dist/index.js"}, args...)...)
	text, err := command.CombinedOutput()
	return string(text), err
}

// scenarios lists those for servers that are of the suite's version of the protocol.
func (s suite) scenarios(t *testing.T) (names []string) {
	t.Helper()
	text, err := s.run(t, "list")
	if err != nil {
		t.Fatalf("list: %v\n%s", err, text)
	}
	_, text, _ = strings.Cut(text, "Server scenarios")
	text, _, _ = strings.Cut(text, "Client scenarios")
	for _, m := range regexp.MustCompile(`(?m)^  - (\S+) \[(.*)\]$`).FindAllStringSubmatch(text, -1) {
		if versions := strings.Split(m[2], ","); s.version == "" || slices.Contains(versions, s.version) ||
			slices.Contains(versions, "extension") {
			names = append(names, m[1])
		}
	}
	if len(names) < 10 {
		t.Fatalf("the suite lists %q", names)
	}
	return names
}

var passed = regexp.MustCompile(`Passed: (\d+)/(\d+), (\d+) failed, (\d+) warnings`)

// Every scenario of both suites that applies to a gateway passes, over HTTP, against the binary with the page of
// clients/page. The checks within a scenario that cannot apply are in conformance/expected-failures.yml, and fail the
// test once they pass.
func TestConformance(t *testing.T) {
	t.Parallel()
	conforms(t, agentsHub(t, "--no-token").url) // the suites have no way to send one
}

// conforms runs them at a URL.
func conforms(t *testing.T, url string) {
	t.Helper()
	unused := map[string]bool{}
	for name := range inapplicable {
		unused[name] = true
	}
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) {
			for _, scenario := range s.scenarios(t) {
				if isInapplicable(scenario) {
					for name := range unused {
						if stem, all := strings.CutSuffix(name, "*"); scenario == name || all &&
							strings.HasPrefix(scenario, stem) {
							delete(unused, name)
						}
					}
					continue
				}
				t.Run(scenario, func(t *testing.T) {
					t.Parallel()
					args := []string{"server", "--url", url, "--scenario", scenario}
					if s.version != "" {
						args = append(args, "--spec-version", s.version, "--expected-failures",
							"conformance/expected-failures.yml")
					}
					text, err := s.run(t, args...)
					m := passed.FindStringSubmatch(text)
					if err != nil || m == nil || m[1] == "0" || m[4] != "0" {
						t.Errorf("%v\n%s", err, text)
					}
				})
			}
		})
	}
	for name := range unused {
		t.Errorf("no suite has %s any more", name)
	}
}
