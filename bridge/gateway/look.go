//go:build !js

package gateway

import (
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// look reads a URI at its page. Changes of it are counted from then on. done is called once, with the lock held, unless
// end is called before.
func (g *Gateway) look(uri string, done func(*live.Look)) (end func()) {
	ended := false
	stop := func() {}
	finish := func(l *live.Look) {
		if ended {
			return
		}
		ended = true
		stop()
		l.URI = uri
		done(l)
	}
	// The engine waits for tools longer than for reads.
	late := time.AfterFunc(g.opt.ReadTimeout, func() {
		g.mu.Lock()
		defer g.unlock()
		finish(&live.Look{Why: "its page has not answered for " + g.opt.ReadTimeout.String()})
	})
	stop = func() { late.Stop() }
	g.tools.revisions.Track([]string{uri}, func(failed map[string]string) {
		if ended {
			return
		}
		if why := failed[uri]; why != "" {
			finish(&live.Look{Why: why})
			return
		}
		revision := g.tools.revisions.Revision(uri) // before the read: a change during it is news
		asked, err := g.engine.Resolve(uri)
		r := g.catalog.routes[asked.Key]
		switch {
		case err != nil || r == nil:
			finish(&live.Look{Why: "no open page offers this resource now"})
		case r.page.absent:
			finish(&live.Look{Why: "its page is being reloaded; try again"})
		default:
			g.counts.reads++
			var over func()
			answered := false
			stop = func() {
				late.Stop()
				if over != nil {
					over()
				}
			}
			over = r.page.src.read(r.own(asked.Key), r.own(asked.URI), asked.Params, func(answer reply) {
				answered = true
				finish(g.lookAt(uri, revision, r.page, answer))
			})
			if answered { // at once: then stop has not known over
				over()
			}
		}
	})
	return func() {
		if !ended {
			ended = true
			stop()
		}
	}
}

// lookAt takes what a page has answered. Contents that are different from those of the same revision are a change that
// the page has not told.
func (g *Gateway) lookAt(uri string, revision int64, p *Page, r reply) *live.Look {
	if r.failure != "" {
		why := r.detail
		if why == "" {
			why = "the page could not be read"
		}
		return &live.Look{Why: why}
	}
	l := live.DecodeContents(uri, r.contents)
	if l.Why != "" {
		return l
	}
	l.Epoch, l.Count = p.epoch, r.revision
	l.Revision = g.tools.revisions.Found(uri, revision, l.Hash)
	return l
}
