package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/node/bus"
)

// maxQueue bounds the events that wait while an endpoint fails. Further ones stay at the gateway,
// which merges them.
const maxQueue = 256

// reconcile begins, renews or ends the delivery of a record. The lock is held, and the user's state
// is mine.
func (s *Service) reconcile(u *user, key string) {
	r, d := u.records[key], u.deliveries[key]
	owed := r.owed(time.Now())
	if d != nil && (!owed || r.Ended != (d.follow == nil)) {
		s.stop(d)
		delete(u.deliveries, key)
		d = nil
	}
	switch {
	case owed && d == nil:
		s.start(u, key, r.record)
	case owed && !r.Renewed.Equal(d.renewed): // it was renewed
		d.renewed, *d.to = r.Renewed, address{}
		for _, d := range u.deliveries {
			s.wakes.add(d)
		}
	}
}

// start begins a delivery at the record's cursor. That of a revoked record has one envelope. The
// lock is held.
func (s *Service) start(u *user, key string, r *record) {
	sub, refused := events.Parse(r.Name, []byte(r.Arguments))
	to, err := url.Parse(r.URL)
	if refused != nil || err != nil { // it was stored by a node of another version
		s.stats.Failed["subscription"]++
		return
	}
	d := &delivery{user: u, key: key, host: hostOf(to), of: r.Principal, url: r.URL, to: &address{},
		renewed: r.Renewed, cursor: r.Cursor, delivered: r.Delivered, category: r.Failed,
		failing: r.Failing}
	for _, other := range u.deliveries {
		if other.of == d.of && other.url == d.url {
			d.to = other.to
		}
	}
	if r.Ended {
		d.queue = []item{envelope("terminated", "", map[string]any{"error": map[string]any{
			"code": bridge.EventForbidden.Code(false), "message": "Forbidden: the subscription " +
				"was revoked", "data": map[string]any{}}})}
	} else if d.follow, refused = u.feed.Follow(sub, r.Cursor, -1, func() {
		s.wakes.add(d)
	}); refused != nil {
		s.stats.Failed["subscription"]++
		return
	}
	u.deliveries[key] = d
	s.wakes.add(d)
}

// stop ends a delivery. An attempt that is under way ends by itself. The lock is held.
func (s *Service) stop(d *delivery) {
	if d.ended = true; d.timer != nil {
		d.timer.Stop()
	}
	if d.follow != nil {
		d.follow.Close()
	}
}

func (s *Service) runWakes() {
	for {
		select {
		case <-s.wakes.signal:
		case <-s.ctx.Done():
			return
		}
		for _, d := range s.wakes.drain() {
			s.mu.Lock()
			s.pump(d)
			s.mu.Unlock()
		}
	}
}

// pump begins the next attempt of a delivery, if an item waits. The lock is held.
func (s *Service) pump(d *delivery) {
	if d.ended || d.busy || d.waits || d.to.suspended && d.follow != nil {
		return
	}
	if s.fill(d); len(d.queue) == 0 {
		return
	}
	d.busy = true
	ctx := d.user.ctx
	d.user.attempts.Go(func() {
		leave, err := s.enter(ctx, d.of, d.host)
		if err != nil {
			return // another node delivers for the user
		}
		again := s.attempt(ctx, d)
		if leave(); again {
			s.wakes.add(d)
		}
	})
}

// fill takes the next event, and up to maxQueue while an endpoint fails: a newer one replaces one
// about its subject.
func (s *Service) fill(d *delivery) {
	for d.follow != nil && (len(d.queue) == 0 || d.failed > 0 && len(d.queue) < maxQueue) {
		n, ok := d.follow.Next()
		if !ok {
			return
		}
		switch n.Kind {
		case events.Active:
			if n.Truncated {
				d.gap(s, len(d.queue), n.Cursor)
			}
		case events.Event:
			o := n.Occurrence
			d.queue = slices.DeleteFunc(d.queue, func(i item) bool {
				return !i.control && i.subject == o.Subject
			})
			i := item{id: o.ID, subject: o.Subject, cursor: o.Cursor, body: o.AppendTo(nil, true)}
			if len(i.body) > maxBody {
				s.stats.Dropped++
				d.gap(s, len(d.queue), o.Cursor)
				continue
			}
			d.queue = append(d.queue, i)
		case events.Failed:
			s.stats.Failed["events"]++
		}
	}
}

func (d *delivery) gap(s *Service, at int, cursor string) {
	if !s.o.NoControl {
		d.queue = slices.Insert(d.queue, at,
			envelope("gap", cursor, map[string]any{"cursor": orNull(cursor)}))
	}
}

func envelope(kind, cursor string, members map[string]any) item {
	members["type"] = kind
	body, err := json.Marshal(members)
	if err != nil { // not possible: the members encode
		panic(err)
	}
	return item{id: "msg_" + kind + "_" + rand.Text(), cursor: cursor, body: body, control: true}
}

// enter waits for a place for a request to a host, which leave gives back. Subscribers have shares
// of all places and of a host's: those with slow endpoints hold up only themselves.
func (s *Service) enter(ctx context.Context, principal, host string) (leave func(), err error) {
	return s.places.Enter(ctx, principal, host, s.all(), quota.Room{Name: host, Places: perHost})
}

