package bridge

import (
	"slices"

	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A call is one question to the host, and the requests that its answer completes.
type call struct {
	id       CallID
	kind     callKind
	uri      string          // of a read or a subscription
	entry    *resource.Entry // of a read
	tool     string          // of a tool call, its name
	held     []byte          // of a request that waits for the host: its message
	fresh    bool            // it is one of Engine.fresh
	waits    []*wait
	deadline Time

	ages        *ages // its list
	older, next *call
}

type callKind byte

const (
	callRead callKind = iota
	callTool
	callSubscribe
	callUnsubscribe
	callEvents
	callStream // until the stream begins
	callAwait  // the host is not asked
)

// fits reports whether the contents suit the kind: a non-empty array for a read, a non-empty object for a tool, without
// the members that only the engine writes. It trims white space. The contents may come from a page, so they must be
// valid JSON to go into a message.
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

// A wait is one request that a call answers. A listen that waits for consent has one for each URI, with one id.
type wait struct {
	port     *port
	call     *call
	id       wire.Value
	modern   bool
	skill    bool       // the answer is a page's skill, made from the contents
	opening  *opening   // the listen that waits for consent; nil for other requests
	progress wire.Value // the progressToken of a tool call, or absent
	final    bool       // an EventError has the code of the SEP, not of the sketch
}

// ages lists the calls under way, oldest first. All calls of one list have the same timeout, so the first expires next.
// An ended call leaves immediately: one call that waits for a person would keep ten minutes of later ones listed.
type ages struct{ first, last *call }

func (a *ages) add(c *call) {
	c.ages, c.older = a, a.last
	if a.last != nil {
		a.last.next = c
	} else {
		a.first = c
	}
	a.last = c
}

// remove keeps c.next set: callers may be walking the list.
func (a *ages) remove(c *call) {
	if c.older != nil {
		c.older.next = c.next
	} else {
		a.first = c.next
	}
	if c.next != nil {
		c.next.older = c.older
	} else {
		a.last = c.older
	}
}

// ask makes a call that ends after timeout, and queues its question.
func (e *Engine) ask(kind callKind, list *ages, timeout Time, question op) *call {
	c := e.newCall(kind, list, timeout)
	question.call = c.id
	e.queue.ops = append(e.queue.ops, question)
	return c
}

// newCall makes a call that ends after timeout.
func (e *Engine) newCall(kind callKind, list *ages, timeout Time) *call {
	if e.lastCall++; e.lastCall == 0 {
		e.lastCall++
	}
	c := &call{id: e.lastCall, kind: kind, deadline: e.now + timeout}
	e.calls[c.id] = c
	list.add(c)
	return c
}

// await adds r to the requests that c completes.
func (e *Engine) await(r *request, c *call) *wait {
	w := &wait{port: r.port, call: c, id: append(wire.Value(nil), r.id...), modern: r.modern}
	c.waits = append(c.waits, w)
	r.port.waits = append(r.port.waits, w)
	return w
}

// wait returns the first of the port's waits with an id, or nil.
func (p *port) wait(id wire.Value) *wait {
	for _, w := range p.waits { // few: Limits.Calls, and the waits for consent
		if w.id.Equal(id) {
			return w
		}
	}
	return nil
}

// full returns an error if a port has Limits.Calls waits, not counting its opening streams.
func (e *Engine) full(p *port) *wire.Error {
	waits := len(p.waits)
	if restricts {
		waits -= p.streamsOpening()
	}
	if waits < e.opt.Limits.Calls {
		return nil
	}
	return limited("Too many requests at once", reasonCalls, "maxCalls", e.opt.Limits.Calls)
}

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
		e.finish(c, limited("Result too large", reasonResultSize, "maxBytes", e.opt.Limits.ResultBytes))
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

// expose is the message of a failure: the host's Detail only with Options.ExposeErrors.
func (e *Engine) expose(message string, r Result) string {
	if e.opt.ExposeErrors && r.Detail != "" {
		return r.Detail
	}
	return message
}

// finish ends a call and answers its waiting requests with err. A nil err means that they have their answers.
func (e *Engine) finish(c *call, err *wire.Error) {
	for _, w := range c.waits {
		w.port.waits = remove(w.port.waits, w)
		if err != nil {
			e.fail(w.port, w.id, err)
		}
	}
	c.waits = nil
	e.endCall(c)
}

// leave removes one request from its call, and ends the call if it was the last one.
func (e *Engine) leave(w *wait) {
	w.port.waits = remove(w.port.waits, w)
	w.call.waits = remove(w.call.waits, w)
	if w.opening != nil {
		e.abandon(w.opening)
	}
	if len(w.call.waits) == 0 {
		e.endCall(w.call)
	}
}

func (e *Engine) endCall(c *call) {
	delete(e.calls, c.id)
	c.ages.remove(c)
	e.seal(c)
	if !(restricts && c.kind == callAwait) && (!c.fresh || e.endFresh(c)) {
		e.queue.ops = append(e.queue.ops, op{kind: opEnd, call: c.id})
	}
}

// expire ends the calls that have timed out.
func (e *Engine) expire(list *ages, timeout Time) {
	for c := list.first; c != nil && c.deadline <= e.now; c = list.first {
		err := limited("The page took too long", reasonTimeout, "timeoutMs", int(timeout))
		if c.kind == callSubscribe {
			e.refuseConsent(c, err)
		} else {
			e.finish(c, err)
		}
	}
}
