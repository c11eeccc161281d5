package gateway

import (
	"cmp"
	"context"
	"errors"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// look reads a URI at its page, and counts its changes from then on. It returns the route to the
// page too, if that was read, and no look if ctx has ended before the page has answered. The pass
// is asked when the page is known, and again when it has answered.
func (g *Gateway) look(ctx context.Context, t *calls.Turn, uri string, p *pass) (*live.Look,
	*route) {
	failed, ok := calls.Await(ctx, t, func(done func(why string)) {
		g.books.Track([]string{uri}, func(_, why string) { done(why) })
	})
	if !ok {
		return nil, nil
	}
	// It is of before the read, so a change during the read counts as new.
	revision := g.books.Revision(uri)
	asked, err := g.engine.Resolve(uri)
	if failed != "" && err == nil { // too many are counted, which keeps nobody from reading
		revision, failed = g.books.Advance(), ""
	}
	r := g.catalog.Entry(asked.Key)
	route := p.Resolve(uri)
	why := ""
	switch {
	case !p.Sees(uri):
		why = calls.Unknown
	case failed != "":
		why = failed
	case err != nil || r == nil || route == nil:
		g.addMissed(uri)
		why = "no open page offers this resource now"
	case r.Page.Life().Left():
		g.addMissed(uri)
		why = "its page is being reloaded; try again"
	}
	if why != "" {
		return &live.Look{URI: uri, Why: why}, nil
	}
	g.counts.reads++
	var end func()
	answer, ok := calls.Await(ctx, t, func(done func(reply)) { end = read(route, r, asked, done) })
	end()
	if !ok {
		return nil, nil
	}
	if answer.gone {
		g.addMissed(uri)
	}
	if !route.Holds() {
		return &live.Look{URI: uri, Why: calls.Unknown}, nil
	}
	return g.lookAt(uri, revision, route.Page(), answer), route
}

// lookAt evaluates a page's answer. Different contents at one revision are a change that the page
// did not report.
func (g *Gateway) lookAt(uri string, revision int64, p *Page, r reply) *live.Look {
	if r.failure != "" {
		return &live.Look{URI: uri,
			Why: cmp.Or(r.detail, "the page could not be read, and its console has the cause")}
	}
	l := live.NewLook(uri, r.contents, r.parts)
	l.Epoch, l.Count = p.epoch, r.revision
	l.Revision = g.books.Found(uri, revision, l.Hash)
	return l
}

// View reads a URI at its page for a person, and counts its changes until release is called, also
// after an error. If Revision then returns another number than View did, the URI may read
// differently.
func (g *Gateway) View(ctx context.Context, uri string) (l *live.Look, revision int64,
	release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, g.opt.ReadTimeout)
	defer cancel()
	t := calls.Begin((*ticker)(g))
	defer t.End()
	g.books.Track([]string{uri}, func(string, string) {})
	// Before the read: the end of an earlier hold must not end the count meanwhile.
	release = g.locked(g.books.Hold(uri))
	revision = g.books.Revision(uri)
	switch l, _ = g.look(ctx, t, uri, g.all); {
	case l == nil:
		return nil, revision, release, errors.New("its page has not answered")
	case l.Why != "":
		return nil, revision, release, errors.New(l.Why)
	}
	return l, l.Revision, release, nil
}

// Revision is the revision of the last counted change of a URI, or 0.
func (g *Gateway) Revision(uri string) int64 {
	defer g.lock()()
	return g.books.Revision(uri)
}
