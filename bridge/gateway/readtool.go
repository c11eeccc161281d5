//go:build !js

package gateway

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pagewire/pagewire/bridge/gateway/live/delta"
)

// What read_page_resource and wait_for_page_update give: all of a resource, a part of it, or what has changed of that,
// in pages.

// A wish is what an agent wants to be given of a URI.
type wish struct {
	uri   string
	part  string // as partOf takes it
	since *int64 // it has that
	at    cursor // it goes on with that
	chars int    // of the result, at most
}

// A cursor is a place in a text that has been given in part: the text of a revision, or what became of another one by
// then.
type cursor struct {
	revision, since int64 // since is 0 for all of it
	from            int   // in bytes; 0 for no cursor
}

func (c cursor) String() string {
	s := strconv.FormatInt(c.revision, 10)
	if c.since > 0 {
		s += "-" + strconv.FormatInt(c.since, 10)
	}
	return s + ":" + strconv.Itoa(c.from)
}

func parseCursor(s string) (c cursor, ok bool) {
	what, from, _ := strings.Cut(s, ":")
	revision, since, delta := strings.Cut(what, "-")
	var err [3]error
	c.revision, err[0] = strconv.ParseInt(revision, 10, 64)
	if delta {
		c.since, err[1] = strconv.ParseInt(since, 10, 64)
	}
	c.from, err[2] = strconv.Atoi(from)
	return c, err == [3]error{} && c.from > 0 && c.since >= 0
}

// A head is the first line of what is given.
type head struct {
	Revision  int64  `json:"revision"`
	URI       string `json:"uri,omitempty"`
	Unchanged bool   `json:"unchanged,omitempty"`
	Since     int64  `json:"since,omitempty"`
	Delta     string `json:"delta,omitempty"`
	Pointer   string `json:"pointer,omitempty"`
	Lines     string `json:"lines,omitempty"`
	Part      string `json:"part,omitempty"`
	Next      *next  `json:"next,omitempty"`
	Note      string `json:"note,omitempty"`
}

// next are the arguments of the call that goes on.
type next struct {
	URI     string `json:"uri"`
	Pointer string `json:"pointer,omitempty"`
	Lines   string `json:"lines,omitempty"`
	Cursor  string `json:"cursor"`
}

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
	at, isCursor := parseCursor(in.Cursor)
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
	w := wish{uri: in.URI, since: in.Since, chars: g.opt.PageChars}
	if in.Chars > 0 {
		w.chars = min(max(in.Chars, 2000), 100_000)
	}
	if in.Pointer != nil && *in.Pointer != "" {
		w.part = partPointer + *in.Pointer
	} else if in.Lines != "" {
		w.part = partLines + in.Lines
	}
	c.began = time.Now()
	if isCursor {
		w.at = at
		if g.goOn(c, w) {
			return
		}
	}
	c.onEnd(g.look(in.URI, func(l *look) {
		if l.why != "" {
			g.fail(c, in.URI+": "+l.why)
			return
		}
		g.grant(c, l, w, func(h head, content []any, why string) {
			if why != "" {
				g.fail(c, in.URI+": "+why)
				return
			}
			g.say(c, originOf(in.URI), false, append([]any{asJSON(h)}, content...)...)
		})
	}))
}

// goOn gives the next page of a text that the agent has been given a page of. It reports false where that is not kept
// any more.
func (g *Gateway) goOn(c *call, w wish) bool {
	if c.agent == nil || c.agent.memory == nil {
		return false
	}
	m := c.agent.memory
	v, ok := m.At(w.uri, w.at.revision)
	if !ok || v.Gone {
		return false
	}
	text, err := partOf(v.Text, w.part)
	if err != nil {
		return false
	}
	h := head{Revision: v.Revision, URI: w.uri}
	if w.at.since == 0 {
		g.say(c, originOf(w.uri), false, g.paged(&h, w, text)...)
		return true
	}
	old, ok := m.At(w.uri, w.at.since)
	before, err := partOf(old.Text, w.part)
	if !ok || old.Gone || err != nil {
		return false
	}
	g.differ(c, before, text, func(kind delta.Kind, difference string) {
		h.Since, h.Delta = w.at.since, string(kind)
		g.say(c, originOf(w.uri), false, g.paged(&h, w, difference)...)
	})
	return true
}

