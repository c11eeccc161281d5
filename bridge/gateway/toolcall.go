package gateway

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A toolCall is a call of one of our tools or a page's, or a hook's request. Its goroutine has the
// lock, except in those methods of the call that take a context, and of its Turn: there it waits
// without.
type toolCall struct {
	*call
	*calls.Turn
	g     *Gateway
	used  map[*Page]*route // to pages whose contents the answer may have
	older map[string]bool  // URIs of which the agent had an older state when it called

	// Of a page's tool.
	run       *run      // the last one at a page; nil until a page is asked
	since     time.Time // the agent has called
	steps     int       // the last progress
	told      bool      // the page reports progress itself
	last      float64   // the last progress that the agent was told, of ours or the page's
	continued bool      // the tab's next document is to answer
}

// newToolCall returns a call of an agent that is in no goroutine yet.
func (g *Gateway) newToolCall(c *call) *toolCall {
	return &toolCall{call: c, g: g, used: map[*Page]*route{}}
}

// start runs a call of a tool in a goroutine of its own. The call's end withdraws it from the page
// in the same step, so that a page which asks later does not start it. Then the goroutine's context
// has ended.
func (c *toolCall) start(run func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = func() {
		if c.run != nil {
			c.run.end()
		}
		cancel()
	}
	c.g.running.Start((*ticker)(c.g), func(t *calls.Turn) {
		defer cancel()
		c.Turn = t
		run(ctx)
	})
}

// callTool runs one of our own tools or passes the call to its page.
func (g *Gateway) callTool(ctx context.Context, c *toolCall, t bridge.ToolCall) {
	if t.Name == calls.Read {
		c.began = time.Now()
	}
	if g.tools.own.Run(ctx, c, t.Name, t.Arguments) {
		return
	}
	o, ok := g.tools.routes[t.Name]
	if ok {
		c.route = c.agent.pass.To(o.page, o.tool.Hints.Debugging)
	}
	if c.route == nil {
		g.engine.Complete(g.now(), c.id, bridge.Result{Failure: bridge.NotFound})
		return
	}
	g.tools.listing.Called(t.Name)
	if o.page.Life().Left() {
		g.complete(c.call, reply{failure: bridge.ReadFailed, detail: "the page that has this " +
			"tool is gone or is being reloaded"})
		return
	}
	args := o.tool.Names.Arguments(t.Arguments)
	called := &calls.PageTool{Name: t.Name, Own: o.name, Origin: o.page.Origin,
		Epoch: o.page.epoch, Page: &o.page.Page}
	if f := o.tool.Fresh; f != nil {
		called.DependsOn, called.Tells = f.URIs, f.OnStale == "tell"
	}
	c.older = called.OlderFor(c.Memory())
	c.since = time.Now()
	if o.page.repeats(o, args) {
		g.complete(c.call, reply{failure: bridge.ReadFailed, detail: "the tool was not run: the " +
			"same call began earlier, and nobody waited for its result. Its outcome is unknown: " +
			"look at the page. To run the tool once more, call it again"})
		return
	}
	c.Tick(g.opt.progressEvery, c.report)
	var r reply
	if g.tools.own.RunFresh(ctx, c, called, func(unless []calls.Condition) ([]string, bool) {
		r = c.route.Page().callTool(ctx, c, o.name, args, unless)
		return r.stale, r.failure == link.Stale
	}) {
		g.answerTool(ctx, c, o, r)
	}
}

func (c *toolCall) Party() string { return c.agent.client.name }

func (c *toolCall) Memory() *follow.Memory { return c.agent.memory }

func (c *toolCall) Older() map[string]bool { return c.older }

func (c *toolCall) Sees(uri string) bool { return c.agent.pass.Sees(uri) }

func (c *toolCall) Reminds() (told, inline bool) {
	return c.agent.reminders != RemindersOff, c.agent.reminders == RemindersInline
}

func (c *toolCall) Look(ctx context.Context, uris ...string) map[string]*live.Look {
	found := map[string]*live.Look{}
	c.Each(len(uris), func(t *calls.Turn, i int) {
		if l := c.look(ctx, t, uris[i]); l != nil {
			found[uris[i]] = l
		}
	})
	return found
}

func (c *toolCall) look(ctx context.Context, t *calls.Turn, uri string) *live.Look {
	switch {
	case !c.Sees(uri):
		return &live.Look{URI: uri, Why: calls.Unknown}
	case uri == door.FrontURI:
		return c.g.lookAtFront(c.agent)
	}
	l, r := c.g.look(ctx, t, uri, c.agent.pass)
	if l != nil && l.Why == "" {
		c.used[r.Page()] = r
	}
	return l
}

