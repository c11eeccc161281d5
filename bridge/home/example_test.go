//go:build !js

package home_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/home"
)

// An alarm is an engine that wants to be called once.
type alarm struct {
	at   bridge.Time
	rang chan bool
}

func (a *alarm) Tick(now bridge.Time) {
	if a.at > 0 && now >= a.at {
		a.at = 0
		close(a.rang)
	}
}

func (a *alarm) Deadline() (bridge.Time, bool) { return a.at, a.at > 0 }

// Whoever calls an engine holds its home's lock. With Unlock the home sees to it that the engine is called in time.
func Example() {
	a := &alarm{rang: make(chan bool)}
	h := home.New(a, nil)
	h.Lock()
	a.at = h.Now() + 5
	h.Unlock()
	<-a.rang
	fmt.Println("it rang")
	// Output: it rang
}
