// Package webhooktest plays a hosted assistant that webhooks wake, for tests and demos. It follows
// OpenAI's guide to MCP Events. It subscribes at the endpoint of the tools with their token,
// answers the challenge, and checks each signature. It takes each event once, answers at once and
// works later, and refreshes by the same key. It understands no envelope.
package webhooktest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An Assistant has a receiver of webhooks on loopback, with an authority of its own.
type Assistant struct {
	// Endpoint is the URL of the MCP server, and Token its access token.
	Endpoint, Token string
	// URL is the receiver's URL, and CA its authority's certificate in PEM.
	URL string
	CA  []byte
	// Secret is the secret in its subscriptions.
	Secret string
	// Events has each event once. Wrong has descriptions of the server's violations.
	Events chan Event
	Wrong  chan string

	server *httptest.Server

	mu   sync.Mutex
	seen map[string]bool
}

// An Event is a delivered event.
type Event struct {
	ID           string `json:"eventId"`
	Name         string
	Timestamp    string
	Data         map[string]any
	Cursor       *string
	Subscription string `json:"-"`
}

// New starts an Assistant's receiver.
func New(endpoint, token string) *Assistant {
	a := &Assistant{Endpoint: endpoint, Token: token,
		Secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte(rand.Text()+rand.Text())),
		Events: make(chan Event, 10_000), Wrong: make(chan string, 100), seen: map[string]bool{}}
	a.server = httptest.NewUnstartedServer(a)
	a.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.server.StartTLS()
	a.URL = a.server.URL + "/mcp-events/callback"
	a.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	return a
}

// Close ends the receiver.
func (a *Assistant) Close() { a.server.Close() }

func (a *Assistant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 256<<10+1))
	var message struct {
		Event
		Type, Challenge string
	}
	id := r.Header.Get("webhook-id")
	switch {
	case err != nil:
		return
	case len(body) > 256<<10:
		a.wrong("a body of more than 256 KiB")
	case !a.signed(r.Header, body):
		a.wrong("the signature of " + id + " is wrong")
		w.WriteHeader(http.StatusUnauthorized)
		return
	case json.Unmarshal(body, &message) != nil:
		a.wrong("the body of " + id + " is no object")
	}
	if message.Type == "verification" {
		// the node may have gone
		_ = json.NewEncoder(w).Encode(map[string]string{"challenge": message.Challenge})
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
	if message.Type != "" || a.seen[id] {
		return
	}
	a.seen[id] = true
	if message.ID != id || message.Name == "" || message.Timestamp == "" || message.Data == nil {
		a.wrong(fmt.Sprintf("the event %s is %s", id, body))
	}
	message.Subscription = r.Header.Get("X-MCP-Subscription-Id")
	a.Events <- message.Event
}

func (a *Assistant) wrong(what string) {
	select {
	case a.Wrong <- what:
	default: // there are enough
	}
}

// signed checks a request's signature as Standard Webhooks define it.
func (a *Assistant) signed(h http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(a.Secret, "whsec_"))
	at, err2 := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || err2 != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", h.Get("webhook-id"), at, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for got := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(got), []byte(want)) {
			return true
		}
	}
	return false
}

// A Grant is the result of a subscribe.
type Grant struct {
	ID             string
	RefreshBefore  time.Time
	Cursor         *string
	DeliveryStatus *struct{ Active bool }
}

// Subscribe subscribes, or refreshes.
func (a *Assistant) Subscribe(ctx context.Context, name string, arguments map[string]any) (g Grant,
	err error) {
	err = a.Call(ctx, "events/subscribe",
		map[string]any{"name": name, "arguments": arguments, "cursor": nil,
			"delivery": map[string]any{"mode": "webhook", "url": a.URL, "secret": a.Secret}}, &g)
	return g, err
}

// Unsubscribe ends a subscription.
func (a *Assistant) Unsubscribe(ctx context.Context, name string, arguments map[string]any) error {
	return a.Call(ctx, "events/unsubscribe", map[string]any{"name": name, "arguments": arguments,
		"delivery": map[string]any{"url": a.URL}}, nil)
}

// Read returns the text of a resource.
func (a *Assistant) Read(ctx context.Context, uri string) (string, error) {
	var result struct{ Contents []struct{ Text string } }
	if err := a.Call(ctx, "resources/read", map[string]any{"uri": uri}, &result); err != nil {
		return "", err
	}
	if len(result.Contents) == 0 {
		return "", fmt.Errorf("%s has no contents", uri)
	}
	return result.Contents[0].Text, nil
}

// An Error is an answer without a result.
type Error struct {
	// Status is HTTP's, and Challenge its WWW-Authenticate. Code, Message and Data are those of
	// MCP's error.
	Status    int
	Challenge string
	Code      int
	Message   string
	Data      json.RawMessage
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d: %d %s %s", e.Status, e.Code, e.Message, e.Data)
}

// version is MCP's.
const version = "2026-07-28"

// Call sends a request, and decodes its result. Any other answer is an *Error.
func (a *Assistant) Call(ctx context.Context, method string, params map[string]any,
	result any) error {
	params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": version,
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		"io.modelcontextprotocol/clientInfo": map[string]any{"name": "assistant",
			"version": "1"}}
	body, err := json.Marshal(
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + a.Token,
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": version, "Mcp-Method": method} {
		r.Header.Set(name, value)
	}
	if uri, ok := params["uri"].(string); ok {
		r.Header.Set("Mcp-Name", uri)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		lines := strings.Split(string(text), "\n")
		text = nil
		for _, line := range lines {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				text = []byte(data) // the last is the answer
			}
		}
	}
	var message struct {
		Result json.RawMessage
		Error  *Error
	}
	err = json.Unmarshal(text, &message)
	if message.Result == nil {
		e := cmp.Or(message.Error, &Error{Message: string(text)})
		e.Status, e.Challenge = answer.StatusCode, answer.Header.Get("WWW-Authenticate")
		return e
	}
	if err == nil && result != nil {
		err = json.Unmarshal(message.Result, result)
	}
	return err
}
