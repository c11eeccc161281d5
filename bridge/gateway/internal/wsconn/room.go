//go:build !js

package wsconn

import (
	"errors"
	"sync"
)

// A Room bounds the bytes that connections hold of messages above 64 KiB, those under way and those that their reader has not
// come back from. Where there is too little of it one ends: of those who together hold the most (Options.Whose), the one that
// has held some for longest. On loopback a message of 16 MiB is there within 20 ms, and who leaves one unfinished is the first
// to go; however many leave some unfinished, it is one of theirs.
type Room struct {
	mu      sync.Mutex
	left    int
	holders []holder // in order of coming
}

type holder struct {
	conn  *Conn
	whose string // when it began to
	bytes int
}

// NewRoom returns a Room of so many bytes.
func NewRoom(bytes int) *Room { return &Room{left: bytes} }

// smallest is the size above which a message needs room.
const smallest = 64 << 10

// ErrNoRoom is the error of Read for a connection that a Room has ended.
var ErrNoRoom = errors.New("a message was left unfinished, or came too slowly, while other pages needed its room")

// take makes a connection hold so many bytes, instead of what it has held.
func (r *Room) take(c *Conn, bytes int) {
	if r == nil || bytes <= smallest {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.find(c)
	if i < 0 {
		i = len(r.holders)
		r.holders = append(r.holders, holder{conn: c, whose: c.opt.Whose})
	}
	r.left -= bytes - r.holders[i].bytes
	r.holders[i].bytes = bytes
	for r.left < 0 {
		h := r.last(c)
		if h == nil {
			return
		}
		r.left += h.bytes
		h.bytes = 0
		go h.conn.end(0, "") // it may be writing
	}
}

// last is who ends, so that c may hold more.
func (r *Room) last(c *Conn) (found *holder) {
	of := map[string]int{}
	for _, h := range r.holders {
		if h.conn != c {
			of[h.whose] += h.bytes
		}
	}
	for i := range r.holders {
		h := &r.holders[i]
		if h.conn != c && h.bytes > 0 && (found == nil || of[h.whose] > of[found.whose]) {
			found = h
		}
	}
	return found
}

// leave gives back what a connection holds.
func (r *Room) leave(c *Conn) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.find(c); i >= 0 {
		r.left += r.holders[i].bytes
		r.holders = append(r.holders[:i], r.holders[i+1:]...)
	}
}

// gave gives back what a connection that has ended holds, and reports whether it was ended for that.
func (r *Room) gave(c *Conn) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	i := r.find(c)
	taken := i >= 0 && r.holders[i].bytes == 0
	r.mu.Unlock()
	r.leave(c)
	return taken
}

func (r *Room) find(c *Conn) int {
	for i := range r.holders {
		if r.holders[i].conn == c {
			return i
		}
	}
	return -1
}
