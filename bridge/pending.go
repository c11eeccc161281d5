package bridge

// acceptsUpdates reports whether a port takes messages that answer no request.
func (p *port) acceptsUpdates() bool { return p.writable && !p.held }

// spend takes the credit of one update, if the port has it. Credit grows with time up to one
// second's worth.
func (e *Engine) spend(p *port) bool {
	rate := e.opt.Limits.UpdateRate
	if passed := e.now - p.counted; passed >= 1000 {
		p.credit = rate * 1000
	} else {
		p.credit = min(p.credit+int(passed)*rate, rate*1000)
	}
	p.counted = e.now
	if p.credit < 1000 {
		return false
	}
	p.credit -= 1000
	return true
}

// throttle schedules the updates that wait only for a port's rate.
func (e *Engine) throttle(p *port) {
	if p.first != nil && p.acceptsUpdates() && !p.throttled {
		p.throttled = true
		e.throttled = append(e.throttled, p)
	}
}

// ready is the time at which the port will have the credit for one update.
func (p *port) ready(rate int) Time {
	return p.counted + Time((max(1000-p.credit, 0)+rate-1)/rate)
}

func (p *port) enqueue(s *sub) {
	s.waiting = true
	s.prev = p.last
	if p.last != nil {
		p.last.next = s
	} else {
		p.first = s
	}
	p.last = s
}

func (p *port) unwait(s *sub) {
	if !s.waiting {
		return
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		p.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		p.last = s.prev
	}
	s.prev, s.next, s.waiting = nil, nil, false
}
