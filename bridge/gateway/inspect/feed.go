//go:build !js

package inspect

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
)

// The feed is a WebSocket of JSON messages, one for each open inspector. To the page: what there is, in parts, each
// when it has changed (pages, resources, watched, agents, tools, stats); messages that pass (log); what a resource
// reads as (value). From the page: first who it is, which is Options.Admit's, then {"open": uri} and {"close": uri} for
// values, {"log": bool} for the messages.

const (
	// pulse is how often an open inspector is told what is new: four times a second, which reads as at once.
	pulse = 250 * time.Millisecond
	// maxText clips a message in the log, maxValue what a resource reads as, and maxWords titles and the like, in
	// bytes.
	maxText, maxValue, maxWords = 4 << 10, 64 << 10, 300
	// maxLog bounds the messages that wait for the next pulse: 1,024 in a second. Of more the last ones are kept.
	maxLog = 256
	// maxOpen bounds the resources that one inspector follows.
	maxOpen = 64
	// maxListed bounds the resources that are listed; it is more than a person scrolls through, and the page filters
	// it.
	maxListed = 20_000
	// writeTimeout ends an inspector that does not take what it is sent.
	writeTimeout = 10 * time.Second
)

// taps shares the gateway's one Tap among the open inspectors, and holds it only while there are any.
type taps struct {
	g    *gateway.Gateway
	mu   sync.Mutex
	logs map[*ring]bool
}

func (t *taps) add(r *ring) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.logs == nil {
		t.logs = map[*ring]bool{}
	}
	t.logs[r] = true
	t.g.Tap(t.pass)
}

func (t *taps) remove(r *ring) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.logs, r)
	if len(t.logs) == 0 {
		t.g.Tap(nil)
	}
}

// pass is called with the gateway's lock held: it copies what fits into an entry, and returns.
func (t *taps) pass(e gateway.Event) {
	en := entry{At: e.Time.UnixMilli(), Way: e.Way, Agent: e.Agent, Page: clip(e.Page, maxWords), Bytes: len(e.Text),
		Text: clip(string(e.Text[:min(len(e.Text), maxText+1)]), maxText)}
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.logs {
		r.push(en)
	}
}

// An entry is a message in the log.
type entry struct {
	At    int64       `json:"at"` // milliseconds since 1970
	Way   gateway.Way `json:"way"`
	Agent int         `json:"agent,omitempty"`
	Page  string      `json:"page,omitempty"`
	Bytes int         `json:"bytes"`
	Text  string      `json:"text"` // the first maxText bytes
}

// A ring holds the last maxLog entries since it was taken from.
type ring struct {
	mu      sync.Mutex
	entries []entry
	next    int // where the oldest is, once it is full
	dropped int
}

func (r *ring) push(e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.entries) < maxLog {
		r.entries = append(r.entries, e)
		return
	}
	r.entries[r.next] = e
	r.next = (r.next + 1) % maxLog
	r.dropped++
}

// take empties the ring. dropped is how many there were besides.
func (r *ring) take() (entries []entry, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, dropped = append(r.entries[r.next:], r.entries[:r.next]...), r.dropped
	r.entries, r.next, r.dropped = nil, 0, 0
	return entries, dropped
}

// clip shortens a text to n bytes, at the end of a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func (h *handler) feed(w http.ResponseWriter, r *http.Request) {
	select {
	case h.places <- struct{}{}:
	default:
		http.Error(w, "pagewire: too many inspectors are open", http.StatusServiceUnavailable)
		return
	}
	defer func() { <-h.places }()
	// Package access has looked at the Origin; where it does not stand before this, only the page's own is good.
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: h.opt.Admit != nil})
	if err != nil {
		return // it has been answered
	}
	defer ws.CloseNow()
	ws.SetReadLimit(16 << 10)
	if h.opt.Admit != nil {
		if err := h.opt.Admit(r.Context(), r, texts{ws}); err != nil {
			ws.Close(websocket.StatusPolicyViolation, clip(err.Error(), 120))
			return
		}
	}
	h.opt.Log.Info("inspector opened", "remote", r.RemoteAddr)
	v := &viewer{h: h, ws: ws, open: map[string]*follower{}, ending: map[string]*follower{}, values: map[string]value{},
		wake: make(chan struct{}, 1)}
	err = v.run(r.Context())
	h.opt.Log.Info("inspector closed", "remote", r.RemoteAddr, "reason", err)
}

