package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A site is a testPage whose gateway is served over HTTP.
type site struct {
	*testPage
	t      *testing.T
	h      *HTTP
	server *httptest.Server
}

func serveHTTP(t *testing.T, o HTTPOptions) *site {
	t.Helper()
	s := &site{testPage: open(t), t: t}
	s.h = NewHTTP(s.g, o)
	s.server = httptest.NewServer(s.h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		if err := s.h.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		s.server.Close()
		if n := len(s.h.legacy.all) + len(s.h.agents) + held(s.g); n != 0 {
			t.Errorf("%d things are left", n)
		}
	})
	return s
}

// A reply is an HTTP response whose body may still come.
type reply struct {
	t *testing.T
	*http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// do sends a request with headers, each "Name: value".
func (s *site) do(method, body string, headers ...string) *reply {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, s.server.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header[http.CanonicalHeaderKey(name)] = append(r.Header[http.CanonicalHeaderKey(name)], value)
		if name == "Host" {
			r.Host = value
		}
		if value == "" || name == "Content-Type" || name == "Accept" {
			r.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	return &reply{s.t, response, bufio.NewReader(response.Body), cancel}
}

// ask sends a request of the modern era with the headers that repeat its body, and more.
func (s *site) ask(body string, more ...string) *reply {
	s.t.Helper()
	m := decode(s.t, []byte(body))
	headers := append([]string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: " + m.Method}, more...)
	if m.Params.URI != "" {
		headers = append(headers, "Mcp-Name: "+m.Params.URI)
	}
	return s.do("POST", body, headers...)
}

// message returns the next message of the answer: an event, or the whole body.
func (r *reply) message() message {
	r.t.Helper()
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(r.lines)
		if err != nil {
			r.t.Fatal(err)
		}
		return decode(r.t, text)
	}
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			r.t.Fatalf("no further event: %v", err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return decode(r.t, []byte(data))
		}
	}
}

// close fails if there is another message.
func (r *reply) close() {
	r.t.Helper()
	rest, err := io.ReadAll(r.lines)
	if err != nil || strings.Contains(string(rest), "data:") || strings.Contains(string(rest), "{") {
		r.t.Errorf("after the end: %q, %v", rest, err)
	}
}

func (r *reply) want(status, code int) message {
	r.t.Helper()
	m := r.message()
	if r.StatusCode != status || m.code() != code {
		r.t.Errorf("HTTP %d with %+v %+v, want %d with %d", r.StatusCode, m, m.Error, status, code)
	}
	return m
}

// begin begins a session of the legacy era, and returns its header.
func (s *site) begin() string { return s.beginAs("c") }

func initialize(name string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + name + `","version":"1"}}}`
}

func (s *site) beginAs(name string) string {
	s.t.Helper()
	r := s.do("POST", initialize(name))
	if m := r.want(200, 0); string(m.ID) != "0" {
		s.t.Errorf("initialize is answered %+v", m)
	}
	r.close()
	session := "Mcp-Session-Id: " + r.Header.Get("Mcp-Session-Id")
	if s.do("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session).StatusCode != 202 {
		s.t.Error("initialized is not accepted")
	}
	return session
}

func legacyCall(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`
}

func TestHTTPClients(t *testing.T) {
	testkit.NoLeak(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s := serveHTTP(t, HTTPOptions{})
	var all sync.WaitGroup
	agents := make(chan *watcher, 100)
	for _, version := range versions {
		for range 10 {
			all.Go(func() {
				a := watch(t, &mcp.StreamableClientTransport{Endpoint: s.server.URL + "/mcp"}, version)
				a.converse(s.testPage)
				a.Watch(origin + "/doc")
				a.Watch(origin + "/other")
				agents <- a
			})
		}
	}
	all.Wait()
	close(agents)
	// go-sdk's Subscribe does not wait for the listen's acknowledgement.
	testkit.Eventually(t, "each is subscribed to both", func() bool {
		return s.g.Snapshot().Stats.Subscriptions == 2*len(agents)
	})
	s.Set(origin+"/doc", "two")
	for a := range agents {
		a.Told(origin + "/doc")
		if got := a.Text(origin + "/doc"); got != "two" {
			t.Errorf("read %q", got)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	testkit.Eventually(t, "nothing is left of the agents", func() bool { return held(s.g) == 0 })
}

func TestModernStatus(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	doc := origin + "/doc"
	read := call("1", "resources/read", `"uri":"`+doc+`"`)
	version, method, name := "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: resources/read", "Mcp-Name: "+doc
	meta := func(meta string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + doc + `","_meta":{` + meta +
			`}}}`
	}
	const capabilities, claim = `"io.modelcontextprotocol/clientCapabilities":{}`,
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	for what, test := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int
	}{
		"good": {read, []string{version, method, name}, 200, 0},
		"name in base64": {read, []string{version, method, "Mcp-Name: =?base64?aHR0cHM6Ly94LnRlc3QvZG9j?="},
			200, 0},
		"another in base64": {read, []string{version, method, "Mcp-Name: =?base64?aHR0cHM6Ly94LnRlc3Q=?="}, 400,
			-32020},
		"no base64":          {read, []string{version, method, "Mcp-Name: =?base64?aHR0!!!?="}, 400, -32020},
		"no version":         {read, []string{method, name}, 400, -32020},
		"another version":    {read, []string{"Mcp-Protocol-Version: 2025-11-25", method, name}, 400, -32020},
		"no method":          {read, []string{version, name}, 400, -32020},
		"method in capitals": {read, []string{version, "Mcp-Method: RESOURCES/READ", name}, 400, -32020},
		"two methods":        {read, []string{version, method, method, name}, 400, -32020},
		"no name":            {read, []string{version, method}, 400, -32020},
		"another name":       {read, []string{version, method, name + "x"}, 400, -32020},
		"unknown version": {strings.ReplaceAll(read, "2026-07-28", "2099-01-01"),
			[]string{"Mcp-Protocol-Version: 2099-01-01", method, name}, 400, -32022},
		"no claim": {meta(capabilities), []string{version, method, name}, 400, -32602},
		"no _meta": {`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`,
			[]string{version, "Mcp-Method: resources/list"}, 400, -32602},
		"no capabilities": {meta(claim), []string{version, method, name}, 400, -32602},
		"version no string": {meta(`"io.modelcontextprotocol/protocolVersion":1,` + capabilities),
			[]string{version, method, name}, 400, -32602},
		"bad info": {meta(claim + "," + capabilities + `,"io.modelcontextprotocol/clientInfo":1`),
			[]string{version, method, name}, 400, -32602},
		"no uri": {call("1", "resources/read", ""), []string{version, method}, 200, -32602},
		"unknown resource": {call("1", "resources/read", `"uri":"https://x.test/none"`),
			[]string{version, method, "Mcp-Name: https://x.test/none"}, 200, -32602},
		"unknown method":   {call("1", "none", ""), []string{version, "Mcp-Method: none"}, 404, -32601},
		"a removed method": {call("1", "ping", ""), []string{version, "Mcp-Method: ping"}, 404, -32601},
		"initialize": {call("1", "initialize", ""), []string{version, "Mcp-Method: initialize"}, 404,
			-32601},
		"discover without _meta": {`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`, nil, 400, -32602},
		"no JSON":                {`{`, []string{version}, 400, -32700},
		"no UTF-8":               {"{\"x\":\"\xff\"}", nil, 400, -32700},
		"no object":              {`1`, nil, 400, -32600},
		"a batch":                {`[` + read + `]`, []string{version}, 400, -32600},
		"id of no kind":          {`{"jsonrpc":"2.0","id":{},"method":"server/discover"}`, nil, 400, -32600},
		"too large": {
			strings.Replace(read, `"uri"`, `"x":"`+strings.Repeat("x", s.g.MessageBytes())+`","uri"`, 1),
			[]string{version, method, name}, 413, -32600},
		"another type": {read, []string{"Content-Type: text/plain", version, method, name}, 415, -32600},
		"a listen without events": {listen("1", doc), []string{version, "Mcp-Method: subscriptions/listen",
			"Accept: application/json"}, 406, -32600},
		"no session": {legacyCall("1", "resources/list", ""), nil, 400, -32600},
		"an old version": {legacyCall("1", "resources/list", ""), []string{"Mcp-Protocol-Version: 1900-01-01"},
			400, -32600},
	} {
		t.Run(what, func(t *testing.T) {
			s.t = t
			r := s.do("POST", test.body, test.headers...)
			m := r.want(test.status, test.code)
			if want := "1"; strings.HasPrefix(test.body, `{"jsonrpc":"2.0","id":1`) && string(m.ID) != want &&
				r.StatusCode != 415 {
				t.Errorf("the id is %s", m.ID)
			}
			if r.Header.Get("Mcp-Session-Id") != "" {
				t.Error("it has a session")
			}
		})
	}
	s.t = t
	for _, body := range []string{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`} {
		if r := s.do("POST", body, version); r.StatusCode != 202 {
			t.Errorf("%s is answered with %d", body, r.StatusCode)
		}
	}
	for _, method := range []string{"GET", "DELETE", "PUT", "OPTIONS"} {
		if r := s.do(method, "", version); r.StatusCode != 405 || r.Header.Get("Allow") == "" {
			t.Errorf("%s is answered with %d", method, r.StatusCode)
		}
	}
}

// tool attaches another page, which has a tool.
func (s *site) tool(name string, tool testkit.Tool) {
	p := testkit.NewPage(s.t, nil)
	p.SetTool(name, tool)
	p.Attach(func(send func([]byte)) (testkit.Receiver, error) {
		return s.g.Attach(gateway.PageInfo{Tab: "b", Origin: "https://tools.test", URL: "https://tools.test/"}, send)
	})
}

// A tool's schema may require that headers repeat arguments, because intermediaries route by headers.
func TestParamHeaders(t *testing.T) {
	s, looks := serveHTTP(t, HTTPOptions{}), serveHTTP(t, HTTPOptions{Agent: gateway.AgentOptions{NoPageTools: true}})
	for _, s := range []*site{s, looks} {
		s.tool("weather",
			testkit.Tool{Members: map[string]any{"inputSchema": json.RawMessage(`{"type":"object","properties":{` +
				`"city":{"type":"string","x-mcp-header":"City"},"in":{"type":"object","properties":{"days":{"type":"integer","x-mcp-header":"Days"},"now":{"type":"boolean","x-mcp-header":"Now"}}}}}`)}})
	}
	for _, test := range []struct {
		args    string
		headers []string
		good    bool
	}{
		{`{"city":"Bern"}`, []string{"Mcp-Param-City: Bern"}, true},
		{`{"city":"Bern"}`, []string{"Mcp-Param-City: =?base64?QmVybg==?="}, true},
		{`{"city":"=?base64?QmVybg=="}`, []string{"Mcp-Param-City: =?base64?QmVybg=="}, true},
		{`{"city":"Bern"}`, []string{"Mcp-Param-City: =?base64?QmVybg?="}, false},
		{`{"city":"Bern"}`, []string{"Mcp-Param-City: Basel"}, false},
		{`{"city":"Bern"}`, nil, false},
		{`{}`, nil, true},
		{`{"city":null}`, nil, true},
		{`{}`, []string{"Mcp-Param-City: Bern"}, false},
		{`{"in":{"days":3,"now":true}}`, []string{"Mcp-Param-Days: 3", "Mcp-Param-Now: true"}, true},
		{`{"in":{"days":3,"now":true}}`, []string{"Mcp-Param-Days: 3"}, false},
		{`{"in":{"days":3}}`, []string{"Mcp-Param-Days: 4"}, false},
	} {
		// Where the tool does not exist, the schema does not either.
		looks.ask(call("1", "tools/call", `"name":"weather","arguments":`+test.args),
			append(test.headers, "Mcp-Name: weather")...).want(200, -32602)
		r := s.ask(call("1", "tools/call", `"name":"weather","arguments":`+test.args),
			append(test.headers, "Mcp-Name: weather")...)
		if test.good {
			r.want(200, 0)
		} else {
			r.want(400, -32020)
		}
	}
}

// Each listen is a stream: it is acknowledged first, gets the updates that it asks for, and ends when its client
// leaves.
func TestModernListens(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	// Equal ids are no conflict, because a modern request has no session.
	one, two := s.ask(listen(`"l"`, origin+"/doc")), s.ask(listen(`"l"`, origin+"/doc"))
	other := s.ask(listen("0", origin+"/other"))
	for _, r := range []*reply{one, two, other} {
		if m := r.message(); m.Method != "notifications/subscriptions/acknowledged" {
			t.Fatalf("first comes %+v", m)
		}
		if r.Header.Get("Content-Type") != "text/event-stream" || r.Header.Get("X-Accel-Buffering") != "no" ||
			r.StatusCode != 200 {
			t.Errorf("HTTP %d %v", r.StatusCode, r.Header)
		}
	}
	s.Set(origin+"/doc", "two")
	for _, r := range []*reply{one, two} {
		if m := r.message(); m.Method != "notifications/resources/updated" || m.Params.URI != origin+"/doc" ||
			m.subscription() != `"l"` {
			t.Errorf("told %+v", m)
		}
	}
	one.cancel()
	testkit.Eventually(t, "the listen that its client left is gone", func() bool {
		return s.g.Snapshot().Stats.Listens == 2
	})
	s.Set(origin+"/doc", "three")
	s.Set(origin+"/other", "3")
	if m := two.message(); m.Params.URI != origin+"/doc" {
		t.Errorf("told %+v", m)
	}
	if m := other.message(); m.Params.URI != origin+"/other" || m.subscription() != "0" {
		t.Errorf("told %+v", m)
	}
	if r := s.ask(call("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":1}`)); r.want(200,
		-32602).Result != nil {
		t.Error("a bad filter is accepted")
	}
}

