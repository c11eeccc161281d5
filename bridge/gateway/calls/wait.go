package calls

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/internal/quota"
)

const (
	// maxURIs bounds the resources of one wait.
	maxURIs = 50
	// maxGranted bounds the changed resources that a wait returns with contents. It only names the
	// others.
	maxGranted = 5
	// maxAwaited bounds the URIs of all waits under way, as many as a gateway counts: their counts
	// give way to nobody. An agent has as many as it leaves to others, alone half. With 200 waits
	// for 50 URIs each, one kept all others from waiting.
	maxAwaited = 10_000
)

// A waiting is a call of wait_for_page_update.
type waiting struct {
	t     *Tools
	c     Call
	uris  []string // sorted
	since *int64
	// from is for a resource that the agent was not given: only later revisions are changes.
	from int64
	// confirmed has the URIs whose pages report all changes, or of which there are none to report.
	confirmed map[string]bool
	// covered is set once the wait has a revision to answer with. It covers all URIs.
	covered bool
	// same has, with since, the revisions at which resources read as the agent has them.
	same map[string]int64
	// revoked means that the agent sees none of its URIs any more. stop ends its reads then. revoke
	// uses both, while the wait's own goroutine has no lock.
	revoked bool
	stop    func()
}

// wait answers a call of wait_for_page_update.
func (t *Tools) wait(ctx context.Context, c Call, args []byte) answer {
	in := struct {
		URIs    []string
		Since   *int64
		Timeout int64
	}{Timeout: 20_000}
	err := decode(Wait, args, map[string]any{"uris": &in.URIs, "since": &in.Since,
		"timeout_ms": &in.Timeout})
	if err == nil && len(in.URIs) > maxURIs {
		err = fmt.Errorf("%s: uris has %d URIs; the limit is %d", Wait, len(in.URIs), maxURIs)
	}
	if err != nil {
		return failure(err.Error())
	}
	if len(in.URIs) == 0 {
		if m := c.Memory(); m != nil {
			in.URIs = slices.Sorted(m.URIs)
		}
		if len(in.URIs) == 0 {
			return failure(Wait +
				": name uris; without them it waits for what you have read, and " +
				"that is nothing yet")
		}
	}
	slices.Sort(in.URIs)
	first := in.URIs[0]
	in.URIs = slices.DeleteFunc(in.URIs, func(uri string) bool { return !c.Sees(uri) })
	if len(in.URIs) == 0 {
		return failure(first + ": " + Unknown)
	}
	in.URIs = slices.Compact(in.URIs)
	for range in.URIs {
		leave, ok := t.places.Try(c.Party(), quota.Room{Places: maxAwaited})
		if !ok {
			return failure(Wait + ": too many URIs are waited for at once; the limit is " +
				strconv.Itoa(maxAwaited) + ", and an agent has as many as it leaves to others")
		}
		defer leave()
	}
	w := &waiting{t: t, c: c, uris: in.URIs, since: in.Since,
		same: map[string]int64{}, confirmed: map[string]bool{}}
	return w.run(ctx, time.Duration(min(max(in.Timeout, 0), 25_000))*time.Millisecond)
}

