package view

import (
	"slices"

	"github.com/pagewire/pagewire/bridge"
)

// A source is a URI that Views watch or wait to watch.
type source struct {
	uri     string
	calls   []bridge.CallID // the engine's subscriptions that wait for the server's confirmation
	watched bool
	missed  bool // updates may have been missed: announced once the server sends updates again

	state state // legacy era
	retry       // legacy era
}

type state byte

const (
	idle state = iota
	subscribing
	subscribed
	unsubscribing
)

func (s *source) wanted() bool { return s.watched || len(s.calls) > 0 }

// A retry is the time of the next attempt after failures: 1 s later, then 2 s, 4 s, and so on up to 30 s.
type retry struct {
	failures int
	at       Time
}

func (r *retry) failed(now Time) {
	r.at = now + min(Time(1000)<<min(r.failures, 5), 30_000)
	r.failures++
}

// source returns the record of a URI.
func (h *Host) source(uri string) *source {
	s := h.sources[uri]
	if s == nil {
		s = &source{uri: uri}
		h.sources[uri] = s
		h.ordered = append(h.ordered, s)
	}
	return s
}

// consent answers the waiting subscriptions to s: with an error if why is set.
func (h *Host) consent(s *source, why string) {
	h.unshare(s.uri)
	calls := s.calls
	s.calls = nil
	for _, call := range calls {
		delete(h.asked, call)
		r := bridge.Result{}
		if why != "" {
			r = bridge.Result{Failure: "subscription_refused", Detail: why}
		}
		h.engine.Complete(h.now, call, r)
	}
	if why == "" && s.missed {
		s.missed = false
		h.engine.Touch(h.now, s.uri)
	}
}

// unshare stops later readers from sharing a read of uri that is under way, unless the URI is watched: an unwatched URI
// may have changed after the read began, without an update.
func (h *Host) unshare(uri string) {
	if s := h.sources[uri]; s == nil || !s.watched {
		h.engine.Touch(h.now, uri) // no View watches it, so none is notified
	}
}

// settle makes the subscriptions at the server match the Views', as far as that is possible now, and then sends. It
// repeats this, because sending may cause further changes.
func (h *Host) settle() {
	for {
		before := h.calls
		h.notifyListChanged()
		if !h.down {
			if h.era == Modern {
				h.settleModern()
			} else {
				h.settleLegacy()
			}
		}
		h.ordered = slices.DeleteFunc(h.ordered, func(s *source) bool {
			over := !s.wanted() && (s.state == idle || h.era == Modern)
			if over {
				delete(h.sources, s.uri)
			}
			return over
		})
		if len(h.out) == 0 && h.calls == before {
			return
		}
		out := h.out
		h.out = nil
		for _, text := range out {
			h.home.ToServer(text)
		}
	}
}

func (h *Host) settleLegacy() {
	for _, s := range h.ordered {
		uri := bridge.Text(`"uri":`).Str(s.uri)
		switch {
		case s.wanted() && s.state == idle && h.now >= s.at:
			s.state = subscribing
			h.stats.Subscribes++
			h.ask("resources/subscribe", uri, pending{kind: askSubscribe, source: s})
		case s.wanted() && s.state == subscribed:
			h.consent(s, "")
		case !s.wanted() && s.state == subscribed:
			s.state = unsubscribing
			h.stats.Unsubscribes++
			h.ask("resources/unsubscribe", uri, pending{kind: askUnsubscribe, source: s})
		}
	}
}

func (h *Host) answerSubscribe(s *source, m bridge.Incoming) {
	if len(m.Result) > 0 {
		s.state, s.retry = subscribed, retry{}
		h.consent(s, "")
		return
	}
	s.state = idle
	s.retry.failed(h.now) // for Views that watched it before the connection was lost
	h.consent(s, reason(m.Failure))
}

// reason is the server's reason for a refusal.
func reason(failure bridge.JSON) string {
	if message, _ := failure.Get("message").Text(); message != "" {
		return message
	}
	return "The server refuses the subscription"
}
