package wsconn

import (
	"errors"
	"slices"
	"sync"
)

// A Room bounds the bytes of messages above 64 KiB that connections hold: incomplete messages, and
// messages that the reader still uses. If a message needs more than is left, the Room ends a
// connection with an incomplete message: of the owner whose connections hold most (Options.Whose),
// the connection that has held its bytes longest. On loopback a message of 16 MiB takes 20 ms, so
// the oldest was abandoned. The message that needs room waits until the bytes are free; otherwise
// they would be held twice.
type Room struct {
	mu      sync.Mutex
	left    int
	freed   sync.Cond
	holders []*holder // in order of arrival
}

type holder struct {
	conn  *Conn
	whose string // Options.Whose when the message began
	bytes int
	whole bool // the message is complete and in use
	ended bool // to make room for another; it keeps its bytes until its reader has noticed
}

// NewRoom returns a Room with a bound in bytes.
func NewRoom(bytes int) *Room {
	r := &Room{left: bytes}
	r.freed.L = &r.mu
	return r
}

// smallest is the size above which a message needs room.
const smallest = 64 << 10

// ErrNoRoom is the error of Read for a connection that a Room has ended.
var ErrNoRoom = errors.New(
	"a message was left unfinished, or came too slowly, while other pages needed its room")

// reserve sets the bytes that a connection holds, and waits for room. It fails with ErrNoRoom if c
// was ended for another.
func (r *Room) reserve(c *Conn, bytes int) error {
	if r == nil || bytes <= smallest {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.find(c)
	if h == nil {
		h = &holder{conn: c, whose: c.opt.Whose}
		r.holders = append(r.holders, h)
	}
	r.left -= bytes - h.bytes
	h.bytes = bytes
	for !h.ended && r.left < 0 {
		if len(r.holders) == 1 {
			return nil // the room is less than a message
		}
		for last := r.last(h); last != nil && r.coming() < 0; last = r.last(h) {
			last.ended = true
			r.freed.Broadcast() // last may wait here
			go last.conn.CloseWith(0, "")
		}
		r.freed.Wait()
	}
	if h.ended {
		return ErrNoRoom
	}
	return nil
}

// coming is the room that will be left when the ended connections have given back their bytes.
func (r *Room) coming() int {
	left := r.left
	for _, h := range r.holders {
		if h.ended {
			left += h.bytes
		}
	}
	return left
}

// last returns the holder to end in favour of one; nil if no other can be ended.
func (r *Room) last(one *holder) (found *holder) {
	of := map[string]int{}
	for _, h := range r.holders {
		if h != one && !h.ended && !h.whole {
			of[h.whose] += h.bytes
		}
	}
	for _, h := range r.holders {
		if h != one && !h.ended && !h.whole && (found == nil || of[h.whose] > of[found.whose]) {
			found = h
		}
	}
	return found
}

// finish notes that a message is complete. If c is closed, it gives back the bytes: the reader may
// not come back.
func (r *Room) finish(c *Conn) {
	if r == nil {
		return
	}
	r.mu.Lock()
	if h := r.find(c); h != nil {
		h.whole = true
	}
	r.mu.Unlock()
	select {
	case <-c.closed:
		r.leave(c)
	default:
	}
}

// over gives back the bytes of a closed connection whose message is complete. Otherwise the reader
// does so.
func (r *Room) over(c *Conn) {
	if r == nil {
		return
	}
	r.mu.Lock()
	h := r.find(c)
	reads := h == nil || !h.whole
	r.mu.Unlock()
	if !reads {
		r.leave(c)
	}
}

// leave gives back the bytes of a connection, and reports whether it was ended for another.
func (r *Room) leave(c *Conn) (ended bool) {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.find(c)
	if h == nil {
		return false
	}
	r.left += h.bytes
	r.holders = slices.DeleteFunc(r.holders, func(other *holder) bool { return other == h })
	r.freed.Broadcast()
	return h.ended
}

func (r *Room) find(c *Conn) *holder {
	for _, h := range r.holders {
		if h.conn == c {
			return h
		}
	}
	return nil
}
