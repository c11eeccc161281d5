//go:build !js

package gateway

import (
	"sync"
	"sync/atomic"
)

// A Pool bounds the unread bytes of the agents of several gateways together. Above the bound it ends the fullest
// session of the fullest gateway. Its methods may be called concurrently.
type Pool struct {
	most    int64
	ended   func()
	waiting atomic.Int64

	mu        sync.Mutex
	gateways  map[*Gateway]bool
	relieving bool
}

// NewPool returns a Pool of so many bytes. It calls ended, which may be nil, for each session that it ends.
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

// relieve starts makeRoom, unless it runs already. The caller holds one gateway's lock, and the session to end may be
// another gateway's: so a goroutine ends it.
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
		if !g.endFullest() { // all of it is of ended sessions: the next send tries again
			break
		}
		p.ended()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relieving = false
}

// fullest is the gateway with the most unread bytes, or nil while there is room.
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

// endFullest ends the fullest session, and reports whether there is one.
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
