package link

import "github.com/pagewire/pagewire/bridge"

// A Lateness tells whether a call came late, at the page's end of a link. The clocks of the two
// ends are not set by each other: it keeps by how much ours is ahead at least, and takes a call for
// as old as that allows.
type Lateness struct {
	known     bool
	ahead, at bridge.Time
}

const (
	// lateAfter is the age above which a call is late, in ms.
	lateAfter = 250
	// drift is the part by which two clocks may differ more with time.
	drift = 10_000
)

// Heard notes the core's time theirs, in its answer to what the page's end has sent at sent.
func (l *Lateness) Heard(sent, theirs bridge.Time) { *l = Lateness{true, sent - theirs, sent} }

// Known reports whether the core tells its time, and so takes "started" and "starting".
func (l *Lateness) Known() bool { return l.known }

// Late reports whether a call that the core has sent at its time sent may be late at now. 0 is late
// always.
func (l *Lateness) Late(now, sent bridge.Time) bool {
	age := now - sent - l.ahead + (now-l.at)/drift
	return l.known && (sent == 0 || age > lateAfter || age < -lateAfter/2)
}
