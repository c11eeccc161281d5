//go:build !js

package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live/follow"
	"github.com/pagewire/pagewire/bridge/gateway/tools"
	"github.com/pagewire/pagewire/bridge/gateway/tools/own"
)

// agentTools are what agents see as tools: ours, which offer the resources to agents that know only tools, and the
// pages'.
//
// In several tabs of one origin the tab that was focused last has a tool's name, the others have it with _tabN.
type agentTools struct {
	names  *tools.Names
	routes map[string]toolOffer
	own    *own.Tools
	// revisions are of what agents read by tools; port is their session at the engine.
	revisions *follow.Revisions
	port      bridge.PortID
	// changes is how often the engine is told, told how often it was, pending that it will be.
	changes *rate.Limiter
	told    int
	pending bool
}

type toolOffer struct {
	name  string // the page's own
	tool  *mcp.Tool
	page  *Page
	fresh *freshness // nil if it depends on nothing
	shown shownTool
}

// A shownTool is a page's tool as agents are shown it, kept since the list of all tools is made anew for each change of
// one: with 1,000 of 4 KB that takes 23 ms, and 73 ms if each is encoded again (BenchmarkRetool).
type shownTool struct {
	as, at        string // the name and the page's title that it was encoded for
	plain, tabbed []byte // under its plain name, and under that of its tab; nil if its schema is no JSON
}

// decodeTool makes an offer of a tool that a page describes.
func decodeTool(t bridge.Tool) (toolOffer, error) {
	var decoded mcp.Tool
	if err := json.Unmarshal(t.JSON, &decoded); err != nil {
		return toolOffer{}, fmt.Errorf("%s is not described as MCP has it: %w", t.Name, err)
	}
	return toolOffer{name: t.Name, tool: &decoded}, nil
}

// ownTools are all of ours.
var ownTools = append(slices.Clip(own.Described), changesTool)

func (b *agentTools) init(g *Gateway) {
	var ours []string
	for _, t := range ownTools {
		ours = append(ours, t.Name)
	}
	b.names = tools.NewNames(ours...)
	b.changes = rate.NewLimiter(rate.Every(toolsEvery), toolsBurst)
	b.revisions = follow.New((*follower)(g))
	b.own = own.New(own.Options{
		Revisions: b.revisions, Listed: g.listed, Notices: g.noticed,
		Reminders: g.opt.Reminders != RemindersOff, Inline: g.opt.Reminders == RemindersInline,
		ReminderChars: g.opt.ReminderChars, PageChars: g.opt.PageChars,
		ReadTimeout: g.opt.ReadTimeout, ProgressEvery: g.opt.progressEvery,
	})
}

// retool tells the engine what tools there are: at once, unless pages change theirs in a loop. Then it is at most once
// per toolsEvery, since each time costs as much as there are tools.
func (g *Gateway) retool() {
	b := &g.tools
	if b.pending {
		return
	}
	wait := b.changes.Reserve().Delay()
	if wait == 0 {
		g.setTools()
		return
	}
	b.pending = true
	g.after(wait, func() {
		b.pending = false
		if !g.closed {
			g.setTools()
		}
	})
}

const (
	toolsEvery = 200 * time.Millisecond
	toolsBurst = 20 // changes that are told at once, as when a browser with many tabs is attached
)

func (g *Gateway) setTools() {
	b := &g.tools
	b.told++
	pages := slices.SortedFunc(maps.Keys(g.catalog.pages), func(a, c *Page) int {
		return slices.Compare(
			[]int{truth(a.absent), -a.tab.focused, truth(a.Frame != ""), -a.order},
			[]int{truth(c.absent), -c.tab.focused, truth(c.Frame != ""), -c.order})
	})
	b.routes = map[string]toolOffer{}
	var all []bridge.Tool
	offer := func(name string, described []byte, unlisted bool) {
		if described != nil {
			all = append(all, bridge.Tool{Name: name, JSON: described, Unlisted: unlisted})
		}
	}
	for _, t := range ownTools {
		offer(t.Name, text(t, true), false)
	}
	for _, p := range pages {
		title := pageTitle(p)
		for i := range p.published {
			o := &p.published[i]
			o.page = p
			if p.Hub {
				b.learn(*o)
				if !b.names.Ours(o.name) && b.routes[o.name].tool == nil {
					b.routes[o.name] = *o
					offer(o.name, o.shown.plain, false)
				}
				continue
			}
			name := b.names.Of(p.Origin, o.name)
			if name == "" {
				continue
			}
			tabbed := tools.Fit(name, "_tab"+strconv.Itoa(p.tab.number))
			o.show(name, tabbed, title)
			named := b.routes[name].tool == nil
			if named {
				b.routes[name] = *o
				offer(name, o.shown.plain, false)
			}
			// It answers by its tab also while that has the plain name.
			if b.routes[tabbed].tool == nil {
				b.routes[tabbed] = *o
				offer(tabbed, o.shown.tabbed, named)
			}
		}
	}
	if err := g.engine.SetTools(g.now(), all); err != nil {
		g.log.Warn("the pages' tools could not be offered", "error", err)
	}
}

