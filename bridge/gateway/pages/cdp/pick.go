package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/overlay"
	"github.com/chromedp/cdproto/runtime"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pagewire/pagewire/bridge/gateway/parts"
)

// A Picked is a part at which a person has pointed.
type Picked struct {
	Origin string     `json:"origin"`
	Rule   parts.Rule `json:"rule"`
	// Text is what agents would read.
	Text string `json:"text"`
}

// Picks let a person point at a part of a page, in any of the browsers that have them as
// Options.Picks. The browser itself marks what is below the pointer: the page sees nothing of it.
type Picks struct {
	mu       sync.Mutex
	browsers map[*attachment]bool
	answer   chan pickedOr // of the person who points now; nil if nobody does
}

type pickedOr struct {
	picked Picked
	err    error
}

var (
	errNoBrowser = errors.New("there is no browser to point in: start pagewire serve with --launch, or --chrome auto")
	errPicking   = errors.New("another pagewire pick waits already: end it first")
	errNotShown  = errors.New("this page is not shown to any agent: add --shown with its origin to pagewire serve")
	errNotFound  = errors.New("no rule would find that: click on another part of the page")
	errInFrame   = errors.New("this part is in a frame: only parts of a tab's own document can be picked")
)

func (p *Picks) add(b *attachment) (remove func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.browsers == nil {
		p.browsers = map[*attachment]bool{}
	}
	p.browsers[b] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.browsers, b)
	}
}

// Pick waits until a person has clicked on a part, or ctx ends.
func (p *Picks) Pick(ctx context.Context) (Picked, error) {
	answer := make(chan pickedOr, 1)
	p.mu.Lock()
	waits, browsers := p.answer != nil, slices.Collect(maps.Keys(p.browsers))
	if !waits && len(browsers) > 0 {
		p.answer = answer
	}
	p.mu.Unlock()
	switch {
	case len(browsers) == 0:
		return Picked{}, errNoBrowser
	case waits:
		return Picked{}, errPicking
	}
	for _, b := range browsers {
		b.inspect(true)
	}
	defer func() {
		for _, b := range browsers {
			b.inspect(false)
		}
		p.mu.Lock()
		p.answer = nil
		p.mu.Unlock()
	}()
	select {
	case a := <-answer:
		return a.picked, a.err
	case <-ctx.Done():
		return Picked{}, ctx.Err()
	}
}

// done answers the person who points, once. The browser's lock may be held.
func (p *Picks) done(picked Picked, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer != nil {
		select {
		case p.answer <- pickedOr{picked, err}:
		default: // it has been answered
		}
	}
}

// inspect switches the mode in which the browser marks what is below the pointer.
func (b *attachment) inspect(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sessions {
		if on {
			b.link.post(s.id, dom.CommandEnable, nil, nil)
			b.link.post(s.id, overlay.CommandEnable, nil, nil)
			b.link.post(s.id, overlay.CommandSetInspectMode, &overlay.SetInspectModeParams{
				Mode: overlay.InspectModeSearchForNode, HighlightConfig: highlight}, nil)
			continue
		}
		b.link.post(s.id, overlay.CommandSetInspectMode, &overlay.SetInspectModeParams{
			Mode: overlay.InspectModeNone, HighlightConfig: highlight}, nil)
		b.link.post(s.id, overlay.CommandDisable, nil, nil)
		b.link.post(s.id, dom.CommandDisable, nil, nil)
	}
}

var highlight = &overlay.HighlightConfig{ContentColor: &protocol.RGBA{R: 0, G: 102, B: 204, A: 0.2},
	BorderColor: &protocol.RGBA{R: 0, G: 102, B: 204, A: 1}}

// pointed answers the person who has pointed at a node.
func (s *session) pointed(node protocol.BackendNodeID) {
	if s.b.picks == nil {
		return
	}
	picks, failed := s.b.picks, errInFrame
	var n *shown
	for _, d := range s.documents {
		if d.frame == "" {
			n, failed = d.shown, errNotShown
		}
	}
	if n == nil {
		picks.done(Picked{}, failed)
		return
	}
	n.call("ready", "0", func(_ jsonv2.Value, err error) {
		if err != nil {
			picks.done(Picked{}, err)
			return
		}
		var r dom.ResolveNodeResult
		n.post(dom.CommandResolveNode, &dom.ResolveNodeParams{BackendNodeID: node, ExecutionContextID: n.context}, &r,
			func(err error) {
				if err != nil || r.Object == nil {
					picks.done(Picked{}, errInFrame)
					return
				}
				n.pick(string(r.Object.ObjectID))
			})
	})
}

func (n *shown) pick(element string) {
	n.mu.Lock()
	params, _ := jsontext.AppendQuote([]byte(`{"awaitPromise":true,"returnByValue":true,"silent":true,"objectId":`), n.object)
	n.mu.Unlock()
	params, _ = jsontext.AppendQuote(append(params, `,"functionDeclaration":`...),
		"function(e){"+n.d.b.picker+"\n;return this.pick(e)}")
	params, _ = jsontext.AppendQuote(append(params, `,"arguments":[{"objectId":`...), element)
	var r runtime.CallFunctionOnResult
	n.post(runtime.CommandCallFunctionOn, jsonv2.Value(append(params, "}]}"...)), &r, func(err error) {
		picked := Picked{Origin: n.d.origin}
		if err == nil && (r.ExceptionDetails != nil || r.Result == nil || json.Unmarshal(r.Result.Value, &picked) != nil) {
			err = errors.New("the part cannot be read")
		}
		if err == nil && len(picked.Rule.Find) == 0 {
			err = errNotFound
		}
		n.d.b.picks.done(picked, err)
	})
}
