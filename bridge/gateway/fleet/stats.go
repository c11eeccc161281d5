//go:build !js

package fleet

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// counts are what a node has done since Open.
type counts struct {
	said, unsaid, heard, gaps, lost, pauses, has atomic.Int64

	mu      sync.Mutex
	refused map[string]int64
}

// maxReasons bounds how many reasons are told apart.
const maxReasons = 100

func (c *counts) refuse(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		c.refused = map[string]int64{}
	}
	if c.refused[reason] == 0 && len(c.refused) >= maxReasons {
		reason = "others"
	}
	c.refused[reason]++
}

// Stats are what a node holds, and what it has done.
type Stats struct {
	// held now
	Nodes, Pages, Users, Readers, Cores, Sessions, Watched, Agents int
	OfferedBytes                                                   int64
	// WaitingBytes are what agents, and their users' gateways, have not taken yet.
	WaitingBytes int64
	// BusLatency is how long the last beat took on the bus and back.
	BusLatency time.Duration
	// since Open: messages said, those that the bus did not take, and heard; touches in those said
	Said, Unsaid, Heard, Touches int64
	// since Open: sessions that something was lost of, messages that were dropped
	Gaps, Lost int64
	// since Open: how often a page was not heard for a while, because its user's pages said too much; and how many
	// words there were about which pages other nodes have
	Pauses, Has int64
	// what was refused, by reason
	Refused map[string]int64
}

// Stats returns them.
func (n *Node) Stats() Stats {
	n.mu.Lock()
	s := Stats{Nodes: len(n.peers), Pages: len(n.pages), Users: len(n.users), Readers: len(n.readers),
		Sessions: len(n.sessions), OfferedBytes: n.offered.Held(),
		WaitingBytes: n.o.Gateway.Pool.Waiting() + n.waiting.Held(), BusLatency: n.latency}
	watched := map[*Page]bool{}
	for _, cores := range n.cores {
		s.Cores += len(cores)
		for _, f := range cores {
			watched[f.page] = true
		}
	}
	readers := values(n.readers)
	n.mu.Unlock()
	for _, r := range readers {
		s.Agents += r.Gateway.Agents()
	}
	for p := range watched {
		p.mu.Lock()
		s.Watched += p.relay.Watched()
		p.mu.Unlock()
	}
	c := &n.counts
	s.Said, s.Unsaid, s.Heard, s.Touches = c.said.Load(), c.unsaid.Load(), c.heard.Load(), n.relay.Touches.Load()
	s.Gaps, s.Lost, s.Pauses, s.Has = c.gaps.Load(), c.lost.Load(), c.pauses.Load(), c.has.Load()
	c.mu.Lock()
	s.Refused = maps.Clone(c.refused)
	c.mu.Unlock()
	return s
}

// Refuse counts something that was refused outside of this package.
func (n *Node) Refuse(reason string) { n.counts.refuse(reason) }
