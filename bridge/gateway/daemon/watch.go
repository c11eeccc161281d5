package daemon

import (
	"context"
	"time"
)

const (
	// beatEvery is the interval of the heartbeat.
	beatEvery = 500 * time.Millisecond
	// maxSilence is how long a daemon may be silent. It is the time of three heartbeats.
	maxSilence = 1600 * time.Millisecond
	// lookEvery is how often silence is measured. Twice this is the most that a pause of this process counts.
	lookEvery = 100 * time.Millisecond
	// probeTimeout is how long a silent daemon may take to answer on a new connection.
	probeTimeout = 700 * time.Millisecond
)

// A silence measures how long a daemon has been silent. Time counts while this process runs and its agent reads.
type silence struct {
	last time.Time
	long time.Duration
}

// look is called every lookEvery, and reports whether the silence is too long.
func (s *silence) look(now time.Time, heard bool) bool {
	s.long += min(now.Sub(s.last), 2*lookEvery)
	s.last = now
	if heard {
		s.long = 0
	}
	return s.long >= maxSilence
}

// watch ends a daemon that hangs, so that another can be started.
func (p *pipe) watch(ctx context.Context, c *Conn, gone <-chan struct{}) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	s := silence{last: time.Now()}
	for {
		select {
		case <-gone:
			return
		case <-t.C:
		}
		// While the agent does not read, the daemon cannot be read.
		if !s.look(time.Now(), c.heard.Swap(false) || p.writing.Load()) {
			continue
		}
		s.long = 0
		if p.probe(ctx) {
			p.o.Log.Warn("the daemon works, and this connection to it does not: another is made")
			c.Close()
			return
		}
		if c.heard.Load() {
			continue
		}
		if err := endPeer(c.Conn); err != nil {
			p.o.Log.Warn("the daemon is silent, and is left alone", "reason", err)
		} else {
			p.o.Log.Warn("the daemon hung, and was ended")
		}
	}
}

// probe reports whether a daemon answers on a new connection.
func (p *pipe) probe(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	hello := p.o.Hello
	hello.As = AsProbe
	c, err := p.o.Probe(ctx, hello)
	if err != nil {
		return false
	}
	c.Close()
	return true
}