// texts is a WebSocket of text messages.
type texts struct{ ws *websocket.Conn }

func (t texts) Read(ctx context.Context) ([]byte, error) {
	_, text, err := t.ws.Read(ctx)
	return text, err
}

func (t texts) Write(ctx context.Context, text []byte) error {
	return t.ws.Write(ctx, websocket.MessageText, text)
}

// A viewer is one open inspector.
type viewer struct {
	h     *handler
	ws    *websocket.Conn
	tasks sync.WaitGroup
	log   ring
	wake  chan struct{} // a value waits
	sent  map[string][]byte

	mu     sync.Mutex
	agent  *mcp.ClientSession // once a value is asked for
	open   map[string]*follower
	ending map[string]*follower // no longer open, and still subscribed
	values map[string]value     // that wait to be sent, by URI
}

// A value is what a resource reads as.
type value struct {
	Type    string `json:"type"`
	URI     string `json:"uri"`
	At      int64  `json:"at"` // milliseconds since 1970
	Text    string `json:"text"`
	MIME    string `json:"mimeType,omitempty"`
	Bytes   int    `json:"bytes"`
	Binary  bool   `json:"binary,omitempty"`
	Clipped bool   `json:"clipped,omitempty"`
	Error   string `json:"error,omitempty"`
}

// run returns when the inspector is closed, with why, and leaves nothing behind.
func (v *viewer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	v.tasks.Go(func() { cancel(v.listen(ctx)) })
	v.sent = map[string][]byte{}
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	err := v.tell(ctx)
	for err == nil {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-ticker.C:
			err = v.tell(ctx)
		case <-v.wake:
			err = v.tellValues(ctx)
		}
	}
	cancel(err)
	v.ws.CloseNow()
	v.tasks.Wait()
	v.h.taps.remove(&v.log) // behind listen, which may add it
	v.mu.Lock()
	agent := v.agent
	v.mu.Unlock()
	if agent != nil {
		agent.Close()
	}
	return err
}

// listen does what the page asks for.
func (v *viewer) listen(ctx context.Context) error {
	for {
		_, text, err := v.ws.Read(ctx)
		if err != nil {
			return err
		}
		var m struct {
			Open, Close string
			Log         *bool
		}
		if json.Unmarshal(text, &m) != nil {
			return fmt.Errorf("the page sent something that is not a command: %q", clip(string(text), 100))
		}
		switch {
		case m.Log != nil && *m.Log:
			v.h.taps.add(&v.log)
		case m.Log != nil:
			v.h.taps.remove(&v.log)
		case m.Open != "":
			v.follow(ctx, m.Open)
		case m.Close != "":
			v.unfollow(m.Close)
		}
	}
}

// tell sends what has changed since it was told.
func (v *viewer) tell(ctx context.Context) error {
	s := v.h.g.Snapshot()
	if s.Closed {
		return gateway.ErrClosed
	}
	for _, part := range []struct {
		name string
		is   any
	}{
		{"version", v.h.opt.Version},
		{"pages", shownPages(s)},
		{"agents", shownAgents(s)},
		{"watched", shownWatched(s)},
		{"tools", s.Tools},
		{"resources", listed(s)},
		{"stats", stats(s)},
	} {
		text, err := json.Marshal(map[string]any{"type": part.name, part.name: part.is})
		if err != nil {
			return err
		}
		if bytes.Equal(v.sent[part.name], text) {
			continue
		}
		v.sent[part.name] = text
		if err := v.write(ctx, text); err != nil {
			return err
		}
	}
	entries, dropped := v.log.take()
	if len(entries) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{"type": "log", "entries": entries, "dropped": dropped})
	if err != nil {
		return err
	}
	return v.write(ctx, text)
}

