package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/internal/retry"
)

const (
	// verifiedFor is how long a principal needs no new challenge at an endpoint that has answered
	// one.
	verifiedFor = 24 * time.Hour
	// verifications bounds the challenges for one principal, and failures the failed challenges at
	// one host, a minute.
	verifications, failures = 10, 120
	// maxLimiters bounds the number of principals and hosts with such a limiter.
	maxLimiters = 10_000
	// maxMoves bounds the users that a node acquires or drops at the same time.
	maxMoves = 16
)

// New begins to deliver. If the store is not there yet, it goes on trying.
func New(o Options) (*Service, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Backoff == nil {
		o.Backoff = []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute}
	}
	o.Lease = cmp.Or(o.Lease, 15*time.Second)
	o.PerPrincipal, o.PerNode = cmp.Or(o.PerPrincipal, 100), cmp.Or(o.PerNode, 10_000)
	o.InFlight = cmp.Or(o.InFlight, 64)
	b, err := newBox(o.Key)
	if err != nil {
		return nil, err
	}
	if len(o.Client.Allow) > 0 {
		o.Log.Warn("webhooks may go to addresses that are not public", "allow", o.Client.Allow)
	}
	if o.Client.Roots != nil {
		o.Log.Warn("endpoints of webhooks need a certificate of --webhook-ca, and no public one")
	}
	s := &Service{o: o, box: b, client: NewClient(o.Client), kick: make(chan struct{}, 1),
		moves: make(chan struct{}, maxMoves), users: map[string]*user{}, nodes: map[string]lease{},
		pending: map[string]int{}, limiters: map[string]*rate.Limiter{},
		watches: map[Store]context.CancelFunc{}}
	s.wakes.signal = make(chan struct{}, 1)
	s.stats.Failed = map[string]int64{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, run := range []func(){s.runStore, s.runLease, s.runSettle, s.runWakes, s.runFlush} {
		s.runs.Go(run)
	}
	return s, nil
}

// Close ends all deliveries, and gives its users back to the other nodes.
func (s *Service) Close() {
	s.mu.Lock()
	s.closing = true
	owners := s.owners
	s.mu.Unlock()
	s.wantSettle()
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Lease/3)
	defer cancel()
	for owners != nil && !s.idle() && ctx.Err() == nil {
		retry.Sleep(ctx, 10*time.Millisecond)
	}
	if owners != nil {
		// Without this the other nodes would wait for the end of the lease.
		_, _ = owners.Change(ctx, keyNode+s.o.Node, func([]byte) ([]byte, error) {
			return nil, nil
		})
	}
	s.cancel()
	s.runs.Wait()
	s.client.http.CloseIdleConnections()
}

func (s *Service) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.users {
		if u.state != free {
			return false
		}
	}
	return true
}

// A Principal is the subscriber of a request.
type Principal struct {
	// ID is the token's user, and User the user whose pages the request is about.
	ID, User string
	// Until is the end of the token.
	Until time.Time
}

// For returns the handler of a principal's requests.
func (s *Service) For(p Principal) events.Webhooks { return &requests{s, p} }

type requests struct {
	s *Service
	p Principal
}

// each calls do for each live record. The lock is held.
func (s *Service) each(do func(key string, r *record)) {
	now := time.Now()
	for _, u := range s.users {
		for key, r := range u.records {
			if r.live(now) {
				do(key, r.record)
			}
		}
	}
}

// errStore is the answer to a subscriber while the store does not answer.
var errStore = &bridge.EventError{Kind: bridge.EventExhausted,
	Message: "the node's store does not answer: try again later",
	Data:    bridge.Text(`{"limit":"store"}`)}

func invalid(err error) *bridge.EventError {
	return &bridge.EventError{Kind: bridge.EventInvalid, Message: err.Error()}
}

