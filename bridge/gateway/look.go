package gateway

import (
	"cmp"
	"context"
	"errors"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// look reads a URI at its page, and counts its changes from then on. done is called once, with the lock held, unless
// end is called before. The caller must call end. done gets the route to the page too, if it was read. The pass is
// asked when the page is known, and again when it has answered.
func (g *Gateway) look(uri string, p *pass, done func(*live.Look, *route)) (end func()) {
	var route *route
	ended := false
	stop := func() {}
	finish := func(l *live.Look) {
		if !ended {
			l.URI = uri
			done(l, route)
		}
	}
	g.tools.revisions.Track([]string{uri}, func(failed map[string]string) {
		revision := g.tools.revisions.Revision(uri) // before the read: a change during the read counts as new
		asked, err := g.engine.Resolve(uri)
		r := g.catalog.Entry(asked.Key)
		route = p.Resolve(uri)
		switch {
		case ended:
		case !p.Sees(uri):
			finish(&live.Look{Why: calls.Unknown})
		case failed[uri] != "":
			finish(&live.Look{Why: failed[uri]})
		case err != nil || r == nil || route == nil:
			g.addMissed(uri)
			finish(&live.Look{Why: "no open page offers this resource now"})
		case r.Page.Life().Left():
			g.addMissed(uri)
			finish(&live.Look{Why: "its page is being reloaded; try again"})
		default:
			g.counts.reads++
			stop = read(route, r, asked, func(answer reply) {
				if answer.gone {
					g.addMissed(uri)
				}
				if !route.Holds() {
					finish(&live.Look{Why: calls.Unknown})
					return
				}
				finish(g.lookAt(uri, revision, pageOf(r.Page), answer))
			})
			if ended { // it was answered at once
				stop()
			}
		}
	})
	return func() {
		ended = true
		stop()
	}
}

// lookAt evaluates a page's answer. Different contents at one revision are a change that the page did not report.
func (g *Gateway) lookAt(uri string, revision int64, p *Page, r reply) *live.Look {
	if r.failure != "" {
		return &live.Look{Why: cmp.Or(r.detail, "the page could not be read, and its console has the cause")}
	}
	l := live.NewLook(uri, r.contents, r.parts)
	l.Epoch, l.Count = p.epoch, r.revision
	l.Revision = g.tools.revisions.Found(uri, revision, l.Hash)
	return l
}

// View reads a URI at its page for a person. Its changes are counted for a while. If Revision then returns another
// number than View did, the URI may read differently.
func (g *Gateway) View(ctx context.Context, uri string) (l *live.Look, revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.opt.ReadTimeout)
	defer cancel()
	found := make(chan *live.Look, 1)
	end := func() {}
	g.locked(func() {
		end = g.look(uri, g.all, func(l *live.Look, _ *route) { found <- l })
		revision = g.tools.revisions.Revision(uri)
	})()
	defer g.locked(end)()
	select {
	case l = <-found:
		if l.Why != "" {
			return nil, revision, errors.New(l.Why)
		}
		return l, l.Revision, nil
	case <-ctx.Done():
		return nil, revision, errors.New("its page has not answered")
	}
}

// Revision is the revision of the last counted change of a URI, or 0.
func (g *Gateway) Revision(uri string) int64 {
	defer g.lock()()
	return g.tools.revisions.Revision(uri)
}

// Hold counts the changes of a URI, which View has read, until release is called.
func (g *Gateway) Hold(uri string) (release func()) {
	defer g.lock()()
	return g.locked(g.tools.revisions.Hold(uri))
}
