package view

import (
	"slices"

	"github.com/pagewire/pagewire/bridge"
)

// modern is the state at a server of the modern era, where one listen has all watched URIs. Its set cannot change. To
// change the set without losing an update, the Host opens a new listen, and cancels the old one a little after the
// server has acknowledged the new one.
type modern struct {
	current *stream // acknowledged
	opening *stream // not yet
	old     []*stream
	retry
}

// A stream is one listen.
type stream struct {
	id   string
	uris []string
	end  Time // when an old one is cancelled, and one that the server does not acknowledge
	born Time // when it was acknowledged
}

// linger is how long a replaced listen stays open. Over HTTP each listen is a connection of its own: an update that was
// sent on the old one may arrive after the new one's acknowledgement. Announcing everything instead would make every
// View read all its resources whenever another View comes or goes.
const linger = 200

// maxOld bounds the listens that linger: a server has its own bound, and Views that come and go fast must not reach it.
const maxOld = 4

// behind reports whether the watched URIs differ from those of the current listen.
func (s *server) behind() bool {
	var have []string
	if s.current != nil {
		have = s.current.uris
	}
	n := 0
	for _, src := range s.ordered {
		if src.wanted() {
			if !slices.Contains(have, src.uri) {
				return true
			}
			n++
		}
	}
	return n != len(have)
}

func (h *Host) settleModern() {
	h.old = slices.DeleteFunc(h.old, func(s *stream) bool {
		if h.now < s.end {
			return false
		}
		h.drop(s.id)
		return true
	})
	if h.opening != nil && h.now >= h.opening.end { // otherwise it would be in the way of all later ones
		h.drop(h.opening.id)
		h.opening = nil
		h.modern.failed(h.now)
	}
	var uris []string
	for _, s := range h.ordered {
		if s.wanted() {
			uris = append(uris, s.uri)
		}
	}
	if len(uris) == 0 { // no View is left that could miss an update
		for _, s := range append(h.old, h.current, h.opening) {
			if s != nil {
				h.drop(s.id)
			}
		}
		h.modern = modern{retry: h.modern.retry}
		return
	}
	if h.current != nil {
		for _, s := range h.ordered {
			if len(s.calls) > 0 && slices.Contains(h.current.uris, s.uri) {
				h.consent(s, "")
			}
		}
	}
	if h.opening != nil || !h.behind() || h.now < h.modern.at {
		return
	}
	params := bridge.Text(`"notifications":{"resourcesListChanged":true,"resourceSubscriptions":[`)
	for i, uri := range uris {
		if i > 0 {
			params = params.Raw(`,`)
		}
		params = params.Str(uri)
	}
	h.stats.Listens++
	h.opening = &stream{uris: uris, end: h.now + h.opt.ReadTimeout}
	h.opening.id = h.ask("subscriptions/listen", params.Raw(`]}`), pending{kind: askListen, stream: h.opening})
}

// acknowledged makes the listen that was opening the current one.
func (h *Host) acknowledged(id string, honored bridge.JSON) {
	s := h.opening
	if s == nil || s.id != id {
		return
	}
	granted := map[string]bool{}
	honored.Elements(func(uri bridge.JSON) bool {
		text, _ := uri.Text()
		granted[text] = true
		return true
	})
	h.opening = nil
	if h.current != nil {
		h.current.end = h.now + linger
		h.old = append(h.old, h.current)
		if len(h.old) > maxOld { // updates that are on their way on the oldest listen are lost
			first := h.old[0]
			first.end = 0
			for _, uri := range first.uris {
				h.engine.Touch(h.now, uri)
			}
		}
	}
	h.current, s.born = s, h.now
	for _, uri := range slices.Clone(s.uris) {
		src := h.sources[uri]
		switch {
		case src == nil:
		case granted[uri]:
			h.consent(src, "")
		default:
			h.consent(src, "The server does not send updates of this resource")
			if !src.watched { // a watched URI stays in the set: behind would otherwise be true for ever
				s.uris = slices.DeleteFunc(s.uris, func(u string) bool { return u == uri })
			}
		}
	}
}

// answerListen handles the answer to a listen: a refusal if it was not acknowledged, otherwise the server's end of it.
func (h *Host) answerListen(s *stream, m bridge.Incoming) {
	if s != h.opening {
		h.streamEnded(s.id)
		return
	}
	h.opening = nil
	h.modern.failed(h.now)
	for _, uri := range s.uris {
		if src := h.sources[uri]; src != nil {
			h.consent(src, reason(m.Failure))
		}
	}
}

// streamEnded handles a listen that the server has ended. settle opens a new one, immediately unless this one lasted
// less than 1 s. The URIs are announced after its acknowledgement, since updates may have been missed meanwhile.
func (h *Host) streamEnded(id string) {
	delete(h.pending, id)
	h.old = slices.DeleteFunc(h.old, func(s *stream) bool { return s.id == id })
	if h.opening != nil && h.opening.id == id {
		h.opening = nil
		h.modern.failed(h.now)
	}
	if h.current == nil || h.current.id != id {
		return
	}
	if h.now-h.current.born < 1000 {
		h.modern.failed(h.now)
	} else {
		h.modern.retry = retry{}
	}
	h.markMissed(h.current)
	h.current = nil
}

// markMissed notes that updates of a listen's URIs may be missed from now on.
func (h *Host) markMissed(s *stream) {
	for _, uri := range s.uris {
		if src := h.sources[uri]; src != nil {
			src.missed = true
		}
	}
}
