package calls

import (
	"context"
	"sync"
	"time"
)

// A Turn is a goroutine's use of the gateway's lock. The goroutine holds the lock, except while it
// is in a method of its Turn: these let go of it, and take it again before they return. Whatever
// was true before such a wait must be asked again after it. A call must first ask whether its
// context has ended, and then do nothing more.
type Turn struct {
	lock  sync.Locker
	woken chan struct{} // has an element after Wake, until Until has looked
	// lent is closed when the goroutine first lets go of a lock that Start has lent to it. It is
	// nil after that, and for a goroutine that has taken the lock itself.
	lent chan struct{}
	// tick is called by Until whenever timer fires. Both are nil without Tick.
	tick  func() (next time.Duration)
	timer *time.Timer
}

// Begin takes the lock. It is released by End.
func Begin(lock sync.Locker) *Turn {
	lock.Lock()
	return holding(lock)
}

func holding(lock sync.Locker) *Turn { return &Turn{lock: lock, woken: make(chan struct{}, 1)} }

// End releases the lock.
func (t *Turn) End() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.letGo()
}

func (t *Turn) letGo() {
	if t.lent == nil {
		t.lock.Unlock()
		return
	}
	close(t.lent)
	t.lent = nil
}

// Without runs f without the lock.
func (t *Turn) Without(f func()) {
	t.letGo()
	defer t.lock.Lock()
	f()
}

// Until waits until done reports true. It asks again after each Wake. It returns false if ctx has
// ended before.
func (t *Turn) Until(ctx context.Context, done func() bool) bool {
	var ticks <-chan time.Time
	if t.timer != nil {
		ticks = t.timer.C
	}
	for !done() {
		if ctx.Err() != nil {
			return false
		}
		ticked := false
		t.Without(func() {
			select {
			case <-t.woken:
			case <-ctx.Done():
			case <-ticks:
				ticked = true
			}
		})
		if ticked && ctx.Err() == nil {
			if next := t.tick(); next > 0 {
				t.timer.Reset(next)
			}
		}
	}
	return true
}

// Wake makes Until ask again. The caller holds the lock.
func (t *Turn) Wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// Tick makes Until call f, with the lock held, after a time, and then again after the time that f
// returns. With 0, f is not called again.
func (t *Turn) Tick(after time.Duration, f func() (next time.Duration)) {
	t.tick, t.timer = f, time.NewTimer(after)
}

// A Waiter is a Turn, or a Call.
type Waiter interface {
	Until(ctx context.Context, done func() bool) bool
	Wake()
}

// Await starts what calls back once with the lock held, at once or later, and waits for that. It
// returns false if ctx has ended before.
func Await[T any](ctx context.Context, w Waiter, start func(done func(T))) (given T, ok bool) {
	start(func(v T) {
		given, ok = v, true
		w.Wake()
	})
	w.Until(ctx, func() bool { return ok })
	return given, ok
}

// Each runs f for each number below n, at the same time if there are several. It returns when all
// have returned.
func (t *Turn) Each(n int, f func(t *Turn, i int)) {
	if n == 1 {
		f(t, 0)
		return
	}
	running := n
	for i := range n {
		go func() {
			one := Begin(t.lock)
			defer one.End()
			f(one, i)
			running--
			t.Wake()
		}()
	}
	t.Until(context.Background(), func() bool { return running == 0 })
}

// A Starter starts calls: a goroutine for each.
type Starter struct{ running sync.WaitGroup }

// Start runs a call. The caller holds the lock, and lends it to the call's goroutine until that
// first waits, or has returned. So calls begin in the order in which they were started, and a page
// gets an agent's calls in the agent's order.
func (s *Starter) Start(lock sync.Locker, run func(*Turn)) {
	t, lent := holding(lock), make(chan struct{})
	t.lent = lent
	s.running.Go(func() {
		defer t.End()
		run(t)
	})
	<-lent
}

// Wait waits until all calls have returned. The caller does not hold the lock.
func (s *Starter) Wait() { s.running.Wait() }
