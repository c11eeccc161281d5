package agents

import (
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// say calls a tool of the gateway, and returns the result's texts.
func (a *watcher) say(name string, args map[string]any) string {
	a.t.Helper()
	r, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		a.t.Fatal(err)
	}
	var texts []string
	for _, c := range r.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	return strings.Join(texts, "\n")
}

// An agent on stdio, in either era, and a legacy session over HTTP have a record of the contents that they have seen.
// The record ends with the session. A modern request over HTTP has none, because it cannot be matched to others.
func TestWhoIsReminded(t *testing.T) {
	const doc = origin + "/doc"
	for _, c := range []struct {
		name, version string
		http          bool
	}{
		{"stdio legacy", versions["legacy"], false}, {"stdio modern", versions["modern"], false},
		{"http legacy", versions["legacy"], true}, {"http modern", versions["modern"], true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serveHTTP(t, HTTPOptions{})
			connect := func() (a *watcher, end func()) {
				if c.http {
					a = watch(t, &mcp.StreamableClientTransport{Endpoint: s.server.URL + "/mcp"}, c.version)
					return a, func() { a.Close() }
				}
				theirIn, in := io.Pipe()
				out, theirOut := io.Pipe()
				ended := make(chan error, 1)
				go func() { ended <- serveLines(t.Context(), s.g, theirIn, theirOut) }()
				a = watch(t, &mcp.IOTransport{Reader: out, Writer: in}, c.version)
				return a, func() {
					in.Close()
					a.Close()
					testkit.Receive(t, "its session ends", ended)
				}
			}
			a, end := connect()
			other, endOther := connect()
			defer endOther()
			first := a.say("read_page_resource", map[string]any{"uri": doc})
			testkit.Eventually(t, "the page is watched", func() bool { return s.Watches(doc) })
			s.Set(doc, "two")
			if c.http && c.version == versions["modern"] {
				// Its results have no reminders.
				testkit.Eventually(t, "the change is known", func() bool {
					return a.say("read_page_resource", map[string]any{"uri": doc}) != first
				})
				s.Set(doc, "three")
				if said := a.say("list_page_resources", map[string]any{}); strings.Contains(said, "[pagewire-") {
					t.Errorf("a request without a session is reminded: %s", said)
				}
				end()
				return
			}
			testkit.Eventually(t, "it is reminded", func() bool {
				return strings.Contains(a.say("list_page_resources", map[string]any{}), "[pagewire-")
			})
			if said := other.say("list_page_resources", map[string]any{}); strings.Contains(said, "[pagewire-") {
				t.Errorf("another is reminded of what the first has read: %s", said)
			}
			end()
			testkit.Eventually(t, "with it goes what it has seen", func() bool { return !s.Watches(doc) })
		})
	}
}
