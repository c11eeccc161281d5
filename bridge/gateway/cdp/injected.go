//go:build !js

package cdp

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp/jsonv2"

	"github.com/pagewire/pagewire/bridge"
)

// A core is the core of a page layer that is in a document: the other side of js/inject/core.ts. It speaks the link of js/core/link.ts.
//
// What travels: to the page, arrays of calls, each an array of the name and its arguments, as JSON values; from it the same as
// text behind the letter l, and the contents of a read as the JSON text that they are, behind k, the call and a colon, so that
// they are quoted once. Who must answer: whatever we hear we answer within 10 ms, with an empty array where there is nothing to
// say, since the page would not notice that the gateway is gone. On close: null is the last that the page is told.
type core struct {
	home
	d *document

	out      bridge.Text // calls for the page that wait to be sent: a JSON array without its end
	urgent   bool        // one of them cannot wait
	owes     bool        // the page has said something and had no answer
	answered bridge.CallID
	lazy     *time.Timer
	arrived  bool // it is attached to the gateway
	tools    int
}

// answerDelay is how long what is not urgent may wait for something to travel with. A read's end mostly goes with the next read.
const answerDelay = 10 * time.Millisecond

func newCore(d *document) *core {
	c := &core{d: d}
	c.lazy = time.AfterFunc(time.Hour, c.late)
	c.lazy.Stop()
	c.home.flush = c.send
	c.home.init(d, c, c.gone)
	return c
}

var _ bridge.ToolHost = (*core)(nil)

// call begins a call of the page; its arguments follow. The array is left open.
func (c *core) call(name string) {
	if len(c.out) == 0 {
		c.out = c.out.Raw(`[[`)
	} else {
		c.out = c.out.Raw(`,[`)
	}
	c.out = c.out.Str(name)
}

func (c *core) Send(to bridge.PortID, m bridge.Message) {
	if to == gatewayPort {
		text := m.AppendTo(make([]byte, 0, len(m.Head)+len(m.Contents)+len(m.Tail)))
		if c.conn.in.push(text) > maxUnread {
			// Not from here: the document's lock comes before ours.
			go c.d.overrun()
		}
		return
	}
	// An agent in the page: the page has the contents still.
	c.call("send")
	c.out = c.out.Raw(",").Int(int(to)).Raw(",").Str(string(m.Head) + string(m.Tail)).Raw(",").Int(int(m.Call)).Raw(",").Int(utf16Length(m.Head)).Raw("]")
	c.urgent = true
}

func (c *core) Read(id bridge.CallID, r bridge.Request) {
	c.call("read")
	c.out = c.out.Raw(",").Int(int(id)).Raw(",").Str(r.Key).Raw(",").Str(r.URI).Raw(",").Str(r.Params).Raw("]")
	c.urgent = true
}

func (c *core) CallTool(id bridge.CallID, t bridge.ToolCall) {
	c.call("callTool")
	c.out = c.out.Raw(",").Int(int(id)).Raw(",").Str(t.Name).Raw(",").Str(string(t.Arguments)).Raw("]")
	c.urgent = true
}

func (c *core) End(id bridge.CallID) {
	c.call("end")
	c.out = c.out.Raw(",").Int(int(id)).Raw("]")
	if id != c.answered {
		c.urgent = true // the page is at work for nobody
	}
}

func (c *core) Watched(uri string, on bool) {
	c.call("watched")
	c.out = c.out.Raw(",").Str(uri).Raw("," + strconv.FormatBool(on) + "]")
}

func (c *core) report(message string) {
	c.call("report")
	c.out = c.out.Raw(",").Str(message).Raw("]")
}

// send sends what waits, if it may not wait any longer.
func (c *core) send() {
	switch {
	case c.over:
	case c.urgent:
		c.sendAll()
	case len(c.out) > 0 || c.owes:
		c.lazy.Reset(answerDelay)
	}
}

func (c *core) sendAll() {
	if len(c.out) == 0 {
		c.out = c.out.Raw("[")
	}
	c.d.enqueue(string(c.out) + "]")
	if !c.flushes {
		c.d.b.link.signal()
	}
	c.out, c.urgent, c.owes = c.out[:0], false, false
	if cap(c.out) > 1<<16 {
		c.out = nil
	}
}

