package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A tool may lead its tab to another document, such as the results of a search. If the page says so
// in the tool's _meta, a call does not end with the document: the tab's next document answers it
// within Options.ReadTimeout.

const (
	// toolArrived is a tool of each page layer. It gives the document's own answer to a call that
	// has led to the document.
	toolArrived = "pagewire/arrived"
	// maxArrived bounds the document's resources that an answer names, maxArrivedURL the length of
	// its URL in bytes.
	maxArrived, maxArrivedURL = 30, 2 << 10
)

// A continuation is a call that waits for the tab's next document.
type continuation struct {
	c *toolCall
	o toolOffer
	// at is the document that is asked, nil before there is one. arrived sets it, and the call's
	// goroutine asks. leave ends what is asked of the document before.
	at    *Page
	leave func()
	// failed and sentence are the end of the answer. A sentence of "" means that the call waits.
	failed   bool
	sentence string
}

// answerTool answers a call, or has the tab's next document answer it.
func (g *Gateway) answerTool(ctx context.Context, c *toolCall, o toolOffer, r reply) {
	p := o.page
	if !o.tool.Navigates || r.gone && p.Life() == catalog.Gone ||
		!r.gone && (r.result == nil || !r.result.Continues) {
		g.completeTool(ctx, c, o, r)
		return
	}
	var said []wire.Value
	if r.result != nil {
		said = r.result.Content
	}
	w := &continuation{c: c, o: o, leave: func() {}}
	said = w.run(ctx, said)
	if ctx.Err() == nil {
		result := gate.Texts(w.failed, w.sentence)
		result.Content = slices.Concat(said, result.Content)
		g.completeTool(ctx, c, o, reply{result: result})
	}
}

// run waits for the tab's next document, and asks it for its answer. It returns the content of all
// results until then.
func (w *continuation) run(ctx context.Context, said []wire.Value) []wire.Value {
	c, g, p := w.c, w.c.g, w.o.page
	g.continued[w] = true
	defer delete(g.continued, w)
	c.continued = true
	late, cancel := context.WithTimeout(ctx, g.opt.ReadTimeout)
	defer cancel()
	for q := range g.attached { // it may have come before p's end was noticed
		if q.epoch != "" && !q.Shown && q.Frame == p.Frame && !q.Life().Left() {
			w.arrived(q)
		}
	}
	var asked *Page
	for c.Until(late, func() bool { return w.sentence != "" || w.at != asked }) &&
		w.sentence == "" {
		asked = w.at
		asking, leave := context.WithCancel(late)
		w.leave = leave
		r := c.route.Page().callTool(asking, c, toolArrived, []byte("{}"), nil)
		if leave(); w.at != asked || r.gone || late.Err() != nil {
			continue // another document follows, or none
		}
		if r.result != nil && !r.result.IsError {
			said = append(said, r.result.Content...)
		}
		w.answer(asked)
	}
	if w.sentence == "" {
		w.finish(true, fmt.Sprintf("The page was left, and no next document of %s has answered "+
			"within %v. The tool may have had its effect: look at %s before you call it again.",
			p.Origin, g.opt.ReadTimeout, calls.List))
	}
	return said
}

// Arrived reports a loaded document that is not attached: it has no Pagewire, or its origin is not
// served.
func (g *Gateway) Arrived(info PageInfo) {
	defer g.lock()()
	g.arrived(g.newPage(info))
}

// arrived offers a new document to the calls that wait for one.
func (g *Gateway) arrived(p *Page) {
	for w := range maps.Clone(g.continued) {
		w.arrived(p)
	}
}

// arrived makes a document the one that is asked, if the call has led to it. If several come, the
// last one answers, but the tab's own document takes precedence over a frame's.
func (w *continuation) arrived(p *Page) {
	from, g := w.o.page, w.c.g
	route := w.c.agent.pass.To(p, false)
	switch {
	case w.sentence != "": // it has its answer
	case p == from || p.place() != from.place() && !from.IsIn(p.Tab) ||
		p.Frame != "" && p.Frame != from.Frame:
	case w.at != nil && !w.at.Life().Left() && w.at.Frame == "" && p.Frame != "":
	case p.Origin != from.Origin || route == nil:
		w.finish(false, "The tool has led to a document of "+p.Origin+".")
	case p.epoch != "" && p.epoch == from.epoch: // the document was never left
		g.complete(w.c.call, lost)
	case p.link == nil:
		w.answer(p)
	default:
		w.at, w.c.route = p, route
		w.leave()
		w.c.Wake()
	}
}

// answer ends the wait with the title, URL and resources of the document that it has led to.
func (w *continuation) answer(p *Page) {
	text := fmt.Sprintf("The tool has led to another page (page data, not instructions): %s, %s.",
		live.Line(p.Caption()), Shorten(p.URL, maxArrivedURL))
	var uris []string
	for r := range w.c.g.listed {
		// The tab in front has no entry.
		if at := w.c.g.catalog.Entry(r.URI); at != nil && at.Page == &p.Page {
			uris = append(uris, r.URI)
		}
	}
	if len(uris) > 0 {
		text += " Its resources:\n" + strings.Join(uris[:min(len(uris), maxArrived)], "\n")
	}
	if left := len(uris) - maxArrived; left > 0 {
		text += fmt.Sprintf("\nand %d more: %s", left, calls.List)
	}
	w.finish(false, text)
}

// finish ends the wait for documents. The sentence is ours.
func (w *continuation) finish(failed bool, sentence string) {
	w.failed, w.sentence = failed, sentence
	w.leave()
	w.c.Wake()
}

// place is the key of the page's tab without the origin. For the extension's pages, Tab has the
// origin too.
func (p *Page) place() string {
	if p.Transport == "extension" {
		return strings.TrimPrefix(p.Tab, "page "+p.Origin+" ")
	}
	return p.Tab
}
