package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	origin = "https://app.example"
	public = "https://live.example"
)

// dialPage opens a page's WebSocket, and sends the ticket and the hello.
func dialPage(ctx context.Context, url, ticket, tab string) *websocket.Conn {
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}},
		Subprotocols: []string{"pagewire.v1"}})
	check(err)
	ws.SetReadLimit(-1)
	for _, text := range []string{fmt.Sprintf(`{"type":"pagewire:ticket","ticket":%q}`, ticket), fmt.Sprintf(`[["hello",1,"0",{"epoch":%q,"tab":%q,"title":"Cart",`+
		`"url":"https://app.example/"}]]`, "e"+tab, tab)} {
		check(ws.Write(ctx, websocket.MessageText, []byte(text)))
	}
	return ws
}

// A page offers some URIs, sends a touch for each change of a watched URI, and answers reads with the revision.
type page struct {
	ws  *websocket.Conn
	ctx context.Context

	mu       sync.Mutex
	revision int64
	changed  map[string]int64
	watched  map[string]bool
}

func (p *page) say(text string) { check(p.ws.Write(p.ctx, websocket.MessageText, []byte(text))) }

func openPage(ctx context.Context, addr, ticket, tab string, uris []string) *page {
	ws := dialPage(ctx, "ws://"+addr+"/page", ticket, tab)
	p := &page{ws: ws, ctx: ctx, changed: map[string]int64{}, watched: map[string]bool{}}
	var calls []any
	for _, uri := range uris {
		calls = append(calls, []any{"register", fmt.Sprintf(`{"uri":%q,"name":"cart","mimeType":"application/json"}`, uri)})
	}
	text := must(json.Marshal(calls))
	p.say(string(text))
	go func() { _ = attempt(p.run) }() // until the connection ends
	return p
}

func (p *page) run() {
	for {
		_, text, err := p.ws.Read(p.ctx)
		if err != nil {
			return
		}
		var calls [][]any
		if json.Unmarshal(text, &calls) != nil {
			continue // a note
		}
		for _, c := range calls {
			switch c[0] {
			case "watched":
				uri := c[1].(string)
				p.mu.Lock()
				p.watched[uri] = c[2].(bool)
				revision := p.changed[uri]
				p.mu.Unlock()
				p.say(fmt.Sprintf(`[["touch",%q,%d]]`, uri, revision))
			case "read":
				uri := c[3].(string)
				p.mu.Lock()
				revision, state := p.revision, p.changed[uri]
				p.mu.Unlock()
				p.say(fmt.Sprintf(`=%d %d [{"uri":%q,"text":"%d"}]`, int64(c[1].(float64)), revision, uri, state))
			}
		}
	}
}

func (p *page) change(uri string) {
	p.mu.Lock()
	p.revision++
	p.changed[uri] = p.revision
	revision, watched := p.revision, p.watched[uri]
	p.mu.Unlock()
	if watched {
		p.say(fmt.Sprintf(`[["touch",%q,%d]]`, uri, revision))
	}
}

func (p *page) watches(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, on := range p.watched {
		if on {
			count++
		}
	}
	return count >= n
}

// An agent is a session of the legacy era over HTTP.
type agent struct {
	ctx     context.Context
	url     string
	token   string
	session string
	id      int
	told    chan string
}

func openAgent(ctx context.Context, addr, token string) *agent {
	a := &agent{ctx: ctx, url: "http://" + addr + "/mcp", token: token, told: make(chan string, 100_000)}
	a.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	a.request(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
	go a.listen(a.request(http.MethodGet, "").Body)
	return a
}

func (a *agent) request(method, body string) *http.Response {
	r := must(http.NewRequestWithContext(a.ctx, method, a.url, strings.NewReader(body)))
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if a.session != "" {
		r.Header.Set("Mcp-Session-Id", a.session)
	}
	answer := must(http.DefaultClient.Do(r))
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(answer.Body) // the part that has arrived
		answer.Body.Close()
		check(fmt.Errorf("%s %s", answer.Status, text))
	}
	return answer
}

// ask sends a request, which must have a result.
func (a *agent) ask(method, params string) {
	a.id++
	r := a.request(http.MethodPost, `{"jsonrpc":"2.0","id":`+strconv.Itoa(a.id)+`,"method":"`+method+`","params":`+params+`}`)
	defer r.Body.Close()
	if s := r.Header.Get("Mcp-Session-Id"); s != "" {
		a.session = s
	}
	if text := must(io.ReadAll(r.Body)); !bytes.Contains(text, []byte(`"result"`)) {
		check(fmt.Errorf("%s %s is answered %s", method, params, text))
	}
}

// listen receives the agent's notifications.
func (a *agent) listen(body io.ReadCloser) {
	defer body.Close()
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		_, data, ok := bytes.Cut(line, []byte("data: "))
		if !ok || !bytes.Contains(data, []byte("resources/updated")) {
			continue
		}
		var m struct{ Params struct{ URI string } }
		if json.Unmarshal(data, &m) == nil {
			a.told <- m.Params.URI
		}
	}
}

func (a *agent) subscribe(uri string) { a.ask("resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri)) }

func eventually(what string, ok func() bool) {
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			check(fmt.Errorf("after a minute still not so: %s", what))
		}
	}
}