// A client that disconnects cancels its request, also at the page.
func TestDisconnect(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "POST", s.server.URL,
		strings.NewReader(call("1", "resources/read", `"uri":"`+origin+`/slow"`)))
	for _, h := range []string{"Content-Type: application/json", "Mcp-Protocol-Version: 2026-07-28",
		"Mcp-Method: resources/read", "Mcp-Name: " + origin + "/slow"} {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	go func() {
		<-s.reading
		cancel()
	}()
	if _, err := http.DefaultClient.Do(r); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-s.gaveUp
	testkit.Eventually(t, "nothing is left", func() bool { return held(s.g) == 0 })
}

// Similar ids are different, and equal ids in two sessions never mix.
func TestLegacyIDs(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	sessions := []string{s.begin(), s.begin()}
	var all sync.WaitGroup
	for n, session := range sessions {
		for i, id := range []string{`"0"`, `0`, `""`, `1`, `"1"`, `-1`, `9007199254740991`, `9007199254740993`} {
			all.Go(func() {
				x := 10*n + i
				m := s.do("POST", legacyCall(id, "resources/read", fmt.Sprintf(`"uri":"%s/square/%d"`, origin, x)),
					session).want(200, 0)
				if string(m.ID) != id || m.Result == nil || m.Result.Contents[0].Text != fmt.Sprint(x*x) {
					t.Errorf("%s is answered %+v", id, m)
				}
			})
		}
	}
	all.Wait()
}

