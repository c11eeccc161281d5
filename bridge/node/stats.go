package node

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// counts are the events at a node since Open.
type counts struct {
	said, unsaid, heard, gaps, lost, pauses, has atomic.Int64

	mu      sync.Mutex
	refused map[string]int64
	logged  map[string]time.Time // time of the last logged refusal, by reason
}

// maxReasons bounds the reasons that are counted separately. logPause is the least time between two lines of the log
// about one of them: clients without a ticket can cause any number of refusals.
const maxReasons, logPause = 100, 10 * time.Second

// Refuse counts a refusal, and logs it at most every 10 s for each reason. details are attributes for slog.
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

// Stats are the current state of a node, and counts since Open in the fields whose metrics end in _total. The tags are
// each metric's name and help.
type Stats struct {
	BusLatency   time.Duration `metric:"bus_latency_seconds" help:"Time of the last beat on the bus and back."`
	Nodes        int           `metric:"nodes" help:"Nodes that this one hears, itself among them."`
	Unlike       int           `metric:"nodes_of_other_version" help:"Nodes that speak another version of the bus."`
	Pages        int           `metric:"pages" help:"Pages that are connected."`
	Users        int           `metric:"users_with_pages" help:"Users that have pages here."`
	Agents       int           `metric:"agents" help:"Sessions and listens of agents."`
	Readers      int           `metric:"users_with_agents" help:"Users that have agents here."`
	Cores        int           `metric:"cores" help:"Agents' ends of pages here."`
	Sessions     int           `metric:"sessions" help:"Pages' ends of agents here."`
	Watched      int           `metric:"watched" help:"URIs of pages here that are watched."`
	OfferedBytes int64         `metric:"offered_bytes" help:"Bytes that are held for pages."`
	WaitingBytes int64         `metric:"waiting_bytes" help:"Bytes that wait for agents that do not read."`
	Said         int64         `metric:"messages_said_total" help:"Messages that the bus took."`
	Unsaid       int64         `metric:"messages_unsaid_total" help:"Messages that the bus did not take."`
	Heard        int64         `metric:"messages_heard_total" help:"Messages from the bus."`
	Touches      int64         `metric:"touches_total" help:"Changes in messages that the bus took."`
	Has          int64         `metric:"announcements_total" help:"Words about which pages other nodes have."`
	Gaps         int64         `metric:"gaps_total" help:"Sessions of which something was lost, and which began anew."`
	Lost         int64         `metric:"lost_total" help:"How often messages were dropped, since this node did not take them."`
	Pauses       int64         `metric:"pauses_total" help:"How often a page had to wait, since its user's pages said too much."`
	// Refused counts the refusals by reason.
	Refused map[string]int64 `metric:"refused_total" help:"What was refused, by reason."`
}

// Stats returns the node's Stats.
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
	readers := slices.Collect(maps.Values(n.readers))
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
