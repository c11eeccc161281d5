package bridge

import (
	"slices"

	"github.com/pagewire/pagewire/bridge/wire"
)

// Complete answers a question of the engine. An answer to a call that has ended is ignored.
func (e *Engine) Complete(now Time, id CallID, r Result) {
	e.enter(now)
	defer e.drain()
	c := e.calls[id]
	if c == nil {
		return
	}
	if r.Contents != nil {
		r.Size = len(r.Contents)
	}
	if c.kind == callSubscribe || c.kind == callUnsubscribe {
		e.consent(c, r)
		return
	}
	if restricts && (c.kind == callEvents || c.kind == callStream) {
		e.answerEvents(c, r)
		return
	}
	if restricts && r.Owner != (Owner{}) {
		if e.withhold(c, r.Owner); e.calls[id] == nil {
			return
		}
	}
	if r.Failure == "" && r.Size <= e.opt.Limits.ResultBytes && !c.kind.fits(&r) {
		r.Failure = InvalidContents
	}
	switch {
	case r.Failure == NotFound && c.kind == callRead:
		e.vanish(c)
	case r.Failure == NotFound && c.kind == callTool:
		e.finish(c, unknownTool(c.tool))
	case r.Failure != "":
		message := "Read failed: the console of its page has the cause"
		if c.kind == callTool {
			message = "Tool call failed"
		}
		e.finish(c, readError(string(r.Failure), e.expose(message, r)))
	case r.Size > e.opt.Limits.ResultBytes:
		limit := e.opt.Limits.ResultBytes
		e.finish(c, limited("Result too large", reasonResultSize, "maxBytes", limit))
	default:
		for _, w := range c.waits {
			if c.kind == callTool {
				e.answerTool(w, r)
			} else {
				e.answerRead(w, r)
			}
		}
		e.finish(c, nil)
	}
}

// fits reports whether the contents suit the kind: a non-empty array for a read, a non-empty object
// for a tool, without the members that only the engine writes. It trims white space. The contents
// may come from a page, so they must be valid JSON to go into a message.
func (k callKind) fits(r *Result) bool {
	if r.Contents == nil || r.Sound {
		return r.Size > 2
	}
	kind := wire.Array
	if k == callTool {
		kind = wire.Object
	}
	v, err := wire.Parse(r.Contents, maxDepth)
	r.Contents = v
	return err == nil && v.Kind() == kind && !v.Empty() && (k != callTool ||
		v.Get("resultType").Kind() == wire.Absent && v.Get("_meta").Kind() == wire.Absent)
}

// Withhold ends the requests of a read or a tool call whose ports do not see an owner any more. The
// host calls it when its answer to Permits has changed for the page that is asked.
func (e *Engine) Withhold(now Time, id CallID, of Owner) {
	e.enter(now)
	defer e.drain()
	if c := e.calls[id]; c != nil && (c.kind == callRead || c.kind == callTool) {
		e.withhold(c, of)
	}
}

// withhold ends the requests whose ports do not see the owner of their call's answer any more, as
// requests for what does not exist.
func (e *Engine) withhold(c *call, of Owner) {
	for _, w := range slices.Clone(c.waits) {
		if !w.port.hidesOwner(of) {
			continue
		}
		why := unknownTool(c.tool)
		if c.kind == callRead {
			why = notFound(w.modern, c.uri)
		}
		e.fail(w.port, w.id, why)
		e.leave(w)
	}
}

// Progress passes on a tool's progress. It does nothing if the agent did not ask for progress, or
// if the port is not writable: only the result matters.
func (e *Engine) Progress(now Time, id CallID, p Progress) {
	e.enter(now)
	defer e.drain()
	c := e.calls[id]
	if c == nil || c.kind != callTool {
		return
	}
	for _, w := range c.waits {
		if len(w.progress) == 0 || !w.port.writable {
			continue
		}
		text := e.begin().Notification(wire.Progress).Raw(`{"progressToken":`).Bytes(w.progress)
		e.send(w.port, text.Raw(`,`).Bytes(p.Members()).Raw(`}}`))
	}
}

// Wake reports that the host has a notification for a stream: the engine calls NextEvent as soon as
// the port accepts more. It ignores a stream that has ended.
func (e *Engine) Wake(now Time, id CallID) {
	e.enter(now)
	if s := e.streams[id]; s != nil {
		s.waiting = true
		e.pull(s)
	}
	e.drain()
}

// Terminate ends a stream from the server's side: the agent gets the reason and then the result. It
// ignores a stream that has ended.
func (e *Engine) Terminate(now Time, id CallID, why *EventError) {
	e.enter(now)
	if s := e.streams[id]; s != nil {
		e.note(s, wire.EventsTerminated, s.errorMembers(why))
		e.completeStream(s)
		e.endStream(s)
	}
	e.drain()
}