// Subscribe adds a subscription, or refreshes it.
func (q *requests) Subscribe(ctx context.Context, r events.WebhookRequest) ([]byte,
	*bridge.EventError) {
	s, now := q.s, time.Now()
	u, err := parseURL(r.URL)
	if err != nil {
		return nil, invalid(err)
	}
	if r.Mode != "" && r.Mode != "webhook" {
		return nil, invalid(errors.New(`delivery.mode must be "webhook"`))
	}
	secret, ok := ParseSecret(r.Secret)
	if !ok {
		return nil, invalid(fmt.Errorf("delivery.secret must be %s and base64 of %d to %d bytes",
			secretPrefix, minSecret, maxSecret))
	}
	if err := s.client.Check(ctx, u); errors.Is(err, errAddress) {
		return nil, invalid(err)
	}
	wants := &record{Principal: q.p.ID, User: q.p.User, URL: r.URL, Name: r.Name,
		Arguments: r.Arguments,
		Secrets:   []Secret{secret}, Renewed: now, Until: now.Add(granted(r.TTL, now, q.p.Until))}
	done, refused := s.reserve(wants, now)
	if refused != nil {
		return nil, refused
	}
	defer done()
	old, err := s.stored(ctx, wants.key())
	if err != nil {
		return nil, errStore
	}
	if old != nil {
		wants.Verified = old.Verified
	}
	if refused := s.proves(ctx, wants, hostOf(u), secret); refused != nil {
		return nil, refused
	}
	truncated := false
	if old == nil || !old.live(now) {
		if wants.Cursor, truncated, refused = s.begins(ctx, q.p.User, r); refused != nil {
			return nil, refused
		}
	}
	if wants, err = s.grant(ctx, wants, now); err != nil {
		return nil, errStore
	}
	result := map[string]any{"id": wants.id(),
		"refreshBefore": wants.Until.UTC().Format(time.RFC3339),
		"cursor":        orNull(wants.Cursor), "truncated": truncated}
	if old != nil && old.live(now) {
		result["deliveryStatus"] = wants.status()
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, errStore
	}
	return text, nil
}

// granted returns the length of a grant. A wish below 0 is the default, 0 for ever. token is the
// token's end.
func granted(wish time.Duration, now, token time.Time) time.Duration {
	switch {
	case wish < 0:
		wish = defaultGrant
	case wish == 0:
		wish = maxGrant
	}
	return min(max(wish, minGrant), maxGrant, token.Sub(now))
}

func (r *record) status() map[string]any {
	s := map[string]any{"active": true, "lastDeliveryAt": nil, "lastError": orNull(r.Failed)}
	if !r.Delivered.IsZero() {
		s["lastDeliveryAt"] = r.Delivered.UTC().Format(time.RFC3339)
	}
	if !r.Failing.IsZero() {
		s["failedSince"] = r.Failing.UTC().Format(time.RFC3339)
	}
	return s
}

// reserve takes room for a subscription unless it is live: a renewal needs none. The caller calls
// done when the subscription is in the store.
func (s *Service) reserve(wants *record, now time.Time) (done func(), refused *bridge.EventError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known < 2 {
		return nil, errStore
	}
	all, own, live := 0, s.pending[wants.Principal], false
	s.each(func(key string, r *record) {
		live = live || key == wants.key()
		all++
		if r.Principal == wants.Principal {
			own++
		}
	})
	most := s.o.PerNode * len(s.alive(now))
	if most == 0 { // this node has not renewed its lease yet
		return nil, errStore
	}
	if live {
		return func() {}, nil
	}
	if own < s.o.PerPrincipal && all < most {
		s.pending[wants.Principal]++
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.pending[wants.Principal]--; s.pending[wants.Principal] == 0 {
				delete(s.pending, wants.Principal)
			}
		}, nil
	}
	s.stats.Refused++
	if own >= s.o.PerPrincipal {
		most = s.o.PerPrincipal
	}
	return nil, exhausted("subscriptions", most)
}

func exhausted(limit string, most int) *bridge.EventError {
	return &bridge.EventError{Kind: bridge.EventExhausted,
		Message: fmt.Sprintf("the limit of %s is %d", limit, most),
		Data:    bridge.Text(`{"limit":"` + limit + `","max":` + strconv.Itoa(most) + `}`)}
}

// proves challenges an endpoint, unless this principal's last challenge there was answered within
// verifiedFor.
func (s *Service) proves(ctx context.Context, wants *record, host string,
	secret Secret) *bridge.EventError {
	s.mu.Lock()
	s.each(func(_ string, r *record) {
		if r.Principal == wants.Principal && r.URL == wants.URL &&
			r.Verified.After(wants.Verified) {
			wants.Verified = r.Verified
		}
	})
	if time.Since(wants.Verified) < verifiedFor {
		s.mu.Unlock()
		return nil
	}
	may := s.limiter("principal "+wants.Principal, verifications).Allow()
	failing := s.limiter("host "+host, failures)
	left := failing.Tokens()
	s.mu.Unlock()
	switch {
	case !may:
		return exhausted("verifications", verifications)
	case left < 1:
		return exhausted("failed verifications at one host", failures)
	}
	leave, err := s.enter(ctx, wants.Principal, host)
	if err != nil {
		return errStore // nobody waits for the answer
	}
	defer leave()
	if failed := s.client.verify(ctx, wants.URL, wants.id(), secret); failed != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		failing.Allow()
		s.stats.Unverified++
		return &bridge.EventError{Kind: bridge.EventCallback,
			Message: "the endpoint did not answer the challenge",
			Data:    bridge.Text(`{"reason":"` + failed + `"}`)}
	}
	wants.Verified = time.Now()
	return nil
}

