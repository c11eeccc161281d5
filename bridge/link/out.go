package link

import (
	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// owe notes that a message of the page must be acknowledged soon.
func (p *Peer) owe(now bridge.Time) {
	if !p.owes && len(p.out) == 0 {
		p.since = now
	}
	p.owes = true
}

// Take returns the frame to send at now, or nil. Call it after every other method, and at Deadline.
func (p *Peer) Take(now bridge.Time) []byte {
	if !p.urgent {
		if at, ok := p.Deadline(); !ok || now < at {
			return nil
		}
	}
	if len(p.out) == 0 {
		p.out = p.out.Raw("[")
	}
	frame := []byte(p.out.Raw("]"))
	p.out, p.urgent, p.owes = nil, false, false
	return frame
}

// Deadline is the time at which Take will have a frame without another call. ok is false if there
// is none.
func (p *Peer) Deadline() (at bridge.Time, ok bool) {
	switch {
	case p.urgent:
		return 0, true
	case p.over || len(p.out) == 0 && !p.owes:
		return 0, false
	}
	// A page that has overdrawn its allowance is acknowledged later, and sends no touches until
	// then.
	return max(p.since+answerDelay, p.earn.inCredit(&p.limit)), true
}

// saying is a call that is being written.
type saying struct{ p *Peer }

func begin(name string) wire.Text { return wire.Text("[").Str(name) }

func quote(s string) wire.Text { return wire.Text{}.Str(s) }

// say begins a call with its first argument, if it has one.
func (p *Peer) say(name string, first wire.Text) saying {
	p.append(begin(name))
	s := saying{p}
	if first != nil {
		s.add(first)
	}
	return s
}

// append adds a call, or its beginning, to the buffer.
func (p *Peer) append(text wire.Text) {
	if len(p.out) == 0 {
		p.out = p.out.Raw("[")
	} else {
		p.out = p.out.Raw(",")
	}
	p.out = p.out.Bytes(text)
}

func (s saying) add(value wire.Text) saying {
	s.p.out = s.p.out.Raw(",").Bytes(value)
	return s
}

func (s saying) close() { s.p.out = s.p.out.Raw("]") }
