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

// A Call is a call of a tool at the gateway. It calls back with the gateway's lock held.
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
	// Look reads a URI at its page, and counts its changes from then on. It calls done once, unless end is called
	// first. The caller must call end.
	Look(uri string, done func(*live.Look)) (end func())
	// After calls f after d, unless stop is called first.
	After(d time.Duration, f func()) (stop func())
	// Apart runs work on what an origin gave, without the lock and when it is that origin's turn. ctx ends with the call,
	// and with the page that it calls. Then it calls work's result with the lock, unless the call has ended.
	Apart(origin string, work func(ctx context.Context) (then func()))
	// OnEnd makes the call run f at its end, completed or not.
	OnEnd(f func())
	// Progress reports the call's progress to the agent. A total of 0 is unknown.
	Progress(done, total int, message string)
	// Complete answers with the JSON text of MCP's CallToolResult.
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
	Revisions *follow.Revisions
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
	// waiters look again when a revision changes.
	waiters map[*waiting]bool
	// issued has the revisions that agents without a memory were given, and given has their gifts.
	issued *seen.Record
	given  given
}

// New returns Tools without calls.
func New(o Options) *Tools {
	return &Tools{Options: o, waiters: map[*waiting]bool{}, issued: seen.New(seen.Limits{})}
}

// Run runs the tool with a name. It returns false if there is no such tool.
func (t *Tools) Run(c Call, name string, args []byte) bool {
	switch name {
	case List:
		t.list(c, args)
	case Read:
		t.read(c, args)
	case Wait:
		t.wait(c, args)
	default:
		return false
	}
	return true
}

// Changed makes the waiting calls look again.
func (t *Tools) Changed() {
	for w := range t.waiters {
		w.look()
	}
}

// Revoked ends the calls that wait only for URIs of a kind, and see none of them any more.
func (t *Tools) Revoked(kind func(uri string) bool) {
	for w := range t.waiters {
		if !slices.ContainsFunc(w.uris, func(uri string) bool { return !kind(uri) || w.c.Sees(uri) }) {
			w.stop()
			t.fail(w.c, w.uris[0]+": "+Gone)
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
func (t *Tools) fail(c Call, why string) { t.Respond(c, "", true, live.AsText(why)) }

// Respond completes a call about pages of an origin, or of any origin with "", and adds the reminder. The content must
// have types of package live.
func (t *Tools) Respond(c Call, origin string, failed bool, content ...any) {
	t.Remind(c, origin, func(block string) {
		if block != "" {
			content = append(content, live.AsText(block))
		}
		c.Complete(Result(failed, content...))
	})
}

// Result returns the JSON text of MCP's CallToolResult.
func Result(failed bool, content ...any) []byte {
	return []byte(live.Line(struct {
		Content []any `json:"content"`
		IsError bool  `json:"isError,omitempty"`
	}{content, failed}))
}

func (t *Tools) list(c Call, args []byte) {
	contains, tab := "", int64(0)
	if err := Decode(List, args, map[string]any{"contains": &contains, "tab": &tab}); err != nil {
		t.fail(c, err.Error())
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
	t.Respond(c, "", false, live.AsJSON(out))
}
