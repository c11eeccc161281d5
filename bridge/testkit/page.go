package testkit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A Page is the page's end of a link in Go, as the page layer implements it. e2e has real pages in
// a real browser. Its methods may be called concurrently.
type Page struct {
	t testing.TB
	// Hold, if it is not nil, blocks each read and tool call until it has an element, or until the
	// core cancels the call.
	Hold chan struct{}
	// HoldWatch, if it is not nil, blocks the message that begins a watch.
	HoldWatch chan struct{}
	// Starts makes the page say when it starts a tool, as the page layer does. It asks before if
	// the core wants it to.
	Starts bool
	// OnRead, if it is set, is called with each read.
	OnRead func(uri string)
	// Answer, if it is set, answers each tool call with JSON text, valid or not. progress reports
	// JSON text.
	Answer func(name string, progress func(params string)) (result string)
	// Arrived, if it is not nil, runs pagewire/arrived: the page's own answer to a call that has
	// led to it.
	Arrived func(ctx context.Context, args json.RawMessage,
		progress func(members map[string]any)) any

	mu      sync.Mutex
	post    func(frame []byte)
	links   int // the number of links that Attach has begun
	epoch   string
	count   int64
	uris    []string // all offered URIs, in the order of registration
	state   map[string]string
	reads   map[string]func(ctx context.Context, uri string) (string, error)
	members map[string]map[string]any // of descriptors
	changed map[string]int64
	tools   map[string]Tool
	order   []string // of the tools
	watched map[string]bool
	asked   int
	calls   map[int64]call
	reports []string
	refusal string
	raw     func(uri string) string
	recent  recent // frames
}

// A call is one of the core's calls that has not ended.
type call struct {
	uri   string // of a read
	end   context.CancelFunc
	start chan struct{} // closed when the core answers that it may start
}

// A Tool is a tool of a Page.
type Tool struct {
	// Members are further members of MCP's Tool object besides name and inputSchema.
	Members map[string]any
	// Run returns a CallToolResult, which becomes JSON. progress reports the call's progress. A nil
	// Run answers "fine".
	Run func(ctx context.Context, args json.RawMessage, progress func(members map[string]any)) any
}

var epochs atomic.Int64

// NewPage returns a page that offers these texts. It sends nothing before Connect.
func NewPage(t testing.TB, state map[string]string) *Page {
	p := &Page{
		t: t, epoch: "epoch" + strconv.FormatInt(epochs.Add(1), 10), state: map[string]string{},
		reads:   map[string]func(context.Context, string) (string, error){},
		members: map[string]map[string]any{},
		changed: map[string]int64{}, tools: map[string]Tool{}, watched: map[string]bool{},
		calls: map[int64]call{},
	}
	p.uris = slices.Sorted(maps.Keys(state))
	maps.Copy(p.state, state)
	State(t, "a page of the test", p.said)
	return p
}

// A Receiver is the core's end of a link: a gateway.Page.
type Receiver interface{ Receive(frame []byte) error }

