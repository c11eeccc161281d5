package gateway

import "github.com/pagewire/pagewire/bridge/gateway/internal/quota"

// A Pool bounds what waits for the agents of several gateways together, in bytes. Above it the session ends for which
// most waits, of the gateway for which most does. Its methods may be called concurrently.
type Pool struct{ backlog *quota.Backlog[*Agent] }

// NewPool returns a Pool of so many bytes. ended is called for each session that ends for it.
func NewPool(most int64, ended func()) *Pool {
	return &Pool{quota.NewBacklog(int(most), func(a *Agent) {
		a.g.mu.Lock()
		a.end(allLeaveTooMuch, true)
		a.g.unlock()
		ended()
	})}
}

// Waiting is how many bytes agents have not read yet.
func (p *Pool) Waiting() int64 { return int64(p.backlog.Held()) }
