package process

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/webhooktest"
)

const updated = "page.resource.updated"

// withWebhooks lets a node deliver to an assistant. The first node of a place has the store.
func (f *place) withWebhooks(a *webhooktest.Assistant) func(*Options) {
	f.t.Helper()
	dir := filepath.Dir(f.secret)
	key, ca := filepath.Join(dir, "store-key"), filepath.Join(dir, "webhook-ca")
	for name, text := range map[string][]byte{key: []byte(strings.Repeat("k", minStoreKey)), ca: a.CA} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	return func(o *Options) {
		o.StoreKey, o.WebhookCA, o.WebhookAllow, o.lease = key, ca, []string{"127.0.0.0/8"}, 3*time.Second
		if len(f.nodes) == 0 {
			o.Name, o.Store, o.Cluster = "first", filepath.Join(dir, "store"), testkit.Addr(f.t)
		}
	}
}

// A change of a user's page wakes an assistant in a cloud, at any nodes, also when a node has died. The assistant reads
// the change with its token. No other user's changes wake it.
func TestAnAssistantIsWoken(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	a := webhooktest.New("", f.login.Token("alice", "pages:read pages:events"))
	defer a.Close()
	with := f.withWebhooks(a)
	for range 3 {
		f.start(with)
	}
	at := func(m *member) *webhooktest.Assistant {
		a.Endpoint = "http://" + m.listen + "/mcp"
		return a
	}
	page := testkit.NewPage(t, map[string]string{app + "/doc": "one"})
	goTo := f.page(f.nodes[2], page, "alice")
	bobs := testkit.NewPage(t, map[string]string{app + "/bobs": "one"})
	f.page(f.nodes[1], bobs, "bob")

	var list struct {
		Events []struct {
			Name     string
			Delivery []string
		}
	}
	var about struct {
		Capabilities struct{ Events, Extensions map[string]any }
	}
	if err := at(f.nodes[1]).Call(t.Context(), "server/discover", map[string]any{}, &about); err != nil ||
		about.Capabilities.Events == nil || about.Capabilities.Extensions["io.modelcontextprotocol/events"] == nil {
		t.Errorf("the capabilities are %+v, and %v", about, err)
	}
	if err := a.Call(t.Context(), "events/list", map[string]any{}, &list); err != nil || len(list.Events) != 3 {
		t.Fatalf("the list is %+v, and %v", list, err)
	}
	for _, e := range list.Events {
		if fmt.Sprint(e.Delivery) != "[poll push webhook]" {
			t.Errorf("%s is delivered by %v", e.Name, e.Delivery)
		}
	}
	testkit.Eventually(t, "the page is read", func() bool {
		text, err := a.Read(t.Context(), app+"/doc")
		return err == nil && text == "one"
	})
	arguments := map[string]any{"uri": app + "/doc", "minIntervalMs": 1000}
	subscribed := func(m *member) (g webhooktest.Grant) { // a node without its store yet asks for a retry
		t.Helper()
		testkit.Settles(t, "it has subscribed", func() string {
			var err error
			if g, err = at(m).Subscribe(t.Context(), updated, arguments); err != nil {
				return err.Error()
			}
			return ""
		})
		return g
	}
	g, again := subscribed(f.nodes[1]), subscribed(f.nodes[0])
	if again.ID != g.ID || again.DeliveryStatus == nil || time.Until(g.RefreshBefore) > 30*time.Minute {
		t.Errorf("the first grant is %+v, the refresh %+v", g, again)
	}
	woken := func(text string) {
		t.Helper()
		for {
			e := testkit.Receive(t, "an event of "+text, a.Events)
			if e.Name != updated || e.Data["uri"] != app+"/doc" || e.Subscription != g.ID {
				t.Errorf("it is woken by %+v", e)
			}
			var got string
			testkit.Settles(t, "the page is read", func() string { // nodes of a busy machine may give each other up
				var err error
				if got, err = a.Read(t.Context(), app+"/doc"); err != nil {
					return err.Error()
				}
				return ""
			})
			if got == text { // this event may be for a state that it has read already
				return
			}
		}
	}
	bobs.Set(app+"/bobs", "two")
	page.Set(app+"/doc", "two")
	woken("two")
	goTo(f.nodes[0])
	for _, m := range f.nodes[1:] { // another node then delivers, if one of these did
		m.stop()
		testkit.Eventually(t, "the node has ended", func() bool { return len(m.ended) == 1 })
	}
	at(f.nodes[0])
	page.Set(app+"/doc", "three")
	woken("three")
	if len(a.Wrong) > 0 {
		t.Error(<-a.Wrong)
	}

	token := tokenOf(strings.Repeat("k", minStoreKey))
	revoke := func(query, token string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+f.nodes[0].admin+"/webhooks?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.Status + " " + string(text)
	}
	alice := url.Values{"tenant": {f.login.Name}, "subject": {"alice"}}.Encode()
	for _, other := range []string{"", "Bearer", "Bearer " + strings.Repeat("k", minStoreKey), "Bearer " + a.Token,
		"Basic " + token, "Bearer " + token[1:], "Bearer " + tokenOf("")} {
		if got := revoke(alice, other); !strings.HasPrefix(got, "401 ") {
			t.Errorf("with %q: %s", other, got)
		}
	}
	token = "Bearer " + token
	if got := revoke("tenant=x", token); !strings.HasPrefix(got, "400 ") {
		t.Errorf("without a subject: %s", got)
	}
	if got := revoke(alice, token); got != "200 OK 1 subscriptions have ended\n" {
		t.Errorf("the operator ends: %s", got)
	}
	if err := a.Unsubscribe(t.Context(), updated, arguments); err != nil {
		t.Errorf("what has ended is unsubscribed: %v", err)
	}
}

