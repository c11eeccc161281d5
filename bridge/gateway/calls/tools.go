package calls

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/internal/quota"
)

// Unknown is the reason why a URI that no page offers cannot be read.
const Unknown = "Resource not found"

// Gone is the reason why an agent waits no more for what its user showed it.
const Gone = "it is not shown to you any more. Only your user can change that: with --shown of " +
	"pagewire serve, or in the popup of the browser's extension"

// ReminderChars is the maximum length of a reminder.
const ReminderChars = 600

// Options configure Tools. All must be set.
type Options struct {
	Revisions *follow.Books
	// Listed yields the resources that pages list, in order. Notices returns sentences for an agent
	// about faults.
	Listed  iter.Seq[Resource]
	Notices func(Call) []string
	// Offered reports whether a page has a URI.
	Offered func(uri string) bool
	// Unseen reports whether pages may be missing because a browser has not said yet which are
	// open.
	Unseen func() bool
	// PageChars bounds a result with its reminder, unless the agent requests another bound.
	PageChars int
	// ReadTimeout bounds a page's time to answer. ProgressEvery is the interval of progress
	// reports.
	ReadTimeout, ProgressEvery time.Duration
}

// Tools are the gateway's own tools. The gateway's lock guards them. Make them with New.
type Tools struct {
	Options
	// waiting has the calls of wait_for_page_update from when their URIs are tracked until they
	// answer. Each adds and removes itself.
	waiting map[*waiting]bool
	places  quota.Places // of the URIs of waits
	// issued has the revisions that agents without a memory were given, and given has their gifts.
	// Both only grow, within their bounds.
	issued *seen.Record
	given  given
}

// New returns Tools without calls.
func New(o Options) *Tools {
	return &Tools{Options: o, waiting: map[*waiting]bool{}, issued: seen.New(seen.Limits{})}
}

// An answer is what a tool has to say about pages of an origin, or of any origin with "". Its
// content has types of package live.
type answer struct {
	origin  string
	failed  bool
	content []any
}

// failure is the answer of a call that has failed.
func failure(why string) answer { return answer{"", true, []any{live.AsText(why)}} }

// Run runs the tool with a name until it has answered, or ctx has ended. It returns false if there
// is no such tool.
func (t *Tools) Run(ctx context.Context, c Call, name string, args []byte) bool {
	var a answer
	switch name {
	case List:
		a = t.list(c, args)
	case Read:
		a = t.read(ctx, c, args)
	case Wait:
		a = t.wait(ctx, c, args)
	case Changes:
		t.changes(ctx, c, args)
		return true
	default:
		return false
	}
	t.Respond(ctx, c, a.origin, a.failed, a.content...)
	return true
}

// Changed makes the waiting calls look again.
func (t *Tools) Changed() {
	for w := range t.waiting {
		w.c.Wake()
	}
}

// Revoked ends the calls that wait only for URIs of a kind, and see none of them any more.
func (t *Tools) Revoked(kind func(uri string) bool) {
	for w := range t.waiting {
		stays := func(uri string) bool { return !kind(uri) || w.c.Sees(uri) }
		if !slices.ContainsFunc(w.uris, stays) {
			w.revoke()
		}
	}
}

// issues returns the record of the revisions that a call's agent was given. Other revisions do not
// count: they may come from an earlier gateway or another machine, or a model may have invented
// them.
func (t *Tools) issues(c Call) *seen.Record {
	if m := c.Memory(); m != nil {
		return m.Record
	}
	return t.issued
}

// give notes that a call's agent is given a part of a URI under a revision. A part of "" is all of
// it.
func (t *Tools) give(c Call, l *live.Look, part string, revision int64) {
	if m := c.Memory(); m != nil {
		m.Given(l, part)
		return
	}
	t.given.add(l.URI, part, revision, l.Hash)
}

// Respond completes a call about pages of an origin, or of any origin with "", and adds the
// reminder. It does nothing if ctx has ended. The content must have types of package live.
func (t *Tools) Respond(ctx context.Context, c Call, origin string, failed bool, content ...any) {
	if block := t.Remind(ctx, c, origin); block != "" {
		content = append(content, live.AsText(block))
	}
	if ctx.Err() == nil {
		c.Complete(Result(failed, content...))
	}
}

// Result returns the JSON text of MCP's CallToolResult.
func Result(failed bool, content ...any) []byte {
	return []byte(live.Line(struct {
		Content []any `json:"content"`
		IsError bool  `json:"isError,omitempty"`
	}{content, failed}))
}
