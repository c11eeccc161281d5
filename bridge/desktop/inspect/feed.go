package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// The feed is a WebSocket of JSON messages, one for each open inspector. It sends the page the
// parts of the gateway's state that have changed (pages, resources, watched, agents, tools, stats),
// passing messages (log), and the contents of a resource (value). The page first identifies itself
// to Options.Admit. Then it sends {"open": uri} and {"close": uri} for values, and {"log": bool}
// for the messages.

const (
	// pulse is how often an open inspector is updated: four times a second, which feels immediate.
	pulse = 250 * time.Millisecond
	// maxText clips a message in the log, maxValue contents, and maxWords titles and similar texts;
	// all are bytes.
	maxText, maxValue, maxWords = 4 << 10, 64 << 10, 300
	// maxLog bounds the messages that wait for the next pulse: 1,024 in a second. The newest ones
	// are kept.
	maxLog = 256
	// maxOpen bounds the resources that one inspector has open.
	maxOpen = 64
	// maxListed bounds the listed resources: more than a person scrolls through, and the page can
	// filter them.
	maxListed = 20_000
	// writeTimeout ends the connection of an inspector that does not read.
	writeTimeout = 10 * time.Second
)

// taps shares the gateway's one Tap among the open inspectors that show messages, and taps only
// while there is one.
type taps struct {
	g    *gateway.Gateway
	mu   sync.Mutex
	logs map[*ring]bool
}

func (t *taps) add(r *ring) {
	t.mu.Lock()
	defer t.mu.Unlock()
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

// pass copies the beginning of a message into an entry. It is called with the gateway's lock held.
func (t *taps) pass(e gateway.Event) {
	en := entry{At: e.Time.UnixMilli(), Way: e.Way, Agent: e.Agent,
		Page: gateway.Shorten(e.Page, maxWords), Bytes: len(e.Text),
		Text: gateway.Shorten(string(e.Text[:min(len(e.Text), maxText+1)]), maxText)}
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

// A ring holds the last maxLog entries since the last drain.
type ring struct {
	mu      sync.Mutex
	entries []entry // oldest first
	dropped int     // older ones, since the last drain
}

func (r *ring) push(e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.entries) == maxLog {
		r.entries[0] = entry{} // its text is free before append moves the others
		r.entries = r.entries[1:]
		r.dropped++
	}
	r.entries = append(r.entries, e)
}

// drain empties the ring. dropped is how many older entries were overwritten.
func (r *ring) drain() (entries []entry, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, dropped = r.entries, r.dropped
	r.entries, r.dropped = nil, 0
	return entries, dropped
}

const tooMany = "pagewire: too many inspectors are open"

func (h *Handler) feed(w http.ResponseWriter, r *http.Request) {
	if len(h.places) == maxInspectors {
		http.Error(w, tooMany, http.StatusServiceUnavailable)
		return
	}
	// Package access has checked the Origin if Admit is set. Otherwise only the page's own origin
	// is accepted.
	ws, err := websocket.Accept(w, r,
		&websocket.AcceptOptions{InsecureSkipVerify: h.opt.Admit != nil})
	if err != nil {
		return // Accept has answered
	}
	defer ws.CloseNow()
	ws.SetReadLimit(16 << 10)
	if h.opt.Admit != nil {
		h.strangers.Set(ws, r.Header.Get("Origin"), 1)
		err := h.opt.Admit(r.Context(), r, texts{ws})
		h.strangers.Set(ws, nil, 0)
		if err != nil {
			ws.Close(websocket.StatusPolicyViolation, gateway.Shorten(err.Error(), 120))
			return
		}
	}
	select { // not before: what is not admitted takes no place
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		ws.Close(websocket.StatusTryAgainLater, tooMany)
		return
	}
	h.opt.Log.Info("inspector opened", "remote", r.RemoteAddr)
	v := &viewer{h: h, ws: ws, sent: map[string][]byte{}, open: map[string]*opened{},
		read: make(chan value)}
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

// A viewer is one open inspector. Only the goroutine that runs it uses its fields, except log.
type viewer struct {
	h     *Handler
	ws    *websocket.Conn
	tasks sync.WaitGroup
	log   ring
	sent  map[string][]byte // each part as it was last sent
	open  map[string]*opened
	read  chan value // contents of open resources
}

// An opened is a resource whose contents the page shows.
type opened struct {
	reading  bool
	revision int64      // of the last read; -1 before that
	look     *live.Look // of that read; nil if its text is not compared
	release  func()     // of the gateway's View; nil before the first read
}

// A command is a request of the page.
type command struct {
	Open, Close string
	Log         *bool
}

// A value is the contents of a resource.
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
	// Change is the difference from the last read as agents get it (live.ChangeOf); "" if it is not
	// described.
	Change string `json:"change,omitempty"`

	of       *opened
	look     *live.Look
	revision int64
	release  func()
}

// run serves the inspector until it is closed, releases its resources, and returns the reason.
func (v *viewer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	commands := make(chan command)
	v.tasks.Go(func() { cancel(v.listen(ctx, commands)) })
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	err := v.sendChanges(ctx)
	for err == nil {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case c := <-commands:
			err = v.obey(ctx, c)
		case now := <-v.read:
			err = v.show(ctx, now)
		case <-ticker.C:
			for uri := range v.open {
				v.readIfChanged(ctx, uri)
			}
			err = v.sendChanges(ctx)
		}
	}
	cancel(err)
	v.ws.CloseNow()
	v.tasks.Wait()
	for uri := range v.open {
		v.close(uri)
	}
	v.h.taps.remove(&v.log)
	return err
}

