package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Legacy and Modern are a protocol version of each era.
const (
	Legacy = "2025-11-25"
	Modern = "2026-07-28"
)

// An Agent is the official Go client, with the notifications that it got.
type Agent struct {
	*mcp.ClientSession
	t testing.TB
	// Updates has the URI of each resources/updated, in order; Lists "resources" or "tools" for
	// each list_changed.
	Updates <-chan string
	Lists   <-chan string

	mu      sync.Mutex
	listens map[string]bool // the URIs of acknowledged listens
	refused int             // listens that were acknowledged with nothing
	recent  recent          // answers and notifications
}

// Connect opens a session of a protocol version over transport. The session ends with the test.
// Progress notifications go to each of progress.
func Connect(t testing.TB, transport mcp.Transport, version string,
	progress ...func(*mcp.ProgressNotificationParams)) *Agent {
	t.Helper()
	// Unread notifications must not block the session: lists drops what nobody reads, and updates is
	// longer than any test needs.
	updates, lists := make(chan string, 100_000), make(chan string, 10_000)
	listed := func(kind string) {
		select {
		case lists <- kind:
		default: // a soak has 10,000 in 35 minutes
		}
	}
	a := &Agent{t: t, Updates: updates, Lists: lists, listens: map[string]bool{}}
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			updates <- r.Params.URI
		},
		ResourceListChangedHandler: func(context.Context,
			*mcp.ResourceListChangedRequest) {
			listed("resources")
		},
		ToolListChangedHandler: func(context.Context,
			*mcp.ToolListChangedRequest) {
			listed("tools")
		},
		ProgressNotificationHandler: func(_ context.Context,
			r *mcp.ProgressNotificationClientRequest) {
			for _, tell := range progress {
				tell(r.Params)
			}
		},
	})
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if ack, ok := r.GetParams().(*mcp.SubscriptionsAcknowledgedParams); ok {
				a.acknowledged(ack.Notifications)
			}
			a.recent.add("told: " + method + " " + inShort(r.GetParams()))
			return next(ctx, method, r)
		}
	})
	client.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, r)
			line := method + " " + inShort(r.GetParams()) + ": "
			if err != nil {
				line += err.Error()
			} else {
				line += inShort(result)
			}
			a.recent.add(line)
			return result, err
		}
	})
	session, err := client.Connect(t.Context(), transport,
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect the agent: %v", err)
	}
	t.Cleanup(func() { session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the session speaks %s, want %s", got, version)
	}
	a.ClientSession = session
	State(t, "an agent of "+version, a.said)
	return a
}

// said describes the agent for a test that fails.
func (a *Agent) said() string {
	before := a.recent.String()
	ctx, cancel := context.WithTimeout(context.Background(), stateTime/2)
	defer cancel()
	text := "it is listed now: "
	if r, err := a.ListResources(ctx, nil); err != nil {
		text += err.Error()
	} else {
		text += inShort(r)
	}
	return before + "\n" + text
}

// inShort is a beginning of what travels, without the cost of all of it.
func inShort(v any) string {
	var names []string
	switch v := v.(type) {
	case *mcp.ListResourcesResult:
		for _, r := range v.Resources {
			names = append(names, r.URI)
		}
	case *mcp.ListToolsResult:
		for _, tool := range v.Tools {
			names = append(names, tool.Name)
		}
	case *mcp.ReadResourceResult:
		for _, c := range v.Contents {
			names = append(names, c.URI+" = "+c.Text[:min(len(c.Text), maxLine)])
		}
	case *mcp.CallToolResult:
		for _, c := range v.Content {
			if c, ok := c.(*mcp.TextContent); ok {
				names = append(names, c.Text[:min(len(c.Text), maxLine)])
			}
		}
	case *mcp.CallToolParams:
		return v.Name
	case nil:
		return ""
	default:
		text, _ := json.Marshal(v)
		return string(text)
	}
	return fmt.Sprintf("%d %q", len(names), names[:min(len(names), 12)])
}

func (a *Agent) acknowledged(n mcp.NotificationSubscriptions) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, uri := range n.ResourceSubscriptions {
		a.listens[uri] = true
	}
	if len(n.ResourceSubscriptions) == 0 && !n.ResourcesListChanged && !n.ToolsListChanged &&
		!n.PromptsListChanged {
		a.refused++
	}
}

// Context ends with the test, or after Patience.
func (a *Agent) Context() context.Context {
	ctx, cancel := context.WithTimeout(a.t.Context(), Patience)
	a.t.Cleanup(cancel)
	return ctx
}

// URIs returns the listed URIs, sorted.
func (a *Agent) URIs() (uris []string) {
	a.t.Helper()
	for r, err := range a.Resources(a.Context(), nil) {
		if err != nil {
			a.t.Fatalf("list the resources: %v", err)
		}
		uris = append(uris, r.URI)
	}
	slices.Sort(uris)
	return uris
}

