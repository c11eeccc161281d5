//go:build !js

package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// maxGranted is how many resources a wait gives of those that have changed; it names the others.
const maxGranted = 5

// A waiting is a call of wait_for_page_update.
type waiting struct {
	g       *Gateway
	c       *call
	uris    []string
	since   *int64
	from    int64 // the revision from which on a change counts, for what the agent has not been given
	timeout time.Duration
	looking bool // at what has changed
	late    bool // its time is over
	over    bool
	timers  []*time.Timer
}

// wait answers a call of wait_for_page_update.
func (g *Gateway) wait(c *call, args []byte) {
	in := struct {
		URIs    []string
		Since   *int64
		Timeout int64 `json:"timeout_ms"`
	}{Timeout: 20_000}
	if err := json.Unmarshal(args, &in); err != nil || len(in.URIs) > 50 {
		g.fail(c, toolWait+": uris must be at most 50 URIs of resources")
		return
	}
	if len(in.URIs) == 0 {
		if c.agent != nil && c.agent.memory != nil {
			in.URIs = slices.Sorted(c.agent.memory.URIs)
		}
		if len(in.URIs) == 0 {
			g.fail(c, toolWait+": name uris; without them it waits for what you have read, and that is nothing yet")
			return
		}
	}
	slices.Sort(in.URIs)
	w := &waiting{g: g, c: c, uris: slices.Compact(in.URIs), since: in.Since,
		timeout: time.Duration(min(max(in.Timeout, 0), 25_000)) * time.Millisecond}
	g.tools.revisions.Track(w.uris, func(failed map[string]string) {
		if g.calls[c.id] == nil {
			return
		}
		for _, uri := range w.uris {
			if why := failed[uri]; why != "" && len(failed) == len(w.uris) {
				g.fail(c, uri+": "+why)
				return
			}
		}
		w.from = g.tools.revisions.Clock()
		if w.since != nil && !g.tools.issues(c.agent).Issued(*w.since) {
			w.since = new(int64) // no revision that it was told: it has nothing
		}
		w.begin()
	})
}

// changed lists what has changed since the agent had it.
func (w *waiting) changed() (list []string) {
	for _, uri := range w.uris {
		from := w.from
		if w.since != nil {
			from = *w.since
		} else if a := w.c.agent; a != nil && a.memory != nil {
			if v, ok := a.memory.Last(uri); ok {
				from = v.Current
			}
		}
		if w.g.tools.revisions.Revision(uri) > from {
			list = append(list, uri)
		}
	}
	return list
}

func (w *waiting) begin() {
	g := w.g
	g.tools.waiters[w.c] = w.look
	w.c.onEnd(w.stop)
	w.after(w.timeout, func() {
		if w.late = true; !w.looking {
			w.stop()
			w.answer(live.Head{}, nil, nil)
		}
	})
	began := time.Now()
	w.after(w.g.opt.progressEvery, func() { w.progress(began) })
	w.look()
}

// after calls f later, with the lock held, unless the wait is over by then.
func (w *waiting) after(d time.Duration, f func()) {
	w.timers = append(w.timers, time.AfterFunc(d, func() {
		w.g.mu.Lock()
		defer w.g.unlock()
		if !w.over {
			f()
		}
	}))
}

func (w *waiting) progress(began time.Time) {
	members := fmt.Sprintf(`"progress":%d,"total":%d,"message":"waiting for a page to change"`,
		int(time.Since(began).Seconds()), int(w.timeout.Seconds()))
	w.g.engine.Progress(w.g.now(), w.c.id, []byte(members))
	w.after(w.g.opt.progressEvery, func() { w.progress(began) })
}

func (w *waiting) stop() {
	w.over = true
	for _, t := range w.timers {
		t.Stop()
	}
	delete(w.g.tools.waiters, w.c)
}

// look answers, if something has changed, with what that is now. Some pages say so without: then it goes on.
func (w *waiting) look() {
	changed := w.changed()
	if w.over || w.looking || len(changed) == 0 {
		return
	}
	w.looking = true
	g := w.g
	h := live.Head{Revision: g.tools.revisions.Clock()}
	g.looks(w.c, changed[:min(len(changed), maxGranted)], g.opt.ReadTimeout, func(found map[string]*live.Look) {
		w.looking = false
		changed = slices.DeleteFunc(changed, func(uri string) bool { return w.has(found[uri]) })
		switch {
		case len(changed) > 0 || w.late:
			w.stop()
			w.grant(h, changed, found)
		default:
			w.look()
		}
	})
}

// has reports whether the agent has what was read already, and notes that that is current.
func (w *waiting) has(l *live.Look) bool {
	if a := w.c.agent; l != nil && a != nil && a.memory != nil {
		if v, ok := a.memory.Last(l.URI); ok && live.Same(v, l) && (w.since == nil || v.Revision <= *w.since) {
			a.memory.Renew(l.URI, l.Version(v.Part))
			if w.since != nil {
				w.since = &l.Revision
			}
			return true
		}
	}
	return false
}

// grant gives what can be read of what has changed, one after the other, as long as there is room.
func (w *waiting) grant(h live.Head, changed []string, found map[string]*live.Look) {
	g := w.g
	room := g.opt.PageChars - g.opt.ReminderChars
	var heads []live.Head
	var contents [][]any
	var step func(i int)
	step = func(i int) {
		for i < len(changed) && (found[changed[i]] == nil || room < 1000) {
			i++
		}
		if i >= len(changed) {
			w.give(h, changed, heads, contents)
			return
		}
		wish := live.Wish{URI: changed[i], Since: w.since, Chars: room}
		g.grant(w.c, found[changed[i]], wish, func(one live.Head, content []any, _ string) {
			heads, contents = append(heads, one), append(contents, content)
			room -= len(live.Line(one))
			for _, part := range content {
				if text, ok := part.(live.TextContent); ok {
					room -= len(text.Text)
				}
			}
			step(i + 1)
		})
	}
	step(0)
}

// give answers with what has changed. Where that is one resource, its head is the first line.
func (w *waiting) give(h live.Head, changed []string, heads []live.Head, contents [][]any) {
	var content []any
	if len(heads) == 1 && len(changed) == 1 {
		revision := max(h.Revision, heads[0].Revision)
		h, content = heads[0], contents[0]
		h.Revision, h.URI = revision, ""
	} else {
		for i := range heads {
			content = append(append(content, live.AsJSON(heads[i])), contents[i]...)
		}
		if len(heads) < len(changed) {
			h.Note = "read the others with " + toolRead
		}
	}
	w.answer(h, changed, content)
}

// answer is the end of the wait. Without a change its time is over.
func (w *waiting) answer(h live.Head, changed []string, content []any) {
	if h.Revision == 0 {
		h.Revision = w.g.tools.revisions.Clock()
	}
	w.g.tools.issues(w.c.agent).Issue(h.Revision)
	first := waited{append([]string{}, changed...), h, len(changed) == 0}
	w.g.say(w.c, "", false, append([]any{live.AsJSON(first)}, content...)...)
}

// waited is the first line of a wait's result.
type waited struct {
	Changed []string `json:"changed"`
	live.Head
	TimedOut bool `json:"timedOut,omitempty"`
}
