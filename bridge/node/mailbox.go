package node

import (
	"sync"

	"github.com/pagewire/pagewire/bridge/internal/quota"
)

// maxTodo bounds the queue of one user's gateways, in bytes; Options.WaitingBytes bounds the queues
// of all users. Messages above a bound are lost, and the loss is then repaired.
const maxTodo = 64 << 20

// A mailbox calls functions one at a time, in order. It has a goroutine only while its queue is not
// empty. What only these functions use needs no lock.
type mailbox struct {
	user    string // whose messages count in waiting
	waiting *quota.Quota

	mu      sync.Mutex // guards the rest
	todo    []func()
	running bool // a goroutine calls run; true whenever todo has anything
}

// post queues f, and does not wait.
func (b *mailbox) post(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.todo = append(b.todo, f)
	if !b.running {
		b.running = true
		go b.run()
	}
}

// do queues f, whose data have so many bytes. It reports false if there is no room for them.
func (b *mailbox) do(bytes int, f func()) bool {
	if b.waiting.Take(b.user, int64(bytes)) != nil {
		return false
	}
	b.post(func() {
		f()
		b.waiting.Give(b.user, int64(bytes))
	})
	return true
}

func (b *mailbox) run() {
	for {
		b.mu.Lock()
		list := b.todo
		b.todo = nil
		b.running = len(list) > 0
		b.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, f := range list {
			f()
		}
	}
}