// A token without the scope gets 403, in both eras. Without a store there are no webhooks.
func TestScopeOfWebhooks(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	a := webhooktest.New("", f.login.Token("alice", "pages:read pages:act"))
	defer a.Close()
	m := f.start(f.withWebhooks(a))
	a.Endpoint = "http://" + m.listen + "/mcp"
	_, err := a.Subscribe(t.Context(), updated, map[string]any{})
	refused := (*webhooktest.Error)(nil)
	if !errors.As(err, &refused) || refused.Status != 403 || !strings.Contains(refused.Challenge, `error="insufficient_scope"`) ||
		!strings.Contains(refused.Challenge, `scope="pages:read pages:events"`) {
		t.Errorf("it is answered %+v", err)
	}
	agent := f.agentBy(m, withToken(a.Token), testkit.Legacy)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.Endpoint,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"events\/unsubscribe","params":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + a.Token,
		"Accept": "application/json, text/event-stream", "Mcp-Session-Id": agent.ID()} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 403 {
		t.Errorf("in a session: %s", answer.Status)
	}
	if text := get(t, m.listen, "/.well-known/oauth-protected-resource/mcp"); !strings.Contains(text, `"pages:events"`) {
		t.Errorf("the metadata are %s", text)
	}

	without := newFleet(t, 1)
	a.Endpoint, a.Token = "http://"+without.nodes[0].listen+"/mcp", without.login.Token("alice", "pages:read pages:events")
	var list struct{ Events []struct{ Delivery []string } }
	if err := a.Call(t.Context(), "events/list", map[string]any{}, &list); err != nil ||
		fmt.Sprint(list.Events[0].Delivery) != "[poll push]" {
		t.Errorf("without a store there is %+v, and %v", list, err)
	}
	if _, err := a.Subscribe(t.Context(), updated, map[string]any{}); !errors.As(err, &refused) || refused.Status != 200 ||
		!strings.HasPrefix(refused.Message, "Forbidden") {
		t.Errorf("without a store a subscribe is answered %+v", err)
	}
}
