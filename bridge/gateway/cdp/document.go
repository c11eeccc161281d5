//go:build !js

package cdp

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"strings"
	"time"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pagewire/pagewire/bridge/gateway"
)

//go:embed attach.js
var attachScript string

// What a document may do before it is cut off. Whoever has Pagewire stays far below: its engine sends at most 1,000 updates
// a second, and an answer for each read.
const (
	maxMessage = 32 << 20 // bytes of one
	maxUnread  = 64 << 20 // bytes that wait for the gateway
	burst      = 20_000   // messages at once
	perSecond  = 5_000    // and from then on
)

// A document is one execution context: what a page and its scripts are between two navigations.
type document struct {
	b       *attachment
	s       *session
	context runtime.ExecutionContextID
	world   string // what the browser calls the context, in whatever process it is
	frameID string
	frame   string // the same, but "" for the tab's own document
	origin  string
	binding string

	// Guarded by the browser's lock.
	prefix  jsonv2.Value // of a call of what attach.js has returned; nil before that
	early   []string     // what it said before that
	title   string
	bare    bool // it has been loaded, without Pagewire
	cut     bool
	conn    *conn
	core    *core
	native  *native
	page    *gateway.Page
	credit  int // messages that it may say now
	counted time.Time
}

func bindingName(n int) string { return "pagewire_" + run + "_" + strconv.Itoa(n) }

// webOrigin reports whether pages of an origin may have resources: not those of files, of the browser itself, or opaque ones, which
// the browser gives as "://".
func webOrigin(origin string) bool {
	host, ok := strings.CutPrefix(origin, "https://")
	if !ok {
		host, ok = strings.CutPrefix(origin, "http://")
	}
	return ok && host != ""
}

// open gives a document its binding and runs attach.js in it.
func (d *document) open() {
	d.b.link.post(d.s.id, runtime.CommandAddBinding, &addBinding{d.binding, d.context}, nil)
	d.b.link.post(d.s.id, runtime.CommandEvaluate, &runtime.EvaluateParams{
		Expression: attachScript + "(" + strconv.Quote(d.binding) + "," + strconv.Quote(d.b.gateway) + ")", UniqueContextID: d.world, ObjectGroup: "pagewire", Silent: yes(),
	}, func(result jsonv2.Value, err error) {
		var r runtime.EvaluateResult
		if err != nil || jsonv2.Unmarshal(result, &r, decodeOptions) != nil || r.Result == nil || r.Result.ObjectID == "" {
			return // it has gone
		}
		call := []byte(`{"functionDeclaration":"function(m){this(m)}","silent":true,"objectId":`)
		call, _ = jsontext.AppendQuote(call, string(r.Result.ObjectID))
		d.prefix = append(call, `,"arguments":[{"value":`...)
		early := d.early
		d.early = nil
		for _, payload := range early {
			d.hear(payload)
		}
	})
}

// addBinding is a command's parameters with one that cdproto leaves out since the protocol calls it deprecated. Its successor goes by the
// names of worlds, and gives the same binding to each frame's.
type addBinding struct {
	Name    string                     `json:"name"`
	Context runtime.ExecutionContextID `json:"executionContextId"`
}

// tell hands JSON text, as a value, to the document. It may be called without the lock once there is a prefix.
func (d *document) tell(value string) {
	if d.prefix != nil {
		d.enqueue(value)
		d.b.link.signal()
	}
}

// enqueue is tell for who calls the link's flush next.
func (d *document) enqueue(value string) {
	call := make(jsonv2.Value, 0, len(d.prefix)+len(value)+4)
	call = append(append(append(call, d.prefix...), value...), "}]}"...)
	d.b.link.enqueue(d.s.id, runtime.CommandCallFunctionOn, call, nil)
}

// pass hands a message of the gateway to the document's core.
func (d *document) pass(message []byte) error {
	call := make([]byte, 0, len(d.prefix)+len(message)+len(message)/8+16)
	call, _ = jsontext.AppendQuote(append(call, d.prefix...), message) // what is no UTF-8 is replaced
	err := d.b.link.enqueue(d.s.id, runtime.CommandCallFunctionOn, jsonv2.Value(append(call, "}]}"...)), nil)
	d.b.link.flush()
	return err
}

