package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit/webhooktest"
	"github.com/pagewire/pagewire/demo/step"
)

// A story has the parts that take part in it.
type story struct {
	ctx          context.Context
	site, public string
	login        *issuertest.Issuer
	balancer     *balancer
	assistant    *webhooktest.Assistant // alice's
	browser      context.Context
}

func (s *story) line(who, format string, args ...any) {
	step.Line(os.Stdout, who, format, args...)
}

func (s *story) run() {
	browserCtx, end, err := browsertest.Launch(s.ctx, browsertest.Options{})
	step.Check(err)
	defer end()
	s.browser = browserCtx
	alice, at := s.open("alice")
	_, atBob := s.open("bob")
	s.line("pages", "alice's is at node %s, bob's at node %s", at.name, atBob.name)
	a, b := s.agent("alice"), s.agent("bob")
	defer a.Close()
	defer b.Close()
	s.looks(a)
	s.looks(b)
	s.subscribes()
	s.changes(alice, a, "bread and milk")
	s.wakes("bread and milk")
	s.line("bob's", "agent was told nothing, and reads %s", b.read())
	before := s.balancer.passed()
	s.kills(at)
	s.changes(alice, a, "bread, milk and honey") // no node has her page now
	s.line("alice's", "page is at node %s", s.dialed("alice", before).name)
	s.wakes("bread, milk and honey")
	if text := b.read(); !strings.Contains(text, `"of":"bob"`) || len(b.changed) > 0 {
		step.Check(fmt.Errorf("bob's agent reads %s, and was told of %d changes", text,
			len(b.changed)))
	}
	s.line("bob's", "agent was told nothing, and reads %s", b.read())
}

func (s *story) subscribes() {
	var g webhooktest.Grant
	step.Eventually("the assistant has subscribed", patience, func() bool {
		var err error
		g, err = s.assistant.Subscribe(s.ctx, "page.resource.updated",
			map[string]any{"uri": s.site + "/cart", "minIntervalMs": 1000})
		return err == nil
	})
	step.Eventually("each node keeps her subscription", patience,
		func() bool { return s.balancer.all("pagewire_node_webhook_copies", size) })
	s.line("alice's", "assistant subscribes by webhook until %s",
		g.RefreshBefore.Format(time.TimeOnly))
}

// wakes waits until a signed event has woken the assistant, and it has read the new cart.
func (s *story) wakes(items string) {
	for end := time.After(patience); ; {
		select {
		case wrong := <-s.assistant.Wrong:
			step.Check(errors.New(wrong))
		case <-end:
			step.Check(fmt.Errorf("the assistant is not woken for %q", items))
		case e := <-s.assistant.Events:
			text := step.Must(s.assistant.Read(s.ctx, fmt.Sprint(e.Data["uri"])))
			if strings.Contains(text, items) {
				s.line("alice's", "assistant is woken by the signed event %s, and reads %s", e.ID,
					text)
				return
			}
		}
	}
}

func (s *story) kills(at *node) {
	step.Check(at.cmd.Process.Kill())
	_ = at.cmd.Wait()
	s.line("node", "%s is killed", at.name)
}

// dialed waits until another page's connection was passed to a node, and returns that node.
func (s *story) dialed(user string, before []*node) *node {
	step.Eventually(user+"'s page has dialed in", patience,
		func() bool { return len(s.balancer.passed()) > len(before) })
	now := s.balancer.passed()
	return now[len(now)-1]
}

func (s *story) open(user string) (page context.Context, at *node) {
	before := s.balancer.passed()
	page, _ = chromedp.NewContext(s.browser) // it ends with the browser
	step.Check(chromedp.Do(page, chromedp.Navigate(s.site+"/?user="+user)))
	return page, s.dialed(user, before)
}

func (s *story) looks(a *agent) {
	step.Eventually(a.user+"'s agent sees a page", patience,
		func() bool { return len(a.list()) > 0 })
	list, text := strings.Join(a.list(), " "), a.read()
	if list != a.uri || !strings.Contains(text, fmt.Sprintf(`"of":%q`, a.user)) {
		step.Check(fmt.Errorf("%s's agent lists %s, and reads %s", a.user, list, text))
	}
	s.line(a.user+"'s", "agent lists %s, and reads %s", list, text)
	step.Check(a.Subscribe(s.ctx, &mcp.SubscribeParams{URI: a.uri}))
}

func (s *story) changes(page context.Context, a *agent, items string) {
	script := fmt.Sprintf(`cart.value = %q; dispatchEvent(new Event("input")); "done"`, items)
	began := time.Now()
	step.Must(chromedp.Run(page, chromedp.Evaluate[string](script)))
	s.line("person", "makes it %q", items)
	a.told()
	took := time.Since(began)
	text := ""
	step.Eventually(a.user+"'s agent reads the new cart", patience, func() bool {
		text = a.read()
		return strings.Contains(text, items)
	})
	s.line(a.user+"'s", "agent was told after %.1f ms, and read again %s",
		float64(took.Microseconds())/1000, text)
}

// An agent is a hosted agent: the official client, with an access token of its user.
type agent struct {
	*mcp.ClientSession
	ctx     context.Context
	user    string
	uri     string
	changed chan string
}

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// agent connects an agent at the node that the balancer chooses. It avoids the node that is to be
// killed: the session there would end with 404, and the agent would have to begin another.
func (s *story) agent(user string) *agent {
	a := &agent{ctx: s.ctx, user: user, uri: s.site + "/cart", changed: make(chan string, 1000)}
	client := mcp.NewClient(&mcp.Implementation{Name: user + "'s agent", Version: "1"},
		&mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context,
				r *mcp.ResourceUpdatedNotificationRequest) {
				a.changed <- r.Params.URI
			},
		})
	dead := s.balancer.passed()[0]
	for s.balancer.nodes[(s.balancer.turn+1)%size] == dead {
		s.balancer.next()
	}
	a.ClientSession = step.Must(client.Connect(s.ctx,
		&mcp.StreamableClientTransport{Endpoint: s.public + "/mcp",
			HTTPClient: &http.Client{Transport: bearer(
				s.login.Token(user, "pages:read pages:act"))}},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}))
	return a
}

func (a *agent) list() (uris []string) {
	for r, err := range a.Resources(a.ctx, nil) {
		if err == nil {
			uris = append(uris, r.URI)
		}
	}
	return uris
}

// read returns the text of the cart, or the error.
func (a *agent) read() string {
	r, err := a.ReadResource(a.ctx, &mcp.ReadResourceParams{URI: a.uri})
	if err != nil {
		return err.Error()
	}
	return r.Contents[0].Text
}

// told waits for the agent's next notification, and takes all that have arrived.
func (a *agent) told() {
	select {
	case <-a.changed:
	case <-time.After(patience):
		step.Check(errors.New(a.user + "'s agent is not told"))
	}
	for len(a.changed) > 0 {
		<-a.changed
	}
}