// run waits for a change, and answers. Some pages report a change that is none: then the wait goes
// on.
func (w *waiting) run(ctx context.Context, timeout time.Duration) answer {
	t, c := w.t, w.c
	// The timeout begins before Await, so that a page that does not confirm its watch cannot make
	// the wait longer.
	late, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	c.Tick(t.ProgressEvery, func() (next time.Duration) {
		if late.Err() != nil {
			return 0
		}
		c.Progress(int(time.Since(began).Seconds()), int(timeout.Seconds()),
			"waiting for a page to change")
		return t.ProgressEvery
	})
	var failed []string
	defer t.Revisions.Await(w.uris, func(uri, why string) {
		if why != "" {
			failed = append(failed, uri+": "+why)
		}
		w.confirm(uri)
	})()
	if len(failed) == len(w.uris) {
		return failure(failed[0])
	}
	w.from = t.Revisions.Clock()
	if w.since != nil && !t.issues(c).Issued(*w.since) {
		w.since = new(int64) // the agent was never given it, so it counts as having nothing
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	w.stop = stop
	t.waiting[w] = true
	defer delete(t.waiting, w)
	for {
		var h live.Head
		var changed []string
		var found map[string]*live.Look
		if c.Until(late, func() bool {
			changed = w.changed()
			return len(changed) > 0 || w.revoked
		}) && !w.revoked {
			h.Revision = w.revision()
			found = t.Look(looking, c, changed[:min(len(changed), maxGranted)], t.ReadTimeout)
			changed = slices.DeleteFunc(changed, func(uri string) bool { return w.has(found[uri]) })
		}
		switch {
		case ctx.Err() != nil:
			return answer{}
		case w.revoked:
			return failure(w.uris[0] + ": " + Gone)
		case len(changed) > 0 || late.Err() != nil:
			cancel()
			return w.grant(ctx, h, changed, found)
		}
	}
}

// confirm makes the wait look at a URI. The URIs of a page that stands still are left out until it
// goes on: a wait for it and another page once told no change, and timed out after 20 s.
func (w *waiting) confirm(uri string) {
	if w.covered && w.since != nil {
		// The agent's next wait is since a revision that covers what this page did unseen. As a
		// change, it is read then, and told if it reads differently.
		w.t.Revisions.Updated(uri)
	}
	w.confirmed[uri] = true
	w.c.Wake()
}

// revoke ends the wait, because the agent sees none of its URIs any more.
func (w *waiting) revoke() {
	w.revoked = true
	w.stop()
	w.c.Wake()
}

// changed lists the resources that have changed since the agent's version.
func (w *waiting) changed() (list []string) {
	for _, uri := range w.uris {
		if !w.confirmed[uri] || !w.c.Sees(uri) {
			continue // in the second case it leads to another profile now
		}
		from, m := w.from, w.c.Memory()
		if w.since != nil {
			from = *w.since
			if m != nil { // since may be of another resource that the agent has read later
				if known, ok := m.Known(uri); ok {
					from = min(from, known)
				}
			}
			from = max(from, w.same[uri])
		} else if m != nil {
			if v, ok := m.Last(uri); ok {
				from = v.Current
			}
		}
		if w.t.Revisions.Revision(uri) > from {
			list = append(list, uri)
		}
	}
	return list
}

// has reports whether the agent already has the contents. If so, it notes that they are current.
func (w *waiting) has(l *live.Look) bool {
	if m := w.c.Memory(); l != nil && m != nil {
		v, ok := m.Last(l.URI)
		if ok && live.Same(v, l) && (w.since == nil || v.Revision <= *w.since) {
			m.Renew(l.URI, l.Version(v.Part))
			if w.since != nil {
				w.same[l.URI] = l.Revision
			}
			return true
		}
	}
	return false
}

// grant gives the changed resources that could be read, while there is room.
func (w *waiting) grant(ctx context.Context, h live.Head, changed []string,
	found map[string]*live.Look) answer {
	room := w.t.PageChars - ReminderChars
	var heads []live.Head
	var contents [][]any
	for _, uri := range changed {
		if found[uri] == nil || room < 1000 {
			continue
		}
		wish := live.Wish{URI: uri, Since: w.since, Chars: room}
		one, content, _ := w.t.grant(ctx, w.c, found[uri], wish)
		if ctx.Err() != nil {
			return answer{}
		}
		heads, contents = append(heads, one), append(contents, content)
		room -= len(live.Line(one))
		for _, part := range content {
			if text, ok := part.(live.TextContent); ok {
				room -= len(text.Text)
			}
		}
	}
	return w.give(h, changed, heads, contents)
}

// revision returns one revision for all awaited resources together. For an agent without a memory
// it is a new one: a resource's own revision would claim that the agent was given that resource.
func (w *waiting) revision() int64 {
	w.covered = true
	if w.c.Memory() != nil {
		return w.t.Revisions.Clock()
	}
	return w.t.Revisions.Advance()
}

// give answers with the changes. If only one resource has changed, its head is the first line.
func (w *waiting) give(h live.Head, changed []string, heads []live.Head, contents [][]any) answer {
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
			h.Note = "read the others with " + Read
		}
	}
	return w.answer(h, changed, heads, content)
}

// answer answers, with changes or after the timeout.
func (w *waiting) answer(h live.Head, changed []string, heads []live.Head, content []any) answer {
	if h.Revision == 0 {
		h.Revision = w.revision()
	}
	w.t.issues(w.c).Issue(h.Revision)
	if m := w.c.Memory(); m != nil {
		for _, uri := range changed {
			if !slices.ContainsFunc(heads, func(h live.Head) bool { return h.URI == uri }) {
				// With since, the next wait does not name it again.
				m.Told(uri, w.t.Revisions.Revision(uri))
			}
		}
	} else {
		if w.since != nil {
			for _, uri := range w.uris {
				w.t.given.again(uri, *w.since, h.Revision)
			}
		}
		for _, one := range heads {
			w.t.given.again(one.URI, one.Revision, h.Revision)
		}
	}
	first := waited{append([]string{}, changed...), h, len(changed) == 0}
	return answer{content: append([]any{live.AsJSON(first)}, content...)}
}

// waited is the first line of a wait's result.
type waited struct {
	Changed []string `json:"changed"`
	live.Head
	TimedOut bool `json:"timedOut,omitempty"`
}