// paged is a page of a text behind its head, which says how to go on.
func (g *Gateway) paged(h *head, w wish, text string) []any {
	content := g.page(h, w, text)
	return append([]any{asJSON(h)}, content...)
}

// grant makes what an agent wishes of what it reads as, and notes that it has that: then is called with the lock held,
// or with why there is no such part.
func (g *Gateway) grant(c *call, l *look, w wish, then func(h head, content []any, why string)) {
	h := head{Revision: l.revision, URI: w.uri}
	text, err := partOf(l.text, w.part)
	if err != nil {
		then(h, nil, err.Error())
		return
	}
	if w.at.from > 0 && w.at.revision != l.revision {
		h.Note = "it has changed since the page before: this is its beginning"
		w.at = cursor{}
	}
	before, how := g.before(c.agent, l, w, text)
	g.tools.issues(c.agent).Issue(l.revision)
	all := func() {
		g.give(c.agent, l, w.part)
		content := g.page(&h, w, text)
		then(h, append(content, l.images...), "")
	}
	switch how {
	case hasNow:
		h.Unchanged, h.Since = true, *w.since
		g.give(c.agent, l, w.part)
		then(h, nil, "")
	case hasOld:
		g.differ(c, before.text, text, func(kind delta.Kind, difference string) {
			if kind == delta.None {
				all()
				return
			}
			g.give(c.agent, l, w.part)
			h.Since, h.Delta = before.revision, string(kind)
			content := g.page(&h, w, difference)
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
func (g *Gateway) before(a *Agent, l *look, w wish, text string) (earlier, has) {
	if w.since == nil || w.at.from > 0 {
		return earlier{}, hasNothing
	}
	if a == nil || a.memory == nil {
		if l.revision <= *w.since && g.tools.given.Issued(*w.since) {
			return earlier{}, hasNow
		}
		return earlier{}, hasNothing
	}
	v, ok := a.memory.Since(w.uri, *w.since, w.part)
	switch {
	case !ok:
		return earlier{}, hasNothing
	case v.Hash == l.hash:
		return earlier{}, hasNow
	case v.Gone || len(l.images) > 0:
		return earlier{}, hasNothing
	}
	old, err := partOf(v.Text, w.part)
	switch {
	case err != nil:
		return earlier{}, hasNothing
	case old == text:
		return earlier{}, hasNow
	}
	return earlier{old, v.Revision}, hasOld
}

// page is as much of a text as a result has room for; the head says what part that is, and how to go on.
func (g *Gateway) page(h *head, w wish, text string) []any {
	h.Pointer, h.Lines = partNames(w.part)
	if text == "" {
		return nil
	}
	room := w.chars - g.opt.ReminderChars - len(line(h))
	from := min(w.at.from, len(text))
	if from == 0 && utf8.RuneCountInString(text) <= room {
		return []any{asText(text)}
	}
	room -= 200 // for what the head says more
	end := from
	for n := 0; n < room && end < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	page, upTo := delta.Page(text, from, end-from)
	first := utf8.RuneCountInString(text[:from])
	h.Part = fmt.Sprintf("characters %d-%d of %d", first, first+utf8.RuneCountInString(page),
		utf8.RuneCountInString(text))
	if upTo > 0 {
		h.Next = &next{URI: w.uri, Pointer: h.Pointer, Lines: h.Lines,
			Cursor: cursor{h.Revision, h.Since, upTo}.String()}
	}
	return []any{asText(page)}
}

// differ makes a delta for a call; then is called with the lock held, unless the call has ended. A large one is made
// without it.
func (g *Gateway) differ(c *call, before, after string, then func(kind delta.Kind, text string)) {
	if len(before)+len(after) <= maxInline {
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