func (v *viewer) tellValues(ctx context.Context) error {
	v.mu.Lock()
	values := v.values
	v.values = map[string]value{}
	v.mu.Unlock()
	for _, one := range values {
		text, err := json.Marshal(one)
		if err != nil {
			return err
		}
		if err := v.write(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (v *viewer) write(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return v.ws.Write(ctx, websocket.MessageText, text)
}

type pageView struct {
	Tab       int    `json:"tab"`
	Frame     string `json:"frame,omitempty"`
	Title     string `json:"title"`
	Origin    string `json:"origin"`
	URL       string `json:"url"`
	Transport string `json:"transport"`
	Focused   bool   `json:"focused,omitempty"`
	Absent    bool   `json:"absent,omitempty"`
	Resources int    `json:"resources"`
	Tools     int    `json:"tools"`
}

func shownPages(s gateway.Snapshot) []pageView {
	list := []pageView{}
	for _, p := range s.Pages {
		list = append(list, pageView{
			p.Number, clip(p.Frame, maxWords), clip(p.Title, maxWords), p.Origin, clip(p.URL, maxWords), p.Transport,
			p.Focused, p.Absent, p.Resources, p.Tools,
		})
	}
	return list
}

type resourceView struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIME        string `json:"mimeType,omitempty"`
	Template    bool   `json:"template,omitempty"`
	Tab         int    `json:"tab"`
	Origin      string `json:"origin"`
}

type listing struct {
	List []resourceView `json:"list"`
	All  int            `json:"all"` // how many there are, listed or not
}

func listed(s gateway.Snapshot) listing {
	l := listing{List: make([]resourceView, 0, min(len(s.Resources), maxListed)), All: len(s.Resources)}
	for _, r := range s.Resources[:min(len(s.Resources), maxListed)] {
		l.List = append(l.List, resourceView{
			r.URI, clip(r.Name, maxWords), clip(r.Title, maxWords), clip(r.Description, maxWords),
			clip(r.MIMEType, maxWords), r.Template, r.Tab, r.Origin,
		})
	}
	return l
}

type statsView struct {
	Sessions      int          `json:"sessions"`
	Subscriptions int          `json:"subscriptions"`
	Waiting       int          `json:"waiting"`
	Reads         int          `json:"reads"`
	ReadSeconds   float64      `json:"readSeconds"` // of those that are over
	ReadsDone     uint64       `json:"readsDone"`
	ToolCalls     int          `json:"toolCalls"`
	Updates       int          `json:"updates"`     // told by pages
	UpdatesSent   int          `json:"updatesSent"` // to agents
	Passed        []passedView `json:"passed"`
	Descriptors   int          `json:"descriptors"` // bytes that are kept of all pages'
	Ended         []endedView  `json:"ended"`       // links with pages, by reason
}

// The core's types, with names as a page has them.
type (
	passedView struct {
		Way      gateway.Way `json:"way"`
		Messages int64       `json:"messages"`
		Bytes    int64       `json:"bytes"`
	}
	endedView struct {
		Reason string `json:"reason"`
		Links  int    `json:"links"`
	}
	agentView struct {
		ID        int    `json:"id"`
		Transport string `json:"transport"`
		Name      string `json:"name"`
	}
	watchView struct {
		URI     string `json:"uri"`
		Updates int    `json:"updates"`
	}
)

func shownAgents(s gateway.Snapshot) []agentView {
	list := []agentView{}
	for _, a := range s.Agents {
		list = append(list, agentView(a))
	}
	return list
}

func shownWatched(s gateway.Snapshot) []watchView {
	list := []watchView{}
	for _, w := range s.Watched {
		list = append(list, watchView(w))
	}
	return list
}

func stats(s gateway.Snapshot) statsView {
	passed := []passedView{}
	for _, p := range s.Passed {
		passed = append(passed, passedView(p))
	}
	ended := []endedView{}
	for _, reason := range slices.Sorted(maps.Keys(s.Ended)) {
		ended = append(ended, endedView{clip(reason, maxWords), s.Ended[reason]})
	}
	return statsView{
		len(s.Agents), s.Stats.Subscriptions, s.Stats.Calls, s.Reads, s.Latency.Seconds, s.Latency.Count, s.ToolCalls,
		s.Updates, s.Stats.Updates, passed,
		s.Descriptors, ended,
	}
}

// A follower keeps one resource's value on the page up to date.
type follower struct {
	changed chan struct{}
	cancel  context.CancelFunc
	over    chan struct{} // closed when it has unsubscribed
}

// follow begins to read a resource, and reads it again when it changes.
func (v *viewer) follow(ctx context.Context, uri string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open[uri] != nil {
		return
	}
	if len(v.open) >= maxOpen {
		v.queue(value{URI: uri, Error: "too many resources are open here: close one"})
		return
	}
	if v.agent == nil {
		agent, err := v.connect(ctx)
		if err != nil {
			v.queue(value{URI: uri, Error: "no session with the gateway: " + err.Error()})
			return
		}
		v.agent = agent
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{make(chan struct{}, 1), cancel, make(chan struct{})}
	v.open[uri] = f
	agent, before := v.agent, v.ending[uri]
	v.tasks.Go(func() {
		defer close(f.over)
		if before != nil {
			<-before.over // its unsubscribe would end our subscription: a session has one per URI
		}
		v.read(ctx, agent, uri, f)
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.ending[uri] == f {
			delete(v.ending, uri)
		}
	})
}

func (v *viewer) unfollow(uri string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f := v.open[uri]; f != nil {
		f.cancel()
		v.ending[uri] = f
		delete(v.open, uri)
		delete(v.values, uri)
	}
}

// connect makes the inspector an agent of its gateway, which needs no page for it.
func (v *viewer) connect(ctx context.Context) (*mcp.ClientSession, error) {
	port, err := v.h.g.Connect(gateway.TransportInspector)
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "pagewire inspector", Version: v.h.opt.Version},
		&mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{},
			ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
				v.mu.Lock()
				f := v.open[r.Params.URI]
				v.mu.Unlock()
				if f != nil {
					select {
					case f.changed <- struct{}{}:
					default:
					}
				}
			},
		})
	agent, err := client.Connect(ctx, mcpconn.Transport(port), &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		port.Close()
	}
	return agent, err
}

