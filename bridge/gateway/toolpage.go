package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/gate"
)

// A ToolRunner runs the tools of a page that has no page layer.
type ToolRunner interface {
	// RunTool runs a tool with the JSON text of an object. It must not block, nor call the Gateway.
	// It calls started when the page reacts, which starts the tool unless cancel was called, and
	// then done once, later, with the JSON text of what the tool gives, unless cancel is called
	// before. gone says that the page went away before the result came.
	RunTool(name string, args []byte, started func(), done func(result []byte, gone bool)) (
		cancel func())
	// Report shows a sentence on the page's console. It must not block, nor call the Gateway.
	Report(sentence string)
	// Look looks for the page layer, because a page of this origin has connected in another way,
	// maybe this one. It must not block, nor call the Gateway.
	Look()
}

// AttachTools takes on a page that has tools and no page layer. The caller sets them with SetTools.
// It fails with ErrDenied or ErrClosed.
func (g *Gateway) AttachTools(info PageInfo, runner ToolRunner) (*Page, error) {
	return g.attach(info, func(p *Page) {
		p.runner = runner
		g.arrived(p)
	})
}

// SetTools replaces the tools of a page that AttachTools has attached.
func (p *Page) SetTools(tools []bridge.Tool) error {
	for i := range tools {
		typed(&tools[i])
	}
	defer p.g.lock()()
	return p.setTools(tools)
}

// A run is a call of a page's tool. Once it has ended, the page does not start the tool: a page
// that got the call late asks first, and one whose link has ended drops it.
type run struct {
	page    *Page
	name    string // the page's own
	args    []byte
	tells   bool      // the page says when it starts a tool
	began   bool      // it has said so
	reacted time.Time // when the page was asked, or has last asked whether to start
	over    bool      // there is an answer, or nobody waits
	answer  reply     // once it is over, unless nobody waits
	wake    func()    // makes who waits look
	stop    func()    // withdraws the call from the page; nil once that is done
}

// finish takes a reply, unless there was one.
func (r *run) finish(answer reply) {
	if !r.over {
		r.over, r.answer = true, answer
		r.wake()
	}
}

// starts notes that the page starts the tool, and so reacts.
func (r *run) starts() {
	r.began = true
	r.page.setStill(false)
}

// end withdraws the call from the page. If there is no answer, it notes that the call may have
// begun.
func (r *run) end() {
	if r.stop == nil {
		return
	}
	r.stop()
	r.stop = nil
	p := r.page
	// A page layer that says what it starts keeps such calls itself.
	left := !r.over && (!r.tells || r.began && p.link == nil) && r.name != toolArrived
	if r.over = true; left {
		if len(p.left) >= maxLeft {
			clear(p.left)
		}
		p.left[callKey(r.name, r.args)] = time.Now()
	}
}

// callTool makes a page run a tool, and returns its answer: none if ctx has ended before. The
// page's progress goes to the agent. If one of the conditions has changed, the tool does not run
// and the reply's failure is link.Stale.
func (p *Page) callTool(ctx context.Context, c *toolCall, name string, args []byte,
	unless []calls.Condition) reply {
	r := &run{page: p, name: name, args: args, tells: p.link == nil || p.link.peer.Starts(),
		reacted: time.Now(), wake: c.Wake}
	if c.run = r; p.link != nil {
		r.stop = p.link.callTool(c, r, name, args, unless)
	} else {
		r.stop = p.runner.RunTool(name, args, p.g.locked(r.starts), func(text []byte, gone bool) {
			result, err := gate.ToolResult(text, p.owns)
			if err != nil {
				result = gate.Texts(true, "The tool has run, and its result is no JSON.")
			}
			defer p.g.lock()()
			p.tell("the result of the tool "+name, result.Faults)
			r.finish(reply{result: result, gone: gone})
		})
	}
	c.Until(ctx, func() bool { return r.over })
	r.end()
	return r.answer
}

const (
	// maxLeft bounds a page's calls that were left, and leftFor is how long they count.
	maxLeft, leftFor = 1000, 10 * time.Minute
)

// callKey is the same for calls with the same arguments.
func callKey(name string, args []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(name+"\x00"), args...))
}

// repeats reports whether a call is the same as one that may have begun, and that nobody waited
// for: an agent that tries again must not cause a second effect unknowingly. The next such call is
// not.
func (p *Page) repeats(o toolOffer, args []byte) bool {
	if len(p.left) == 0 || o.tool.ReadOnly {
		return false
	}
	key := callKey(o.name, args)
	at, ok := p.left[key]
	delete(p.left, key)
	return ok && time.Since(at) < leftFor
}

// setStill notes whether a page stands still: in an alert, a busy script, a frozen tab.
func (p *Page) setStill(still bool) {
	if p.still != still {
		p.still = still
		p.g.retool()
	}
}

// report gives an agent progress, for as long as it waits, and returns the time until the next one.
// It notes that a page stands still if that does not start a call for a while, and then ends the
// call.
func (c *toolCall) report() (next time.Duration) {
	g, message := c.g, "waiting for the page"
	r := c.run
	waits := r != nil && r.tells && !r.over
	switch {
	case c.continued:
		message = "waiting for the next page"
	case !waits:
	case r.began:
		message = "the tool runs"
	case time.Since(r.reacted) < g.opt.ReadTimeout:
		message = "the page has not started the tool yet"
		if time.Since(r.reacted) >= 2*g.opt.progressEvery {
			r.page.setStill(true)
		}
	default:
		r.finish(reply{failure: bridge.ReadFailed, detail: fmt.Sprintf("the tool has not "+
			"begun, and will not: its page has not reacted for %v. A dialog, a breakpoint or "+
			"a busy script may hold it up, or its tab is frozen. Look at the tab, or ask the "+
			"user, and then call the tool again", g.opt.ReadTimeout)})
		return 0
	}
	if !c.told {
		c.steps = max(c.steps+1, int(time.Since(c.since).Seconds()))
		c.last = float64(c.steps)
		c.Progress(c.steps, 0, message)
	}
	if next = g.opt.progressEvery; waits && !r.began {
		next = min(next, max(1, time.Until(r.reacted.Add(g.opt.ReadTimeout))))
	}
	return next
}