// A refusal by HTTP has a status of its own. A refusal by the engine has status 200, except for unreadable messages.
func TestLegacyErrors(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	session := s.begin()
	for what, test := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int
	}{
		"unknown method":      {legacyCall("1", "none", ""), nil, 200, -32601},
		"no params":           {`{"jsonrpc":"2.0","id":1,"method":"resources/read"}`, nil, 200, -32602},
		"params of no kind":   {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":1}`, nil, 200, -32602},
		"unknown resource":    {legacyCall("1", "resources/read", `"uri":"https://x.test/none"`), nil, 200, -32002},
		"modern, not claimed": {legacyCall("1", "subscriptions/listen", ""), nil, 400, -32602},
		"an id for none":      {legacyCall("1", "notifications/initialized", ""), nil, 200, -32601},
		"no JSON":             {"{", nil, 400, -32700},
		"no events":           {legacyCall("1", "ping", ""), []string{"Accept: application/json"}, 406, -32600},
		"events refused": {legacyCall("1", "ping", ""), []string{"Accept: */*, text/event-stream;q=0.0"}, 406,
			-32600},
		"id behind params that are too deep": {`{"method":"ping","params":` + strings.Repeat(`{"a":`, 70) + "1" +
			strings.Repeat("}", 70) + `,"id":1,"jsonrpc":"2.0"}`, nil, 200, -32700},
		"an unknown version": {legacyCall("1", "ping", ""), []string{"Mcp-Protocol-Version: 2025-01-01"}, 400,
			-32600},
		"an older version": {legacyCall("1", "ping", ""), []string{"Mcp-Protocol-Version: 2025-03-26"}, 200, 0},
		"a batch":          {`[` + legacyCall("1", "ping", "") + `]`, nil, 400, -32600},
		"a replay":         {legacyCall("1", "ping", ""), []string{"Last-Event-ID: x_1"}, 200, 0},
		"good":             {legacyCall("1", "ping", ""), []string{"Mcp-Protocol-Version: 2025-11-25"}, 200, 0},
	} {
		t.Run(what, func(t *testing.T) {
			s.t = t
			s.do("POST", test.body, append(test.headers, session)...).want(test.status, test.code)
		})
	}
	s.t = t
	for _, body := range []string{`{"jsonrpc":"2.0","method":"notifications/none"}`,
		`{"jsonrpc":"2.0","method":"none"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`} {
		if r := s.do("POST", body, session); r.StatusCode != 202 {
			t.Errorf("%s is answered with %d", body, r.StatusCode)
		}
	}
	s.do("POST", legacyCall("1", "ping", ""), "Mcp-Session-Id: none").want(404, -32600)
	begins := legacyCall("1", "initialize", `"protocolVersion":"2025-06-18"`)
	began := s.do("POST", "\ufeff"+begins, "Mcp-Session-Id: of an earlier gateway")
	began.want(200, 0)
	next := "Mcp-Session-Id: " + began.Header.Get("Mcp-Session-Id")
	s.do("POST", "\ufeff"+legacyCall("2", "ping", ""), next).want(200, 0)
	if again := s.do("POST", begins, next); again.StatusCode != 200 || again.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("initialize in an open session begins another: %v", again.Header)
	}
	s.do("GET", "", "Mcp-Session-Id: none").want(404, -32600)
	s.do("GET", "").want(400, -32600)
	s.do("DELETE", "").want(400, -32600)
}

