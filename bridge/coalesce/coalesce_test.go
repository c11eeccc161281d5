package coalesce

import (
	"math/rand/v2"
	"testing"
)

const interval = 100

func fixed(string) Time { return interval }

// The leading edge fires at once, the trailing edge when the interval is over, and quiet items cost nothing.
func TestEdges(t *testing.T) {
	var q Queue[string]
	it := &Item[string]{Value: "a"}
	if !q.Touch(1000, it, interval) {
		t.Fatal("the first touch did not fire")
	}
	if _, ok := q.Next(); ok {
		t.Error("a quiet item wants a timer")
	}
	for now := Time(1001); now < 1100; now++ {
		if q.Touch(now, it, interval) {
			t.Fatalf("fired again at %d", now)
		}
		if q.Pop(now, fixed) != nil {
			t.Fatalf("popped at %d", now)
		}
	}
	if at, ok := q.Next(); !ok || at != 1100 || !it.Dirty() {
		t.Fatalf("Next is %d, %v", at, ok)
	}
	if q.Pop(1100, fixed) != it || it.Dirty() {
		t.Fatal("the trailing edge did not fire")
	}
	if q.Touch(1150, it, interval) || !q.Touch(2000, &Item[string]{}, interval) {
		t.Error("the interval does not count from the trailing edge, or another item's does")
	}
	if q.Pop(1300, fixed) != it || q.Pop(1300, fixed) != nil {
		t.Error("a late Pop must fire once")
	}
	if !q.Touch(1400, it, interval) {
		t.Error("a touch behind the interval is a leading edge")
	}
}

func TestRemove(t *testing.T) {
	var q Queue[string]
	it := &Item[string]{}
	q.Remove(it)
	q.Touch(0, it, interval)
	q.Touch(1, it, interval)
	q.Remove(it)
	if _, ok := q.Next(); ok || it.Dirty() {
		t.Error("a removed item is still to come")
	}
	if q.Touch(50, it, interval) {
		t.Error("removal forgot when the item last fired")
	}
}

func TestNoInterval(t *testing.T) {
	var q Queue[string]
	it := &Item[string]{}
	for range 3 {
		if !q.Touch(7, it, -1) {
			t.Fatal("an interval below 0 must fire every time")
		}
	}
}

// Whatever the touches and however late the timers: an item never fires twice within its interval, and its last touch
// is always followed by a firing.
func TestRandomBursts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for burst := range 1000 {
		var q Queue[int]
		items := make([]*Item[int], 1+r.IntN(8))
		touched, fired := make([]Time, len(items)), make([]Time, len(items))
		for i := range items {
			items[i] = &Item[int]{Value: i}
			touched[i], fired[i] = -1, -interval
		}
		now := Time(0)
		fire := func(i int) {
			if now-fired[i] < interval {
				t.Fatalf("burst %d: item %d fired at %d and again at %d", burst, i, fired[i], now)
			}
			fired[i] = now
		}
		every := func(int) Time { return interval }
		for range 200 {
			now += Time(r.IntN(30))
			if r.IntN(4) > 0 {
				i := r.IntN(len(items))
				touched[i] = now
				if q.Touch(now, items[i], interval) {
					fire(i)
				}
			} else {
				for it := q.Pop(now, every); it != nil; it = q.Pop(now, every) {
					fire(it.Value)
				}
			}
			if r.IntN(50) == 0 {
				i := r.IntN(len(items))
				q.Remove(items[i])
				touched[i] = -1
			}
		}
		for at, ok := q.Next(); ok; at, ok = q.Next() {
			now = max(now, at)
			fire(q.Pop(now, every).Value)
		}
		for i := range items {
			if fired[i] < touched[i] {
				t.Fatalf("burst %d: item %d was touched at %d and last fired at %d", burst, i, touched[i], fired[i])
			}
		}
	}
}

// Items that wait fire in the order in which they fall due.
func TestOrder(t *testing.T) {
	var q Queue[int]
	for i := range 100 {
		it := &Item[int]{Value: i}
		at := Time((i * 37) % 100)
		q.Touch(at, it, interval)
		q.Touch(at, it, interval)
	}
	last := Time(-1)
	for {
		at, ok := q.Next()
		if !ok {
			break
		}
		if at < last {
			t.Fatalf("%d after %d", at, last)
		}
		last = at
		if q.Pop(at, func(int) Time { return interval }) == nil {
			t.Fatal("Next said that something is due")
		}
	}
}

func BenchmarkTouch(b *testing.B) {
	b.ReportAllocs()
	var q Queue[int]
	it := &Item[int]{}
	for b.Loop() {
		q.Touch(0, it, interval)
	}
}
