//go:build !js

package front

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// listen opens a stream at a node that is told of URIs, and of which nothing is read.
func (p *place) listen(node int, token string, uris []string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.servers[node].URL+"/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{`+
			`"notifications":{"resourceSubscriptions":["`+strings.Join(uris, `","`)+`"]},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		p.t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": testkit.Modern,
		"Mcp-Method": "subscriptions/listen"} {
		r.Header.Set(name, value)
	}
	answer, err := testkit.TakesLittle(p.t).Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		p.t.Fatalf("the listen is answered %s", answer.Status)
	}
	return answer
}

// An agent listens, and reads nothing: every other one is told, little waits for it, and its end frees all.
func TestStreamThatIsNotRead(t *testing.T) {
	// An interval that none of the two misses, whatever else the machine does: then nothing is told twice.
	p := openPlaceAt(t, 2, httptest.NewServer, nil, 3*time.Second)
	const many, rounds = 60, 12
	state := map[string]string{app + "/doc": "one"}
	var uris []string
	for i := range many { // long ones, so that the sockets are soon full
		uri := fmt.Sprintf("%s/%d/%s", app, i, strings.Repeat("x", 7000))
		uris = append(uris, uri)
		state[uri] = "x"
	}
	page := p.page(p.nodes[0], "alice", state)
	other := p.page(p.nodes[0], "bob", map[string]string{app + "/doc": "one"})
	quick := p.agent(testkit.Modern, p.login.Token("alice", "pages:read"))
	bobs := p.agent(testkit.Legacy, p.login.Token("bob", "pages:read"))
	for _, a := range []*testkit.Agent{quick, bobs} {
		testkit.Eventually(t, "its page is there", func() bool { return a.Offers(app + "/doc") })
		a.Watch(app + "/doc")
	}
	stream := p.listen(1, p.login.Token("alice", "pages:read"), uris)
	testkit.Eventually(t, "all are watched", func() bool {
		return !slices.ContainsFunc(uris, func(uri string) bool { return !page.Watches(uri) })
	})
	for i := range rounds {
		for _, uri := range uris {
			page.Touch(uri)
		}
		text := fmt.Sprint("change ", i)
		page.Set(app+"/doc", text)
		other.Set(app+"/doc", "bob's "+text)
		quick.Told(app + "/doc")
		bobs.Told(app + "/doc")
		if got := quick.Text(app + "/doc"); got != text {
			t.Errorf("read %q", got)
		}
		if got := bobs.Text(app + "/doc"); got != "bob's "+text {
			t.Errorf("bob's agent reads %q", got)
		}
	}
	if got := p.nodes[1].Stats().WaitingBytes; got > 4<<20 {
		t.Errorf("%d bytes wait", got)
	}
	stream.Body.Close()
	testkit.Eventually(t, "its page is watched for others alone", func() bool {
		return !slices.ContainsFunc(uris, page.Watches) && page.Watches(app+"/doc")
	})
	testkit.Eventually(t, "nothing waits", func() bool { return p.nodes[1].Stats().WaitingBytes == 0 })
}
