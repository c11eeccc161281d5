package gateway

import (
	"context"
	"fmt"
	"time"
)

// A program may end, and go on with a conversation in another process, or at another daemon. What its agent has seen and
// was told of is then known by a record, which its hooks find by the program's name for the conversation. It is the
// agent's part of a snapshot (snapshot.go), so it has no contents, and nothing in it is believed that could have a stale
// call run.

// Conversations keep records by the names of conversations, for Changes. Their methods may be called concurrently.
type Conversations interface {
	// Load returns the record that was saved last, or nil. It may be any text.
	Load(name string) []byte
	// Save keeps a record of at most MaxSnapshotBytes.
	Save(name string, record []byte)
}

// resumeFor is how long the first hook of a resumed conversation waits for pages: they take some 100 ms to come to a new
// daemon, and a hook has 900.
const resumeFor = 500 * time.Millisecond

// resume makes the agent that find returns that of a conversation, and gives it what the conversation's record has. It
// returns when the pages have said whether that is current. Several conversations in one process share a record: were one
// forgotten, a stale call of its subagent could run.
func (g *Gateway) resume(ctx context.Context, name string, find func() *Agent) {
	kept := g.opt.Conversations
	if kept == nil || name == "" {
		return
	}
	var a *Agent
	goesOn := false
	g.locked(func() {
		a = find()
		goesOn = g.closed || a == nil || a.memory == nil || a.conversation == name
	})()
	if goesOn {
		return
	}
	a.keep() // of the conversation before
	var s session
	record := kept.Load(name)
	g.locked(func() { a.conversation = name })()
	if record == nil {
		return
	} else if err := s.decode(record); err != nil {
		g.log.Warn("the record of an agent's conversation is ignored", "reason", err)
		return
	}
	g.locked(func() {
		if a.memory != nil {
			a.recall(&s.Agent)
		}
	})()
	ctx, cancel := context.WithTimeout(ctx, resumeFor)
	defer cancel()
	g.await(ctx, func() bool { return a.memory == nil || !a.memory.Awaits() })
}

// keep saves the record of the agent's conversation, if that is known.
func (a *Agent) keep() {
	kept := a.g.opt.Conversations
	if kept == nil {
		return
	}
	var record []byte
	name := ""
	a.g.locked(func() { name, record = a.conversation, a.recorded() })()
	if name != "" {
		kept.Save(name, record)
	}
}

// recorded is the record of the agent's conversation, or that of its end. It is called with the gateway's lock held.
func (a *Agent) recorded() []byte {
	if a.memory == nil || a.conversation == "" {
		return a.lastRecord
	}
	var told []sessionSeen
	for uri, was := range a.memory.AllTold {
		told = append(told, sessionSeen{URI: uri, Current: was.Current, Epoch: was.Epoch, Count: was.Count})
	}
	return fmt.Appendf(nil, `{"v":%d,"agent":%s}`, snapshotVersion, a.agentPart(told))
}
