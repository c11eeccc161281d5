package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/internal/retry"
)

// Options configure a Service.
type Options struct {
	// Node names this run of this node among all nodes.
	Node string
	// Open opens a table of the store.
	Open func(ctx context.Context, name string, age time.Duration) (Store, error)
	// Key encrypts the stored records. It is the same at all nodes.
	Key string
	// Feed returns the events of a user's pages. It waits until the pages are known.
	Feed func(ctx context.Context, user string) (Feed, error)
	// Client has the exceptions from the rules for endpoints.
	Client ClientOptions
	// NoControl leaves out the envelopes "gap" and "terminated".
	NoControl bool
	// Backoff are the pauses before the second and each further attempt, ±20 %. Default 30, 120 and
	// 600 s.
	Backoff []time.Duration
	// Lease is the time for which a node may deliver without renewing its lease in the store. So it
	// is also the time before another node takes over a dead node's users. Default 15 s.
	Lease time.Duration
	// PerPrincipal bounds the subscriptions of one principal, and PerNode those of the fleet for
	// each live node. Default 100 and 10,000. InFlight bounds the requests of this node to
	// endpoints. Default 64.
	PerPrincipal, PerNode, InFlight int
	// Log receives the log. Default none.
	Log *slog.Logger
}

// A Feed has the events of a user's pages. Its methods may be called concurrently.
type Feed interface {
	// Follow begins a subscription's events after a cursor, "" for now. maxAge is the request's, -1
	// for none. wake is called when Next may have a note, and must call nothing.
	Follow(sub events.Subscription, cursor string, maxAge time.Duration, wake func()) (Follow,
		*bridge.EventError)
	Close()
}

// A Follow has the events of a subscription. Events that wait for Next are merged.
type Follow interface {
	Next() (n events.Note, ok bool)
	Close()
}

// Service delivers webhooks. Its methods may be called concurrently.
type Service struct {
	o      Options
	box    box
	client *Client
	ctx    context.Context // until Close
	cancel context.CancelFunc
	runs   sync.WaitGroup
	wakes  wakes
	kick   chan struct{} // asks for settle
	moves  chan struct{} // has room for maxMoves
	places quota.Places  // of requests to endpoints

	// Guards the rest, and all users and their deliveries; not held in calls of the store.
	mu sync.Mutex

	// subs and owners are nil until the store is reached, and then do not change. known is the
	// number of them that have been read to the end: until it is 2, users and nodes lack some.
	subs, owners Store
	known        int
	watches      map[Store]context.CancelFunc // begins a table's watch anew
	unread       bool                         // a record could not be decrypted

	// users have records, a holder, or both. nodes are those with a lease in the store.
	users map[string]*user
	nodes map[string]lease
	// This node may deliver until Options.Lease after renewed, the time just before it last renewed
	// its lease. heard is when the watch last brought that lease.
	renewed, heard time.Time
	closing        bool // no user is acquired any more

	pending  map[string]int // subscriptions on their way into the store, by principal; none is 0
	limiters map[string]*rate.Limiter
	stats    Stats
}

// A user is a user with subscriptions to events of its pages. The Service's lock guards it.
type user struct {
	name string // does not change
	// By key; those that are owed nothing stay until settle, or until their delivery ends.
	records map[string]held
	// holder is the node that has claimed the user, "" for none. at is the revision of that in the
	// store: it only grows.
	holder string
	at     uint64

	// state is changed by settle to moving, and from there by acquire or drop, which run alone
	// then.
	state ownership
	again time.Time // the next attempt to claim it, or to give it back

	// set by acquire, and valid until drop: feed is nil while state is free
	feed       Feed
	ctx        context.Context // of attempts; ends before drop
	cancel     context.CancelFunc
	attempts   sync.WaitGroup       // drop waits for them
	deliveries map[string]*delivery // by key, of owed records; empty while state is free
}

type held struct {
	*record
	at uint64 // revision
}

type ownership int

const (
	free   ownership = iota // this node does not deliver for the user
	moving                  // it acquires or drops the user
	mine                    // it delivers
)

// A lease is the last value of a node's lease in the store, and the time when it came.
type lease struct {
	value string
	seen  time.Time
}