// An agent gets one update for all changes before it opens the stream, and another for a change after that.
func TestLegacyStream(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	session := s.begin()
	s.do("POST", legacyCall("1", "resources/subscribe", `"uri":"`+origin+`/doc"`), session).want(200, 0)
	for round := range 3 {
		for i := range 100 {
			s.Set(origin+"/doc", fmt.Sprint(round, i))
		}
		s.do("POST", legacyCall("2", "ping", ""), session).want(200, 0)
		stream := s.do("GET", "", session)
		if m := stream.message(); m.Method != "notifications/resources/updated" || m.Params.URI != origin+"/doc" {
			t.Fatalf("told %+v", m)
		}
		s.Set(origin+"/doc", "now")
		if m := stream.message(); m.Method != "notifications/resources/updated" {
			t.Fatalf("told %+v", m)
		}
		stream.cancel()
		testkit.Eventually(t, "the stream has ended", func() bool {
			s.h.legacy.mu.Lock()
			defer s.h.legacy.mu.Unlock()
			for _, session := range s.h.legacy.all {
				return session.requests == 0
			}
			return false
		})
	}
}

// A client that never ends the body of a request gets an answer.
func TestBodyThatNeverEnds(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{bodyTimeout: 50 * time.Millisecond})
	for name, c := range map[string]struct {
		head   string
		status int
	}{
		"of a length":       {"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", 400},
		"in chunks":         {"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", 400},
		"that nobody reads": {"Content-Type: text/plain\r\nContent-Length: 100\r\n\r\n{", 415},
	} {
		conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n%s", c.head)
		_ = conn.SetReadDeadline(time.Now().Add(testkit.Patience))
		if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != c.status {
			t.Errorf("a body %s: %v, %v", name, answer, err)
		}
	}
}

