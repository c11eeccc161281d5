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
	logged  map[string]time.Time // when a refusal was, by reason
}

// maxReasons bounds how many reasons are told apart, and logPause is the least time between two lines of the log about
// refusals for one of them: clients without a ticket cause as many refusals as they like.
const maxReasons, logPause = 100, 10 * time.Second

// Refuse counts something that was refused, and logs it now and then. Details, as of slog, are those of one that is
// logged.
func (n *Node) Refuse(reason string, details ...any) {
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

// Stats are what a node holds, and what it has done.
type Stats struct {
	// held now; Unlike are nodes of another version of the bus
	Nodes, Unlike, Pages, Users, Readers, Cores, Sessions, Watched, Agents int
	OfferedBytes                                                           int64
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
	s := Stats{Nodes: len(n.peers), Unlike: len(n.unlike), Pages: len(n.pages), Users: len(n.users),
		Readers: len(n.readers), Sessions: len(n.sessions), OfferedBytes: n.offered.Held(),
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
