package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets/issuertest"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/webhook/webhooktest"
)

// A story is what is told.
type story struct {
	ctx          context.Context
	out          io.Writer
	site, public string
	login        *issuertest.Issuer
	balancer     *balancer
	assistant    *webhooktest.Assistant // alice's
	browser      context.Context
}

func (s *story) line(who, format string, args ...any) {
	fmt.Fprintf(s.out, "%-8s %s\n", who, fmt.Sprintf(format, args...))
}

// tell tells it. An error is a step that did not happen.
func (s *story) tell() error {
	browserCtx, end, err := browser.Launch(s.ctx, browser.Options{})
	if err != nil {
		return err
	}
	defer end()
	s.browser = browserCtx
	alice, at, err := s.open("alice")
	if err != nil {
		return err
	}
	_, atBob, err := s.open("bob")
	if err != nil {
		return err
	}
	s.line("pages", "alice's is at node %s, bob's at node %s", at.name, atBob.name)
	a, err := s.agent("alice")
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := s.agent("bob")
	if err != nil {
		return err
	}
	defer b.Close()
	for _, one := range []*agent{a, b} {
		if err := s.looks(one); err != nil {
			return err
		}
	}
	if err := s.subscribes(); err != nil {
		return err
	}
	if err := s.changes(alice, a, "bread and milk"); err != nil {
		return err
	}
	if err := s.wakes("bread and milk"); err != nil {
		return err
	}
	s.line("bob's", "agent was told nothing, and reads %s", b.read())
	if err := s.kills(at, a); err != nil {
		return err
	}
	if err := s.changes(alice, a, "bread, milk and honey"); err != nil {
		return err
	}
	if err := s.wakes("bread, milk and honey"); err != nil {
		return err
	}
	if text := b.read(); !strings.Contains(text, `"of":"bob"`) || b.updates() > 0 {
		return fmt.Errorf("bob's agent reads %s, and was told of %d changes", text, b.updates())
	}
	s.line("bob's", "agent was told nothing, and reads %s", b.read())
	return nil
}

// subscribes has the assistant subscribe to changes of alice's cart.
func (s *story) subscribes() error {
	var g webhooktest.Grant
	var err error
	if late := eventually("the assistant has subscribed", func() bool {
		g, err = s.assistant.Subscribe(s.ctx, "page.resource.updated",
			map[string]any{"uri": s.site + "/cart", "minIntervalMs": 1000})
		return err == nil
	}); late != nil {
		return fmt.Errorf("%w: %w", late, err)
	}
	s.line("alice's", "assistant subscribes by webhook until %s", g.RefreshBefore.Format(time.TimeOnly))
	return nil
}

// wakes waits until the assistant was woken by a signed event, and has read the new cart.
func (s *story) wakes(items string) error {
	for end := time.After(patience); ; {
		select {
		case wrong := <-s.assistant.Wrong:
			return errors.New(wrong)
		case <-end:
			return fmt.Errorf("the assistant is not woken for %q", items)
		case e := <-s.assistant.Events:
			text, err := s.assistant.Read(s.ctx, fmt.Sprint(e.Data["uri"]))
			if err != nil {
				return err
			}
			if strings.Contains(text, items) {
				s.line("alice's", "assistant is woken by the signed event %s, and reads %s", e.ID, text)
				return nil
			}
		}
	}
}

// kills kills the node that has a user's page, and waits until that is at another, and its agent has been told.
func (s *story) kills(at *node, a *agent) error {
	_, before := s.balancer.lastPage()
	killed := time.Now()
	if err := at.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = at.cmd.Wait() // it was killed
	s.line("node", "%s is killed", at.name)
	if err := eventually(a.user+"'s page is at another node", func() bool {
		_, now := s.balancer.lastPage()
		return now > before
	}); err != nil {
		return err
	}
	next, _ := s.balancer.lastPage()
	if err := a.told(); err != nil { // it is back, and may have changed
		return err
	}
	s.line(a.user+"'s", "page is at node %s, and the agent was told, %d ms after the kill", next.name,
		time.Since(killed).Milliseconds())
	return nil
}

