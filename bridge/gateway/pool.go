//go:build !js

package gateway

import (
	"sync"
	"sync/atomic"
)

// A Pool bounds what waits for the agents of several gateways together, in bytes. Above it the session ends for which
// most waits, of the gateway for which most does. Its methods may be called concurrently.
type Pool struct {
	most    int64
	ended   func()
	waiting atomic.Int64

	mu        sync.Mutex
	gateways  map[*Gateway]bool
	relieving bool
}

// NewPool returns a Pool of so many bytes. ended, which may be nil, is called for each session that ends for it.
func NewPool(most int64, ended func()) *Pool {
	if ended == nil {
		ended = func() {}
	}
	return &Pool{most: most, ended: ended, gateways: map[*Gateway]bool{}}
}

// Waiting is how many bytes agents have not read yet.
func (p *Pool) Waiting() int64 { return p.waiting.Load() }

func (p *Pool) enter(g *Gateway) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gateways[g] = true
}

func (p *Pool) leave(g *Gateway) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.gateways, g)
}

// relieve has room made. It is called with the lock of one gateway held, and the session that is to end may be another
// gateway's: so it is ended by a goroutine, of which there is one at a time.
func (p *Pool) relieve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.relieving {
		p.relieving = true
		go p.makeRoom()
	}
}

func (p *Pool) makeRoom() {
	for g := p.fullest(); g != nil; g = p.fullest() {
		if !g.endFullest() { // what waits there is of sessions that have ended: the next that sends tries again
			break
		}
		p.ended()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relieving = false
}

// fullest is the gateway for whose agents most waits, or nil while there is room.
func (p *Pool) fullest() (most *Gateway) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting.Load() <= p.most {
		return nil
	}
	for g := range p.gateways {
		if most == nil || g.waiting.Load() > most.waiting.Load() {
			most = g
		}
	}
	return most
}

// endFullest ends the session for which most waits, and reports whether there is one.
func (g *Gateway) endFullest() bool {
	g.mu.Lock()
	defer g.unlock()
	a := g.fullest(nil)
	if a == nil || a.out.Held() == 0 {
		return false
	}
	a.end(allLeaveTooMuch, true)
	return true
}
