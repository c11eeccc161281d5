package cdp

import (
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/chromedp/cdproto/browser"
	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge/gateway"
)

//go:embed attach.js
var attachScript string

// Limits of a document's messages, of any kind. Above them the document is cut off. The gateway
// bounds its link.
const (
	burst     = 20_000 // messages at once
	perSecond = 5_000  // a second after that
)

// firstReturn and lastReturn are the first and the longest pause before a document that another
// gateway has taken over is opened again. They grow because that gateway does the same.
const firstReturn, lastReturn = time.Second, time.Minute

// maxWaiting bounds the bytes of all documents' messages that wait for a URL: a busy page delays
// its URL.
const maxWaiting = 32 << 20

// A document is one execution context: a page and its scripts between two navigations.
type document struct {
	b       *attachment
	s       *session
	context runtime.ExecutionContextID
	world   string // the browser's unique id of the context, over all processes
	frameID string
	frame   string // of the frame; "" for the tab's own document
	origin  string
	binding string

	// Guarded by attachment.mu.
	prefix  jsonv2.Value // the beginning of a call of attach.js's result; nil before it is known
	early   [][]byte     // messages before that
	waiting int          // bytes of early, and of frames
	title   string
	bare    bool // it has been loaded, without Pagewire
	greeted bool // by the script that has the binding
	cut     bool
	apart   bool     // it is refused, gone or taken over
	frames  [][]byte // of its link, until there is a page
	linked  bool
	asking  bool // whether it has the focus
	again   bool // it has said so again since
	webmcp  *webmcpTools
	page    *gateway.Page
	shown   *shown        // what it shows; nil if the user has not named its origin
	allowed *rate.Limiter // messages
	pause   time.Duration // before it is opened again
}

// open gives a document a new binding and runs attach.js in it.
func (d *document) open() {
	d.b.bindings++
	d.greeted = false
	d.binding = fmt.Sprintf("pagewire_%s_%d", d.b.name, d.b.bindings)
	d.s.tell(runtime.CommandAddBinding, &addBinding{d.binding, d.context})
	d.s.evaluate(runtime.EvaluateParams{UniqueContextID: d.world, ObjectGroup: "pagewire",
		Expression: attachScript + "(" + strconv.Quote(d.binding) + "," +
			strconv.Quote(d.b.o.Gateway) + ")",
	}, func(r runtime.EvaluateResult, err error) {
		if r.Result.ObjectID == "" {
			d.b.o.Log.Debug("a document is not attached: it has gone", "url", d.s.tab.url, "error",
				err)
			d.apart = true
			return
		}
		call := []byte(`{"functionDeclaration":"function(m){this(m)}","silent":true,"objectId":`)
		call, _ = jsontext.AppendQuote(call, string(r.Result.ObjectID))
		d.prefix = append(call, `,"arguments":[{"value":`...)
		early := d.early
		d.early, d.waiting = nil, 0
		for _, payload := range early {
			d.handleMessage(payload)
		}
	})
}

// addBinding has a parameter that cdproto leaves out because the protocol deprecates it. The
// parameter that replaces it goes by the names of worlds, and would give the same binding to each
// frame.
type addBinding struct {
	Name    string                     `json:"name"`
	Context runtime.ExecutionContextID `json:"executionContextId"`
}

// known reports whether it is known what the document offers.
func (d *document) known() bool {
	switch {
	case d.shown != nil && !d.shown.known:
		return false
	case d.page != nil && d.linked:
		return d.page.Settled()
	case d.cut || d.apart:
		return true
	}
	return d.bare && !d.s.retooling && (d.webmcp == nil || d.webmcp.page != nil && !d.webmcp.asking)
}

// sendText passes JSON text, as a value, to the document. It may be called without the lock once
// there is a prefix.
func (d *document) sendText(value string) {
	if d.prefix == nil {
		return
	}
	call := make(jsonv2.Value, 0, len(d.prefix)+len(value)+4)
	call = append(append(append(call, d.prefix...), value...), "}]}"...)
	d.s.tell(runtime.CommandCallFunctionOn, call)
}

// send passes a frame of the gateway to the document's link. nil ends the link. It holds no lock of
// ours.
//
// Why is the answer to a read not what the call by CDP returns? With real reads awaitPromise saves
// nothing measurable (0.73 and 0.74 ms), and answers could overtake earlier messages of the page.
func (d *document) send(frame []byte) {
	if frame == nil {
		frame = []byte("null")
	}
	d.sendText(string(frame))
}

