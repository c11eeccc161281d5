package endpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A late body ends in a separate read. If part of the request has been sent, that read returns only when the answer has
// begun, as with a transport that other threads have kept from the processor.
type late struct {
	io.ReadCloser
	left   int64
	dialed *atomic.Bool
	begun  <-chan struct{}
	ended  chan<- struct{} // closed at the end without an error
}

func (b *late) Read(p []byte) (int, error) {
	if b.left > 0 {
		n, _ := b.ReadCloser.Read(p)
		b.left -= int64(n)
		return n, nil
	}
	if b.dialed.Load() {
		<-b.begun
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		close(b.ended)
	}
	return n, err
}

// An answer that begins before the transport reads on in the request's body is passed on whole.
func TestBodyThatEndsLate(t *testing.T) {
	var dialed atomic.Bool
	begun, ended := make(chan struct{}), make(chan struct{})
	p := openPlaceAt(t, 1, func(h http.Handler) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = &late{r.Body, r.ContentLength, &dialed, begun, ended}
			h.ServeHTTP(w, r)
		}))
	}, nil)
	dial := p.handlers[0].proxy.DialContext
	p.handlers[0].proxy.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialed.Store(true)
		return dial(ctx, network, addr)
	}
	_, session := p.scripted(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ended:
			_, _ = io.WriteString(w, result)
		case <-r.Context().Done():
		}
	})
	answer, err := p.send(t.Context(), 0, "POST", strings.NewReader(ping), "Mcp-Session-Id", session)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	close(begun)
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != result {
		t.Errorf("%s %q, %v", answer.Status, text, err)
	}
}

