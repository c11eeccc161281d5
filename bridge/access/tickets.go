package access

import (
	"crypto/rand"
	"sync"
)

// maxTickets bounds the unused tickets.
const maxTickets = 16

// tickets are the unused tickets.
type tickets struct {
	mu  sync.Mutex
	all map[string]chan struct{} // by ticket; closed when it is used
}

func (t *tickets) issue() (ticket string, used <-chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= maxTickets {
		return "", nil, false
	}
	if t.all == nil {
		t.all = map[string]chan struct{}{}
	}
	ticket, done := rand.Text(), make(chan struct{})
	t.all[ticket] = done
	return ticket, done, true
}

// redeem removes a ticket, and reports whether it was valid. used tells the client of Tickets that
// the ticket was used.
func (t *tickets) redeem(ticket string, used bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	done, ok := t.all[ticket]
	delete(t.all, ticket)
	if ok && used {
		close(done)
	}
	return ok
}
