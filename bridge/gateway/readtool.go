//go:build !js

package gateway

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/delta"
)

// What read_page_resource and wait_for_page_update give: all of a resource, a part of it, or what has changed of that,
// in pages.

// read answers a call of read_page_resource.
func (g *Gateway) read(c *call, args []byte) {
	var in struct {
		URI     string
		Since   *int64
		Pointer *string
		Lines   string
		Cursor  string
		Chars   int `json:"max_chars"`
	}
	err := json.Unmarshal(args, &in)
	at, isCursor := live.ParseCursor(in.Cursor)
	switch {
	case err != nil:
		g.fail(c, toolRead+": "+err.Error())
		return
	case in.URI == "":
		g.fail(c, toolRead+": uri must be the URI of a resource")
		return
	case in.Cursor != "" && !isCursor:
		g.fail(c, fmt.Sprintf("%s: cursor %.80q is none that a page before gave; read without it", toolRead, in.Cursor))
		return
	case in.Pointer != nil && in.Lines != "":
		g.fail(c, toolRead+": pointer is for JSON, and lines for text: give one of them")
		return
	}
	w := live.Wish{URI: in.URI, Since: in.Since, Chars: g.opt.PageChars}
	if in.Chars > 0 {
		w.Chars = min(max(in.Chars, 2000), 100_000)
	}
	w.Chars -= g.opt.ReminderChars
	if in.Pointer != nil && *in.Pointer != "" {
		w.Part = live.PartPointer + *in.Pointer
	} else if in.Lines != "" {
		w.Part = live.PartLines + in.Lines
	}
	c.began = time.Now()
	if isCursor {
		w.At = at
		if g.goOn(c, w) {
			return
		}
	}
	c.onEnd(g.look(in.URI, func(l *live.Look) {
		if l.Why != "" {
			g.fail(c, in.URI+": "+l.Why)
			return
		}
		g.grant(c, l, w, func(h live.Head, content []any, why string) {
			if why != "" {
				g.fail(c, in.URI+": "+why)
				return
			}
			g.say(c, live.OriginOf(in.URI), false, append([]any{live.AsJSON(h)}, content...)...)
		})
	}))
}

// goOn gives the next page of a text that the agent has been given a page of. It reports false where that is not kept
// any more.
func (g *Gateway) goOn(c *call, w live.Wish) bool {
	if c.agent == nil || c.agent.memory == nil {
		return false
	}
	m := c.agent.memory
	v, ok := m.At(w.URI, w.At.Revision)
	if !ok || v.Gone {
		return false
	}
	text, err := live.PartOf(v.Text, w.Part)
	if err != nil {
		return false
	}
	h := live.Head{Revision: v.Revision, URI: w.URI}
	if w.At.Since == 0 {
		g.say(c, live.OriginOf(w.URI), false, paged(&h, w, text)...)
		return true
	}
	old, ok := m.At(w.URI, w.At.Since)
	before, err := live.PartOf(old.Text, w.Part)
	if !ok || old.Gone || err != nil {
		return false
	}
	g.differ(c, before, text, func(kind delta.Kind, difference string) {
		h.Since, h.Delta = w.At.Since, string(kind)
		g.say(c, live.OriginOf(w.URI), false, paged(&h, w, difference)...)
	})
	return true
}

// paged is a page of a text behind its head, which says how to go on.
func paged(h *live.Head, w live.Wish, text string) []any {
	content := live.Page(h, w, text)
	return append([]any{live.AsJSON(h)}, content...)
}

// grant makes what an agent wishes of what it reads as, and notes that it has that: then is called with the lock held,
// or with why there is no such part.
func (g *Gateway) grant(c *call, l *live.Look, w live.Wish, then func(h live.Head, content []any, why string)) {
	h := live.Head{Revision: l.Revision, URI: w.URI}
	text, err := live.PartOf(l.Text, w.Part)
	if err != nil {
		then(h, nil, err.Error())
		return
	}
	if w.At.From > 0 && w.At.Revision != l.Revision {
		h.Note = "it has changed since the page before: this is its beginning"
		w.At = live.Cursor{}
	}
	before, how := g.before(c.agent, l, w, text)
	g.tools.issues(c.agent).Issue(l.Revision)
	all := func() {
		g.give(c.agent, l, w.Part)
		content := live.Page(&h, w, text)
		then(h, append(content, l.Images...), "")
	}
	switch how {
	case hasNow:
		h.Unchanged, h.Since = true, *w.Since
		g.give(c.agent, l, w.Part)
		then(h, nil, "")
	case hasOld:
		g.differ(c, before.text, text, func(kind delta.Kind, difference string) {
			if kind == delta.None {
				all()
				return
			}
			g.give(c.agent, l, w.Part)
			h.Since, h.Delta = before.revision, string(kind)
			content := live.Page(&h, w, difference)
			then(h, content, "")
		})
	default:
		all()
	}
}

// What an agent has that names a revision.
type has int

const (
	hasNothing has = iota
	hasOld
	hasNow
)

type earlier struct {
	text     string
	revision int64
}

// before finds what an agent has of what it wishes. Of one without a memory nothing is known but the number that it
// names: it has all up to that.
func (g *Gateway) before(a *Agent, l *live.Look, w live.Wish, text string) (earlier, has) {
	if w.Since == nil || w.At.From > 0 {
		return earlier{}, hasNothing
	}
	if a == nil || a.memory == nil {
		if l.Revision <= *w.Since && g.tools.given.Issued(*w.Since) {
			return earlier{}, hasNow
		}
		return earlier{}, hasNothing
	}
	v, ok := a.memory.Since(w.URI, *w.Since, w.Part)
	switch {
	case !ok:
		return earlier{}, hasNothing
	case v.Hash == l.Hash:
		return earlier{}, hasNow
	case v.Gone || len(l.Images) > 0:
		return earlier{}, hasNothing
	}
	old, err := live.PartOf(v.Text, w.Part)
	switch {
	case err != nil:
		return earlier{}, hasNothing
	case old == text:
		return earlier{}, hasNow
	}
	return earlier{old, v.Revision}, hasOld
}

// differ makes a delta for a call; then is called with the lock held, unless the call has ended. A large one is made
// without it.
func (g *Gateway) differ(c *call, before, after string, then func(kind delta.Kind, text string)) {
	if len(before)+len(after) <= live.MaxInline {
		then(delta.Of(before, after))
		return
	}
	go func() {
		g.differing <- struct{}{}
		kind, text := delta.Of(before, after)
		<-g.differing
		g.mu.Lock()
		defer g.unlock()
		if g.calls[c.id] == c {
			then(kind, text)
		}
	}()
}
