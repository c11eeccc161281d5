package gateway

import (
	"context"
	"fmt"
	"time"
)

// A program may end, and go on with a conversation in another process, or at another daemon. A record then says what
// the agent has seen and was told of. Hooks find the record by the program's name for the conversation. It is the
// agent's part of a snapshot (snapshot.go): it has no contents, and nothing in it can make a stale call run.

// Conversations keeps records by the names of conversations, for Changes. Its methods may be called concurrently.
type Conversations interface {
	// Load returns the record that was saved last, or nil. It may be any text.
	Load(name string) []byte
	// Save keeps a record of at most MaxSnapshotBytes.
	Save(name string, record []byte)
}

// resumeFor is how long the first hook of a resumed conversation waits for pages. Pages take some 100 ms to come to a
// new daemon, and a hook has 900 ms.
const resumeFor = 500 * time.Millisecond

// resume gives a conversation to the agent that find returns, and adds the conversation's record to the agent's memory.
// It returns when the pages have said whether the recorded state is current, or after resumeFor. An earlier
// conversation of the same process stays in the memory: if it were forgotten, a stale call of its subagent could run.
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
	a.keep() // saves the conversation before
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

// keep saves the record of the agent's conversation, if it has one.
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

// recorded returns the record of the agent's conversation; after the session, its last one. The gateway's lock is held.
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
