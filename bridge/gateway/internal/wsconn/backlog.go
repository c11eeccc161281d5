//go:build !js

package wsconn

import "sync"

// A Backlog bounds the bytes that wait to be sent on several connections, those that are being written included. Above
// it one connection ends: of the owner for whom most waits (Options.Whose), the one for which most does.
type Backlog struct {
	most int

	mu   sync.Mutex
	held int
	of   map[*Conn]*behind
}

// behind is what waits for one connection.
type behind struct {
	whose string // when it began to
	bytes int
	ended bool // for the others
}

// NewBacklog returns a Backlog of so many bytes.
func NewBacklog(bytes int) *Backlog { return &Backlog{most: bytes, of: map[*Conn]*behind{}} }

// Held is how many bytes wait.
func (b *Backlog) Held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// add counts that more bytes wait for a connection, or fewer. It does not block.
func (b *Backlog) add(c *Conn, bytes int) {
	if b == nil || bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.of[c]
	if w == nil {
		w = &behind{whose: c.opt.Whose}
		b.of[c] = w
	}
	b.held += bytes
	if w.bytes += bytes; w.bytes == 0 {
		delete(b.of, c)
	}
	for b.held > b.most && b.coming() > b.most {
		c, last := b.last()
		if last == nil {
			return
		}
		last.ended = true
		go c.end(0, "")
	}
}

// coming is what waits when those are gone who have been ended.
func (b *Backlog) coming() int {
	held := b.held
	for _, w := range b.of {
		if w.ended {
			held -= w.bytes
		}
	}
	return held
}

// last is who ends.
func (b *Backlog) last() (conn *Conn, found *behind) {
	of := map[string]int{}
	for _, w := range b.of {
		if !w.ended {
			of[w.whose] += w.bytes
		}
	}
	for c, w := range b.of {
		if !w.ended && (found == nil || of[w.whose] > of[found.whose] ||
			of[w.whose] == of[found.whose] && w.bytes > found.bytes) {
			conn, found = c, w
		}
	}
	return conn, found
}