// A delivery is this node's work for one subscription. The Service's lock guards it; the fields up
// to follow do not change, except renewed.
type delivery struct {
	user    *user
	key     string
	host    string
	of      string    // its subscriber
	url     string    // and its URL
	to      *address  // shared by all deliveries with the same of and url
	renewed time.Time // the last refresh
	follow  Follow    // closed once ended is true; nil of a revoked record

	// The first item of queue is the next to post; attempt alone removes it. At most one attempt is
	// under way, and none while the delivery waits for a retry, has ended, or is suspended.
	queue  []item
	busy   bool        // an attempt is under way, or waits for a place
	waits  bool        // it waits for a retry, and timer is set
	timer  *time.Timer // of a retry
	failed int         // failed attempts since the last success
	ended  bool        // stays true
	woken  bool        // it is in wakes; guarded by wakes.mu

	dirty     bool // the fields below are to be stored
	cursor    string
	delivered time.Time
	category  string
	failing   time.Time
}

// An address is one subscriber's URL for events of one user. If nearly all attempts of a window
// fail, it is suspended: until one of its subscriptions is renewed only "terminated" is sent there,
// and changes are merged.
type address struct {
	began            time.Time // of the window
	attempts, failed int
	suspended        bool
}

// An address is suspended after minAttempts or more in a window, if at least 95 % of them have
// failed.
const (
	window      = time.Hour
	minAttempts = 100
)

func (a *address) count(now time.Time, failed bool) bool {
	if now.Sub(a.began) > window {
		*a = address{began: now, suspended: a.suspended}
	}
	if a.attempts++; failed {
		a.failed++
	}
	before := a.suspended
	a.suspended = before || a.attempts >= minAttempts && a.failed*20 >= a.attempts*19
	return a.suspended && !before
}

// An item is one POST.
type item struct {
	id, subject, cursor string
	body                []byte
	control             bool // an envelope: it is tried once
	attempts            int
}

// wakes are deliveries that may have events. They have their own lock: a gateway holds its lock
// when it calls add.
type wakes struct {
	mu     sync.Mutex    // taken last: nothing is called with it
	list   []*delivery   // each once
	signal chan struct{} // has a place, which is full after add
}

func (w *wakes) add(d *delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !d.woken {
		d.woken = true
		w.list = append(w.list, d)
	}
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

func (w *wakes) drain() (list []*delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, w.list = w.list, nil
	for _, d := range list {
		d.woken = false
	}
	return list
}

// storeTimeout bounds one step with the store.
const storeTimeout = 5 * time.Second

// pause waits for the time of a lease, divided by parts. It returns false after Close.
func (s *Service) pause(parts int) bool {
	retry.Sleep(s.ctx, s.o.Lease/time.Duration(parts))
	return s.ctx.Err() == nil
}

// userOf is called with the lock held.
func (s *Service) userOf(name string) *user {
	u := s.users[name]
	if u == nil {
		u = &user{name: name, records: map[string]held{}, deliveries: map[string]*delivery{}}
		s.users[name] = u
	}
	return u
}

// leased reports whether this node may deliver. The lock is held.
func (s *Service) leased(now time.Time) bool { return now.Sub(s.renewed) < s.o.Lease }

func (s *Service) wantSettle() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Stats are the current state of a Service, and counts since New in the fields whose metrics end in
// _total. The tags are as in node.Stats.
type Stats struct {
	Subscriptions int   `metric:"subscriptions" help:"Live subscriptions of the fleet."`
	Copies        int   `metric:"copies" help:"Nodes that keep the fleet's subscriptions: 3 outlive the loss of one."`
	Users         int   `metric:"users" help:"Users for whom this node delivers."`
	InFlight      int   `metric:"in_flight" help:"Deliveries that are under way."`
	Waiting       int   `metric:"waiting" help:"Deliveries that wait for room."`
	Suspended     int   `metric:"suspended" help:"Endpoints that fail all the time, and are sent nothing until a renewal."`
	Delivered     int64 `metric:"delivered_total" help:"Events that an endpoint took."`
	GivenUp       int64 `metric:"given_up_total" help:"Events that were given up after all tries."`
	Dropped       int64 `metric:"dropped_total" help:"Events that an endpoint answered with 410 or 413."`
	Refused       int64 `metric:"refused_total" help:"Subscriptions that a limit has refused."`
	Unverified    int64 `metric:"unverified_total" help:"Endpoints that have not answered the challenge."`
	// Failed are failed attempts by category.
	Failed map[string]int64 `metric:"failed_total" help:"Tries that failed, by reason."`
}