// show sees to it that o.shown is what agents are shown of a page's tool.
func (o *toolOffer) show(name, tabbed, title string) {
	if o.shown.as == name && o.shown.at == title {
		return
	}
	p := o.page
	shown := tools.Claimed(o.tool)
	if shown.Meta = maps.Clone(shown.Meta); shown.Meta == nil {
		shown.Meta = mcp.Meta{}
	}
	delete(shown.Meta, metaTool) // ours to say
	delete(shown.Meta, metaFresh)
	if o.fresh != nil {
		shown.Meta[metaFresh] = freshness{o.fresh.URIs, o.fresh.OnStale, p.segment()}
	}
	shown.Meta[metaOrigin] = p.Origin
	shown.Description += " [tool of the page " + title + " at " + p.Origin + ", tab " + strconv.Itoa(p.tab.number) + "]"
	plain := shown
	plain.Name, plain.Meta = name, maps.Clone(shown.Meta)
	plain.Meta[metaTool] = []any{p.Origin, o.name}
	shown.Name = tabbed
	o.shown = shownTool{as: name, at: title, plain: text(&plain, true), tabbed: text(&shown, true)}
}

// metaTool is the key of a tool's _meta by which one gateway learns of another whose tool it is: the page's origin, and
// what the page calls it.
const metaTool = "pagewire/tool"

// metaOrigin is the key of the origin alone, which is there for all names of a page's tool.
const metaOrigin = "pagewire/origin"

// origin is that of the page that has a tool.
func (o *toolOffer) origin() string {
	if !o.page.Hub {
		return o.page.Origin
	}
	origin, _ := o.tool.Meta[metaOrigin].(string)
	return origin
}

// learn keeps the name that a hub has given to a page's tool, in case that we are the hub after it.
func (b *agentTools) learn(o toolOffer) {
	from, _ := o.tool.Meta[metaTool].([]any)
	if len(from) != 2 {
		return
	}
	origin, _ := from[0].(string)
	tool, _ := from[1].(string)
	b.names.Learn(origin, tool, o.name)
}

// InputSchema returns the JSON Schema of a tool's arguments, by the name that agents know, or nil if no page has it.
func (g *Gateway) InputSchema(name string) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.tools.routes[name]
	if o.tool == nil {
		return nil
	}
	schema, err := json.Marshal(o.tool.InputSchema)
	if err != nil {
		return nil
	}
	return schema
}

// callTool runs one of our own tools or passes the call to its page.
func (g *Gateway) callTool(c *toolCall, t bridge.ToolCall) {
	if t.Name == toolChanges {
		g.changes(c, t.Arguments)
		return
	}
	if t.Name == own.Read {
		c.began = time.Now()
	}
	if g.tools.own.Run(c, t.Name, t.Arguments) {
		return
	}
	o, ok := g.tools.routes[t.Name]
	if !ok || o.page.absent {
		g.engine.Complete(g.now(), c.id, bridge.Result{Failure: bridge.ReadFailed, Detail: "the page that has this " +
			"tool is gone or is being reloaded"})
		return
	}
	c.page = o.page
	args := slices.Clone(t.Arguments)
	if c.agent != nil && c.agent.given != nil {
		g.runFor(c, o, t, args)
		return
	}
	g.olderFor(c, o)
	g.runTool(c, o, args, 1)
}