// A stream breaks at each byte, and the server does not notice. The agent reconnects as clients do, with the id of the
// last event that it had of this stream, or without one. It gets all updates that it lacks.
func TestLegacyStreamIsCutAtEachByte(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	session := s.begin()
	const docs = 3
	for i := range docs {
		s.Offer(fmt.Sprint(origin, "/doc", i), "")
		s.do("POST", legacyCall("1", "resources/subscribe", fmt.Sprintf(`"uri":"%s/doc%d"`, origin, i)), session).
			want(200, 0)
	}
	// follow reads a stream for a number of bytes or, if that is negative, until lacks is empty.
	follow := func(stream *reply, lacks map[string]bool, bytes int) (lastID string) {
		t.Helper()
		var line, id, uri string
		for read := 0; read != bytes && (bytes >= 0 || len(lacks) > 0); read++ {
			c, err := stream.lines.ReadByte()
			if err != nil {
				t.Fatalf("after %d bytes, when it was not told of %v: %v", read, lacks, err)
			}
			if c != '\n' {
				line += string(c)
				continue
			}
			if text, ok := strings.CutPrefix(line, "id: "); ok {
				id = text
			} else if text, ok := strings.CutPrefix(line, "data: "); ok {
				uri = decode(t, []byte(text)).Params.URI
			} else if line == "" && id != "" { // the end of an event
				lastID = id
				delete(lacks, uri)
				id, uri = "", ""
			}
			line = ""
		}
		return lastID
	}
	stream := s.do("GET", "", session)
	lacks := map[string]bool{}
	change := func(round int) {
		for i := range docs {
			uri := fmt.Sprint(origin, "/doc", i)
			lacks[uri] = true
			s.Set(uri, fmt.Sprint("round ", round))
		}
	}
	change(-1)
	follow(stream, lacks, -1)
	event := len("id: 10\nevent: message\ndata: " + `{"jsonrpc":"2.0","method":"notifications/resources/updated",` +
		`"params":{"uri":"https://x.test/doc0"}}` + "\n\n")
	for cut := range len(": keepalive\n\n") + 2*event {
		first := s.do("GET", "", session)
		change(cut)
		lastID := follow(first, lacks, cut)
		var again []string
		if lastID != "" {
			again = []string{"Last-Event-ID: " + lastID}
		}
		second := s.do("GET", "", append(again, session)...)
		if second.StatusCode != 200 {
			t.Fatalf("cut at %d: HTTP %d", cut, second.StatusCode)
		}
		follow(second, lacks, -1)
	}
}

