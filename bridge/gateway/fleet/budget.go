//go:build !js

package fleet

import (
	"sync"
	"time"
)

const (
	// What one user's pages have a node say on the bus: so many messages at once, and from then on so many a second. A
	// page that touches as often as it may says 100 a second to each node that watches it.
	budgetAtOnce, budgetPace = 10_000, 2_000
	// maxPause bounds how long a page is not heard: its connection answers pings in between.
	maxPause = time.Second
)

// A budget is what a user's pages may say. The zero value is a full one.
type budget struct {
	mu   sync.Mutex
	used float64 // of budgetAtOnce
	at   time.Time
}

func (b *budget) spend(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn(now)
	b.used++
}

// pause says for how long the user's pages are not to be heard.
func (b *budget) pause(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn(now)
	over := b.used - budgetAtOnce
	if over <= 0 {
		return 0
	}
	return min(maxPause, time.Duration(over/budgetPace*float64(time.Second)))
}

// earn is called with the lock held.
func (b *budget) earn(now time.Time) {
	b.used = max(0, b.used-now.Sub(b.at).Seconds()*budgetPace)
	b.at = now
}