// hear takes what the document says. It is called by the reader, with the lock held.
func (d *document) hear(payload string) {
	if d.cut || !d.paid(len(payload)) || payload == "" {
		return
	}
	if d.prefix == nil {
		d.early = append(d.early, payload)
		return
	}
	kind, text := payload[0], payload[1:]
	switch kind {
	case 'r': // it has Pagewire
		d.title, d.bare = text, false
		d.end()
		d.s.unfollow()
		d.conn = newConn(d.pass, func() { d.tell("null") })
		d.attach(d.conn)
	case 'm': // a message of its core
		if d.conn != nil {
			d.deliver(d.conn, []byte(text))
		}
	case 'x': // its core has gone
		d.end()
	case 's': // it has the page layer, whose core is to be here
		d.title, d.bare = text, false
		d.end()
		d.s.unfollow()
		d.core = newCore(d)
	case 'l', 'k': // calls of the page layer, contents for the core
		if d.core != nil {
			d.core.hear(kind, text)
		}
	case 'n': // it has neither
		d.title, d.bare = text, true
		d.s.retool()
	case 't': // it is called otherwise
		if d.title = text; d.page != nil {
			d.page.Retitle(text)
		}
	case 'f':
		d.b.g.Focus(d.s.tab.key())
	}
}

// deliver hands a message to the gateway.
func (d *document) deliver(c *conn, message []byte) {
	if c.in.push(message) > maxUnread {
		d.cutOff("the gateway cannot keep up with it")
	}
}

// paid counts a message, and cuts the document off where it is one too many.
func (d *document) paid(bytes int) bool {
	if bytes > maxMessage {
		d.cutOff("a message of " + strconv.Itoa(bytes) + " bytes; the limit is " + strconv.Itoa(maxMessage))
		return false
	}
	if d.credit--; d.credit > 0 {
		return true
	}
	now := time.Now()
	earned := int(now.Sub(d.counted).Seconds() * perSecond)
	d.credit, d.counted = min(d.credit+earned, burst), now
	if d.credit > 0 {
		return true
	}
	d.cutOff("more than " + strconv.Itoa(perSecond) + " messages a second")
	return false
}

// cutOff ends a document that floods us. Without its binding it cannot even try: what it then calls is not sent.
func (d *document) cutOff(reason string) {
	d.b.log.Warn("a page was cut off until it is loaded anew", "origin", d.origin, "url", d.s.tab.url, "reason", reason)
	d.cut = true
	d.early = nil
	d.b.link.post(d.s.id, runtime.CommandRemoveBinding, &runtime.RemoveBindingParams{Name: d.binding}, nil)
	d.end()
}

// end ends the document's session with the gateway, where it has one. Its resources wait for a successor.
func (d *document) end() {
	if d.native != nil {
		d.native.close()
	}
	if d.core != nil {
		d.core.close()
	}
	if d.conn != nil {
		d.conn.in.close()
		d.conn.once.Do(func() {}) // the document knows
	}
	d.native, d.core, d.conn, d.page = nil, nil, nil, nil
}

// attach makes the document a page of the gateway, over c. Several are attached at once: each waits for its page.
func (d *document) attach(c *conn) {
	t := d.s.tab
	info := gateway.PageInfo{Tab: t.key(), Frame: d.frame, Origin: d.origin, URL: d.origin + "/", Title: d.title, Road: "cdp"}
	before := t.pages[d.frame]
	run := func(url string) {
		if strings.HasPrefix(url, d.origin+"/") {
			info.URL = url
		}
		go d.b.attach(d, c, info, before)
	}
	if d.frame == "" {
		run(t.url)
		return
	}
	d.b.link.post(d.s.id, page.CommandGetFrameTree, nil, func(result jsonv2.Value, err error) {
		var r page.GetFrameTreeResult
		if err == nil && jsonv2.Unmarshal(result, &r, decodeOptions) == nil {
			run(urlOf(r.FrameTree, protocol.FrameID(d.frameID)))
		} else {
			run("")
		}
	})
}

func urlOf(tree *page.FrameTree, id protocol.FrameID) string {
	if tree == nil || tree.Frame == nil {
		return ""
	}
	if tree.Frame.ID == id {
		return tree.Frame.URL
	}
	for _, child := range tree.ChildFrames {
		if url := urlOf(child, id); url != "" {
			return url
		}
	}
	return ""
}

// attach runs the handshake with a page, after the one that it follows has been given up: then there is one update, and not
// one for each of the two.
func (b *attachment) attach(d *document, c *conn, info gateway.PageInfo, before *gateway.Page) {
	if before != nil {
		select {
		case <-before.Done():
		case <-b.ctx.Done():
		}
	}
	p, err := b.g.Attach(b.ctx, info, c)
	if err != nil {
		if !c.in.over() && !errors.Is(err, context.Canceled) {
			c.Close()
			b.log.Warn("a page could not be attached", "origin", info.Origin, "url", info.URL, "error", err)
		}
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d.s.tab.pages[d.frame] = p
	if c.in.over() {
		return
	}
	d.page = p
	p.Retitle(d.title)
}
