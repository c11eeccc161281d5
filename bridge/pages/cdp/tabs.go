package cdp

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/overlay"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webmcp"
	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// An attachment is the state of a browser to which Run is attached.
type attachment struct {
	link   *link
	g      *gateway.Gateway
	o      Options
	ctx    context.Context // ends with Run
	inject string          // the page layer, or ""
	reader string          // of what pages show; "" without page files
	picker string          // makes the rules of parts; "" without page files
	name   string          // in the names of its bindings: others at the same browser get them too

	// guards the fields below and their contents; taken before the gateway's lock
	mu       sync.Mutex
	sessions map[string]*session
	tabs     map[string]*tab // by target
	bindings int
	browser  string // its name
	looked   func() // Options.Looked; nil once it is called
	told     func() // ends Gateway.TellsFront
	naming   func() // ends Gateway.WhenNamed
	asked    int    // commands without an answer, for tabs, frames and documents that there are
}

// A tab is a target of type page.
type tab struct {
	target     string
	url, title string // as last reported by the browser, together
	origin     string // of its document; "" if that has none
	window     string // as of its last document
	failed     bool   // its last load has failed
}

// leads reports whether a tab is on its way to a document.
func (t *tab) leads() bool {
	return t.origin == "" && !t.failed && strings.HasPrefix(t.url, "http")
}

// key is the tab's key in the gateway. A target keeps its id over reloads and navigations, even
// into another process.
func (t *tab) key() string { return "cdp:" + t.target }

// infoOf describes a document of a tab.
func (b *attachment) infoOf(t *tab, origin string) gateway.PageInfo {
	return gateway.PageInfo{Tab: t.key(), Origin: origin, URL: origin + "/", Transport: "cdp",
		Browser: b.browser, Window: t.window, Source: b.o.Source, Launched: b.o.Launched}
}

// locate gives a description the document's URL, unless that is of another site: a tab may be about
// to show one.
func locate(info *gateway.PageInfo, url string) {
	if strings.HasPrefix(url, info.Origin+"/") {
		info.URL = url
	}
}

// show tells the gateway that a tab has come to the front, or that it shows a new page or title if
// the tab before is in front, or none with "".
func (b *attachment) show(t *tab, came bool, before string) {
	info := b.infoOf(t, t.origin)
	info.Title = t.title
	locate(&info, t.url)
	b.g.Front(info, came, before)
	b.g.TabShows(info)
}

// A session is our end of one target: a tab, or a frame that has a process of its own.
type session struct {
	b         *attachment
	id        target.SessionID
	tab       *tab
	documents map[runtime.ExecutionContextID]*document
	worlds    map[runtime.ExecutionContextID]world
	tools     map[string]map[string]*webmcp.Tool // by frame and name
	following bool                               // the browser reports tools
	retooling bool
	console   int    // messages since their arguments were released
	pointing  answer // of the person who points in it
}

// pages are the targets that hold documents. Run attaches only to these.
var pages = target.Filter{{Type: "page"}, {Type: "iframe"}}

// autoAttach makes the browser attach us to new targets below a session. With injection they wait
// until we let them run, so that the page layer runs first. A tab that no page has opened does not
// wait (Chromium 156).
func (b *attachment) autoAttach(s target.SessionID) {
	b.link.post(s, target.CommandSetAutoAttach,
		&target.SetAutoAttachParams{AutoAttach: true, WaitForDebuggerOnStart: b.inject != "",
			Flatten: yes(), Filter: pages}, b.answered())
}

// answered counts a command of the first look. The result takes its answer.
func (b *attachment) answered() func(jsonv2.Value, error) {
	b.asked++
	return func(jsonv2.Value, error) { b.asked-- }
}

// look calls looked once all documents that are open are known, with all that they offer.
func (b *attachment) look() {
	if b.looked == nil || b.asked > 0 {
		return
	}
	for _, s := range b.sessions {
		for _, d := range s.documents {
			if !d.known() {
				return
			}
		}
	}
	for _, t := range b.tabs {
		if t.leads() {
			return
		}
	}
	b.looked()
	b.looked = nil
}

func (b *attachment) start() {
	b.told = b.g.TellsFront()
	b.naming = b.g.WhenNamed(b.offerShown)
	b.link.post("", target.CommandSetDiscoverTargets,
		&target.SetDiscoverTargetsParams{Discover: true, Filter: pages}, nil)
	ask(b.link, "", browser.CommandGetVersion, nil, func(r browser.GetVersionResult, err error) {
		if err == nil {
			b.browser = gateway.BrowserOf(r.UserAgent)
		}
	})
	b.autoAttach("")
}