// A client whose right ends while its request waits, for example with its access token, gets an error.
func TestMayNotWait(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{aliveEvery: time.Hour})
	session := s.begin()
	ends := make(chan context.CancelFunc, 1)
	s.server.Close()
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		ends <- cancel
		s.h.ServeHTTP(w, r.WithContext(ctx))
	}))
	s.tool("work", testkit.Tool{Run: func(ctx context.Context, _ json.RawMessage, progress func(map[string]any)) any {
		progress(map[string]any{"progress": 1})
		<-ctx.Done()
		return nil
	}})
	read := func(i int) string { // different URIs, because the page gets one read for two requests of a URI
		uri := fmt.Sprint(origin, "/wait", i)
		s.Add(uri, func(ctx context.Context, _ string) (string, error) {
			s.reading <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		})
		return `"uri":"` + uri + `"`
	}
	// Other arguments than in the modern call: a call that began, and that nobody waited for, does not run again at once.
	work := legacyCall("2", "tools/call", `"name":"work","arguments":{"n":2},"_meta":{"progressToken":"p"}`)
	modernWork := strings.Replace(call("1", "tools/call", `"name":"work"`), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
	for name, c := range map[string]struct {
		begins bool // the answer begins before the right ends
		status int
		ask    func() *reply
	}{
		"modern":            {false, 503, func() *reply { return s.ask(call("1", "resources/read", read(1))) }},
		"modern, has begun": {true, 200, func() *reply { return s.ask(modernWork, "Mcp-Name: work") }},
		"legacy": {false, 200, func() *reply {
			return s.do("POST", legacyCall("1", "resources/read", read(2)), session)
		}},
		"legacy, has begun": {true, 200, func() *reply { return s.do("POST", work, session) }},
	} {
		answers := make(chan *reply, 1)
		go func() { answers <- c.ask() }()
		end := testkit.Receive(t, "it is asked", ends)
		if c.begins {
			answer := testkit.Receive(t, "an answer", answers)
			answer.message() // progress
			end()
			answers <- answer
		} else {
			testkit.Receive(t, "the page is asked", s.reading)
			end()
		}
		answer := testkit.Receive(t, name, answers)
		if m := answer.want(c.status, codeInternal); m.Error == nil || m.Error.Message != endedUnanswered {
			t.Errorf("%s: it is told %+v", name, m)
		}
		answer.close()
	}
}

// Progress comes on the stream of its request, before the result, with or without a GET stream.
func TestLegacyProgress(t *testing.T) {
	for name, stream := range map[string]bool{"with a stream": true, "without one": false} {
		t.Run(name, func(t *testing.T) { legacyProgress(t, stream) })
	}
}

func legacyProgress(t *testing.T, withStream bool) {
	s := serveHTTP(t, HTTPOptions{})
	s.tool("work", testkit.Tool{Run: func(_ context.Context, _ json.RawMessage, progress func(map[string]any)) any {
		for n := range 5 {
			progress(map[string]any{"progress": n + 1})
		}
		return map[string]any{"content": []any{map[string]string{"type": "text", "text": "done"}}}
	}})
	session := s.begin()
	if withStream {
		s.do("GET", "", session).lines.ReadString('\n') // now it is open
	}
	var calls []*reply
	for i := range 5 {
		calls = append(calls,
			s.do("POST",
				legacyCall(fmt.Sprint(i), "tools/call", fmt.Sprintf(`"name":"work","_meta":{"progressToken":"t%d"}`,
					i)),
				session))
	}
	for i, r := range calls {
		for range 5 {
			if m := r.message(); m.Method != "notifications/progress" || m.Params.ProgressToken != fmt.Sprintf("t%d",
				i) {
				t.Errorf("call %d is told %+v", i, m)
			}
		}
		if m := r.message(); string(m.ID) != fmt.Sprint(i) || m.Result == nil {
			t.Errorf("call %d is answered %+v", i, m)
		}
		r.close()
	}
}

