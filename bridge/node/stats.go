package node

import (
	"maps"
	"slices"
	"time"
)

// Stats are the current state of a node, and counts since Open in the fields whose metrics end in
// _total. The tags are each metric's name and help.
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
	var s Stats
	n.members.mu.Lock()
	s.Nodes, s.Unlike, s.BusLatency = len(n.peers), len(n.unlike), n.latency
	n.members.mu.Unlock()
	n.served.mu.Lock()
	s.Pages, s.Users = len(n.pages), len(n.users)
	n.served.mu.Unlock()
	n.readers.mu.Lock()
	s.Readers = len(n.readers.all)
	readers := slices.Collect(maps.Values(n.readers.all))
	n.readers.mu.Unlock()
	s.OfferedBytes = n.relay.Offered.Held()
	s.WaitingBytes = n.o.Gateway.Pool.Waiting() + n.waiting.Held()
	watched := map[*Page]bool{}
	for _, cores := range n.cores.byNode() {
		s.Cores += len(cores)
		for _, f := range cores {
			watched[f.page] = true
		}
	}
	for _, sessions := range n.sessions.byNode() {
		s.Sessions += len(sessions)
	}
	for _, r := range readers {
		s.Agents += r.Gateway.Agents()
	}
	for p := range watched {
		p.mu.Lock()
		s.Watched += p.relay.Watched()
		p.mu.Unlock()
	}
	c := &n.counts
	s.Said, s.Unsaid, s.Heard = c.said.Load(), c.unsaid.Load(), c.heard.Load()
	s.Touches, s.Has = n.relay.Touches.Load(), c.has.Load()
	s.Gaps, s.Lost, s.Pauses = c.gaps.Load(), c.lost.Load(), c.pauses.Load()
	c.mu.Lock()
	s.Refused = maps.Clone(c.refused)
	c.mu.Unlock()
	return s
}