// limiter returns the limiter for a principal or host. The lock is held.
func (s *Service) limiter(of string, aMinute int) *rate.Limiter {
	l := s.limiters[of]
	if l == nil {
		if len(s.limiters) >= maxLimiters {
			maps.DeleteFunc(s.limiters, func(_ string, l *rate.Limiter) bool {
				return l.Tokens() >= float64(l.Burst())
			})
		}
		l = rate.NewLimiter(rate.Limit(float64(aMinute)/60), aMinute)
		s.limiters[of] = l
	}
	return l
}

// stored returns a record of the store, nil if there is none that this node can decrypt.
func (s *Service) stored(ctx context.Context, key string) (*record, error) {
	s.mu.Lock()
	store := s.subs
	s.mu.Unlock()
	if store == nil {
		return nil, errNoStore
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	value, err := store.Get(ctx, key)
	return s.box.open(key, value), err
}

func (s *Service) begins(ctx context.Context, user string, r events.WebhookRequest) (cursor string,
	truncated bool,
	refused *bridge.EventError) {
	feed, err := s.o.Feed(ctx, user)
	if err != nil {
		return "", false, errStore
	}
	defer feed.Close()
	woken := make(chan struct{}, 1)
	f, refused := feed.Follow(r.Subscription, r.Cursor, r.MaxAge, func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	if refused != nil {
		return "", false, refused
	}
	defer f.Close()
	for {
		if n, ok := f.Next(); ok && n.Kind == events.Active {
			return n.Cursor, n.Truncated, nil
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return "", false, errStore
		}
	}
}

// grant stores a subscription, or refreshes the one that is stored.
func (s *Service) grant(ctx context.Context, wants *record, now time.Time) (*record, error) {
	return s.change(ctx, wants.key(), func(old *record) *record {
		next := *wants
		if old != nil {
			next.Delivered = old.Delivered
		}
		if old != nil && old.live(now) {
			next.Cursor, next.Failed, next.Failing = old.Cursor, old.Failed, old.Failing
			if before := old.Secrets[0]; !slices.Equal(before, wants.Secrets[0]) {
				next.Secrets, next.Rotated = append(next.Secrets[:1:1], before), now.Add(grace)
			} else {
				next.Secrets, next.Rotated = old.Secrets, old.Rotated
			}
		}
		return &next
	})
}

// Unsubscribe ends a subscription.
func (q *requests) Unsubscribe(ctx context.Context, r events.WebhookRequest) ([]byte,
	*bridge.EventError) {
	was := &record{Principal: q.p.ID, User: q.p.User, URL: r.URL, Name: r.Name,
		Arguments: r.Arguments}
	switch found, err := q.s.endSubscription(ctx, was.key(), false); {
	case err != nil:
		return nil, errStore
	case !found:
		return nil, &bridge.EventError{Kind: bridge.EventNotFound,
			Message: "there is no such subscription",
			Data:    bridge.Text(`{"kind":"subscription"}`)}
	}
	return []byte(`{}`), nil
}

// endSubscription ends a subscription in the store, and deletes its secrets, so that nothing can be
// delivered any more. A revoked one keeps them until its endpoint has got the envelope "terminated".
func (s *Service) endSubscription(ctx context.Context, key string, revoked bool) (found bool,
	err error) {
	set, err := s.change(ctx, key, func(r *record) *record {
		if r == nil || r.Ended {
			return nil
		}
		if r.Ended = true; !revoked || s.o.NoControl {
			r.Secrets = nil
		}
		return r
	})
	return set != nil, err
}

// Revoke ends all subscriptions of a principal and all to a user's pages, and returns their number.
// Their endpoints are notified. It fails if the store does not answer.
func (s *Service) Revoke(ctx context.Context, user string) (count int, err error) {
	s.mu.Lock()
	known := s.known
	var keys []string
	s.each(func(key string, r *record) {
		if r.Principal == user || r.User == user {
			keys = append(keys, key)
		}
	})
	s.mu.Unlock()
	if known < 2 {
		return 0, errors.New("the store is not there yet")
	}
	for _, key := range keys {
		if _, err := s.endSubscription(ctx, key, true); err != nil {
			return count, err
		}
		count++
	}
	s.o.Log.Info("subscriptions were revoked", "count", count)
	return count, nil
}

// Stats returns the Service's Stats.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Failed = maps.Clone(s.stats.Failed)
	st.InFlight, st.Waiting = s.places.Held(s.all())
	for _, u := range s.users {
		if u.state == mine {
			st.Users++
			suspended := map[*address]bool{}
			for _, d := range u.deliveries {
				if d.to.suspended {
					suspended[d.to] = true
				}
			}
			st.Suspended += len(suspended)
		}
	}
	s.each(func(string, *record) { st.Subscriptions++ })
	return st
}
