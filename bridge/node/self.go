package node

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/node/bus"
)

// A self is what all parts of a node know of it, and how they speak to other nodes. Open sets all
// fields before it starts another goroutine, and they do not change; those that count guard
// themselves. It has no lock, so it may be used under each of the package's locks.
type self struct {
	o       Options
	id      string // names this run of the process on the bus
	began   time.Time
	ran     atomic.Int64 // the time in which its process has run since
	bus     *bus.Bus
	counts  counts
	stop    chan struct{}  // closed by Close, when all pages and readers have ended
	running sync.WaitGroup // goroutines that may still send messages

	// drops is for tests: it reports whether to lose a message.
	drops atomic.Pointer[func(subject string, text []byte) bool]
}

// ID is the node's name on the bus.
func (n *self) ID() string { return n.id }

// now is the clock of links, in milliseconds since the node began.
func (n *self) now() bridge.Time { return bridge.Time(time.Since(n.began).Milliseconds()) }

// isNew reports whether this node may not know all nodes yet: each sends a beat once an interval.
func (n *self) isNew() bool { return !n.o.Bus.Alone() && !n.since(0, 2) }

// runs notes that some time has passed. A pause in which the node could hear nobody, as on a machine
// that was suspended or is very busy, counts as one interval at most.
func (n *self) runs(passed time.Duration) {
	n.ran.Add(int64(min(passed, 2*lookPause, n.o.Interval)))
}

// since reports whether more than some intervals have passed since ran was as given.
func (n *self) since(ran int64, intervals int64) bool {
	return n.ran.Load()-ran > intervals*int64(n.o.Interval)
}

// deadAfter is the number of silent intervals after which a node counts as dead.
const deadAfter = 3

// subject returns a subject that only nodes of this version use.
func (n *self) subject(words ...string) string {
	return n.o.Space + "." + version + "." + strings.Join(words, ".")
}

// publish sends a message. The receiver notices a loss.
func (n *self) publish(subject string, pieces ...[]byte) {
	if drops := n.drops.Load(); drops != nil && (*drops)(subject, slices.Concat(pieces...)) {
		return
	}
	if n.bus.Publish(subject, pieces...) == nil {
		n.counts.said.Add(1)
	} else {
		n.counts.unsaid.Add(1)
	}
}

func (n *self) sendTo(node string, pieces ...[]byte) {
	n.publish(n.subject("node", node), pieces...)
}

// sendToAll sends a message to nodes of all versions. Its words begin with this version and node.
func (n *self) sendToAll(kind string, words ...string) {
	n.publish(n.o.Space+".nodes", line(kind, append([]string{version, n.id}, words...)...))
}

// askFor asks which pages of users other nodes have.
func (n *self) askFor(subject string, users []string) {
	if len(users) > 0 {
		n.publish(subject, line(kindAsk, n.id), []byte(strings.Join(users, "\n")))
	}
}

// counts are the events at a node since Open.
type counts struct {
	said, unsaid, heard, gaps, lost, pauses, has atomic.Int64

	mu      sync.Mutex           // guards both maps, which have the same keys
	refused map[string]int64     // by reason: maxReasons and "others"
	logged  map[string]time.Time // time of the last logged refusal
}

// maxReasons bounds the reasons that are counted separately. logPause is the least time between two
// lines of the log about one of them: clients without a ticket can cause any number of refusals.
const maxReasons, logPause = 100, 10 * time.Second

// Refuse counts a refusal, and logs it at most every 10 s for each reason. details are attributes
// for slog.
func (n *self) Refuse(reason string, details ...any) {
	c := &n.counts
	c.mu.Lock()
	if c.refused[reason] == 0 && len(c.refused) >= maxReasons {
		reason = "others"
	}
	c.refused[reason]++
	count, quiet := c.refused[reason], time.Since(c.logged[reason]) < logPause
	if !quiet {
		c.logged[reason] = time.Now()
	}
	c.mu.Unlock()
	if !quiet {
		n.o.Log.Info("refused", append([]any{"reason", reason, "so far", count}, details...)...)
	}
}