// leave tells the documents that the gateway goes: they cannot notice it. It waits up to 250 ms for
// that to arrive.
func (b *attachment) leave() {
	b.mu.Lock()
	for _, s := range b.sessions {
		for _, d := range s.documents {
			d.sendText("null")
			if d.shown != nil {
				d.shown.call("stop", "0", nil)
			}
		}
	}
	b.mu.Unlock()
	heard := make(chan struct{})
	if b.link.post("", "Browser.getVersion", nil,
		func(jsonv2.Value, error) { close(heard) }) != nil {
		return
	}
	select {
	case <-heard:
	case <-time.After(250 * time.Millisecond):
	}
}

// close ends all documents.
func (b *attachment) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sessions {
		s.clear()
	}
	for _, t := range b.tabs {
		b.g.Behind(t.key())
		b.g.TabShows(gateway.PageInfo{Tab: t.key()})
	}
	if b.told != nil {
		b.told()
		b.naming()
	}
}

func (s *session) clear() {
	for _, d := range s.documents {
		d.gone()
	}
	clear(s.documents)
	clear(s.worlds)
	s.unfollow()
}

// handle handles an event, or calls answered for an answer.
func (b *attachment) handle(m *message, answered func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.look()
	if answered != nil {
		answered()
		return
	}
	s := b.sessions[string(m.Session)]
	if m.Dropped != nil {
		b.dropped(s, m)
	}
	if s != nil {
		s.handle(m)
	}
	on(m, target.AttachedToTarget, func(e *target.EventAttachedToTarget) { b.attached(s, e) })
	on(m, target.DetachedFromTarget,
		func(e *target.EventDetachedFromTarget) { b.detached(e.SessionID) })
	on(m, target.TargetInfoChanged, func(e *target.EventTargetInfoChanged) {
		if e.TargetInfo == nil {
			return
		}
		if t := b.tabs[string(e.TargetInfo.TargetID)]; t != nil {
			moved := t.url != e.TargetInfo.URL
			t.url = e.TargetInfo.URL
			b.show(t, false, t.key())
			if moved { // a page may change its title all the time
				b.offerParts(t)
			}
		}
	})
	on(m, target.TargetDestroyed, func(e *target.EventTargetDestroyed) {
		if t := b.tabs[string(e.TargetID)]; t != nil {
			delete(b.tabs, t.target)
			b.g.CloseTab(t.key())
		}
	})
	on(m, page.JavascriptDialogOpening,
		func(e *page.EventJavascriptDialogOpening) { b.dialog(m.Session, e) })
}

func (s *session) handle(m *message) {
	switch m.Method {
	case runtime.BindingCalled.Method:
		if e := m.call(); e != nil {
			if d := s.documents[e.context]; d != nil && d.binding == e.binding {
				d.handleMessage(e.payload)
			}
			s.said(e)
		}
	case runtime.ConsoleAPICalled.Method, runtime.ExceptionThrown.Method:
		// The browser keeps each object that a page logs until a listener of Runtime releases it.
		if s.console++; s.console >= 100 {
			s.console = 0
			s.tell(runtime.CommandReleaseObjectGroup,
				&runtime.ReleaseObjectGroupParams{ObjectGroup: "console"})
		}
	case runtime.ExecutionContextsCleared.Method, inspector.TargetCrashed.Method:
		s.clear()
	}
	on(m, runtime.ExecutionContextCreated,
		func(e *runtime.EventExecutionContextCreated) { s.b.created(s, e.Context) })
	on(m, runtime.ExecutionContextDestroyed, func(e *runtime.EventExecutionContextDestroyed) {
		for id, d := range s.documents {
			if d.world == e.ExecutionContextUniqueID {
				s.destroyed(id)
			}
		}
		maps.DeleteFunc(s.worlds, func(_ runtime.ExecutionContextID, w world) bool {
			return w.id == e.ExecutionContextUniqueID
		})
	})
	on(m, overlay.InspectNodeRequested,
		func(e *overlay.EventInspectNodeRequested) { s.pointed(e.BackendNodeID) })
	on(m, webmcp.ToolsAdded, func(e *webmcp.EventToolsAdded) { s.addTools(e.Tools) })
	on(m, webmcp.ToolsRemoved, func(e *webmcp.EventToolsRemoved) { s.removeTools(e.Tools) })
	on(m, webmcp.ToolResponded,
		func(e *webmcp.EventToolResponded) { s.finish(e.InvocationID, toolResult(e)) })
}

// dropped ends the calls that wait for an event that was too long. It uses nothing else of such an
// event.
func (b *attachment) dropped(s *session, m *message) {
	b.o.Log.Debug("an event of the browser was dropped", "method", m.Method, "reason", tooLong)
	if s == nil {
		return
	}
	switch m.Method {
	case runtime.BindingCalled.Method:
		if d := s.documents[m.Dropped.context()]; d != nil && !d.cut {
			d.cutOff(tooLong)
		}
	case webmcp.ToolResponded.Method:
		s.finish(m.Dropped.toolCall(), failed("The tool gave too much: "+tooLong+"."))
	case webmcp.ToolsAdded.Method:
		b.o.Log.Warn("a page's tools are not served", "url", s.tab.url, "error", tooLong)
	}
}

