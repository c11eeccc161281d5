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
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pagewire/pagewire/bridge/internal/parts"
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
	answer   answer // of the person who points now; nil if nobody does
}

type pickedOr struct {
	picked Picked
	err    error
}

// An answer goes to a person who points, once: they may click in several tabs.
type answer chan pickedOr

func (a answer) give(picked Picked, err error) {
	select {
	case a <- pickedOr{picked, err}:
	default:
	}
}

var (
	errNoBrowser = errors.New(
		"there is no browser to point in: start pagewire serve with --launch, or --chrome auto")
	errPicking  = errors.New("another pagewire pick waits already: end it first")
	errNotShown = errors.New(
		"this page is not shown to any agent: add --shown with its origin to pagewire serve")
	errNotFound = errors.New("no rule would find that: click on another part of the page")
	errInFrame  = errors.New(
		"this part is in a frame: only parts of a tab's own document can be picked")
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
	answer := make(answer, 1)
	p.mu.Lock()
	waits, none := p.answer != nil, len(p.browsers) == 0
	if !waits && !none {
		p.answer = answer
	}
	p.mu.Unlock()
	switch {
	case none:
		return Picked{}, errNoBrowser
	case waits:
		return Picked{}, errPicking
	}
	p.inspect(answer)
	defer func() {
		p.mu.Lock()
		p.answer = nil
		p.mu.Unlock()
		p.inspect(nil)
	}()
	select {
	case a := <-answer:
		return a.picked, a.err
	case <-ctx.Done():
		return Picked{}, ctx.Err()
	}
}

// now is where the answer goes for a person who points now. The browser's lock may be held.
func (p *Picks) now() answer {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer
}

func (p *Picks) inspect(to answer) {
	p.mu.Lock()
	browsers := slices.Collect(maps.Keys(p.browsers))
	p.mu.Unlock()
	for _, b := range browsers {
		b.mu.Lock()
		for _, s := range b.sessions {
			s.inspect(to)
		}
		b.mu.Unlock()
	}
}

// inspect switches the mode in which the browser marks what is below the pointer: on if there is
// somebody to answer. A click from before that is none of theirs.
func (s *session) inspect(to answer) {
	s.pointing = nil
	if to != nil {
		s.tell(dom.CommandEnable, nil)
		s.tell(overlay.CommandEnable, nil)
		s.b.link.post(s.id, overlay.CommandSetInspectMode, &overlay.SetInspectModeParams{
			Mode: overlay.InspectModeSearchForNode, HighlightConfig: highlight},
			func(jsonv2.Value, error) { s.pointing = to })
		return
	}
	s.tell(overlay.CommandSetInspectMode, &overlay.SetInspectModeParams{
		Mode: overlay.InspectModeNone, HighlightConfig: highlight})
	s.tell(overlay.CommandDisable, nil)
	s.tell(dom.CommandDisable, nil)
}

var highlight = &overlay.HighlightConfig{ContentColor: &protocol.RGBA{R: 0, G: 102, B: 204, A: 0.2},
	BorderColor: &protocol.RGBA{R: 0, G: 102, B: 204, A: 1}}

// pointed answers the person who has pointed at a node, once.
func (s *session) pointed(node protocol.BackendNodeID) {
	if s.pointing == nil {
		return
	}
	to, failed := s.pointing, errInFrame
	s.pointing = nil
	var n *shown
	for _, d := range s.documents {
		if d.frame == "" {
			n, failed = d.shown, errNotShown
		}
	}
	if n == nil {
		to.give(Picked{}, failed)
		return
	}
	n.call("ready", "0", func(_ jsonv2.Value, err error) {
		if err != nil {
			to.give(Picked{}, err)
			return
		}
		ask(s.b.link, s.id, dom.CommandResolveNode,
			&dom.ResolveNodeParams{BackendNodeID: node, ExecutionContextID: n.context},
			func(r dom.ResolveNodeResult, err error) {
				if err != nil || r.Object == nil {
					to.give(Picked{}, errInFrame)
					return
				}
				n.pick(string(r.Object.ObjectID), to)
			})
	})
}

func (n *shown) pick(element string, to answer) {
	argument, _ := jsontext.AppendQuote([]byte(`{"objectId":`), element)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.run("function(e){"+n.d.b.picker+"\n;return this.pick(e)}", string(append(argument, '}')),
		func(value jsonv2.Value, err error) {
			picked := Picked{Origin: n.d.origin}
			if errors.Is(err, errReader) || err == nil && json.Unmarshal(value, &picked) != nil {
				err = errors.New("the part cannot be read")
			}
			if err == nil && len(picked.Rule.Find) == 0 {
				err = errNotFound
			}
			to.give(picked, err)
		})
}