func (c *core) late() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over && (len(c.out) > 0 || c.owes) {
		c.sendAll()
	}
}

// hear takes what the page layer says. It is called by the reader, with the browser's lock held.
func (c *core) hear(kind byte, text string) {
	c.mu.Lock()
	c.owes = true
	ok := true
	if kind == 'k' {
		number, contents, colon := strings.Cut(text, ":")
		id, err := strconv.ParseUint(number, 10, 32)
		if ok = colon && err == nil; ok {
			c.complete(bridge.CallID(id), bridge.Result{Contents: []byte(contents)})
		}
	} else {
		var calls [][]any
		ok = jsonv2.Unmarshal([]byte(text), &calls, decodeOptions) == nil
		for i := 0; ok && i < len(calls); i++ {
			ok = c.obey(calls[i])
		}
	}
	arrived := !c.arrived && (c.tools > 0 || c.engine.Stats().Resources > 0)
	c.arrived = c.arrived || arrived
	c.unlock()
	if !ok {
		c.d.cutOff("its page layer says what is no call")
	} else if arrived {
		c.d.attach(c.conn) // now that there is something to offer
	}
}

func (c *core) complete(id bridge.CallID, r bridge.Result) {
	c.answered = id
	c.engine.Complete(c.now(), id, r)
	c.answered = 0
}

// obey does one call of js/core/link.ts, and reports whether it is one.
func (c *core) obey(call []any) bool {
	text := func(i int) string {
		if i < len(call) {
			s, _ := call[i].(string)
			return s
		}
		return ""
	}
	number := func(i int) uint32 {
		if i < len(call) {
			if f, _ := call[i].(float64); f >= 0 && f < 1<<32 {
				return uint32(f)
			}
		}
		return 0
	}
	port := bridge.PortID(number(1))
	if port == gatewayPort {
		return false
	}
	now := c.now()
	switch text(0) {
	case "register":
		r, err := bridge.DecodeResource([]byte(text(1)))
		if err == nil {
			err = c.engine.Register(now, r)
		}
		if err != nil {
			c.report("resource refused: " + r.URI + ": " + err.Error())
		}
	case "unregister":
		c.engine.Unregister(now, text(1))
	case "touch":
		c.engine.Touch(now, text(1))
	case "setTools":
		tools, err := bridge.DecodeTools([]byte(text(1)))
		if err == nil {
			err = c.engine.SetTools(now, tools)
		}
		if err != nil {
			c.report("tools refused: " + err.Error())
		} else {
			c.tools = len(tools)
		}
	case "open":
		if err := c.engine.Open(now, port); err != nil {
			c.call("closed")
			c.out = c.out.Raw(",").Int(int(port)).Raw(",").Str(err.Error()).Raw("]")
			c.urgent = true
		}
	case "receive":
		c.engine.Receive(now, port, []byte(text(2))) // a port that is not open has been closed, or refused
	case "writable":
		on, _ := call[min(2, len(call)-1)].(bool)
		c.engine.Writable(now, port, on)
	case "close":
		c.engine.Close(now, port)
	case "complete":
		r := bridge.Result{Failure: bridge.ReadFailed, Detail: text(3)}
		if number(2) == 2 {
			r.Failure = bridge.InvalidContents
		}
		c.complete(bridge.CallID(number(1)), r)
	default:
		return false
	}
	return true
}

// gone is called when the gateway has closed its session: the page's own agents stay.
func (c *core) gone() {
	c.mu.Lock()
	defer c.unlock()
	if !c.over {
		c.engine.Close(c.now(), gatewayPort)
	}
}

// close ends the core, without a word to the page: it has gone, or has begun anew.
func (c *core) close() {
	c.home.close()
	c.lazy.Stop()
}

func utf16Length(text []byte) (n int) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// overrun is deliver's limit for who does not hold the browser's lock.
func (d *document) overrun() {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	if !d.cut {
		d.cutOff("the gateway cannot keep up with it")
	}
}