func (b *attachment) attached(parent *session, e *target.EventAttachedToTarget) {
	info := e.TargetInfo
	var t *tab
	if info == nil {
		return
	} else if parent != nil {
		t = parent.tab
	} else if info.Type == "page" {
		if t = b.tabs[string(info.TargetID)]; t == nil {
			t = &tab{target: string(info.TargetID), url: info.URL}
			b.tabs[t.target] = t
		}
	}
	resume := func() { b.link.post(e.SessionID, runtime.CommandRunIfWaitingForDebugger, nil, nil) }
	// A prerendered page belongs to no visible tab yet. When it is shown, its contexts are created
	// again in the tab.
	if t == nil || info.Subtype == "prerender" {
		resume()
		return
	}
	s := &session{b: b, id: e.SessionID, tab: t,
		documents: map[runtime.ExecutionContextID]*document{},
		worlds:    map[runtime.ExecutionContextID]world{},
		tools:     map[string]map[string]*webmcp.Tool{}}
	b.sessions[string(s.id)] = s
	b.autoAttach(s.id)
	if b.inject != "" {
		// Scripts for new documents need the Page domain.
		s.tell(page.CommandEnable, nil)
		s.tell(page.CommandAddScriptToEvaluateOnNewDocument,
			&page.AddScriptToEvaluateOnNewDocumentParams{Source: b.inject, RunImmediately: yes()})
	}
	b.link.post(s.id, runtime.CommandEnable, nil, b.answered())
	if to := b.o.Picks.now(); to != nil {
		s.inspect(to)
	}
	resume()
}

func (b *attachment) detached(id target.SessionID) {
	b.link.forget(id)
	if s := b.sessions[string(id)]; s != nil {
		s.clear()
		delete(b.sessions, string(id))
	}
}

// dialog closes a dialog in a browser without a window, which does not do so itself while the Page
// domain is enabled.
func (b *attachment) dialog(session target.SessionID, e *page.EventJavascriptDialogOpening) {
	if !e.HasBrowserHandler {
		b.link.post(session, page.CommandHandleJavaScriptDialog,
			&page.HandleJavaScriptDialogParams{Accept: e.Type == page.DialogTypeBeforeunload}, nil)
	}
}

// created adds a context. Only a document's own world counts: extensions and DevTools have others.
func (b *attachment) created(s *session, c *runtime.ExecutionContextDescription) {
	var aux struct {
		IsDefault bool   `json:"isDefault"`
		FrameID   string `json:"frameId"`
	}
	if c == nil || json.Unmarshal(c.AuxData, &aux) != nil || aux.FrameID == "" {
		return
	}
	if !aux.IsDefault {
		if c.Name == b.worldName() {
			s.worlds[c.ID] = world{c.UniqueID, aux.FrameID, c.Origin}
			// no page has that origin
		} else if c.Origin == b.o.Extension && aux.FrameID == s.tab.target {
			s.evaluate(runtime.EvaluateParams{UniqueContextID: c.UniqueID,
				Expression: "chrome.runtime.sendMessage({target:" +
					strconv.Quote(s.tab.key()) + "}).catch(()=>{})"}, nil)
		}
		return
	}
	s.destroyed(c.ID)
	if t := s.tab; aux.FrameID == t.target {
		t.origin, t.title, t.failed = "", "", false
		if weborigin.Of(c.Origin) != "" {
			t.origin = c.Origin
		}
		b.show(t, false, t.key())
	}
	if weborigin.Of(c.Origin) == "" { // a file, a page of the browser's, or an opaque origin
		if aux.FrameID == s.tab.target && strings.HasPrefix(s.tab.url, "http") {
			b.o.Log.Debug("a tab shows a page of the browser, as after a failed load", "url",
				s.tab.url)
			s.askFrame(aux.FrameID, func(frame, _ protocol.Frame, _ error) {
				s.tab.failed = strings.HasPrefix(frame.URL, "chrome-error:")
			})
		}
		return
	}
	if !b.g.Admits(c.Origin) {
		if aux.FrameID == s.tab.target {
			b.g.Arrived(gateway.PageInfo{Tab: s.tab.key(), Origin: c.Origin})
		}
		return
	}
	d := &document{b: b, s: s, context: c.ID, world: c.UniqueID, frameID: aux.FrameID,
		origin: c.Origin, allowed: rate.NewLimiter(perSecond, burst), pause: firstReturn}
	if aux.FrameID != s.tab.target {
		d.frame = aux.FrameID
	}
	s.documents[c.ID] = d
	d.open()
	d.offerShown()
}

func (s *session) destroyed(id runtime.ExecutionContextID) {
	if d := s.documents[id]; d != nil {
		d.gone()
		delete(s.documents, id)
		delete(s.tools, d.frameID)
		s.unfollow()
	}
}