// listen passes on the page's commands.
func (v *viewer) listen(ctx context.Context, commands chan<- command) error {
	for {
		_, text, err := v.ws.Read(ctx)
		if err != nil {
			return err
		}
		var c command
		if json.Unmarshal(text, &c) != nil {
			return fmt.Errorf("the page sent something that is not a command: %q",
				gateway.Shorten(string(text), 100))
		}
		select {
		case commands <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (v *viewer) obey(ctx context.Context, c command) error {
	switch {
	case c.Log != nil && *c.Log:
		v.h.taps.add(&v.log)
	case c.Log != nil:
		v.h.taps.remove(&v.log)
	case c.Close != "":
		v.close(c.Close)
	case c.Open == "" || v.open[c.Open] != nil:
	case len(v.open) >= maxOpen:
		return v.send(ctx, value{Type: "value", URI: c.Open,
			Error: "too many resources are open here: close one"})
	default:
		v.open[c.Open] = &opened{revision: -1}
		v.readIfChanged(ctx, c.Open)
	}
	return nil
}

// close stops following a resource.
func (v *viewer) close(uri string) {
	if o := v.open[uri]; o != nil && o.release != nil {
		o.release()
	}
	delete(v.open, uri)
}

// readIfChanged reads an open resource if it has changed since its last read. There is one read at
// a time, and no two within a pulse.
func (v *viewer) readIfChanged(ctx context.Context, uri string) {
	o, g := v.open[uri], v.h.g
	if o.reading || o.revision == g.Revision(uri) {
		return
	}
	o.reading = true
	v.tasks.Go(func() {
		now := value{Type: "value", URI: uri, At: time.Now().UnixMilli(), of: o}
		look, revision, release, err := g.View(ctx, uri)
		if now.revision, now.release = revision, release; err != nil {
			now.Error = gateway.Shorten(err.Error(), maxWords)
		} else {
			now.fill(look)
			now.look = look
		}
		select {
		case v.read <- now:
		case <-ctx.Done():
			now.release()
		}
	})
}

// show sends the contents of a resource if it is still open.
func (v *viewer) show(ctx context.Context, now value) error {
	o := now.of
	if v.open[now.URI] != o {
		now.release()
		return nil
	}
	if o.release != nil {
		o.release()
	}
	if before := o.look; before != nil && now.look != nil && before.Hash != now.look.Hash {
		now.Change = live.ChangeOf(before.Version(""), now.look, "", maxValue)
	}
	if o.look = nil; now.look != nil && len(now.look.Text) <= live.MaxInline {
		o.look = now.look
		o.look.Parts, o.look.Images = nil, nil
	}
	o.reading, o.revision, o.release = false, now.revision, now.release
	return v.send(ctx, now)
}

// sendChanges sends the parts that have changed since they were last sent.
func (v *viewer) sendChanges(ctx context.Context) error {
	s := v.h.g.Snapshot()
	if s.Closed {
		return gateway.ErrClosed
	}
	listed := map[string]any{"list": s.Resources[:min(len(s.Resources), maxListed)],
		"all": len(s.Resources)}
	for _, part := range []struct {
		name string
		is   any
	}{{"version", v.h.opt.Version}, {"pages", s.Pages}, {"agents", s.Agents},
		{"watched", s.Watched}, {"tools", s.Tools},
		{"resources", listed}, {"stats", s.Counts}} {
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
	entries, dropped := v.log.drain()
	if len(entries) == 0 {
		return nil
	}
	return v.send(ctx, map[string]any{"type": "log", "entries": entries, "dropped": dropped})
}

func (v *viewer) send(ctx context.Context, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return v.write(ctx, text)
}

func (v *viewer) write(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return v.ws.Write(ctx, websocket.MessageText, text)
}

// fill sets the value from a read: the first contents, clipped. Of binary contents it takes 48
// bytes, as base64: more would help no reader.
func (now *value) fill(l *live.Look) {
	for i := range l.Parts { // backwards: the first is last
		c := l.Parts[len(l.Parts)-1-i]
		mime, _ := c.MIMEType.Text()
		text, _ := c.Text.Text()
		blob, _ := c.Blob.Text()
		now.Bytes += len(text) + len(strings.TrimRight(blob, "="))*3/4
		now.MIME = gateway.Shorten(mime, maxWords)
		now.Text = gateway.Shorten(text, maxValue)
		now.Clipped = len(now.Text) < len(text)
		if now.Binary = blob != ""; now.Binary {
			now.Text = blob[:min(len(blob), 64)]
		}
	}
}