// handleMessage handles a message of the document, or nil for one that was too long. The lock is
// held.
func (d *document) handleMessage(payload []byte) {
	switch {
	case d.cut:
		return
	case !d.allowed.Allow():
		d.cutOff("more than " + strconv.Itoa(perSecond) + " messages a second")
		return
	case payload == nil:
		d.cutOff(tooLong)
		return
	case len(payload) == 0:
		return
	}
	if d.prefix == nil {
		if d.waits(len(payload)) {
			d.early = append(d.early, payload)
		}
		return
	}
	kind, text := payload[0], payload[1:]
	switch kind {
	case 'p': // it has Pagewire, which attach.js says once: the page has found the binding
		if d.greeted {
			d.cutOff("it speaks for the script that attaches it")
			return
		}
		d.bare, d.greeted = false, true
		d.titled(text)
		d.close()
		d.s.unfollow()
		d.linked = true
		d.attach()
	case 'l': // a frame of its link
		if d.linked {
			d.receiveFrame(text)
		}
	case 'n': // it has been loaded without Pagewire; any page can repeat the event
		d.titled(text)
		if d.bare || d.greeted {
			return
		}
		if d.bare = true; d.frame == "" {
			d.withURL(d.b.g.Arrived)
		}
		d.s.retool()
	case 't': // its title has changed
		if d.titled(text); d.page != nil {
			d.page.Retitle(d.title)
		}
	case 'f', 'v': // it says that it has the focus, or is visible again; v without Pagewire
		d.checkFocus()
	case 'x': // another gateway of our address has ended the script
		d.returnLater()
	case 'h': // it is hidden
		if d.frame == "" {
			d.b.g.Behind(d.s.tab.key())
		}
	}
}

// checkFocus asks the browser whether the user looks at a document that says so. The document may
// have replaced what attach.js asks and listens with, so the question is asked in a world of ours.
// One in which only another part of the browser has the focus counts if no other tab is in front.
func (d *document) checkFocus() {
	if d.again = d.asking; d.asking {
		return
	}
	d.asking = true
	done := func(focus string) {
		d.asking = false
		switch tab := d.s.tab; {
		case d.again:
			d.checkFocus()
		case d.s.documents[d.context] != d:
		case focus == "focused", focus == "visible":
			if d.linked {
				d.b.g.Focus(tab.key())
			}
			d.b.show(tab, focus == "focused", "")
		}
	}
	d.isolate("pagewire", func(context runtime.ExecutionContextID, err error) {
		if err != nil {
			done("")
			return
		}
		d.s.evaluate(runtime.EvaluateParams{ContextID: context,
			Expression: `document.hasFocus() ? "focused" : document.visibilityState`,
		}, func(r runtime.EvaluateResult, _ error) {
			focus := "" // also after an error
			_ = jsonv2.Unmarshal(jsonv2.Value(r.Result.Value), &focus, decodeOptions)
			done(focus)
		})
	})
}

// isolate makes a world of ours in the document's frame.
func (d *document) isolate(name string,
	done func(context runtime.ExecutionContextID, err error)) {
	ask(d.b.link, d.s.id, page.CommandCreateIsolatedWorld, &page.CreateIsolatedWorldParams{
		FrameID: protocol.FrameID(d.frameID), WorldName: name},
		func(r page.CreateIsolatedWorldResult, err error) { done(r.ExecutionContextID, err) })
}

// returnLater opens a document again after another gateway of our address has taken it over. That
// may be the gateway of an agent that is served alone until a daemon runs: it may come last, goes
// first, and does not give documents back.
//
// What if two gateways attach to one browser? For each address (--hub) only the last one has a
// page, since a killed gateway leaves a script that cannot notice that. The script that is ended
// reports it: its gateway gives the page up, and opens it again after a second, then two, up to a
// minute.
func (d *document) returnLater() {
	d.close()
	d.apart = true
	d.prefix = nil
	pause := d.pause
	d.pause = min(2*pause, lastReturn)
	d.b.o.Log.Info("another gateway has taken a page over", "url", d.s.tab.url, "back", pause)
	d.removeBinding()
	d.binding = "" // its last messages count no more
	time.AfterFunc(pause, func() {
		d.b.mu.Lock()
		defer d.b.mu.Unlock()
		if d.s.documents[d.context] == d && !d.cut {
			d.open()
		}
	})
}

// titled notes the document's title.
func (d *document) titled(title []byte) {
	d.title = string(title)
	d.shown.retitle()
	if t := d.s.tab; d.frame == "" {
		t.title = d.title
		d.b.show(t, false, t.key())
	}
}

// receiveFrame passes on a frame of the document's link.
func (d *document) receiveFrame(frame []byte) {
	if d.page == nil {
		if d.waits(len(frame)) {
			d.frames = append(d.frames, frame)
		}
		return
	}
	if err := d.page.Receive(frame); err != nil {
		d.cutOff(err.Error())
	}
}

// waits counts waiting bytes, and reports whether they may wait. Above maxWaiting it cuts off the
// document with most.
func (d *document) waits(bytes int) bool {
	d.waiting += bytes
	most, all := d, 0
	for _, s := range d.b.sessions {
		for _, other := range s.documents {
			if all += other.waiting; other.waiting > most.waiting {
				most = other
			}
		}
	}
	if all > maxWaiting {
		most.cutOff("it says too much before it is known where it is; the limit is " +
			strconv.Itoa(maxWaiting) + " bytes of all pages")
	}
	return !d.cut
}

