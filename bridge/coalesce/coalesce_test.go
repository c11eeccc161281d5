package coalesce

import (
	"math/rand/v2"
	"slices"
	"testing"
)

const interval = 100

// strict fires once per interval at the most.
var strict = Pace{Interval: interval}

func fixed(string) Pace { return strict }

// The leading edge fires immediately, the trailing edge when the interval is over, and a quiet item
// needs no timer.
func TestEdges(t *testing.T) {
	var q Queue[string]
	it := &Item[string]{Value: "a"}
	if !q.Touch(1000, it, strict) {
		t.Fatal("the first touch did not fire")
	}
	if _, ok := q.Next(); ok {
		t.Error("a quiet item wants a timer")
	}
	for now := Time(1001); now < 1100; now++ {
		if q.Touch(now, it, strict) {
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
	if q.Touch(1150, it, strict) || !q.Touch(2000, &Item[string]{}, strict) {
		t.Error("the interval does not count from the trailing edge, or another item's does")
	}
	if q.Pop(1300, fixed) != it || q.Pop(1300, fixed) != nil {
		t.Error("a late Pop must fire once")
	}
	if !q.Touch(1400, it, strict) {
		t.Error("a touch behind the interval is a leading edge")
	}
}

func TestRemove(t *testing.T) {
	var q Queue[string]
	it := &Item[string]{}
	q.Remove(it)
	q.Touch(0, it, strict)
	q.Touch(1, it, strict)
	q.Remove(it)
	if _, ok := q.Next(); ok || it.Dirty() {
		t.Error("a removed item is still to come")
	}
	if q.Touch(50, it, strict) {
		t.Error("removal forgot when the item last fired")
	}
}

func TestNoInterval(t *testing.T) {
	var q Queue[string]
	it := &Item[string]{}
	for range 3 {
		if !q.Touch(7, it, Pace{Interval: -1}) {
			t.Fatal("an interval below 0 must fire every time")
		}
	}
}

// A few changes fire immediately, and a stream once per interval; credit comes back with time.
func TestBurst(t *testing.T) {
	var q Queue[string]
	it := &Item[string]{}
	pace := Pace{Interval: interval, Burst: 3}
	var fired []Time
	for now := Time(0); now < 500; now += 10 {
		for q.Pop(now, func(string) Pace { return pace }) != nil {
			fired = append(fired, now)
		}
		if q.Touch(now, it, pace) {
			fired = append(fired, now)
		}
	}
	if want := []Time{0, 10, 20, 100, 200, 300, 400}; !slices.Equal(fired, want) {
		t.Errorf("fired at %v, want %v", fired, want)
	}
	q.Pop(500, func(string) Pace { return pace })
	// After the firing at 500 all credit is spent, and two intervals later there are two again.
	for _, c := range []struct {
		now  Time
		want bool
	}{{700, true}, {701, true}, {702, false}} {
		if got := q.Touch(c.now, it, pace); got != c.want {
			t.Errorf("a touch at %d fires: %v", c.now, got)
		}
	}
	if at, ok := q.Next(); !ok || at != 800 {
		t.Errorf("Next is %d, %v", at, ok)
	}
}

// An item that gets a shorter pace waits for one interval of that pace at most, whether or not it
// was dirty before. A longer pace does not delay what is due already.
func TestShorterPace(t *testing.T) {
	slow, quick := Pace{Interval: 1000 * interval}, Pace{Interval: interval, Burst: 3}
	for _, dirty := range []bool{false, true} {
		var q Queue[string]
		it, other := &Item[string]{}, &Item[string]{}
		q.Touch(0, it, slow)
		q.Touch(0, other, strict)
		q.Touch(0, other, strict)
		if dirty {
			q.Touch(1, it, slow)
		}
		if q.Touch(10, it, quick) || q.Touch(10, it, slow) {
			t.Errorf("dirty before: %v, and it fires at once", dirty)
		}
		if q.Pop(interval, fixed) != other || q.Pop(interval+9, fixed) != nil {
			t.Errorf("dirty before: %v, and it fires too early", dirty)
		}
		if q.Pop(interval+10, fixed) != it {
			t.Errorf("dirty before: %v, and it does not fire after an interval", dirty)
		}
	}
}

// In any span of time an item fires at most Burst times and once more for each interval, and a
// firing always follows its last touch. This holds for random touches and late timers.
func TestRandomBursts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for burst := range 1000 {
		pace := Pace{Interval: interval, Burst: burst % 5}
		var q Queue[int]
		items := make([]*Item[int], 1+r.IntN(8))
		touched, fired := make([]Time, len(items)), make([][]Time, len(items))
		for i := range items {
			items[i] = &Item[int]{Value: i}
			touched[i], fired[i] = -1, []Time{-1}
		}
		now := Time(0)
		fire := func(i int) {
			fired[i] = append(fired[i], now)
			for j, from := range fired[i][1:] {
				if n := len(fired[i][1:]) - j; n > max(pace.Burst, 1)+int(now-from)/interval {
					t.Fatalf("burst %d: item %d fired %d times from %d to %d", burst, i, n, from,
						now)
				}
			}
		}
		every := func(int) Pace { return pace }
		for range 200 {
			now += Time(r.IntN(30))
			if r.IntN(4) > 0 {
				i := r.IntN(len(items))
				touched[i] = now
				if q.Touch(now, items[i], pace) {
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
			if last := fired[i][len(fired[i])-1]; last < touched[i] {
				t.Fatalf("burst %d: item %d was touched at %d and last fired at %d", burst, i,
					touched[i], last)
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
		q.Touch(at, it, strict)
		q.Touch(at, it, strict)
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
		if q.Pop(at, func(int) Pace { return strict }) == nil {
			t.Fatal("Next said that something is due")
		}
	}
}

func BenchmarkTouch(b *testing.B) {
	b.ReportAllocs()
	var q Queue[int]
	it := &Item[int]{}
	for b.Loop() {
		q.Touch(0, it, strict)
	}
}
