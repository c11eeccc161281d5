package gateway

import (
	"context"
	"maps"
	"slices"
	"time"
)

// An agent that asks before a browser has said which pages are open would take "not known yet" for
// "none". So requests and hooks wait for the first look of each way in, and at a gateway that
// replaces another one for the tabs that its agents knew. The engine bounds the wait
// (bridge.Engine.Await).

// Look says that a way in looks for the pages that are open already. Agents' requests wait until
// seen is called.
func (g *Gateway) Look() (seen func()) {
	defer g.lock()()
	return g.looking()
}

func (g *Gateway) looking() (seen func()) {
	look := new(byte)
	g.looks[look] = true
	g.engine.Await(g.now(), true)
	return g.locked(func() { delete(g.looks, look) })
}

// endLooks lets the requests go on once nothing is awaited. After the engine's time nothing is
// awaited any more: a tab that has not come back by then may have been closed, and the next gateway
// does not wait for it either.
func (g *Gateway) endLooks() {
	if g.engine.Awaits() {
		for _, awaited := range g.looks {
			if awaited {
				return
			}
		}
		if g.awaitsTabs() {
			return
		}
		if g.tools.pending {
			g.setTools()
		}
		g.engine.Await(g.now(), false)
	}
	for look := range g.looks {
		g.looks[look] = false
	}
	g.catalog.StopAwaiting()
}

// awaitsTabs reports whether tabs of the gateway before this one are missing, or tools that their
// pages had there.
func (g *Gateway) awaitsTabs() bool {
	if tabs, awaits := g.catalog.Awaited(); !awaits || tabs > 0 {
		return awaits
	}
	had := map[string]bool{}
	g.tools.names.Given(func(origin, _, _ string) { had[origin] = true })
	for p := range g.pages {
		if had[p.Origin] && !p.settled && !p.Life().Left() {
			return true
		}
	}
	return false
}

// awaitLooks returns when the pages that are open already are known, after the engine's time at
// most, or when ctx has ended.
func (g *Gateway) awaitLooks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, g.opt.awaitTime)
	defer cancel()
	for {
		awaits := false
		if g.locked(func() { awaits = g.engine.Awaits() })(); !awaits || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Proceed answers the agent's requests that wait for a look by what is known now.
func (a *Agent) Proceed() {
	defer a.g.lock()()
	a.g.engine.Proceed(a.g.now(), a.id)
}

// Settled reports whether a page has said all that it offers: after its resources it lists its
// tools, if only none.
func (p *Page) Settled() bool {
	defer p.g.lock()()
	d := p.own.p // the page of its document
	return d.settled || d.Life().Left()
}

// Notice adds a sentence about a fault to each list_page_resources. A call with the same subject
// and "" removes it.
func (g *Gateway) Notice(about, sentence string) {
	defer g.lock()()
	if g.notices[about] = sentence; sentence == "" {
		delete(g.notices, about)
	}
}

// Notice is the sentence of Gateway.Notice about AgentOptions.About, or "". It is not known during
// a look, which may bring or end one.
func (a *Agent) Notice() (sentence string, known bool) {
	defer a.g.lock()()
	return a.g.notices[a.about], !a.g.engine.Awaits()
}

// Notices are the sentences of Notice, sorted by subject.
func (g *Gateway) Notices() (sentences []string) {
	defer g.lock()()
	return g.allNotices()
}

func (g *Gateway) allNotices() (sentences []string) {
	for _, about := range slices.Sorted(maps.Keys(g.notices)) {
		sentences = append(sentences, g.notices[about])
	}
	return sentences
}
