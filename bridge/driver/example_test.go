package driver_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/driver"
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

// The caller of an engine holds its driver's lock. Unlock makes the driver call the engine in time.
func Example() {
	a := &alarm{rang: make(chan bool)}
	h := driver.New(a, nil)
	h.Lock()
	a.at = h.Now() + 5
	h.Unlock()
	<-a.rang
	fmt.Println("it rang")
	// Output: it rang
}