// scripted adds a node to the fleet that serves by the function, and returns the name of a session at it.
func (p *place) scripted(serve http.HandlerFunc) (n *node.Node, session string) {
	p.t.Helper()
	server := httptest.NewServer(serve)
	p.t.Cleanup(server.Close)
	n, err := node.Open(node.Options{URL: server.URL, Interval: 200 * time.Millisecond,
		Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{p.nodes[0].ClusterAddr()}, Secret: "secret"}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(n.Close)
	testkit.Eventually(p.t, "it is known", func() bool { return p.nodes[0].Stats().Nodes == len(p.nodes)+1 })
	return n, n.ID() + ".x"
}

const (
	opening = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	told    = `event: message` + "\ndata: " + `{"jsonrpc":"2.0","method":"notifications/progress"}` + "\n\n"
	result  = `event: message` + "\ndata: " + `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n\n"
)

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// If a node breaks off in the middle of an answer, the agent gets an error under its request's id, or its connection
// ends. The agent never gets a success, and nothing after the error.
func TestNodeThatBreaksOff(t *testing.T) {
	p := openPlace(t, 1)
	says := make(chan string, 1)
	_, session := p.scripted(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, <-says)
		c.Close()
	})
	const ask = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}`
	for name, c := range map[string]struct {
		method, body, says string
		status             int
		error              bool // the agent gets an error, under its id
		cut                bool // its connection ends, perhaps before the head
	}{
		"says nothing":              {"POST", ask, "", 502, true, false},
		"half a head":               {"POST", ask, opening[:20], 502, true, false},
		"begins":                    {"POST", ask, opening, 200, true, false},
		"is there":                  {"POST", ask, opening + chunk(": keepalive\n\n"), 200, true, false},
		"has told something":        {"POST", ask, opening + chunk(told), 200, true, false},
		"breaks within a chunk":     {"POST", ask, opening + chunk(told)[:20], 200, false, true},
		"breaks within an event":    {"POST", ask, opening + chunk(told[:20]), 200, false, true},
		"has answered":              {"POST", ask, opening + chunk(result), 200, false, true},
		"answers":                   {"POST", ask, opening + chunk(result) + chunk(""), 200, false, false},
		"a stream, has told":        {"GET", "", opening + chunk(told), 200, false, true},
		"a stream, says nothing":    {"GET", "", "", 404, false, false},
		"an end, says nothing":      {"DELETE", "", "", 404, false, false},
		"a result in JSON, in part": {"POST", ask, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", 200, false, true},
	} {
		for len(says) == 0 { // the transport repeats GET and DELETE if a reused connection broke
			says <- c.says
		}
		p.handlers[0].proxy.CloseIdleConnections()
		a := p.ask(0, c.method, c.body, "Mcp-Session-Id", session)
		hasError := strings.Contains(a.text, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"`+brokeOff)
		if a.status != c.status && !c.cut || hasError != c.error || (a.err != nil) != c.cut {
			t.Errorf("%s: %d %q, %v", name, a.status, a.text, a.err)
		}
	}
}

// A request that waits for a node that hangs gets an error when that node counts as dead, or after too long a silence.
func TestSessionOfANodeThatHangs(t *testing.T) {
	for _, how := range []string{"is dead", "is silent", "is left"} {
		t.Run(how, func(t *testing.T) {
			p := openPlace(t, 1)
			asked := make(chan struct{}, 1)
			n, session := p.scripted(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				asked <- struct{}{}
				<-r.Context().Done() // it ends when nobody waits any more
			})
			if how == "is silent" {
				p.handlers[0].proxy.ResponseHeaderTimeout = 100 * time.Millisecond
			}
			answers := make(chan answered, 1)
			go func() {
				answers <- p.ask(0, "POST", ping, "Mcp-Session-Id", session)
			}()
			testkit.Receive(t, "it is asked", asked)
			switch how {
			case "is dead":
				n.Close()
			case "is left":
				p.handlers[0].Close()
			}
			// The request may have been carried out: the client must not repeat it in another session.
			a := testkit.Receive(t, "an answer", answers)
			if a.status != 502 || !strings.Contains(a.text, `"id":7,"error"`) || !strings.Contains(a.text, brokeOff) {
				t.Errorf("%d %s, %v", a.status, a.text, a.err)
			}
			if how == "is dead" { // now the node counts as dead
				if a := p.ask(0, "POST", `{"jsonrpc":"2.0","id":8,"method":"ping"}`, "Mcp-Session-Id", session); a.status !=
					404 || !strings.Contains(a.text, `"id":8,"error"`) {
					t.Errorf("%d %s, %v", a.status, a.text, a.err)
				}
			}
		})
	}
}

// When a client goes, its request ends at the session's node.
func TestClientThatGoes(t *testing.T) {
	p := openPlace(t, 1)
	asked, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	_, session := p.scripted(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	for _, method := range []string{"POST", "GET"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			testkit.Receive(t, "it is asked", asked)
			cancel()
		}()
		if answer, err := p.send(ctx, 0, method, strings.NewReader("{}"), "Mcp-Session-Id", session); err == nil {
			t.Errorf("%s: %s", method, answer.Status)
		}
		testkit.Receive(t, "its node knows", gone)
	}
}

// If a client reads nothing of an answer but stays, the answer ends at both nodes, and no body is held any more.
func TestClientThatTakesNothing(t *testing.T) {
	for name, start := range map[string]func(http.Handler) *httptest.Server{
		"HTTP/1.1": httptest.NewServer,
		"HTTP/2.0": func(h http.Handler) *httptest.Server {
			s := httptest.NewUnstartedServer(h)
			s.EnableHTTP2 = true
			s.StartTLS()
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPlaceAt(t, 1, start, nil)
			p.handlers[0].writeTimeout = 100 * time.Millisecond
			ended := make(chan struct{}, 1)
			_, session := p.scripted(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				for err := error(nil); err == nil; {
					_, err = io.WriteString(w, told)
				}
				ended <- struct{}{}
			})
			for _, method := range []string{"POST", "GET"} {
				answer, err := p.send(t.Context(), 0, method, strings.NewReader(ping), "Mcp-Session-Id", session)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				if answer.Proto != name {
					t.Fatalf("it is answered by %s", answer.Proto)
				}
				testkit.Receive(t, "its node is told that nobody takes it", ended)
				testkit.Eventually(t, "nothing is held", func() bool { return p.handlers[0].held.Held() == 0 })
			}
		})
	}
}