// read runs until ctx ends: one read at a time, no two within a pulse.
func (v *viewer) read(ctx context.Context, agent *mcp.ClientSession, uri string, f *follower) {
	failed := agent.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}) // first: no change is lost between the two
	for ctx.Err() == nil {
		began := time.Now()
		now := value{URI: uri, At: began.UnixMilli()}
		r, err := agent.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err == nil {
			err = failed
		}
		if err != nil {
			now.Error = clip(err.Error(), maxWords)
		}
		if r != nil {
			now.fill(r)
		}
		if ctx.Err() != nil {
			break
		}
		v.mu.Lock()
		if v.open[uri] == f {
			v.queue(now)
		}
		v.mu.Unlock()
		select {
		case <-f.changed:
		case <-ctx.Done():
		}
		select {
		case <-time.After(pulse - time.Since(began)):
		case <-ctx.Done():
		}
	}
	if failed == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		_ = agent.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}) // fails when the session is over, and it with it
	}
}

// queue puts a value where the writer finds it. The lock is held.
func (v *viewer) queue(now value) {
	now.Type = "value"
	v.values[now.URI] = now
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// fill takes over what a read gave: the first contents, clipped; bytes in hexadecimal would help nobody, so binary is
// only measured.
func (now *value) fill(r *mcp.ReadResourceResult) {
	for _, c := range r.Contents {
		now.Bytes += len(c.Text) + len(c.Blob)
	}
	if len(r.Contents) == 0 {
		return
	}
	c := r.Contents[0]
	now.MIME = clip(c.MIMEType, maxWords)
	now.Binary = len(c.Blob) > 0
	if now.Binary {
		now.Text = base64.StdEncoding.EncodeToString(c.Blob[:min(len(c.Blob), 48)])
	} else {
		now.Text = clip(c.Text, maxValue)
		now.Clipped = len(now.Text) < len(c.Text)
	}
}
