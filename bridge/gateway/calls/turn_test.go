package calls_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
)

// Calls begin one after the other, in order. While one waits, the others and the starter go on.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s calls.Starter
		var lock sync.Mutex
		var said []string
		var first *calls.Turn
		open := false
		lock.Lock()
		s.Start(&lock, func(turn *calls.Turn) {
			first = turn
			said = append(said, "the first begins")
			turn.Until(t.Context(), func() bool { return open })
			said = append(said, "the first ends")
		})
		said = append(said, "the starter goes on")
		s.Start(&lock, func(*calls.Turn) { said = append(said, "the second runs") })
		first.Wake()
		lock.Unlock()
		synctest.Wait() // a Wake without a reason changes nothing
		lock.Lock()
		open = true
		first.Wake()
		lock.Unlock()
		s.Wait()
		want := []string{"the first begins", "the starter goes on", "the second runs", "the first ends"}
		if !slices.Equal(said, want) {
			t.Errorf("it goes %q, want %q", said, want)
		}
	})
}

// A wait ends with its context, and ticks until then. A tick that returns 0 is the last one.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock sync.Mutex
		turn := calls.Begin(&lock)
		defer turn.End()
		began, ticks := time.Now(), 0
		turn.Tick(time.Second, func() time.Duration {
			if ticks++; ticks == 3 {
				return 0
			}
			return 2 * time.Second
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if turn.Until(ctx, func() bool { return ticks == 2 }); time.Since(began) != 3*time.Second {
			t.Errorf("the second tick is after %v", time.Since(began))
		}
		if turn.Until(ctx, func() bool { return false }) || ticks != 3 || time.Since(began) != time.Minute {
			t.Errorf("%d ticks, and the wait ends after %v", ticks, time.Since(began))
		}
		if _, ok := calls.Await(ctx, turn, func(func(int)) {}); ok {
			t.Error("what never calls back has given something")
		}
		if v, ok := calls.Await(ctx, turn, func(done func(int)) { done(7) }); !ok || v != 7 {
			t.Errorf("it gives %d, %t", v, ok)
		}
	})
}

// Several pieces wait at the same time, and each has the lock while it runs.
func TestEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock sync.Mutex
		turn := calls.Begin(&lock)
		defer turn.End()
		for _, n := range []int{0, 1, 5} {
			began, done := time.Now(), 0
			turn.Each(n, func(one *calls.Turn, _ int) {
				one.Without(func() { time.Sleep(time.Second) })
				done++
			})
			if took := time.Since(began); done != n || took > time.Second {
				t.Errorf("%d of %d are done, in %v", done, n, took)
			}
		}
	})
}