// A body arrives at the session's node as it was sent, in any encoding. Invalid bodies are refused.
func TestBodiesThatArePassedOn(t *testing.T) {
	p := openPlace(t, 2)
	session := p.begin(1)
	large := func(size int) string {
		return `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"` + strings.Repeat("x", size) + `"}}`
	}
	for name, c := range map[string]struct {
		body    io.Reader
		headers []string
		status  int
		wants   string
	}{
		"of a length":     {strings.NewReader(ping), nil, 200, `"id":7,"result"`},
		"in chunks":       {io.MultiReader(strings.NewReader(ping)), nil, 200, `"id":7,"result"`},
		"that is awaited": {strings.NewReader(ping), []string{"Expect", "100-continue"}, 200, `"id":7,"result"`},
		"of 1 MiB":        {strings.NewReader(large(1 << 20)), nil, 200, `"id":7,"result"`},
		"of nothing":      {http.NoBody, nil, 400, `"error"`},
		"that is too large": {strings.NewReader(large(gateway.MaxMessageBytes)), nil, 413,
			`"id":7,"error":{"code":-32600,"message":"Message too large"`},
		"that is too large, in chunks": {io.MultiReader(strings.NewReader(large(gateway.MaxMessageBytes))), nil, 413,
			`"id":7,"error":{"code":-32600,"message":"Message too large"`},
	} {
		answer, err := p.send(t.Context(), 0, "POST", c.body, append(c.headers, "Mcp-Session-Id", session)...)
		if err != nil {
			t.Errorf("a body %s: %v", name, err)
			continue
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != c.status || !strings.Contains(string(text), c.wants) {
			t.Errorf("a body %s: %s %s, %v", name, answer.Status, text, err)
		}
	}
	// A body that never ends.
	p.handlers[0].bodyTimeout = 50 * time.Millisecond
	for name, token := range map[string]string{"400": p.login.Token("alice", "pages:read"), "401": "none"} {
		c, err := net.Dial("tcp", p.servers[0].Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nMcp-Session-Id: %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", token, session)
		_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || !strings.HasPrefix(answer.Status, name) {
			t.Errorf("a body that never ends: %v, %v", answer, err)
		}
	}
	testkit.Eventually(t, "nothing is held", func() bool { return p.handlers[0].held.Held() == 0 })
}

// The bodies that are passed on are bounded for one user and in total.
func TestManyBodiesThatArePassedOn(t *testing.T) {
	p := openPlace(t, 1)
	_, session := p.scripted(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	const whole = maxHeldEach / gateway.MaxMessageBytes
	for range whole { // bodies without a known length
		all.Go(func() {
			body, end := io.Pipe()
			defer context.AfterFunc(ctx, func() { _ = end.CloseWithError(ctx.Err()) })()
			if answer, err := p.send(ctx, 0, "POST", body, "Mcp-Session-Id", session); err == nil {
				t.Errorf("%s", answer.Status)
			}
		})
	}
	testkit.Eventually(t, "all are read", func() bool { return p.handlers[0].held.Held() == maxHeldEach })
	a := p.ask(0, "POST", ping, "Mcp-Session-Id", session)
	if a.status != 503 || !strings.Contains(a.text, "passes on as much as it may") {
		t.Errorf("one more is answered %d %s, %v", a.status, a.text, a.err)
	}
	if got := p.nodes[0].Stats().Refused["agent: full"]; got != 1 {
		t.Errorf("refused %d", got)
	}
}

// The other node closes an idle connection as a request goes out on it. The request is repeated if nothing of it was
// sent, and is always answered.
func TestConnectionThatIsClosedWhenIdle(t *testing.T) {
	p := openPlace(t, 2)
	session := p.begin(1)
	for i := range 200 {
		a := p.ask(0, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i), "Mcp-Session-Id", session)
		var m struct {
			ID            int
			Result, Error json.RawMessage
		}
		text := a.text[strings.Index(a.text, "{"):]
		if err := json.Unmarshal([]byte(text), &m); err != nil || m.ID != i || a.err != nil ||
			(a.status == 200) != (m.Result != nil) || (a.status == 502) != (m.Error != nil) {
			t.Fatalf("%d %s, %v", a.status, a.text, a.err)
		}
		p.servers[1].CloseClientConnections()
	}
}
