//go:build unix

package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// An outside is a fleet as clients see it. Nodes are processes, which end, are killed, stopped, and cut off from each
// other. Each request of an agent and each connection of a page goes to a random node.
type outside struct {
	*place
	// command makes the process of a node.
	command func(setup) *exec.Cmd

	ids     atomic.Int64 // of requests
	cuts    atomic.Int64 // requests without an answer, because their node was killed
	begins  atomic.Int64 // sessions and listens begun
	refused atomic.Int64 // refused listens

	mu    sync.Mutex
	nodes []*own
}

var subjects = []string{"alice", "bob", "carol"}

// An own node runs as a separate process.
type own struct {
	setup
	*exec.Cmd
	log   *testkit.Log
	ended chan error
	wires []*wire        // to older nodes
	under sync.WaitGroup // requests under way at it
}

// start starts a node. Clients use it when it is ready.
func (o *outside) start() *own {
	o.t.Helper()
	n := o.launch()
	testkit.Eventually(o.t, "it is ready", func() bool {
		return strings.HasPrefix(get(o.t, n.Admin, "/readyz"), "200")
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes = append(o.nodes, n)
	return n
}

// launch starts the process of a node that joins all others.
func (o *outside) launch() *own {
	o.t.Helper()
	n := &own{setup: o.next(), ended: make(chan error, 1)}
	n.Listen, n.Admin, n.Cluster = testkit.Addr(o.t), testkit.Addr(o.t), testkit.Addr(o.t)
	n.Advertise = "127.0.0.1:1" // nothing listens there: nodes reach each other only by wires
	for _, other := range o.all() {
		w := openWire(o.t, other)
		n.wires = append(n.wires, w)
		n.Join = append(n.Join, w.l.Addr().String())
	}
	n.Cmd = o.command(n.setup)
	n.log = testkit.LogOf(o.t, "a node's process")
	n.Stderr = n.log
	if err := n.Start(); err != nil {
		o.t.Fatal(err)
	}
	go func() { n.ended <- n.Wait() }()
	o.t.Cleanup(func() {
		_ = n.Process.Signal(syscall.SIGCONT) // the process may run, or have ended
		_ = n.Process.Signal(syscall.SIGTERM)
		testkit.Ends(o.t, "a node's process ends", n.ended)
	})
	return n
}

// all returns the nodes that clients use.
func (o *outside) all() []*own {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.nodes)
}

// leave removes a node from those that clients use.
func (o *outside) leave(n *own) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes = slices.DeleteFunc(o.nodes, func(other *own) bool { return other == n })
}

// anyNode returns a random one of them for a request. The caller calls done when the request has ended.
func (o *outside) anyNode() (n *own, done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n = o.nodes[rand.IntN(len(o.nodes))]
	n.under.Add(1)
	return n, n.under.Done
}

// A wire is the connection between the buses of two nodes.
type wire struct {
	t    *testing.T
	l    net.Listener
	to   *own
	gate sync.RWMutex // locked while nothing passes

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func openWire(t *testing.T, to *own) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, l: l, to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(c)
		}
	}()
	return w
}

func (w *wire) carry(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", w.to.Cluster)
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	w.conns[near], w.conns[far] = true, true
	if w.cut {
		near.Close()
	}
	w.mu.Unlock()
	go w.copies(far, near)
	w.copies(near, far)
	w.mu.Lock()
	delete(w.conns, near)
	delete(w.conns, far)
	w.mu.Unlock()
}

func (w *wire) copies(to, from net.Conn) {
	defer to.Close()
	text := make([]byte, 32<<10)
	for {
		n, err := from.Read(text)
		w.gate.RLock()
		_, failed := to.Write(text[:n])
		w.gate.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}

// set cuts the wire, or makes it whole.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for c := range w.conns {
		c.Close()
	}
}

