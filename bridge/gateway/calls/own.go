package calls

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A Call is a call of a tool at the gateway. Its methods that take a context let go of the gateway's lock while they wait,
// and return early when the context ends. All others are called with the lock held.
type Call interface {
	// Memory is the agent's memory. It is nil if the agent has gone, and for sessions of one request.
	Memory() *follow.Memory
	// Sees reports whether the agent sees a URI or an origin. Others do not exist for it.
	Sees(uri string) bool
	// Reminds reports whether results for the agent end with reminders, of at most ReminderChars, and whether these
	// include contents (inline).
	Reminds() (told, inline bool)
	// Older returns the URIs that had changed since the agent read them when it called a page's tool.
	Older() map[string]bool
	// Look reads URIs at their pages, all at the same time, and counts their changes from then on. It leaves out those
	// that were not answered before ctx has ended.
	Look(ctx context.Context, uris ...string) map[string]*live.Look
	Waiter
	// Tick makes the call run f after a time while it waits, and then again after the time that f returns.
	Tick(after time.Duration, f func() (next time.Duration))
	// Apart runs work on what an origin gave, without the lock and when it is that origin's turn. The context of work
	// ends with ctx, and with the page that the call is to.
	Apart(ctx context.Context, origin string, work func(ctx context.Context))
	// Progress reports the call's progress to the agent. A total of 0 is unknown.
	Progress(done, total int, message string)
	// Complete answers with the JSON text of MCP's CallToolResult. It does nothing if the call has ended.
	Complete(result []byte)
}

// A Resource is a listed resource or, if its URI has a {, a template.
type Resource struct {
	URI         string `json:"uri"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	Tab         int    `json:"-"`
}

// Unknown is the reason why a URI that no page offers cannot be read.
const Unknown = "Resource not found"

// Gone is the reason why an agent waits no more for what its user showed it.
const Gone = "it is not shown to you any more. Only your user can change that: with --shown of pagewire serve, " +
	"or in the popup of the browser's extension"

// ReminderChars is the maximum length of a reminder.
const ReminderChars = 600

// Options configure Tools. All must be set.
type Options struct {
	Revisions *follow.Books
	// Listed yields the resources that pages list, in order. Notices returns sentences for an agent about faults.
	Listed  iter.Seq[Resource]
	Notices func(Call) []string
	// Unseen reports whether pages may be missing because a browser has not said yet which are open.
	Unseen func() bool
	// PageChars bounds a result with its reminder, unless the agent requests another bound.
	PageChars int
	// ReadTimeout bounds a page's time to answer. ProgressEvery is the interval of progress reports.
	ReadTimeout, ProgressEvery time.Duration
}

// Tools are the gateway's own tools. Make them with New.
type Tools struct {
	Options
	// waiting has the calls that wait for a revision to change.
	waiting map[*waiting]bool
	// issued has the revisions that agents without a memory were given, and given has their gifts.
	issued *seen.Record
	given  given
}

// New returns Tools without calls.
func New(o Options) *Tools {
	return &Tools{Options: o, waiting: map[*waiting]bool{}, issued: seen.New(seen.Limits{})}
}

// Run runs the tool with a name until it has answered, or ctx has ended. It returns false if there is no such tool.
func (t *Tools) Run(ctx context.Context, c Call, name string, args []byte) bool {
	switch name {
	case List:
		t.list(ctx, c, args)
	case Read:
		t.read(ctx, c, args)
	case Wait:
		t.wait(ctx, c, args)
	default:
		return false
	}
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
		if !slices.ContainsFunc(w.uris, func(uri string) bool { return !kind(uri) || w.c.Sees(uri) }) {
			w.revoke()
		}
	}
}

// issues returns the record of the revisions that a call's agent was given. Other revisions do not count: they may come
// from an earlier gateway or another machine, or a model may have invented them.
func (t *Tools) issues(c Call) *seen.Record {
	if m := c.Memory(); m != nil {
		return m.Record
	}
	return t.issued
}

// give notes that a call's agent is given a part of a URI under a revision. A part of "" is all of it.
func (t *Tools) give(c Call, l *live.Look, part string, revision int64) {
	if m := c.Memory(); m != nil {
		m.Given(l, part)
		return
	}
	t.given.add(l.URI, part, revision, l.Hash)
}

// fail completes a call with the reason of its failure.
func (t *Tools) fail(ctx context.Context, c Call, why string) {
	t.Respond(ctx, c, "", true, live.AsText(why))
}

// Respond completes a call about pages of an origin, or of any origin with "", and adds the reminder. The content must
// have types of package live.
func (t *Tools) Respond(ctx context.Context, c Call, origin string, failed bool, content ...any) {
	block := t.Remind(ctx, c, origin)
	if ctx.Err() != nil {
		return
	}
	if block != "" {
		content = append(content, live.AsText(block))
	}
	c.Complete(Result(failed, content...))
}

// Result returns the JSON text of MCP's CallToolResult.
func Result(failed bool, content ...any) []byte {
	return []byte(live.Line(struct {
		Content []any `json:"content"`
		IsError bool  `json:"isError,omitempty"`
	}{content, failed}))
}

func (t *Tools) list(ctx context.Context, c Call, args []byte) {
	contains, tab := "", int64(0)
	if err := Decode(List, args, map[string]any{"contains": &contains, "tab": &tab}); err != nil {
		t.fail(ctx, c, err.Error())
		return
	}
	contains = strings.ToLower(contains)
	out := struct {
		Resources []Resource `json:"resources"`
		Templates []Resource `json:"templates,omitempty"`
		Note      string     `json:"note,omitempty"`
	}{Resources: []Resource{}}
	const most = 200
	for r := range t.Listed {
		if !c.Sees(r.URI) || tab != 0 && int64(r.Tab) != tab ||
			!strings.Contains(strings.ToLower(r.URI+"\n"+r.Title+"\n"+r.Description), contains) {
			continue
		}
		if len(out.Resources)+len(out.Templates) == most {
			out.Note = "There are more: narrow the list with contains or tab."
			break
		}
		if strings.Contains(r.URI, "{") {
			out.Templates = append(out.Templates, r)
		} else {
			out.Resources = append(out.Resources, r)
		}
	}
	switch {
	case len(out.Resources)+len(out.Templates) > 0:
	case t.Unseen():
		out.Note = "A browser has not said yet which pages are open: list again in a moment."
	case contains != "" || tab != 0:
		out.Note = "No open page offers a resource that fits."
	default:
		out.Note = "No open page offers a resource: the user can open one in a browser that " +
			"Pagewire sees. pagewire doctor says what is missing."
	}
	for _, notice := range t.Notices(c) {
		out.Note = strings.TrimSpace(out.Note + " " + notice)
	}
	t.Respond(ctx, c, "", false, live.AsJSON(out))
}
