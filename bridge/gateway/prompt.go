package gateway

import (
	"context"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A conversation that this gateway does not know may be new, or one that goes on in another process
// or after a daemon's end. Pages may have changed since its model saw them. So its first prompt
// names what the open pages offer.

const (
	// A conversation's agent is kept for conversationFor after its last use, and at most
	// maxConversations are kept. They end with the gateway.
	conversationFor  = 12 * time.Hour
	maxConversations = 64
	// conversationBytes bounds the texts in one such agent's record, which has only told contents.
	conversationBytes = 1 << 20
)

// A conversation is an agent without a session, known only by its program's name for the
// conversation.
type conversation struct {
	agent *Agent
	used  time.Time
}

// Changes returns the changes since a conversation without an agent was last told, in the form of a
// reminder; "" if nothing has changed. It takes at most 250 ms, and waits only for pages whose
// contents were chosen. It fails with ErrClosed or with ctx's error.
func (g *Gateway) Changes(ctx context.Context, q calls.Ask) (string, error) {
	return g.changesOf(ctx, q, func() *Agent { return g.asking(q.Session, time.Now()) })
}

// Changes is Gateway.Changes for this agent, whose conversation is q.Session.
func (a *Agent) Changes(ctx context.Context, q calls.Ask) (string, error) {
	return a.g.changesOf(ctx, q, func() *Agent { return a })
}

// changesOf answers for the agent that find returns. find is called with the lock held.
func (g *Gateway) changesOf(ctx context.Context, q calls.Ask, find func() *Agent) (string, error) {
	g.awaitLooks(ctx)
	t := calls.Begin((*ticker)(g))
	defer t.End()
	if g.closed {
		return "", ErrClosed
	}
	c := g.newToolCall(&call{agent: find()})
	if c.Turn = t; c.agent == nil || c.Memory() == nil {
		return "", nil
	}
	if text := g.tools.own.AnswerHook(ctx, c, q); text != "" {
		return text, nil
	}
	return "", ctx.Err()
}

// Unknown lists the URIs in uris with changes that the agent has not been told of, of those that it
// sees. From now on they count as told. As with Changes, later changes are counted from then on,
// even if uris is empty.
func (a *Agent) Unknown(uris []string) (unknown []string) {
	defer a.g.lock()()
	if a.g.closed || a.memory == nil {
		return uris
	}
	return a.g.tools.own.Untold(a.g.newToolCall(&call{agent: a}), uris)
}

// asking is the agent of a conversation. An unknown one begins here. If there are too many, the new
// one replaces the least recently used. While no agent is connected there is none: nobody knows what
// its own may see.
func (g *Gateway) asking(session string, now time.Time) *Agent {
	if len(g.agents) == 0 {
		return nil
	}
	c := g.conversations[session]
	if c == nil {
		g.endConversations(now)
		memory := g.books.NewMemory(seen.Limits{Bytes: conversationBytes})
		c = &conversation{agent: &Agent{g: g, memory: memory, pass: g.door.Joint(g.passes),
			reminders: g.opt.Reminders}}
		g.remembering++
		g.conversations[session] = c
	}
	c.used = now
	return c.agent
}

// passes are those of all connected agents. A conversation belongs to one of them, so it sees what
// all see.
func (g *Gateway) passes(yield func(*pass) bool) {
	for _, a := range g.agents {
		if !yield(a.pass) {
			return
		}
	}
}

// endConversations makes room for one more conversation.
func (g *Gateway) endConversations(now time.Time) {
	oldest := ""
	end := func(name string) {
		g.forget(g.conversations[name].agent)
		delete(g.conversations, name)
	}
	for name, c := range g.conversations {
		if now.Sub(c.used) > conversationFor {
			end(name)
		} else if oldest == "" || c.used.Before(g.conversations[oldest].used) {
			oldest = name
		}
	}
	if len(g.conversations) >= maxConversations {
		end(oldest)
	}
}
