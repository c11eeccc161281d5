package gateway

import (
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live/follow"
)

// follower is the Gateway as its agents' revisions see it. Its methods run with the lock held.
type follower Gateway

var _ follow.Source = (*follower)(nil)

// Watch asks the page that answers for the URI first: after its answer no change is missed.
func (f *follower) Watch(uri string, then func(why string)) {
	g := (*Gateway)(f)
	if err := g.engine.Watch(g.now(), uri); err != nil {
		then(err.Error())
		return
	}
	g.whenFollowed(uri, func() { then("") })
}

func (f *follower) Unwatch(uri string) { f.engine.Unwatch((*Gateway)(f).now(), uri) }

// Changed has the calls that wait for a change look again.
func (f *follower) Changed() { f.tools.own.Changed() }

// State is the page's last report on a URI since it is watched, including the answer to watched.
func (f *follower) State(uri string) (epoch string, count int64) {
	if p, own := (*Gateway)(f).lookup(uri); p != nil {
		if w := p.watches[own]; w != nil && w.active {
			return p.epoch, w.revision
		}
	}
	return "", 0
}

func (f *follower) Now() time.Time { return f.opt.wallClock() }