// ToolNames returns the names of the listed tools, in their order.
func (a *Agent) ToolNames() (names []string) {
	a.t.Helper()
	for tool, err := range a.Tools(a.Context(), nil) {
		if err != nil {
			a.t.Fatalf("list the tools: %v", err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// Shows waits until exactly these URIs are listed.
func (a *Agent) Shows(want ...string) {
	a.t.Helper()
	slices.Sort(want)
	var got []string
	Eventually(a.t, fmt.Sprintf("the agent is shown %v", want), func() bool {
		got = a.URIs()
		return slices.Equal(got, want)
	})
}

// Offers reports whether a URI is listed.
func (a *Agent) Offers(uri string) bool {
	a.t.Helper()
	return slices.Contains(a.URIs(), uri)
}

// Read returns the text of a resource's first contents, or the error. A read that is never answered
// fails the test.
func (a *Agent) Read(uri string) (string, error) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), Patience)
	defer cancel()
	r, err := a.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			a.t.Errorf("a read of %s has not been answered for %v", uri, Patience)
		}
		return "", err
	}
	return r.Contents[0].Text, nil
}

// Text is Read for a resource that must be readable.
func (a *Agent) Text(uri string) string {
	a.t.Helper()
	text, err := a.Read(uri)
	if err != nil {
		a.t.Fatalf("read %s: %v", uri, err)
	}
	return text
}

// CheckText fails the test unless a resource now reads as want.
func (a *Agent) CheckText(uri, want string) {
	a.t.Helper()
	if got := a.Text(uri); got != want {
		a.t.Errorf("%s reads %.200q of %d bytes, want %.200q of %d", uri, got, len(got), want,
			len(want))
	}
}

// Call calls a tool, and returns the texts of its result as lines.
func (a *Agent) Call(name string, args any) (text string, isError bool) {
	a.t.Helper()
	r := Must(a.CallTool(a.Context(), &mcp.CallToolParams{Name: name, Arguments: args}))(a.t)
	var texts []string
	for _, c := range r.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	return strings.Join(texts, "\n"), r.IsError
}

// Watch subscribes. In the modern era the client's Subscribe returns when it has sent its listen:
// Watch also waits for the acknowledgement. Before it, a change causes no update.
func (a *Agent) Watch(uris ...string) {
	a.t.Helper()
	for _, uri := range uris {
		refused := a.refusals()
		if err := a.Subscribe(a.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
			a.t.Fatalf("subscribe to %s: %v", uri, err)
		}
		if a.InitializeResult().ProtocolVersion == Modern {
			Eventually(a.t, "the listen to "+uri+" is acknowledged", func() bool {
				return a.listensTo(uri) || a.refusals() > refused
			})
		}
	}
}

func (a *Agent) listensTo(uri string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.listens[uri]
}

func (a *Agent) refusals() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused
}

// Unsubscribe is the client's.
func (a *Agent) Unsubscribe(ctx context.Context, p *mcp.UnsubscribeParams) error {
	a.mu.Lock()
	delete(a.listens, p.URI)
	a.mu.Unlock()
	return a.ClientSession.Unsubscribe(ctx, p)
}

// Told waits for exactly these updates, in any order. Later updates are left for the next call;
// Silent looks for unwanted ones.
func (a *Agent) Told(want ...string) {
	a.t.Helper()
	var got []string
	for range want {
		got = append(got,
			Receive(a.t, fmt.Sprintf("updates %v, of which have come %v", want, got), a.Updates))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		a.t.Fatalf("updates %v, want %v", got, want)
	}
}

// Updated is Told, and then Silent.
func (a *Agent) Updated(want ...string) {
	a.t.Helper()
	a.Told(want...)
	a.Silent()
}

// Silent looks for an unwanted update, for Moment. A slow machine makes it miss one, and never
// makes it fail.
func (a *Agent) Silent() {
	a.t.Helper()
	select {
	case uri := <-a.Updates:
		a.t.Fatalf("one update too many: %s", uri)
	case <-time.After(Moment):
	}
}

// Learns waits until an update has come and a read gives want. It takes the updates of all URIs,
// and reads once after each.
func (a *Agent) Learns(uri, want string) {
	a.t.Helper()
	got := ""
	Eventually(a.t, fmt.Sprintf("the agent is told that %s reads %q", uri, want), func() bool {
		for len(a.Updates) > 0 {
			<-a.Updates
			got, _ = a.Read(uri) // if the page is away for a moment, another update comes
		}
		return got == want
	})
}

// Reads waits until a resource reads as want.
func (a *Agent) Reads(uri, want string) {
	a.t.Helper()
	Eventually(a.t, fmt.Sprintf("%s reads %q", uri, want), func() bool {
		got, err := a.Read(uri)
		return err == nil && got == want
	})
}
