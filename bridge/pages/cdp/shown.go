package cdp

import (
	"cmp"
	cryptorand "crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/runtime"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/parts"
)

//go:embed shown.js
var shownScript string

const (
	// maxShown bounds the JSON text of one look, in bytes. The reader gives 200,000 characters.
	maxShown = 2 << 20
	// A reader tells at most so much of each part: two changes a second, and as many waits.
	shownBurst, shownPerSecond = 100, 20
	// longestWait bounds how long a reader sleeps.
	longestWait = time.Minute
)

// A shown is the source of what a document shows, and of parts of that, for the gateway: one half
// of a link, whose other half the gateway has. The user's agents have named the document's origin.
// Nothing runs in the document until one of them reads or watches. Then the reader runs in an
// isolated world, where the document's scripts have no name: they cannot see it, nor call its
// binding.
type shown struct {
	d *document

	// Guarded by attachment.mu.
	context runtime.ExecutionContextID // of the reader's world; 0 before that is there
	known   bool                       // it is attached, or will not be
	info    gateway.PageInfo           // once it is attached

	page     atomic.Pointer[gateway.Page]
	revision atomic.Int64 // as the link counts it

	mu      sync.Mutex // taken last: neither the gateway nor the browser's lock is taken with it
	object  string     // the browser's id of the reader; "" before it runs
	opening bool
	waiting []func(error) // calls of the reader that wait until it runs
	watched map[string]bool
	allowed *rate.Limiter         // the reader's messages
	parts   map[string]parts.Rule // by name
	over    bool
}

// offerShown makes the document's source if the user has named its origin, and ends it if not.
func (d *document) offerShown() {
	info := d.b.infoOf(d.s.tab, d.origin)
	info.Shown, info.Frame = true, d.frame
	named := d.b.reader != "" && d.b.g.IsNamed(info)
	switch {
	case named && d.shown != nil:
		d.shown.offerParts()
	case named == (d.shown != nil):
	case !named:
		n := d.shown
		d.shown = nil
		n.close(func(p *gateway.Page) { p.Close("nobody is shown it any more") })
	default:
		d.shown = &shown{d: d, watched: map[string]bool{},
			allowed: rate.NewLimiter(shownPerSecond, shownBurst)}
		d.shown.place(info)
	}
}

// place attaches the source once it is known where the document is. A frame that its parent's
// reader reads in place has none.
func (n *shown) place(info gateway.PageInfo) {
	d := n.d
	attach := func(info gateway.PageInfo) {
		if d.shown == n {
			info.Shown = true
			n.attach(info)
		}
	}
	at := func(url string) {
		info.Title, info.Window = d.title, d.s.tab.window
		locate(&info, url)
		attach(info)
	}
	switch {
	case d.frame != "":
		d.s.askFrame(d.frameID, func(frame, parent protocol.Frame, err error) {
			if err != nil || parent.SecurityOrigin == d.origin {
				n.known = true
				return
			}
			at(frame.URL)
		})
	case d.s.tab.window != "" && (d.bare || d.page != nil): // it was here before
		at(d.s.tab.url)
	default:
		d.withURL(attach)
	}
}

// attach begins the link with the gateway.
func (n *shown) attach(info gateway.PageInfo) {
	n.known = true
	p, err := n.d.b.g.Attach(info, n.send)
	if err != nil {
		n.d.b.o.Log.Debug("what a page shows is not served", "origin", n.d.origin, "error", err)
		return
	}
	p.LimitCalls(n.d.b.link.full)
	n.page.Store(p)
	n.info = info
	n.say([]any{"hello", 1, "cdp", map[string]any{"epoch": cryptorand.Text()}})
	whole := strconv.Quote(n.d.origin + gateway.ShownPath)
	calls := []any{[]any{"register", `{"uri":` + whole + shownMembers}}
	n.say(append(append(calls, n.changedParts()...), []any{"setTools", "[]"})...)
}

// offerParts offers the parts for which there are rules now, in place of those before.
func (n *shown) offerParts() {
	if n.page.Load() != nil {
		n.say(n.changedParts()...)
	}
}

