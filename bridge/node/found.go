package node

import (
	"strconv"
	"sync"
)

// findings are URIs that agents asked for here in vain, and that have appeared since. An agent may
// have learned of the page at another node before it asked here; that node notifies it again.
type findings struct {
	*self

	mu   sync.Mutex // guards the rest
	last uint64     // the number of the last finding; each has its own
	list []finding  // those that are to be sent again
}

type finding struct {
	user, uri string
	number    uint64
	said      int // below saidFound
}

// saidFound is the number of times that a finding is sent, once an interval, because messages may
// get lost. A gateway remembers the last maxFindings, so that it notifies its agents of each once.
const saidFound, maxFindings = 3, 64

// add sends nodes with agents of the user a URI that has appeared here.
func (f *findings) add(user, uri string) {
	f.mu.Lock()
	f.last++
	one := finding{user: user, uri: uri, number: f.last, said: 1}
	f.list = append(f.list, one)
	f.mu.Unlock()
	f.say(one)
}

func (f *findings) say(one finding) {
	f.publish(f.subject("user", one.user),
		line(kindFound, f.id, strconv.FormatUint(one.number, 10), one.user), []byte(one.uri))
}

// repeat sends each finding again.
func (f *findings) repeat() {
	f.mu.Lock()
	again, kept := f.list, []finding(nil)
	for _, one := range again {
		if one.said++; one.said < saidFound {
			kept = append(kept, one)
		}
	}
	f.list = kept
	f.mu.Unlock()
	for _, one := range again {
		f.say(one)
	}
}
