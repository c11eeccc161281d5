//go:build soak

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func notNamed(kind string) bool { return kind != "named" }

// openScoped opens an agent, each second one with flags that hide pages from it.
func (s *soak) openScoped(program string) *soakAgent {
	switch s.pick(8) {
	case 0:
		return s.openAgent(program, func(kind string) bool { return kind == "launched" }, "--only", "profile=Soak")
	case 1:
		return s.openAgent(program, func(kind string) bool { return kind == "own 0" }, "--only", s.kinds["own 0"].URL)
	case 2:
		return s.openAgent(program, func(kind string) bool { return notNamed(kind) && kind != "extension" },
			"--deny-origin", s.kinds["extension"].URL)
	case 3:
		return s.openAgent(program, func(kind string) bool { return kind == "foreign" },
			"--only", s.foreignOrigin("foreign", "*"))
	}
	return s.openAgent(program, notNamed)
}

// An ear hears all that an agent is told. A page's port tells whose it is: it is in each URI and
// each text of that page.
type ear struct {
	s      *soak
	flags  []string
	hidden *regexp.Regexp // nil if the agent may see all
}

// A refusal may repeat the words of the agent, but no text of a page. A pipe repeats an agent's
// listens to the next daemon, and tells the agent once of each URI, whatever it may see: no page is
// asked. So updates are judged while no daemon is ended.
var (
	update      = []byte("notifications/resources/updated")
	refusal     = regexp.MustCompile(`"isError":true|"error":\{|notifications/subscriptions/acknowledged`)
	textOfAPage = regexp.MustCompile(` is \d+ at \d+`)
)

func (s *soak) hears(flags []string, may func(kind string) bool) *ear {
	e := &ear{s: s, flags: flags}
	var ports []string
	for kind, at := range s.kinds {
		if u, _ := url.Parse(at.URL); !may(kind) {
			ports = append(ports, u.Port())
		}
	}
	if len(ports) > 0 {
		e.hidden = regexp.MustCompile(`[^ ]{0,200}:(` + strings.Join(ports, "|") + `)\b.{0,100}`)
	}
	return e
}

// Write gets each message as LoggingTransport writes it.
func (e *ear) Write(line []byte) (int, error) {
	if said, is := bytes.CutPrefix(line, []byte("read: ")); is && e.hidden != nil {
		refused := refusal.Match(said) || bytes.Contains(said, update) && !e.s.calm.Load()
		if secret := e.hidden.Find(said); secret != nil && (!refused || textOfAPage.Match(said)) {
			e.s.finds(&e.s.leaks, "an agent with %q is told %.1000q in %.300q", e.flags, secret, said)
		}
	}
	return len(line), nil
}

// tries tries all ways to a page that the agent may not see. Its ear hears what comes of it.
func (a *soakAgent) tries(b *soakTab) {
	a.turn.Lock()
	defer a.turn.Unlock()
	a.s.did("page of another scope tried")
	ctx, cancel := context.WithTimeout(context.Background(), soakPatience)
	defer cancel()
	uri := b.uri(a.s.pick(resourcesOfATab))
	if r, err := a.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri}); err == nil {
		a.s.finds(&a.s.leaks, "an agent reads %v of %s", r.Contents, uri)
	}
	// Refusals are what is wanted of all of these.
	_ = a.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	_, _ = a.ListResources(ctx, nil)
	_, _ = a.ListTools(ctx, nil)
	_, _ = a.CallTool(ctx, &mcp.CallToolParams{Name: "list_page_resources"})
	_, _ = a.CallTool(ctx, &mcp.CallToolParams{Name: "read_page_resource", Arguments: map[string]any{"uri": uri}})
	_ = a.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
	if ctx.Err() != nil && !a.isOver() {
		a.s.finds(&a.s.stuck, "an agent that tries %s has no answer", uri)
	}
}

// A soakCall is a call of a page's tool.
type soakCall struct {
	may func(kind string) bool
	ran int
}

// callTool calls a tab's tool. It may fail, and then it may have run. It never runs twice, nor for
// an agent that may not see the page.
func (s *soak) callTool(a *soakAgent) {
	b := s.tabs[s.pick(len(s.tabs))]
	if b.isForeign() {
		return // it has none
	}
	s.mu.Lock()
	by := fmt.Sprint(len(s.calls))
	s.calls[by] = &soakCall{may: a.may}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), soakPatience)
	defer cancel()
	r, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "mark" + b.number, Arguments: map[string]any{"by": by}})
	switch {
	case ctx.Err() != nil:
		s.finds(&s.stuck, "a call of the tool of %s has no answer", b.url())
	case err == nil && !r.IsError:
		s.did("tool called in " + strings.Fields(b.kind)[0])
	case a.may(b.kind):
		s.did("tool not called")
	default:
		s.did("tool of another scope refused")
	}
}

// ran is told by a page that its tool runs.
func (s *soak) ran(kind, by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.calls[by]
	if call == nil {
		s.finds(&s.wrong, "a tool of %s runs for %q, who has not called it", kind, by)
	} else if call.ran++; call.ran > 1 {
		s.finds(&s.wrong, "a tool of %s has run %d times for one call", kind, call.ran)
	} else if !call.may(kind) {
		s.finds(&s.leaks, "a tool of %s runs for an agent that may not see it", kind)
	}
}