// changedParts are the calls for the parts that have come or gone. A part of another address is
// withdrawn, also while the document stays.
func (n *shown) changedParts() (calls []any) {
	info := n.info
	if n.d.frame == "" {
		locate(&info, n.d.s.tab.url)
	}
	rules := n.d.b.g.Parts(info)
	n.mu.Lock()
	before := n.parts
	n.parts = rules
	n.mu.Unlock()
	for name, rule := range before {
		if now, ok := rules[name]; !ok || !reflect.DeepEqual(now, rule) {
			calls = append(calls, []any{"unregister", n.uriOf(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if was, ok := before[name]; !ok || !reflect.DeepEqual(was, rules[name]) {
			calls = append(calls, []any{"register", n.descriptorOf(name, rules[name])})
		}
	}
	return calls
}

func (n *shown) uriOf(part string) string { return n.d.origin + gateway.PartsPath + part }

// partOf returns the name of a URI's part, or "" if the URI is of all that the document shows.
func partOf(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	_, name, _ := strings.Cut(path, gateway.PartsPath)
	return name
}

func isJSON(r parts.Rule) bool { return r.As == "table" || r.As == "form" }

func mimeTypeOf(r parts.Rule) string {
	if isJSON(r) {
		return "application/json"
	}
	return "text/markdown"
}

func (n *shown) descriptorOf(name string, r parts.Rule) string {
	text := cmp.Or(aboutParts[r.As], aboutParts["text"])
	if r.IsByPlace() {
		text += ". It is found by its place alone: another part may stand there now"
	}
	members := map[string]any{"uri": n.uriOf(name), "name": name, "mimeType": mimeTypeOf(r),
		"description": text}
	if !isJSON(r) {
		members["uriSchema"] = json.RawMessage(shownSchema)
	}
	descriptor, _ := json.Marshal(members)
	return string(descriptor)
}

// aboutParts are descriptions, by Rule.As.
var aboutParts = map[string]string{
	"text":  "A part of what a person sees of the page, line by line",
	"table": "The rows of a table that a person sees in the page, by the names in its header",
	"form":  "The values of a form in the page, by the names that a person sees, without secrets",
}

// shownMembers are the other members of the descriptor of what a page shows.
const shownMembers = `,"name":"shown","mimeType":"text/markdown",` +
	`"description":"All that a person sees of the page, line by line. ?from=N goes on after N ` +
	`characters, ?links=1 has the addresses of links","uriSchema":` + shownSchema + "}"

const shownSchema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"from":{"type":"integer","minimum":0},"links":{"type":"integer","minimum":0,"maximum":1}}}`

// say sends calls to the gateway.
func (n *shown) say(calls ...any) {
	if frame, _ := json.Marshal(calls); len(calls) > 0 {
		n.receive(frame)
	}
}

func (n *shown) receive(frame []byte) {
	if p := n.page.Load(); p != nil {
		if err := p.Receive(frame); err != nil {
			n.d.b.o.Log.Warn("what a page shows is not served any more", "origin", n.d.origin,
				"error", err)
		}
	}
}

// send takes a frame of the gateway, or nil for the end. It holds no lock of ours. A read that the
// gateway ends goes on: nobody takes its answer.
func (n *shown) send(frame []byte) {
	if frame == nil {
		n.close(func(*gateway.Page) {})
	}
	var calls [][]any
	_ = json.Unmarshal(frame, &calls) // it is the gateway's
	for _, c := range calls {
		switch c[0] {
		case "read":
			n.read(int64(c[1].(float64)), c[3].(string), c[4].(string))
		case "watched":
			n.watch(c[1].(string), c[2].(bool))
		case "report":
			n.d.b.o.Log.Warn("what a page shows is served otherwise", "origin", n.d.origin, "report",
				c[1])
		}
	}
}

// watch makes the reader follow the page while the gateway watches a URI of it.
func (n *shown) watch(uri string, on bool) {
	part := partOf(uri)
	n.mu.Lock()
	if on {
		n.watched[uri] = true
	} else {
		delete(n.watched, uri)
	}
	of := map[string]bool{part: true}
	for uri := range n.watched {
		of[partOf(uri)] = true
	}
	n.allowed = rate.NewLimiter(rate.Limit(shownPerSecond*len(of)), shownBurst*len(of))
	n.mu.Unlock()
	if on {
		n.call("watch", n.argument(part, "on", "true"), func(jsonv2.Value, error) { n.touch(uri) })
	} else if len(n.watchedOf(part)) == 0 {
		n.call("watch", n.argument(part, "on", "false"), nil)
	}
}

// watchedOf returns the URIs of a part, or of the whole, that the gateway watches.
func (n *shown) watchedOf(part string) (uris []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for uri := range n.watched {
		if partOf(uri) == part {
			uris = append(uris, uri)
		}
	}
	return uris
}

// argument is a JSON value for a method of the reader: a part with its rule, and one member more.
func (n *shown) argument(part, member, value string) string {
	about := map[string]any{"name": part, member: json.RawMessage(value)}
	n.mu.Lock()
	if rule, ok := n.parts[part]; ok {
		about["part"] = rule
	}
	n.mu.Unlock()
	text, _ := json.Marshal(about) // the value is the gateway's
	return string(text)
}

// touch tells the gateway the revision of URIs.
func (n *shown) touch(uris ...string) {
	for _, uri := range uris {
		n.say([]any{"touch", uri, n.revision.Load()})
	}
}

// read answers a read with what the reader gives, whose text is JSON already.
func (n *shown) read(call int64, uri, params string) {
	revision := n.revision.Load()
	part := partOf(uri)
	n.mu.Lock()
	mimeType := mimeTypeOf(n.parts[part])
	n.mu.Unlock()
	argument := n.argument(part, "options", cmp.Or(params, "{}"))
	n.call("read", argument, func(text jsonv2.Value, err error) {
		if err == nil && len(text) > 0 && text[0] == '"' && len(text) <= maxShown {
			frame := fmt.Appendf(nil, `=%d %d [{"uri":`, call, revision)
			frame, _ = jsontext.AppendQuote(frame, uri)
			frame = append(append(frame, `,"mimeType":"`+mimeType+`","text":`...), text...)
			n.receive(append(frame, "}]"...))
			return
		}
		detail := ""
		if part != "" && err == nil && len(text) == 0 {
			detail = "the page does not show the part " + part + " now"
		} else if part != "" {
			detail = "the part " + part +
				" cannot be read: it is too large, or a selector of its rule is none"
		}
		n.d.b.o.Log.Debug("what a page shows could not be read", "origin", n.d.origin, "part", part,
			"error", err)
		n.d.s.evaluate(runtime.EvaluateParams{Expression: "0", UniqueContextID: n.d.world},
			func(_ runtime.EvaluateResult, gone error) {
				if gone == nil { // otherwise the document's successor answers
					n.say([]any{"complete", call, 1, revision, detail})
				}
			})
	})
}

// call calls a method of the reader with a JSON value, once the reader runs. The goroutine that
// reads from the browser calls done, which may be nil.
func (n *shown) call(method, argument string, done func(value jsonv2.Value, err error)) {
	if done == nil {
		done = func(jsonv2.Value, error) {}
	}
	call := func(failed error) {
		if failed != nil {
			done(nil, failed)
			return
		}
		n.run("function(a){return this."+method+"(a)}", `{"value":`+argument+"}", done)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.over, method == "stop" && n.object == "": // it does not run
	case n.object != "":
		call(nil) // in order: what waits has been posted before
	default:
		n.waiting = append(n.waiting, call)
		if !n.opening {
			n.opening = true
			n.open()
		}
	}
}

var errReader = errors.New("the reader has failed")

// run runs a function of one argument, a JSON object as CDP has it, with the reader as this. n.mu
// is held.
func (n *shown) run(function, argument string, done func(value jsonv2.Value, err error)) {
	params, _ := jsontext.AppendQuote(
		[]byte(`{"awaitPromise":true,"returnByValue":true,"silent":true,"objectId":`), n.object)
	params, _ = jsontext.AppendQuote(append(params, `,"functionDeclaration":`...), function)
	params = append(params, `,"arguments":[`+argument+"]}"...)
	ask(n.d.b.link, n.d.s.id, runtime.CommandCallFunctionOn, jsonv2.Value(params),
		func(r runtime.CallFunctionOnResult, err error) {
			var value jsonv2.Value
			if err == nil && (r.ExceptionDetails != nil || r.Result == nil) {
				err = errReader
			} else if err == nil {
				value = jsonv2.Value(r.Result.Value)
			}
			done(value, err)
		})
}

// open makes the world, and runs the reader in it. Nothing of the document is in the binding's way:
// it goes by the name of the world, which only ours have.
func (n *shown) open() {
	b, s := n.d.b, n.d.s
	binding, name := "pagewire_"+b.name+"_shown", b.worldName()
	s.tell(runtime.CommandAddBinding,
		&runtime.AddBindingParams{Name: binding, ExecutionContextName: name})
	n.d.isolate(name, func(context runtime.ExecutionContextID, err error) {
		w, ok := s.worlds[context]
		if err == nil &&
			(n.d.shown != n || !ok || w.origin != n.d.origin || w.frame != n.d.frameID) {
			err = errors.New("its frame shows another document") // of any origin
		}
		if err != nil {
			n.opened("", err)
			return
		}
		n.context = context
		s.evaluate(runtime.EvaluateParams{UniqueContextID: w.id, ObjectGroup: "pagewire",
			Expression: b.reader + "\n;" + shownScript + "(" + strconv.Quote(binding) + ")",
		}, func(r runtime.EvaluateResult, err error) {
			object := ""
			if r.ExceptionDetails == nil {
				object = string(r.Result.ObjectID)
			}
			if object == "" {
				err = cmp.Or(err, errors.New("the reader does not run"))
			}
			n.opened(object, err)
		})
	})
}

// opened makes the calls that wait for the reader, or fails them.
func (n *shown) opened(object string, err error) {
	n.mu.Lock()
	waiting := n.waiting
	n.object, n.opening, n.waiting = object, false, nil
	if err == nil {
		for _, call := range waiting {
			call(nil)
		}
	}
	n.mu.Unlock()
	if err != nil {
		for _, call := range waiting {
			call(err)
		}
	}
}

// A world is one of ours, in a document of some frame.
type world struct {
	id            string // the browser's unique one
	frame, origin string
}

func (b *attachment) worldName() string { return "pagewire shown " + b.name }

// said handles a message of a reader.
func (s *session) said(e *said) {
	for _, d := range s.documents {
		n := d.shown
		if n == nil || n.context != e.context || len(e.payload) == 0 {
			continue
		}
		n.mu.Lock()
		allowed := n.allowed.Allow()
		n.mu.Unlock()
		if !allowed {
			d.b.o.Log.Warn("what a page shows is not served any more: it tells too much", "origin",
				d.origin)
			n.close(func(p *gateway.Page) { p.Close("it tells too much") })
			continue
		}
		id, ms, _ := strings.Cut(string(e.payload[1:]), " ")
		switch e.payload[0] {
		case 'c':
			n.revision.Add(1)
			n.touch(n.watchedOf(id)...)
		case 'w':
			pause, _ := strconv.Atoi(ms)
			time.AfterFunc(min(time.Duration(pause)*time.Millisecond, longestWait),
				func() { n.call("wake", strconv.Quote(id), nil) })
		}
	}
}

// close ends the source, and its reader.
func (n *shown) close(end func(*gateway.Page)) {
	n.call("stop", "0", nil)
	n.mu.Lock()
	n.over, n.waiting = true, nil
	n.mu.Unlock()
	if p := n.page.Swap(nil); p != nil {
		end(p)
	}
}

// retitle passes on the document's title. Without a source it does nothing.
func (n *shown) retitle() {
	if n == nil {
		return
	}
	if p := n.page.Load(); p != nil {
		p.Retitle(n.d.title)
	}
}

// gone ends the document, and what it has in the gateway. That waits for a successor.
func (d *document) gone() {
	d.close()
	if d.shown != nil {
		d.shown.close(func(p *gateway.Page) { p.Lost("its document has gone") })
		d.shown = nil
	}
}

// offerParts brings the parts of a tab in line with its address.
func (b *attachment) offerParts(t *tab) {
	for _, s := range b.sessions {
		for _, d := range s.documents {
			if s.tab == t && d.frame == "" && d.shown != nil {
				d.shown.offerParts()
			}
		}
	}
}

// offerShown brings all documents in line with what the users of agents have named.
func (b *attachment) offerShown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sessions {
		for _, d := range s.documents {
			d.offerShown()
		}
	}
}