// Attach begins a link with a gateway in this process. attach is the gateway's Attach, with the
// page's PageInfo.
func (p *Page) Attach(attach func(send func(frame []byte)) (Receiver, error)) {
	p.t.Helper()
	p.mu.Lock()
	p.links++
	link := p.links
	p.mu.Unlock()
	core, err := attach(func(frame []byte) {
		p.mu.Lock()
		// the end of an earlier link, from a goroutine that still sent there
		late := frame == nil && link < p.links
		p.mu.Unlock()
		if !late {
			p.Hear(frame)
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Connect(func(frame []byte) { _ = core.Receive(frame) }, nil) // the page gets the reason
}

// Connect begins a link: post carries frames to the core, and about extends the hello. The core's
// frames go to Hear.
func (p *Page) Connect(post func(frame []byte), about map[string]any) {
	all := map[string]any{"epoch": p.epoch}
	if p.Starts {
		all["starts"] = true
	}
	for name, value := range about {
		all[name] = value
	}
	p.begins(post)
	p.say([]any{"hello", 1, "0", all}) // the core may ask immediately
	p.offers()
}

// Resume is Connect without the hello. It ends the calls of an earlier link.
func (p *Page) Resume(post func(frame []byte)) {
	p.begins(post)
	p.offers()
}

func (p *Page) begins(post func(frame []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.post = post
	p.watched = map[string]bool{}
	for _, c := range p.calls {
		c.end()
	}
	clear(p.calls)
}

func (p *Page) offers() {
	p.mu.Lock()
	var calls [][]any
	for _, uri := range p.uris {
		calls = append(calls, p.registration(uri))
	}
	if len(p.tools) > 0 {
		calls = append(calls, p.toolCall())
	}
	p.mu.Unlock()
	p.say(asAny(calls)...)
}

func asAny(calls [][]any) (list []any) {
	for _, c := range calls {
		list = append(list, c)
	}
	return list
}

func (p *Page) registration(uri string) []any {
	described := map[string]any{"uri": uri, "name": "state"}
	if strings.Contains(uri, "{") {
		described["name"] = "template"
	}
	for name, value := range p.members[uri] {
		described[name] = value
	}
	return []any{"register", stringify(described)}
}

// stringify is JSON text as a script writes it: json.Marshal makes six bytes of each "<".
func stringify(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n")
}

// say posts calls as one frame.
func (p *Page) say(calls ...any) { p.Post(p.frame(calls...)) }

func (p *Page) frame(calls ...any) string {
	if calls == nil {
		calls = []any{}
	}
	text, err := json.Marshal(calls)
	if err != nil {
		p.t.Error(err)
	}
	return string(text)
}

// said describes the page for a test that fails.
func (p *Page) said() string {
	p.mu.Lock()
	text := fmt.Sprintf("it offers %q, is watched %v, has %d calls, was told %q %s", p.uris,
		p.watched, len(p.calls),
		p.reports, p.refusal)
	p.mu.Unlock()
	return text + "\n" + p.recent.String()
}

// Post sends a frame as it is.
func (p *Page) Post(frame string) {
	p.recent.add("page: " + frame[:min(len(frame), 2*maxLine)])
	p.mu.Lock()
	post := p.post
	p.mu.Unlock()
	if post != nil {
		post([]byte(frame))
	}
}

// Hear takes a frame of the core; nil ends the link.
func (p *Page) Hear(frame []byte) {
	if frame == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.post = nil
		return
	}
	if len(frame) > len("[]") {
		p.recent.add("core: " + string(frame[:min(len(frame), 2*maxLine)]))
	}
	var calls [][]json.RawMessage
	if err := json.Unmarshal(frame, &calls); err != nil {
		p.t.Errorf("the core says %s: %v", frame, err)
		return
	}
	for _, call := range calls {
		p.obey(call)
	}
}

func (p *Page) obey(call []json.RawMessage) {
	text := func(i int) (s string) { json.Unmarshal(call[i], &s); return s }
	number := func(i int) (n int64) { json.Unmarshal(call[i], &n); return n }
	switch text(0) {
	case "hello", "send", "closed":
	case "refused":
		p.mu.Lock()
		p.refusal = text(1)
		p.mu.Unlock()
	case "read":
		p.read(number(1), text(2), text(3))
	case "callTool":
		p.run(number(1), text(2), json.RawMessage(text(3)), text(4), p.Starts &&
			string(call[5]) == "0")
	case "start":
		p.mu.Lock()
		if c, ok := p.calls[number(1)]; ok {
			close(c.start)
		}
		p.mu.Unlock()
	case "end":
		p.mu.Lock()
		if c, ok := p.calls[number(1)]; ok {
			c.end()
			delete(p.calls, number(1))
		}
		p.mu.Unlock()
	case "watched":
		uri, on := text(1), string(call[2]) == "true"
		p.mu.Lock()
		p.asked++
		delete(p.watched, uri)
		if on {
			p.watched[uri] = true
		}
		revision := p.changed[uri]
		p.mu.Unlock()
		answer := func() { p.say([]any{"touch", uri, revision}) }
		switch {
		case on && p.HoldWatch != nil:
			go func() {
				<-p.HoldWatch
				answer()
			}()
		case on:
			answer()
		}
	case "report":
		p.mu.Lock()
		p.reports = append(p.reports, text(1))
		p.mu.Unlock()
	default:
		p.t.Errorf("the core says %s", call)
	}
}

// begin starts a call on a goroutine of its own. Its answer goes to the link that the call came
// from.
func (p *Page) begin(id int64, uri string, f func(ctx context.Context, answer func(frame string))) {
	ctx, cancel := context.WithCancel(p.t.Context())
	p.mu.Lock()
	p.calls[id] = call{uri, cancel, make(chan struct{})}
	hold, post := p.Hold, p.post
	p.mu.Unlock()
	go func() {
		if hold != nil {
			select {
			case <-hold:
			case <-ctx.Done():
				return
			}
		}
		f(ctx, func(frame string) {
			if post != nil {
				post([]byte(frame))
			}
		})
	}()
}

func (p *Page) read(id int64, key, uri string) {
	if p.OnRead != nil {
		p.OnRead(uri)
	}
	p.begin(id, uri, func(ctx context.Context, answer func(frame string)) {
		p.mu.Lock()
		text, ok := p.state[uri]
		read, raw, count := p.reads[key], p.raw, p.count
		kind, _ := p.members[key]["mimeType"].(string)
		p.mu.Unlock()
		if raw != nil {
			if contents := raw(uri); contents != "" {
				answer(fmt.Sprintf("=%d %d %s", id, count, contents))
			}
			return
		}
		var err error
		switch {
		case read != nil:
			text, err = read(ctx, uri)
		case !ok:
			err = errors.New("there is nothing at " + uri)
		}
		if err != nil {
			answer(p.frame([]any{"complete", id, 1, count, err.Error()}))
			return
		}
		contents := map[string]string{"uri": uri, "text": text}
		if kind != "" {
			contents["mimeType"] = kind
		}
		if strings.HasPrefix(kind, "image/") {
			delete(contents, "text")
			contents["blob"] = base64.StdEncoding.EncodeToString([]byte(text))
		}
		list, _ := json.Marshal([]any{contents})
		answer(fmt.Sprintf("=%d %d %s", id, count, list))
	})
}

func (p *Page) run(id int64, name string, args json.RawMessage, unless string, asks bool) {
	p.mu.Lock()
	tool, ok := p.tools[name]
	if name == "pagewire/arrived" {
		tool, ok = Tool{Run: p.Arrived}, p.Arrived != nil
	}
	count := p.count
	var seen [][2]any
	stale := []string{}
	if unless != "" {
		if err := json.Unmarshal([]byte(unless), &seen); err != nil {
			p.t.Errorf("a condition %q: %v", unless, err)
		}
	}
	for _, s := range seen {
		if uri := s[0].(string); float64(p.changed[uri]) > s[1].(float64) {
			stale = append(stale, uri)
		}
	}
	p.mu.Unlock()
	if len(stale) > 0 {
		list, _ := json.Marshal(stale)
		p.say([]any{"complete", id, 3, count, string(list)})
		return
	}
	p.begin(id, "", func(ctx context.Context, answer func(frame string)) {
		if asks {
			p.mu.Lock()
			start := p.calls[id].start
			p.mu.Unlock()
			answer(p.frame([]any{"starting", id}))
			select {
			case <-start:
			case <-ctx.Done():
				return
			}
		}
		if p.Starts {
			answer(p.frame([]any{"started", id}))
		}
		if p.Answer != nil {
			result := p.Answer(name,
				func(params string) { answer(p.frame([]any{"progress", id, params})) })
			answer(fmt.Sprintf("=%d %d %s", id, count, result))
			return
		}
		if !ok {
			answer(p.frame([]any{"complete", id, 1, count, ""}))
			return
		}
		if tool.Run == nil {
			answer(fmt.Sprintf(`=%d %d {"content":[{"type":"text","text":"fine"}]}`, id, count))
			return
		}
		result, err := json.Marshal(tool.Run(ctx, args, func(members map[string]any) {
			text, _ := json.Marshal(members)
			answer(p.frame([]any{"progress", id, string(text)}))
		}))
		if err != nil {
			p.t.Error(err)
		}
		answer(fmt.Sprintf("=%d %d %s", id, count, result))
	})
}

// Offer registers a URI that reads as text.
func (p *Page) Offer(uri, text string) {
	p.mu.Lock()
	p.isOffered(uri)
	p.state[uri] = text
	call := p.registration(uri)
	p.mu.Unlock()
	p.say(call)
}

// isOffered adds a URI to the order, unless it is there already. It is called with mu held.
func (p *Page) isOffered(uri string) {
	_, state := p.state[uri]
	if _, read := p.reads[uri]; !state && !read {
		p.uris = append(p.uris, uri)
	}
}

// Add registers a URI, or a template, whose contents a function returns. Its context ends with the
// read.
func (p *Page) Add(uri string, read func(ctx context.Context, uri string) (string, error)) {
	p.mu.Lock()
	p.isOffered(uri)
	p.reads[uri] = read
	call := p.registration(uri)
	p.mu.Unlock()
	p.say(call)
}

// Describe adds members to the descriptor of a URI that is offered later. With an image's mimeType,
// the URI reads as a blob.
func (p *Page) Describe(uri string, members map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members[uri] = members
}

// Contents makes the page answer each read with f's text, valid or not; "" for no answer.
func (p *Page) Contents(f func(uri string) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raw = f
}

// Withdraw unregisters a URI.
func (p *Page) Withdraw(uri string) {
	p.mu.Lock()
	p.uris = slices.DeleteFunc(p.uris, func(other string) bool { return other == uri })
	delete(p.state, uri)
	delete(p.reads, uri)
	p.mu.Unlock()
	p.say([]any{"unregister", uri})
}

// Set changes the text of a URI, and reports the change if the core needs it.
func (p *Page) Set(uri, text string) {
	p.mu.Lock()
	p.state[uri] = text
	p.mu.Unlock()
	p.Touch(uri)
}

// Edit changes the text of a URI without a report, as if the page had changed just now.
func (p *Page) Edit(uri, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state[uri] = text
	p.count++
	p.changed[uri] = p.count
}

// Epoch sets the document's epoch for the next hello.
func (p *Page) Epoch(epoch string) { p.epoch = epoch }

// Touch reports a change of a URI, or a template, if the core needs it.
func (p *Page) Touch(uri string) {
	p.mu.Lock()
	p.count++
	p.changed[uri] = p.count
	revision, matters := p.count, p.matters(uri)
	p.mu.Unlock()
	if matters {
		p.say([]any{"touch", uri, revision})
	}
}

// matters reports whether the core must be told of a change of a URI. It is called with mu held.
func (p *Page) matters(uri string) bool {
	wide := strings.Contains(uri, "{")
	for _, c := range p.calls {
		if c.uri == uri || wide && c.uri != "" {
			return true
		}
	}
	return p.watched[uri] || wide && len(p.watched) > 0
}

// SetTool adds a tool, or replaces it.
func (p *Page) SetTool(name string, tool Tool) { p.SetTools(map[string]Tool{name: tool}) }

// SetTools adds or replaces tools at once: the page tells all of its tools each time.
func (p *Page) SetTools(tools map[string]Tool) {
	p.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if _, ok := p.tools[name]; !ok {
			p.order = append(p.order, name)
		}
		p.tools[name] = tools[name]
	}
	call := p.toolCall()
	p.mu.Unlock()
	p.say(call)
}

func (p *Page) toolCall() []any {
	list := []map[string]any{}
	for _, name := range p.order {
		described := map[string]any{"name": name, "description": name,
			"inputSchema": map[string]any{"type": "object"}}
		for member, value := range p.tools[name].Members {
			described[member] = value
		}
		list = append(list, described)
	}
	return []any{"setTools", stringify(list)}
}

// Text is the text of a URI.
func (p *Page) Text(uri string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state[uri]
}

// Watches reports whether the core watches a URI.
func (p *Page) Watches(uri string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watched[uri]
}

// Asked counts the core's calls that begin or end a watch.
func (p *Page) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// Running counts the core's calls that have not ended.
func (p *Page) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// Reports are the core's sentences to the page's developer; Refusal is its reason for ending the
// link.
func (p *Page) Reports() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.reports...)
}

func (p *Page) Refusal() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusal
}
