//go:build !js

package wsconn

import "sync"

// A Backlog bounds the unsent bytes of several connections, including those that are being written. Above the bound the
// fullest connection of the fullest owner (Options.Whose) ends.
type Backlog struct {
	most int

	mu   sync.Mutex
	held int
	of   map[*Conn]*behind
}

// behind is the unsent part of one connection.
type behind struct {
	whose string // at its beginning
	bytes int
	ended bool // to make room for others
}

// NewBacklog returns a Backlog of so many bytes.
func NewBacklog(bytes int) *Backlog { return &Backlog{most: bytes, of: map[*Conn]*behind{}} }

// Held is how many bytes wait.
func (b *Backlog) Held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// add counts more unsent bytes of a connection, or fewer. It does not block.
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

// coming is the sum without the connections that have been ended.
func (b *Backlog) coming() int {
	held := b.held
	for _, w := range b.of {
		if w.ended {
			held -= w.bytes
		}
	}
	return held
}

// last is the connection to end.
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
