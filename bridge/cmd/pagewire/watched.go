package main

import (
	"sync"
	"time"
)

const (
	// rateOver is the time over which the updates per second are averaged.
	rateOver = 10 * time.Second
	// maxWatched bounds the resources of --all.
	maxWatched = 1000
	// wakeEvery is the default of --min-interval with --lines, unless the output is a terminal:
	// each line costs a turn of a model. Changes within settleTime are printed together.
	wakeEvery, settleTime = 30 * time.Second, 200 * time.Millisecond
)

type watchFlags struct {
	json, changes, all, lines, wide bool
	every                           time.Duration
	count                           int
}

// resourceState is the state of a resource in a session. Each session begins with unsubscribed.
//
//	unsubscribed -- subscribe --> stale -- read --> current -- updated --> stale
//	unsubscribed -- subscribe fails --> absent -- list changed --> unsubscribed
type resourceState int

const (
	unsubscribed resourceState = iota
	absent
	stale
	current
)

type resource struct {
	uri     string
	state   resourceState
	updated []time.Time // times of updates in the last rateOver

	seen    bool // read at least once
	last    time.Time
	content []byte
	binary  bool
	failed  string // the error of the last read; "" if it succeeded
}

func (r *resource) toRead() bool { return r.state == unsubscribed || r.state == stale }

func (r *resource) rate(now time.Time) float64 {
	return float64(len(recent(r.updated, now))) / rateOver.Seconds()
}

func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > rateOver {
		times = times[1:]
	}
	return times
}

// updates are the reports of a session's goroutines to the watcher.
type updates struct {
	more chan struct{} // has an element after add, until the watcher takes it

	mu    sync.Mutex
	times map[string][]time.Time // by URI, of the last rateOver; "" is the list
}

// add notes an update of a URI; "" is the list.
func (u *updates) add(uri string) {
	u.mu.Lock()
	now := time.Now()
	u.times[uri] = append(recent(u.times[uri], now), now)
	u.mu.Unlock()
	select {
	case u.more <- struct{}{}:
	default:
	}
}

func (u *updates) drain() map[string][]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	times := u.times
	u.times = map[string][]time.Time{}
	return times
}
