//go:build !js

package hub

import (
	"regexp"
	"strconv"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
)

// The election. A generation is a number, and a lock of that number (hub-7.lock). The present generation is the highest
// whose lock is a file in the directory; none at all is the first. The hub is who holds that lock. So a generation
// begins when the file of its lock is made, which the kernel lets one process do, and there is nothing in a file that
// could be half written.
//
// A process that hangs holds its lock. Who finds that makes the next: it listens at the number above. Whoever held the
// lock before sees, within generationEvery or when it accepts somebody, that there is a higher one.

var memberShape = regexp.MustCompile(`^hub-([1-9][0-9]{0,17})(\.lock)?$`)

// generationEvery is how often the hub looks whether it still is: one listing of a directory.
const generationEvery = 250 * time.Millisecond

// socketOf names the socket of a generation's hub. Its lock is called the same, with .lock behind it.
func socketOf(generation uint64) string { return "hub-" + strconv.FormatUint(generation, 10) }

// generations lists those of which there is a file, lock or socket, and gives the highest that has a lock; 0 is none.
func generations(dir *userdir.Dir) (all map[uint64]bool, highest uint64, err error) {
	names, err := dir.Names()
	if err != nil {
		return nil, 0, err
	}
	all = map[uint64]bool{}
	for _, name := range names {
		m := memberShape.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		n, _ := strconv.ParseUint(m[1], 10, 64) // it has 18 digits at most
		all[n] = true
		if m[2] != "" {
			highest = max(highest, n)
		}
	}
	return all, highest, nil
}

// present is the generation in which a process takes part that knows of none that has hung below least.
func present(dir *userdir.Dir, least uint64) (uint64, error) {
	_, highest, err := generations(dir)
	return max(highest, least, 1), err
}

// A seat is the hub's place.
type seat struct {
	dir *userdir.Dir
	l   *userdir.Listener
	at  uint64
}

// holds reports whether this process is the hub: no higher generation has begun, and the lock is still there for others
// to respect.
func (s *seat) holds() bool {
	_, highest, err := generations(s.dir)
	if err == nil && highest > s.at {
		return false
	}
	return s.l.Holds()
}

// tidy removes what hubs of older generations have left. Who hangs, and holds its lock, keeps it until it wakes.
func (s *seat) tidy() {
	all, _, err := generations(s.dir)
	if err != nil {
		return
	}
	for n := range all {
		if n >= s.at {
			continue
		}
		lock, err := s.dir.TryLock(socketOf(n) + ".lock")
		if err != nil {
			continue // it is held, or nothing of ours
		}
		_ = s.dir.Remove(socketOf(n)) // there may be none
		_ = lock.Remove()             // the next time, if not now
	}
}