// apart has places for large pieces of work, such as the check of a result: one for each processor
// of a small machine.
var apart = quota.Room{Name: "apart", Places: 2}

// Apart divides the places by origin, and those of an origin by the agent's program.
func (c *toolCall) Apart(ctx context.Context, origin string, work func(ctx context.Context)) {
	life := context.Background()
	if c.route != nil {
		life = c.route.Page().ctx
	}
	works, end := context.WithCancel(life)
	defer end()
	defer context.AfterFunc(ctx, end)()
	c.Without(func() {
		leave, err := c.g.places.Enter(ctx, origin, c.agent.client.name, apart)
		if err == nil {
			defer leave()
			work(works)
		}
	})
}

func (c *toolCall) Progress(done, total int, message string) {
	p := bridge.Progress{Progress: wire.Value(wire.Itoa(done)), Message: message}
	if total > 0 {
		p.Total = wire.Value(wire.Itoa(total))
	}
	c.g.engine.Progress(c.g.now(), c.id, p)
}

// tell passes on a page's progress. MCP's must increase: the page's is counted from what the agent
// was told before it, and what does not increase is told as a thousandth more, for its message.
func (c *toolCall) tell(p bridge.Progress) {
	base := float64(c.steps)
	now, err := strconv.ParseFloat(string(p.Progress), 64)
	if err != nil {
		return // above all numbers that a client can read
	}
	if now += base; now <= c.last && (c.told || c.steps > 0) {
		now = max(c.last+0.001, math.Nextafter(c.last, math.Inf(1)))
	}
	p.Progress = strconv.AppendFloat(nil, now, 'f', -1, 64)
	if total, err := strconv.ParseFloat(string(p.Total), 64); err != nil {
		p.Total = nil
	} else {
		p.Total = strconv.AppendFloat(nil, max(base+total, now), 'f', -1, 64)
	}
	c.told, c.last = true, now
	c.g.engine.Progress(c.g.now(), c.id, p)
}

func (c *toolCall) Holds() bool {
	for _, r := range c.used {
		if !r.Holds() {
			clear(c.used)
			return false
		}
	}
	return true
}

func (c *toolCall) Complete(result []byte) {
	if !c.Holds() {
		result = calls.Result(true, live.AsText(calls.Unknown))
	}
	c.g.engine.Complete(c.g.now(), c.id, bridge.Result{Contents: result, Owner: c.owner()})
}

// listed yields the tab in front, and then the resources and templates that pages list, in order.
func (g *Gateway) listed(yield func(calls.Resource) bool) {
	if g.front.offered && !yield(calls.Resource{URI: door.FrontURI, Title: frontResource.Title,
		Description: frontResource.Description, MIMEType: frontResource.MIMEType}) {
		return
	}
	for _, key := range taburi.Sorted(g.catalog.Keys()) {
		r := g.catalog.Entry(key)
		s := &r.Resource
		if !s.Unlisted &&
			!yield(calls.Resource{URI: key, Title: s.Title, Description: s.Description,
				MIMEType: s.MIMEType, Tab: r.Page.InTab.Number}) {
			return
		}
	}
}

// noticed are the sentences of Notice, sorted by subject. A sentence about tools that the agent
// sees and that are not listed comes first, and one about tabs that offer it nothing last.
func (g *Gateway) noticed(c calls.Call) (sentences []string) {
	left, byOrigin := 0, map[string]int{}
	for page, n := range g.tools.unlisted {
		if c.(*toolCall).agent.pass.To(page, false) != nil {
			left += n
			byOrigin[page.Origin] += n
		}
	}
	if left > 0 {
		most := slices.MaxFunc(slices.Sorted(maps.Keys(byOrigin)),
			func(a, b string) int { return byOrigin[a] - byOrigin[b] })
		sentences = append(sentences, fmt.Sprintf("%d tools of open pages are not listed, since a "+
			"list has places for %d; the most, %d, are of %s. Each can be called by its name with _tabN "+
			"behind it, N being its tab's number. Fewer open tabs make room.", left, maxTools,
			byOrigin[most], most))
	}
	sentences = append(sentences, g.allNotices()...)
	return append(sentences, g.noticeOfTabs(c.(*toolCall).agent))
}
