package calls

import (
	"context"
	"fmt"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/delta"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// read_page_resource and wait_for_page_update return a resource, a part of it, or its changes, in
// pages.

// read answers a call of read_page_resource.
func (t *Tools) read(ctx context.Context, c Call, args []byte) answer {
	var in struct {
		URI, Pointer, Lines, Cursor string
		Since                       *int64
		Chars                       int64
	}
	err := decode(Read, args, map[string]any{"uri": &in.URI, "since": &in.Since,
		"pointer": &in.Pointer, "lines": &in.Lines, "cursor": &in.Cursor, "max_chars": &in.Chars})
	at, isCursor := live.ParseCursor(in.Cursor)
	switch {
	case err != nil:
		return failure(err.Error())
	case in.URI == "":
		return failure(Read + ": uri must be the URI of a resource")
	case in.Cursor != "" && !isCursor:
		return failure(fmt.Sprintf("%s: cursor %.80q does not come from an earlier page of this "+
			"text: leave it out", Read, in.Cursor))
	case in.Pointer != "" && in.Lines != "":
		return failure(Read + ": pointer is for JSON, and lines for text: give one of them")
	}
	w := live.Wish{URI: in.URI, Since: in.Since, Chars: t.PageChars}
	if in.Chars > 0 {
		w.Chars = int(min(max(in.Chars, 2000), 100_000))
		w.Images = w.Chars
	}
	w.Chars -= ReminderChars
	if in.Pointer != "" {
		w.Part = live.PartPointer + in.Pointer
	} else if in.Lines != "" {
		w.Part = live.PartLines + in.Lines
	}
	if isCursor {
		w.At = at
		if c.Sees(in.URI) {
			if a, ok := t.goOn(ctx, c, w); ok {
				return a
			}
		}
	}
	l := t.look(ctx, c, []string{in.URI}, t.ReadTimeout)[in.URI]
	switch {
	case ctx.Err() != nil:
		return answer{}
	case l == nil:
		return failure(in.URI + ": its page has not answered for " + t.ReadTimeout.String())
	case l.Why != "":
		return failure(in.URI + ": " + l.Why)
	}
	h, content, why := t.grant(ctx, c, l, w)
	if why != "" {
		return failure(in.URI + ": " + why)
	}
	return answerOf(w, &h, content)
}

// answerOf is the answer that has what an agent wished.
func answerOf(w live.Wish, h *live.Head, content []any) answer {
	return answer{origin: weborigin.Of(w.URI), content: append([]any{live.AsJSON(h)}, content...)}
}

// goOn gives the next page of a text. It returns false if that text is no longer kept.
func (t *Tools) goOn(ctx context.Context, c Call, w live.Wish) (a answer, ok bool) {
	m := c.Memory()
	if m == nil {
		return a, false
	}
	v, ok := m.At(w.URI, w.At.Revision)
	if !ok || v.Gone {
		return a, false
	}
	text, err := live.PartOf(v.Text, w.Part)
	if err != nil {
		return a, false
	}
	h := live.Head{Revision: v.Revision, URI: w.URI}
	if w.At.Since != 0 {
		old, ok := m.At(w.URI, w.At.Since)
		before, err := live.PartOf(old.Text, w.Part)
		if !ok || old.Gone || err != nil {
			return a, false
		}
		var kind delta.Kind
		kind, text = differ(ctx, c, w.URI, before, text)
		h.Since, h.Delta = w.At.Since, string(kind)
	}
	content := live.Page(&h, w, text) // it changes h, which says how to continue
	return answerOf(w, &h, content), true
}

// grant answers an agent's wish from the current look, and notes that the agent has it. why is the
// reason why the wished part does not exist.
func (t *Tools) grant(ctx context.Context, c Call, l *live.Look, w live.Wish) (h live.Head,
	content []any, why string) {
	h = live.Head{Revision: t.revision(c, l, w.Part), URI: w.URI}
	text, err := live.PartOf(l.Text, w.Part)
	if err != nil {
		return h, nil, err.Error()
	}
	if w.At.From > 0 && w.At.Revision != l.Revision &&
		!t.given.has(w.URI, w.Part, w.At.Revision, l.Hash) {
		h.Note = "it has changed since the page before: this is its beginning"
		w.At = live.Cursor{}
	}
	before, how := t.before(c.Memory(), l, w, text)
	t.issues(c).Issue(h.Revision)
	kind, difference := delta.None, ""
	if how == hasOld {
		if kind, difference = differ(ctx, c, w.URI, before.text, text); ctx.Err() != nil {
			return h, nil, ""
		}
	}
	t.give(c, l, w.Part, h.Revision)
	switch {
	case how == hasNow:
		h.Unchanged, h.Since = true, *w.Since
	case kind != delta.None:
		h.Since, h.Delta = before.revision, string(kind)
		content = live.Page(&h, w, difference)
	default:
		content = live.Page(&h, w, text)
		images, note := l.ImagesWithin(w.Images)
		h.Note = strings.TrimSpace(h.Note + " " + note)
		content = append(content, images...)
	}
	return h, content, ""
}

// revision returns the revision for a part that an agent is given. For agents without a memory, a
// part has a revision of its own: under the resource's revision it would look like the whole, which
// another agent may have.
func (t *Tools) revision(c Call, l *live.Look, part string) int64 {
	// A change must have a later revision.
	if part == "" || c.Memory() != nil || t.Revisions.Revision(l.URI) != l.Revision {
		return l.Revision
	}
	return t.Revisions.Advance()
}

// has classifies the version that an agent has when it names a revision.
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

// before finds the agent's version of the wished part. For an agent without a memory, only gifts
// under the revision that it names count.
func (t *Tools) before(m *follow.Memory, l *live.Look, w live.Wish, text string) (earlier, has) {
	if w.Since == nil || w.At.From > 0 {
		return earlier{}, hasNothing
	}
	if m == nil {
		if t.given.has(w.URI, w.Part, *w.Since, l.Hash) {
			return earlier{}, hasNow
		}
		return earlier{}, hasNothing
	}
	v, ok := m.Since(w.URI, *w.Since, w.Part)
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

// differ makes a delta of a resource's texts. It compares large texts without the gateway's lock.
func differ(ctx context.Context, c Call, uri, before, after string) (kind delta.Kind, text string) {
	// A delta has a budget.
	compare := func(context.Context) { kind, text = delta.Of(before, after) }
	if len(before)+len(after) <= live.MaxInline {
		compare(ctx)
	} else {
		c.Apart(ctx, weborigin.Of(uri), compare)
	}
	return kind, text
}