// cutOff ends a document that floods us. It removes the document's binding, so that the browser
// sends no further calls.
func (d *document) cutOff(reason string) {
	d.b.o.Log.Warn("a page was cut off until it is loaded anew", "origin", d.origin, "url",
		d.s.tab.url, "reason", reason)
	d.cut = true
	d.early = nil
	d.removeBinding()
	if d.page != nil {
		d.page.Refuse(reason)
	} else {
		d.b.g.CountRefused(reason)
	}
	d.close()
}

// Why may a page find the function by which the gateway hears of it? The browser puts the binding
// into the page's global object, and attach.js takes it out by the next command. The console's
// inspect, a setter and an isolated world each fail against a page that prepares for them. So the
// binding carries only what a page's link carries, and one greeting.
func (d *document) removeBinding() {
	d.s.tell(runtime.CommandRemoveBinding, &runtime.RemoveBindingParams{Name: d.binding})
}

// close ends the document's page in the gateway, if it has one. Its resources wait for a successor.
func (d *document) close() {
	if d.webmcp != nil {
		d.webmcp.close()
	}
	if d.page != nil {
		d.page.Lost("its document has gone")
	}
	d.webmcp, d.page, d.frames, d.linked, d.waiting = nil, nil, nil, false, 0
}

// attach makes the document a page of the gateway, as soon as its URL is known.
func (d *document) attach() {
	d.withURL(func(info gateway.PageInfo) {
		if !d.linked || d.page != nil {
			return // it has gone meanwhile
		}
		page, err := d.b.g.Attach(info, d.send)
		if err != nil {
			d.refused(err)
			return
		}
		page.LimitCalls(d.b.link.full)
		d.page = page
		frames := d.frames
		d.frames, d.waiting = nil, 0
		for _, frame := range frames {
			if d.page != nil {
				d.receiveFrame(frame)
			}
		}
	})
}

func (d *document) refused(err error) {
	d.linked, d.apart = false, true
	d.frames, d.waiting = nil, 0
	d.b.o.Log.Debug("a page is not served", "origin", d.origin, "error", err)
}

// withURL calls then with the document's URL and window, for which it must ask the browser.
func (d *document) withURL(then func(info gateway.PageInfo)) {
	t := d.s.tab
	info := d.b.infoOf(t, d.origin)
	info.Frame = d.frame
	at := func(url string) {
		locate(&info, url)
		info.Title = d.title
		then(info)
	}
	if d.frame == "" {
		// The user may have moved the tab since its last document.
		ask(d.b.link, "", browser.CommandGetWindowForTarget, &browser.GetWindowForTargetParams{
			TargetID: target.ID(t.target)}, func(r browser.GetWindowForTargetResult, err error) {
			if err == nil {
				t.window = "cdp " + d.b.o.Source + " " + strconv.FormatInt(int64(r.WindowID), 10)
			}
			info.Window = t.window
			d.b.show(t, false, t.key())
			at(t.url)
		})
		return
	}
	d.s.askFrame(d.frameID, func(frame, _ protocol.Frame, _ error) { at(frame.URL) })
}

// tell sends a command whose answer does not matter.
func (s *session) tell(method string, params any) { s.b.link.post(s.id, method, params, nil) }

// evaluate evaluates an expression, which the browser does not report. done may be nil. With an
// error r.Result is empty.
func (s *session) evaluate(p runtime.EvaluateParams,
	done func(r runtime.EvaluateResult, err error)) {
	p.Silent = yes()
	if done == nil {
		s.tell(runtime.CommandEvaluate, &p)
		return
	}
	ask(s.b.link, s.id, runtime.CommandEvaluate, &p, func(r runtime.EvaluateResult, err error) {
		if err != nil || r.Result == nil {
			r.Result = &runtime.RemoteObject{}
		}
		done(r, err)
	})
}

// askFrame asks for a frame and its parent. With an error they are empty.
func (s *session) askFrame(id string, done func(frame, parent protocol.Frame, err error)) {
	ask(s.b.link, s.id, page.CommandGetFrameTree, nil,
		func(r page.GetFrameTreeResult, err error) {
			frame, parent := frameIn(r.FrameTree, protocol.FrameID(id))
			done(frame, parent, err)
		})
}

// frameIn finds a frame in a tree, and its parent there.
func frameIn(tree *page.FrameTree, id protocol.FrameID) (frame, parent protocol.Frame) {
	switch {
	case tree == nil || tree.Frame == nil:
		return frame, parent
	case tree.Frame.ID == id:
		return *tree.Frame, parent
	}
	for _, child := range tree.ChildFrames {
		if frame, parent = frameIn(child, id); frame.ID == "" {
			continue
		} else if child.Frame.ID == id {
			parent = *tree.Frame
		}
		break
	}
	return frame, parent
}
