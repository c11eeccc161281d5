package node

import (
	"slices"
	"strconv"
)

// A finding is a URI that an agent asked for here in vain, and that has appeared since.
type finding struct {
	user, uri string
	number    uint64
	said      int
}

// saidFound is the number of times that a finding is sent, once an interval, because messages may get lost. A gateway
// remembers the last maxFindings, so that it notifies its agents of each once.
const saidFound, maxFindings = 3, 64

// addFound sends nodes with agents of the user a URI that has appeared here. An agent may have learned of the page at
// such a node before it asked here; that node notifies it again.
func (n *Node) addFound(user, uri string) {
	n.mu.Lock()
	n.finds++
	f := finding{user: user, uri: uri, number: n.finds, said: 1}
	n.found = append(n.found, f)
	n.mu.Unlock()
	n.say(f)
}

func (n *Node) say(f finding) {
	n.publish(n.subject("user", f.user), []byte(kindFound+" "+n.id+" "+strconv.FormatUint(f.number, 10)+" "+f.user+"\n"),
		[]byte(f.uri))
}

func (n *Node) sayFound() {
	n.mu.Lock()
	var again []finding
	kept := n.found[:0]
	for _, f := range n.found {
		if f.said++; f.said < saidFound {
			kept = append(kept, f)
		}
		again = append(again, f)
	}
	clear(n.found[len(kept):])
	n.found = kept
	n.mu.Unlock()
	for _, f := range again {
		n.say(f)
	}
}

// hasFound takes another node's finding: agents here that watch the URI are notified.
func (n *Node) hasFound(m *message) {
	n.eachReader(m.word(1), len(m.body)+1, func(r *Reader) {
		if which := m.from + " " + m.word(0); !slices.Contains(r.findings[:], which) {
			r.findings[r.found%len(r.findings)] = which
			r.found++
			r.Gateway.Touch(string(m.body))
		}
	})
}