// A cancelled request gets no answer. Its stream ends, and its id can be used again.
func TestLegacyCancel(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	session := s.begin()
	for range 3 {
		var ended sync.WaitGroup
		ended.Go(func() {
			r := s.do("POST", legacyCall("7", "resources/read", `"uri":"`+origin+`/slow"`), session)
			r.close()
			if r.StatusCode != 200 {
				t.Errorf("HTTP %d", r.StatusCode)
			}
		})
		<-s.reading
		s.do("POST", legacyCall("7", "ping", ""), session).want(400, -32600) // the id is in use
		s.do("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, session)
		<-s.gaveUp
		ended.Wait()
	}
	for _, session := range s.h.legacy.all {
		if len(session.waiting) != 0 {
			t.Errorf("still waited for: %v", session.waiting)
		}
	}
}

// DELETE ends a session's requests, each with an answer, and its stream, and leaves other sessions alone.
func TestLegacyDelete(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	session, other := s.begin(), s.begin()
	stream := s.do("GET", "", session)
	var ended sync.WaitGroup
	ended.Go(func() {
		m := s.do("POST", legacyCall(`"r"`, "resources/read", `"uri":"`+origin+`/slow"`), session).want(200, -32603)
		if string(m.ID) != `"r"` || m.Error == nil || m.Error.Data["reason"] != "shutdown" {
			t.Errorf("the read is answered %+v", m)
		}
	})
	<-s.reading
	if r := s.do("DELETE", "", session); r.StatusCode != 204 {
		t.Errorf("HTTP %d", r.StatusCode)
	}
	ended.Wait()
	<-s.gaveUp
	stream.close()
	s.do("POST", legacyCall("1", "ping", ""), session).want(404, -32600)
	s.do("POST", legacyCall("1", "ping", ""), other).want(200, 0)
}

// A waiting client gets keepalives, in an event stream with its headers.
func TestStillHere(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{aliveEvery: time.Millisecond})
	session := s.begin()
	for name, r := range map[string]*reply{
		"a legacy request": s.do("POST", legacyCall("1", "resources/read", `"uri":"`+origin+`/slow"`), session),
		"a legacy stream":  s.do("GET", "", session),
		"a modern request": s.ask(call("2", "resources/read", `"uri":"`+origin+`/slow"`)),
	} {
		if got := r.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("%s has Content-Type %q", name, got)
		}
		for told := 0; told < 2; {
			line, err := r.lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if line == ": keepalive\n" {
				told++
			}
		}
	}
	close(s.released)
}

// Idle sessions end. A session with an open stream is not idle.
func TestLegacyIdle(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	idle, busy := s.begin(), s.begin()
	stream := s.do("GET", "", busy)
	s.h.legacy.mu.Lock()
	s.h.opt.Idle = time.Millisecond // set late, because a session might end while it begins
	s.h.legacy.mu.Unlock()
	s.do("POST", legacyCall("1", "ping", ""), idle)
	testkit.Eventually(t, "the idle session has ended", func() bool { return len(s.g.Snapshot().Agents) == 1 })
	s.do("POST", legacyCall("1", "ping", ""), idle).want(404, -32600)
	s.do("POST", legacyCall("1", "ping", ""), busy).want(200, 0)
	stream.cancel()
	testkit.Eventually(t, "the other has ended too", func() bool { return held(s.g) == 0 })
}

