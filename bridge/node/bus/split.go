package bus

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// A message on the wire begins with a byte that says whether it is whole or a part:
//
//	0 MESSAGE
//	1 SENDER NUMBER INDEX COUNT PART
//
// where SENDER has 8 bytes, random for each Bus, NUMBER four, INDEX and COUNT two each, big endian.
const (
	whole = 0
	part  = 1

	senderBytes = 8
	partHeader  = 1 + senderBytes + 4 + 2 + 2
	// maxMessage bounds an assembled message, in bytes: a frame of the link has 17 MiB at most. No
	// server's limit is below 4 KiB.
	maxMessage = 18 << 20
	// maxPartial bounds the incomplete messages, such as those of dead senders: above it the oldest
	// is dropped.
	maxPartial = 64
	// maxPause bounds the wait for the next part: all parts share one connection. After it the
	// sender counts as dead.
	maxPause = time.Minute
)

// split sends a message in parts of most bytes. number is the message's, of its sender.
func split(sender [senderBytes]byte, number uint32, message []byte, most int,
	send func(part []byte) error) error {
	if len(message) > maxMessage {
		return fmt.Errorf("a message of %d bytes; the limit is %d", len(message), maxMessage)
	}
	room := most - partHeader
	count := (len(message) + room - 1) / room
	if count > math.MaxUint16 {
		return fmt.Errorf("a message of %d bytes on a bus whose messages have %d at most",
			len(message), most)
	}
	for i := range count {
		text := make([]byte, partHeader, most)
		text[0] = part
		copy(text[1:], sender[:])
		binary.BigEndian.PutUint32(text[1+senderBytes:], number)
		binary.BigEndian.PutUint16(text[5+senderBytes:], uint16(i))
		binary.BigEndian.PutUint16(text[7+senderBytes:], uint16(count))
		if err := send(append(text, message[i*room:min((i+1)*room, len(message))]...)); err != nil {
			return err
		}
	}
	return nil
}

// An assembly assembles messages from their parts. The zero value is ready.
type assembly struct {
	partial map[string]*partial // by sender and number
	order   []string            // keys, in the order of the first parts
}

type partial struct {
	next, count uint16
	at          time.Time // of the last part
	text        []byte
}

// add takes a message of NATS, and returns the message that it completes, or nil. A missing part
// loses the message.
func (a *assembly) add(data []byte) []byte {
	a.forget()
	switch {
	case len(data) > 0 && data[0] == whole:
		return data[1:]
	case len(data) < partHeader || data[0] != part:
		return nil
	}
	key := string(data[1 : 5+senderBytes])
	index := binary.BigEndian.Uint16(data[5+senderBytes:])
	count := binary.BigEndian.Uint16(data[7+senderBytes:])
	p := a.partial[key]
	if p == nil && index == 0 && count > 1 {
		p = a.begin(key, count)
	}
	if p == nil {
		return nil
	}
	if index != p.next || count != p.count || len(p.text)+len(data) > maxMessage+partHeader {
		a.drop(key)
		return nil
	}
	p.text, p.at = append(p.text, data[partHeader:]...), time.Now()
	if p.next++; p.next < p.count {
		return nil
	}
	a.drop(key)
	return p.text
}

func (a *assembly) forget() {
	for len(a.order) > 0 && time.Since(a.partial[a.order[0]].at) > maxPause {
		a.drop(a.order[0])
	}
}

func (a *assembly) begin(key string, count uint16) *partial {
	if a.partial == nil {
		a.partial = map[string]*partial{}
	}
	if len(a.order) >= maxPartial {
		a.drop(a.order[0])
	}
	p := &partial{count: count, at: time.Now()}
	a.partial[key] = p
	a.order = append(a.order, key)
	return p
}

func (a *assembly) drop(key string) {
	delete(a.partial, key)
	a.order = slices.DeleteFunc(a.order, func(k string) bool { return k == key })
}
