//go:build !js

package fleet

import (
	"sync"
	"time"
)

const (
	// defaultPace is Options.UserMessages': a page that touches as often as it may says 100 a second to each node that
	// watches it.
	defaultPace = 2_000
	// atOnce is for how many seconds' messages there is room at once.
	atOnce = 5
	// maxPause bounds how long a page is not heard: its connection answers pings in between.
	maxPause = time.Second
)

// A budget is what a user's pages may have a node say on the bus. It begins full.
type budget struct {
	pace int // messages a second

	mu   sync.Mutex
	used float64 // of what there is room for
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
	over := b.used - float64(atOnce*b.pace)
	if over <= 0 {
		return 0
	}
	return min(maxPause, time.Duration(over/float64(b.pace)*float64(time.Second)))
}

// earn is called with the lock held.
func (b *budget) earn(now time.Time) {
	b.used = max(0, b.used-now.Sub(b.at).Seconds()*float64(b.pace))
	b.at = now
}