func TestClose(t *testing.T) {
	testkit.NoLeak(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s := serveHTTP(t, HTTPOptions{})
	session := s.begin()
	stream := s.do("GET", "", session)
	watching := s.ask(listen(`"l"`, origin+"/doc"))
	watching.message()
	var ended sync.WaitGroup
	ended.Go(func() {
		s.do("POST", legacyCall("1", "resources/read", `"uri":"`+origin+`/slow"`), session).want(200, -32603)
	})
	<-s.reading
	ended.Go(func() { s.ask(call("2", "resources/read", `"uri":"`+origin+`/slower"`)).want(200, -32603) })
	<-s.reading
	if err := s.h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	ended.Wait()
	stream.close()
	if m := watching.message(); string(m.ID) != `"l"` || m.Result == nil || m.Result.ResultType != "complete" {
		t.Errorf("the listen ends with %+v", m)
	}
	watching.close()
	s.do("POST", legacyCall("1", "ping", ""), session).want(503, -32603)
	if held(s.g) != 0 {
		t.Error("something is left")
	}
}

// Close lets an answer that is being written be written whole, if the client reads it in time.
func TestCloseWhileAnAnswerIsWritten(t *testing.T) {
	for name, ask := range map[string]func(*site, string) *reply{
		"modern": func(s *site, read string) *reply { return s.ask(call("1", "resources/read", read)) },
		"legacy": func(s *site, read string) *reply {
			return s.do("POST", legacyCall("1", "resources/read", read), s.begin())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveHTTP(t, HTTPOptions{aliveEvery: time.Hour}) // no comments before the answer
			big := strings.Repeat("x", 5<<20)                     // more than the sockets' buffers take
			s.Offer(origin+"/big", big)
			answer := ask(s, `"uri":"`+origin+`/big"`)
			var closed sync.WaitGroup
			closed.Go(func() {
				if err := s.h.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
			testkit.Eventually(t, "its session has ended", func() bool { return len(s.g.Snapshot().Agents) == 0 })
			if m := answer.want(200, 0); m.Result == nil || m.Result.Contents[0].Text != big {
				t.Error("it is not whole")
			}
			closed.Wait()
		})
	}
}

// Each piece has a deadline of its own, so that a slow client gets all of a long answer.
func TestEachPieceHasItsTime(t *testing.T) {
	w := &pieces{ResponseWriter: httptest.NewRecorder()}
	s := &stream{w: w, control: http.NewResponseController(w), events: true}
	if err := s.event(bytes.Repeat([]byte("x"), 10*piece)); err != nil || w.deadlines < 10 || w.largest > piece {
		t.Errorf("%d deadlines, a write of %d bytes, %v", w.deadlines, w.largest, err)
	}
}

// pieces records the deadlines and the longest write of an answer.
type pieces struct {
	http.ResponseWriter
	deadlines, largest int
}

func (w *pieces) SetWriteDeadline(time.Time) error {
	w.deadlines++
	return nil
}

func (w *pieces) Write(text []byte) (int, error) {
	w.largest = max(w.largest, len(text))
	return len(text), nil
}

func (w *pieces) FlushError() error { return nil }

// Close does not wait for a client that reads nothing.
func TestCloseHanging(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	s.Offer(origin+"/big", strings.Repeat("x", 8<<20)) // more than the sockets' buffers take
	s.ask(call("1", "resources/read", `"uri":"`+origin+`/big"`))
	session := s.begin()
	s.do("POST", legacyCall("1", "resources/read", `"uri":"`+origin+`/big"`), session)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.h.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close returns %v", err)
	}
	s.server.CloseClientConnections()
}

// Equal notifications wait as one, and are sent again as one.
func TestNotificationsThatWait(t *testing.T) {
	var n notes
	waits := func(want string) {
		t.Helper()
		if got := string(bytes.Join(n.waiting, []byte(" "))); got != want {
			t.Errorf("there wait %q, want %q", got, want)
		}
	}
	for _, text := range []string{"a", "a", "b", "a", "b", "c"} {
		n.add([]byte(text))
	}
	waits("a b c")
	n.pop() // a, 1
	n.pop() // b, 2
	n.add([]byte("a"))
	waits("c a")
	n.resume("1")
	waits("b c a")
	for range 3 {
		n.pop() // b, 3; c, 4; a, 5
	}
	n.resume("5")
	waits("")
	n.add([]byte("d"))
	n.pop()
	n.resume("no number")
	waits("d")
	for i := range 2 * manySent {
		n.add([]byte(strconv.Itoa(i)))
		n.pop()
	}
	if len(n.sent) > manySent {
		t.Errorf("%d are kept", len(n.sent))
	}
}

// A client that does not read its stream delays no other request, and gets the last update when it reads.
func TestSlowStream(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	session := s.begin()
	s.do("POST", legacyCall("1", "resources/subscribe", `"uri":"`+origin+`/doc"`), session).want(200, 0)
	streams := []*reply{s.do("GET", "", session), s.ask(listen("1", origin+"/doc"))}
	if m := streams[1].message(); m.subscription() != "1" {
		t.Fatalf("acknowledged %+v", m)
	}
	// More changes than the engine's rate and the queues take.
	const changes = 20_000
	for i := range changes {
		s.Touch(origin + "/doc")
		if i%1000 == 0 {
			s.do("POST", legacyCall("2", "ping", ""), session).want(200, 0)
		}
	}
	for _, r := range streams {
		n := 0
		for {
			more := make(chan message, 1)
			go func() { more <- r.message() }()
			var quiet <-chan time.Time // nil for the first, which must come
			if n > 0 {
				quiet = time.After(500 * time.Millisecond)
			}
			select {
			case <-more:
				n++
				continue
			case <-quiet:
			}
			s.Set(origin+"/doc", "last")
			if m := <-more; m.Params.URI != origin+"/doc" {
				t.Errorf("told %+v", m)
			}
			break
		}
		if n > changes/2 {
			t.Errorf("%d updates for %d changes", n, changes)
		}
	}
}

func TestTooMany(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	for {
		if _, err := s.g.Connect("test"); err != nil {
			break
		}
	}
	defer s.g.Close() // ends these sessions
	if r := s.ask(call("1", "server/discover", "")); r.Header.Get("Retry-After") == "" {
		t.Errorf("%v", r.Header)
	} else {
		r.want(503, -32603)
	}
	s.do("POST", legacyCall("1", "initialize", `"protocolVersion":"2025-11-25"`)).want(503, -32603)
}