// part cuts all wires between a node and the others: their connections end, or hang. heal makes them whole.
func (o *outside) part(n *own, hang bool) (heal func()) {
	var heals []func()
	for _, other := range o.all() {
		for _, w := range other.wires {
			switch {
			case (other == n) == (w.to == n):
			case hang:
				w.gate.Lock()
				heals = append(heals, w.gate.Unlock)
			default:
				w.set(true)
				heals = append(heals, func() { w.set(false) })
			}
		}
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

// stateOf is the beginning of each text of a user's pages. No other user may see it.
func stateOf(subject string) string { return "state of " + subject + ": " }

// A livePage dials a random node, and another when its connection ends.
type livePage struct {
	*testkit.Page
	o                  *outside
	subject, uri, tool string
	count              atomic.Int64 // changes
	closed             atomic.Bool
	connections        atomic.Int64
	cut                atomic.Pointer[context.CancelFunc] // ends its connection
	moves              chan bool                          // makes it connect again before its last connection has ended

	mu  sync.Mutex
	ran map[string]int // calls of its tool, by their number
}

func (p *livePage) text() string {
	return fmt.Sprintf("%s%d of %s", stateOf(p.subject), p.count.Load(), p.uri)
}

func (o *outside) openPage(number int, subject, uri string) *livePage {
	p := &livePage{o: o, subject: subject, uri: uri, tool: fmt.Sprint("act", number), moves: make(chan bool, 1),
		ran: map[string]int{}}
	p.Page = testkit.NewPage(o.t, map[string]string{uri: p.text()})
	p.Epoch(fmt.Sprint("epoch ", number))
	p.SetTool(p.tool, testkit.Tool{Run: func(_ context.Context, args json.RawMessage, _ func(map[string]any)) any {
		p.mu.Lock()
		if p.ran[string(args)]++; p.ran[string(args)] > 1 {
			o.t.Errorf("%s runs once more: %s", p.tool, args)
		}
		p.mu.Unlock()
		time.Sleep(rand.N(200 * time.Millisecond)) // its node may end meanwhile
		return map[string]any{"content": []any{map[string]string{"type": "text", "text": "done " + string(args)}}}
	}})
	idle := context.CancelFunc(func() {})
	p.cut.Store(&idle)
	go func() {
		for o.t.Context().Err() == nil && !p.closed.Load() {
			p.connected(o.t.Context(), fmt.Sprint("tab-number-", number))
			time.Sleep(5 * time.Millisecond) // its node may be dead
		}
	}()
	return p
}

func (p *livePage) change() {
	p.count.Add(1)
	p.Set(p.uri, p.text())
}

// connected runs one connection until it ends, or until the page is to have another.
func (p *livePage) connected(ctx context.Context, tab string) {
	ctx, cut := context.WithCancel(ctx)
	p.cut.Store(&cut)
	late := time.AfterFunc(time.Second, cut) // its node may be stopped
	n, done := p.o.anyNode()
	ws, _, err := p.o.dial(ctx, n, app)
	done()
	if late.Stop(); err != nil {
		cut()
		return
	}
	context.AfterFunc(ctx, func() { ws.CloseNow() })
	say := func(text []byte) { _ = ws.Write(ctx, websocket.MessageText, text) } // after an end the read fails
	say(note(p.o.login.Ticket(p.subject, app)))
	p.Connect(say, map[string]any{"tab": tab, "dial": p.connections.Add(1)})
	told := make(chan []byte)
	go func() {
		defer close(told)
		for {
			_, text, err := ws.Read(ctx)
			if err != nil || text[0] != '[' { // the connection ends, or the page is to go elsewhere
				return
			}
			select {
			case told <- text:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case text, ok := <-told:
			if !ok {
				p.Hear(nil)
				cut()
				return
			}
			p.Hear(text)
		case <-p.moves:
			time.AfterFunc(rand.N(50*time.Millisecond), cut)
			return
		}
	}
}

func (o *outside) dial(ctx context.Context, at *own, origin string) (*websocket.Conn, *http.Response, error) {
	return websocket.Dial(ctx, "ws://"+at.Listen+"/page", &websocket.DialOptions{
		HTTPHeader: http.Header{"Origin": {origin}}, Subprotocols: []string{"pagewire.v1"}})
}

// note returns a page's first message, with a ticket.
func note(ticket string) []byte {
	return fmt.Appendf(nil, `{"type":"pagewire:ticket","ticket":%q}`, ticket)
}

// close plays a user who closes the page.
func (p *livePage) close() {
	p.closed.Store(true)
	p.Post(`[["bye",true]]`)
	(*p.cut.Load())()
}

// A said is a message to an agent.
type said struct {
	ID     json.RawMessage
	Method string
	Params struct{ URI string }
	Result struct {
		Contents, Content []struct{ Text string }
		IsError           bool
		Meta              struct {
			ServerInfo struct{ Version string } `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	Error *struct {
		Message string
		Data    struct{ Reason string }
	}
}

// brokeOff reports whether a node has given up the node that was to answer, while it had the request. Both may live, if
// only the bus between them is cut.
func (m said) brokeOff() bool { return m.Error != nil && m.Error.Data.Reason == "broke_off" }

// client uses a new connection for each request, so that it repeats none after the end of a reused connection.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// send sends a request to a node, to a random one if at is nil, and passes each message of the answer to take until
// take returns true. It returns an error if the answer breaks off.
func (o *outside) send(ctx context.Context, at *own, subject, verb, body string, head map[string]string,
	take func(event string, m said) (last bool)) (status int, header http.Header, err error) {
	if at == nil {
		var done func()
		if at, done = o.anyNode(); verb == http.MethodGet || head["Mcp-Method"] == "subscriptions/listen" {
			done() // a stream, which does not end by itself
		} else {
			defer done()
		}
	}
	r, err := http.NewRequestWithContext(ctx, verb, "http://"+at.Listen+"/mcp", strings.NewReader(body))
	if err != nil {
		o.t.Error(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for name, value := range head {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	handle := func(event, text string) bool {
		for _, other := range subjects {
			if other != subject && strings.Contains(text, stateOf(other)) {
				o.t.Errorf("an agent of %s is answered %s", subject, text)
			}
		}
		var m said
		if text != "" {
			if err := json.Unmarshal([]byte(text), &m); err != nil && answer.StatusCode < 300 {
				o.t.Errorf("an agent is answered %s: %q", answer.Status, text)
			}
		}
		return take(event, m)
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(answer.Body)
		if err == nil {
			handle("", string(text))
		}
		return answer.StatusCode, answer.Header, err
	}
	lines, event := bufio.NewReader(answer.Body), ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return answer.StatusCode, answer.Header, err
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case name == "id":
			event = value
		case name == "data" && handle(event, value):
			return answer.StatusCode, answer.Header, nil
		}
	}
}

// A follower is an agent that holds the last state of the URIs that it watches. It reads whenever it is notified of a
// change, and once after it begins to watch. It repeats an answered request only if a node broke off.
type follower struct {
	o       *outside
	subject string
	token   string
	legacy  bool
	ctx     context.Context
	end     context.CancelFunc
	updates chan string
	session atomic.Pointer[session] // of a legacy one

	mu   sync.Mutex
	held map[string]string
}

// A session is a session of the legacy era.
type session struct {
	id   string
	lost context.CancelFunc // its node has gone, and another session begins
}

func (o *outside) follow(subject string, legacy bool, uris ...string) *follower {
	a := &follower{o: o, subject: subject, token: o.login.Token(subject, "pages:read pages:act"), legacy: legacy,
		updates: make(chan string, 100_000), held: map[string]string{}}
	a.ctx, a.end = context.WithCancel(o.t.Context())
	for _, uri := range uris {
		a.held[uri] = ""
	}
	if legacy {
		go a.keep(func() { a.begin(uris) })
	} else {
		for _, uri := range uris {
			go a.keep(func() { a.listen(uri) })
		}
	}
	go func() {
		for {
			select {
			case uri := <-a.updates:
				a.look(uri)
			case <-a.ctx.Done():
				return
			}
		}
	}()
	return a
}

// keep calls begin again each time it returns, such as after the end of its node.
func (a *follower) keep(begin func()) {
	for a.ctx.Err() == nil {
		a.o.begins.Add(1)
		begin()
		time.Sleep(2 * time.Millisecond)
	}
}

func (a *follower) watches(uri string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, watched := a.held[uri]
	return watched
}

func (a *follower) holds(uri string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held[uri]
}

// modernMeta is in each request of the modern era.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + testkit.Modern +
	`","io.modelcontextprotocol/clientCapabilities":{}}`

// ask sends a request once.
func (a *follower) ask(ctx context.Context, method, name, params string,
	take func(event string, m said) (last bool)) (status int, err error) {
	head := map[string]string{"Authorization": "Bearer " + a.token}
	if a.legacy {
		s := a.session.Load()
		if s == nil {
			return http.StatusNotFound, nil // no session at the moment
		}
		head["Mcp-Protocol-Version"], head["Mcp-Session-Id"] = testkit.Legacy, s.id
	} else {
		head["Mcp-Protocol-Version"], head["Mcp-Method"] = testkit.Modern, method
		if name != "" {
			head["Mcp-Name"] = name
		}
		params += "," + modernMeta
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, a.o.ids.Add(1), method, params)
	status, _, err = a.o.send(ctx, nil, a.subject, http.MethodPost, body, head, take)
	if s := a.session.Load(); a.legacy && status == http.StatusNotFound && s != nil &&
		s.id == head["Mcp-Session-Id"] {
		s.lost()
	}
	return status, err
}

// call sends a request, and returns its answer. err means that no answer came.
func (a *follower) call(method, name, params string) (answer said, err error) {
	_, err = a.ask(a.ctx, method, name, params, func(_ string, m said) bool {
		answer = m
		return len(m.ID) > 0 || m.Method == ""
	})
	return answer, err
}

// look reads a URI after a notification. After an error as the answer, it waits for the next notification. No other
// follows if a node broke off: the session's node, which has notified it, knows of no loss.
func (a *follower) look(uri string) {
	for a.ctx.Err() == nil {
		m, err := a.call("resources/read", uri, fmt.Sprintf(`"uri":%q`, uri))
		if err != nil && a.ctx.Err() == nil { // no answer: its node was killed
			a.o.cuts.Add(1)
			continue
		}
		if m.brokeOff() {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		if len(m.Result.Contents) > 0 {
			a.mu.Lock()
			a.held[uri] = m.Result.Contents[0].Text
			a.mu.Unlock()
		}
		return
	}
}

// listen watches a URI, until the stream ends.
func (a *follower) listen(uri string) {
	filter := fmt.Sprintf(`"notifications":{"resourceSubscriptions":[%q]}`, uri)
	_, _ = a.ask(a.ctx, "subscriptions/listen", "", filter, func(_ string, m said) bool {
		if m.Error != nil {
			a.o.refused.Add(1)
		} else if m.Method != "" {
			a.updates <- uri // acknowledged, or updated
		}
		return false
	})
}

// begin runs a session that watches URIs until the session ends.
func (a *follower) begin(uris []string) {
	head := map[string]string{"Authorization": "Bearer " + a.token}
	status, header, err := a.o.send(a.ctx, nil, a.subject, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,`+
		`"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`,
		testkit.Legacy), head, func(string, said) bool { return true })
	if err != nil || status != http.StatusOK {
		return
	}
	ctx, lost := context.WithCancel(a.ctx)
	defer lost()
	head["Mcp-Session-Id"], head["Mcp-Protocol-Version"] = header.Get("Mcp-Session-Id"), testkit.Legacy
	a.session.Store(&session{head["Mcp-Session-Id"], lost})
	defer a.session.Store(nil)
	_, _, _ = a.o.send(ctx, nil, a.subject, http.MethodPost,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, head, func(string, said) bool { return true })
	lists := make(chan bool, 1)
	lists <- true
	go a.subscribe(ctx, uris, lists)
	for last := ""; ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		if head["Last-Event-ID"] = last; last == "" {
			delete(head, "Last-Event-ID")
		}
		status, _, _ := a.o.send(ctx, nil, a.subject, http.MethodGet, "", head, func(event string, m said) bool {
			switch last = event; m.Method {
			case "notifications/resources/updated":
				a.updates <- m.Params.URI
			case "notifications/resources/list_changed":
				select {
				case lists <- true:
				default:
				}
			}
			return false
		})
		if status == http.StatusNotFound {
			return
		}
	}
}

// subscribe subscribes to URIs. It repeats that for missing ones when the list changes.
func (a *follower) subscribe(ctx context.Context, uris []string, lists <-chan bool) {
	missing := slices.Clone(uris)
	for len(missing) > 0 {
		select {
		case <-lists:
		case <-ctx.Done():
			return
		}
		missing = slices.DeleteFunc(missing, func(uri string) bool {
			for ctx.Err() == nil {
				m, err := a.call("resources/subscribe", "", fmt.Sprintf(`"uri":%q`, uri))
				if err == nil && m.Error == nil && len(m.ID) > 0 {
					a.updates <- uri
				}
				if err == nil && !m.brokeOff() {
					return m.Error == nil && len(m.ID) > 0
				}
				a.o.cuts.Add(1)
				time.Sleep(2 * time.Millisecond)
			}
			return false
		})
	}
}