func (s *Service) all() quota.Room { return quota.Room{Places: s.o.InFlight} }

// attempt posts the first item. It returns false if the delivery waits for settle, or for the next
// lease.
func (s *Service) attempt(ctx context.Context, d *delivery) (again bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { d.busy = false }()
	if d.ended || !s.leased(now) { // once it has ended, its record may have gone
		return false
	}
	r := d.user.records[d.key]
	if !r.owed(now) {
		s.wantSettle()
		return false
	}
	i := d.queue[0]
	to, secrets, ends := r.URL, r.signedBy(now), s.renewed.Add(s.o.Lease)
	s.mu.Unlock()
	ctx, cancel := context.WithDeadline(ctx, ends)
	defer cancel()
	status, _, failed := s.client.post(ctx, to, idOf(d.key), i.id, i.body, secrets)
	s.mu.Lock()
	if failed == "" || ctx.Err() == nil && !d.ended {
		if d.to.count(time.Now(), failed != "") {
			s.o.Log.Warn("an endpoint fails all the time: nothing is sent there until its "+
				"subscription is renewed",
				"subscription", idOf(d.key), "reason", failed)
		}
		s.attempted(d, status, failed)
	}
	return true
}

// attempted takes the result of the attempt with the first item. The lock is held.
func (s *Service) attempted(d *delivery, status int, failed string) {
	i := &d.queue[0]
	i.attempts++
	now := time.Now()
	switch {
	case failed == "":
		if !i.control {
			s.stats.Delivered++
		}
		d.failed, d.delivered, d.category, d.failing = 0, now, "", time.Time{}
		d.done()
		return
	case i.control:
		d.done()
		return
	}
	s.stats.Failed[failed]++
	if d.category = failed; d.failing.IsZero() {
		d.failing = now
		s.o.Log.Info("an endpoint fails", "subscription", idOf(d.key), "reason", failed)
	}
	d.dirty = true
	if status == http.StatusGone || status == http.StatusRequestEntityTooLarge {
		s.stats.Dropped++
		d.done()
		return
	}
	d.failed++
	if i.attempts > len(s.o.Backoff) {
		s.stats.GivenUp++
		cursor := i.cursor
		if !s.o.NoControl {
			i.cursor = "" // it is stored when the gap was told
		}
		d.done()
		d.gap(s, 0, cursor)
	}
	s.retry(d)
}

func (d *delivery) done() {
	if d.queue[0].cursor != "" {
		d.cursor = d.queue[0].cursor
	}
	d.dirty = true
	d.queue = slices.Delete(d.queue, 0, 1)
}

// retry pauses the delivery, the longer the more attempts have failed. The lock is held.
func (s *Service) retry(d *delivery) {
	d.waits = true
	wait := s.o.Backoff[min(d.failed, len(s.o.Backoff))-1]
	wait = time.Duration(float64(wait) * (0.8 + 0.4*mathrand.Float64()))
	d.timer = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		d.waits = false
		s.pump(d)
	})
}

func (s *Service) runFlush() {
	for s.pause(15) {
		s.mu.Lock()
		var dirty []*delivery
		for _, u := range s.users {
			for _, d := range u.deliveries {
				if d.dirty {
					dirty = append(dirty, d)
				}
			}
		}
		s.mu.Unlock()
		for _, d := range dirty {
			s.flush(d)
		}
	}
}

func (s *Service) flush(d *delivery) {
	s.mu.Lock()
	if !d.dirty || s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	d.dirty = false
	cursor, delivered, category, failing := d.cursor, d.delivered, d.category, d.failing
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Lease/3)
	defer cancel()
	_, err := s.change(ctx, d.key, func(r *record) *record {
		if r == nil || r.Ended != (d.follow == nil) {
			return nil
		}
		if r.Ended { // its endpoint was told
			r.Secrets = nil
		}
		r.Cursor, r.Delivered, r.Failed, r.Failing = cursor, delivered, category, failing
		return r
	})
	if err != nil {
		s.mu.Lock()
		d.dirty = true
		s.mu.Unlock()
	}
}

// errNoStore says that no store has been reached yet.
var errNoStore = errors.New("the store is not there")

// change changes a subscription in the store and in this node, and returns the result. edit gets
// nil if there is no record that this node can decrypt, and returns nil to keep what is there.
func (s *Service) change(ctx context.Context, key string,
	edit func(old *record) *record) (now *record, err error) {
	s.mu.Lock()
	store := s.subs
	s.mu.Unlock()
	if store == nil {
		return nil, errNoStore
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	revision, err := store.Change(ctx, key, func(value []byte) ([]byte, error) {
		old := s.box.open(key, value)
		if now = edit(old); now == nil {
			now = old
			return nil, bus.ErrKeep
		}
		return s.box.seal(now)
	})
	if err == nil && now != nil {
		s.setRecord(key, now, revision)
	}
	return now, err
}

// setRecord stores a record, unless a later revision is known.
func (s *Service) setRecord(key string, r *record, revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.userOf(r.User)
	if old, ok := u.records[key]; ok && old.at > revision {
		return
	}
	u.records[key] = held{r, revision}
	if u.state == mine {
		s.reconcile(u, key)
	} else {
		s.wantSettle()
	}
}