// open opens a user's page, and says at which node it is.
func (s *story) open(user string) (page context.Context, at *node, err error) {
	_, before := s.balancer.lastPage()
	page, _ = chromedp.NewContext(s.browser) // it ends with the browser
	if err := chromedp.Do(page, chromedp.Navigate(s.site+"/?user="+user)); err != nil {
		return nil, nil, err
	}
	err = eventually(user+"'s page has dialed in", func() bool {
		_, now := s.balancer.lastPage()
		return now > before
	})
	at, _ = s.balancer.lastPage()
	return page, at, err
}

// looks has an agent list and read what there is.
func (s *story) looks(a *agent) error {
	if err := eventually(a.user+"'s agent sees a page", func() bool { return len(a.list()) > 0 }); err != nil {
		return err
	}
	if list := a.list(); len(list) != 1 {
		return fmt.Errorf("%s's agent lists %v", a.user, list)
	}
	text := a.read()
	if !strings.Contains(text, fmt.Sprintf(`"of":%q`, a.user)) {
		return fmt.Errorf("%s's agent reads %s", a.user, text)
	}
	s.line(a.user+"'s", "agent lists %s, and reads %s", strings.Join(a.list(), " "), text)
	return a.Subscribe(s.ctx, &mcp.SubscribeParams{URI: a.uri})
}

// changes has a person change the cart, and its agent learn of it.
func (s *story) changes(page context.Context, a *agent, items string) error {
	script := fmt.Sprintf(`cart.value = %q; dispatchEvent(new Event("input")); "done"`, items)
	began := time.Now()
	if _, err := chromedp.Run(page, chromedp.Evaluate[string](script)); err != nil {
		return err
	}
	s.line("person", "makes it %q", items)
	if err := a.told(); err != nil {
		return err
	}
	took := time.Since(began)
	text := ""
	if err := eventually(a.user+"'s agent reads the new cart", func() bool {
		text = a.read()
		return strings.Contains(text, items)
	}); err != nil {
		return err
	}
	s.line(a.user+"'s", "agent was told after %.1f ms, and read again %s", float64(took.Microseconds())/1000, text)
	return nil
}

// An agent is a hosted one: the official client, with an access token of its user.
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

// agent connects one at the node that the balancer chooses. Its session is at that node: not the one that is killed, of
// which it would be told by 404, and have to begin anew.
func (s *story) agent(user string) (*agent, error) {
	a := &agent{ctx: s.ctx, user: user, uri: s.site + "/cart", changed: make(chan string, 1000)}
	client := mcp.NewClient(&mcp.Implementation{Name: user + "'s agent", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			a.changed <- r.Params.URI
		},
	})
	dead := s.balancer.pages[0]
	for s.balancer.nodes[(s.balancer.turn+1)%size] == dead {
		s.balancer.next()
	}
	var err error
	a.ClientSession, err = client.Connect(s.ctx, &mcp.StreamableClientTransport{Endpoint: s.public + "/mcp",
		HTTPClient: &http.Client{Transport: bearer(s.login.Token(user, "pages:read pages:act"))}},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	return a, err
}

func (a *agent) list() (uris []string) {
	for r, err := range a.Resources(a.ctx, nil) {
		if err == nil {
			uris = append(uris, r.URI)
		}
	}
	return uris
}

// read is what the cart reads as, or why it does not.
func (a *agent) read() string {
	r, err := a.ReadResource(a.ctx, &mcp.ReadResourceParams{URI: a.uri})
	if err != nil {
		return err.Error()
	}
	return r.Contents[0].Text
}

// told waits for the next change that it is told of, and takes what comes with it.
func (a *agent) told() error {
	select {
	case <-a.changed:
	case <-time.After(patience):
		return errors.New(a.user + "'s agent is not told")
	}
	for len(a.changed) > 0 {
		<-a.changed
	}
	return nil
}

func (a *agent) updates() int { return len(a.changed) }
