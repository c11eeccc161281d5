//go:build !js && !windows

package launched

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// A notice is one message between a holder and the daemon, a line of JSON. The daemon sends an empty one first: whatever
// has read the connection before may have read further than its own line, and must find no descriptors there.
type notice struct {
	// Browser: the ends of a browser's pipe come with this notice.
	Browser bool `json:"browser,omitempty"`
	// Inject goes with Browser: pages that have no page layer are to get one.
	Inject bool `json:"inject,omitempty"`

	// Starter: this holder has started the browser whose ends it sends.
	Starter bool `json:"starter,omitempty"`
	// Wants: this holder has no browser, and wants one.
	Wants bool `json:"wants,omitempty"`
	// Failed: this holder was to start a browser, and cannot.
	Failed bool `json:"failed,omitempty"`
	// Leaves: this holder gives its browser up, and waits for what that means.
	Leaves bool `json:"leaves,omitempty"`
	// Clean: nothing is left of the browser, which this holder has started. One that ends without this notice had no
	// time to clean up.
	Clean bool `json:"clean,omitempty"`

	// Start: the daemon has no browser. This holder is to start one.
	Start bool `json:"start,omitempty"`
	// Ended is how this holder's browser has ended. The daemon sends it, and the starter.
	Ended Ending `json:"ended,omitempty"`
	// Stuck: this holder's browser does not end, though nobody has its pipe any more. Its starter is to kill it.
	Stuck bool `json:"stuck,omitempty"`
}

const (
	// maxNotice is far more than a notice has.
	maxNotice = 1 << 10
	// maxRights is how many descriptors may come at a time: more than are right, so that all of them are closed.
	maxRights = 4
	// sendTime is how long the other process may take to take a notice. A socket holds hundreds.
	sendTime = time.Second
)

// A channel is a connection that carries notices.
type channel struct {
	conn *net.UnixConn
	text []byte // received, and not yet a whole notice
	fds  []int  // received, and not yet part of a notice
}

func (c *channel) send(n notice, e *ends) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	c.conn.SetWriteDeadline(time.Now().Add(sendTime))
	return write(c.conn, append(text, '\n'), e)
}

// receive returns the next notice, and the ends that come with it. If it fails, it closes all that has come.
func (c *channel) receive() (n notice, e *ends, err error) {
	if n, e, err = c.next(); err != nil {
		closeAll(c.fds)
		c.fds = nil
	}
	return n, e, err
}

func (c *channel) next() (n notice, e *ends, err error) {
	for {
		if text, rest, whole := bytes.Cut(c.text, []byte{'\n'}); whole {
			c.text = rest
			if err := json.Unmarshal(text, &n); err != nil {
				return n, nil, fmt.Errorf("not a notice about a browser: %w", err)
			}
			break
		}
		if len(c.text) > maxNotice {
			return n, nil, fmt.Errorf("a notice is too long; the limit is %d bytes", maxNotice)
		}
		text := make([]byte, maxNotice)
		read, fds, err := read(c.conn, text)
		c.text, c.fds = append(c.text, text[:read]...), append(c.fds, fds...)
		if err == nil && len(c.fds) > len(ends{}) {
			err = errTwoEnds
		}
		if err != nil {
			return n, nil, err
		}
	}
	switch {
	case n.Browser && len(c.fds) == len(ends{}):
		e = new(ends)
		copy(e[:], c.fds)
		c.fds = nil
		if err := e.check(); err != nil {
			e.close()
			return n, nil, err
		}
	case n.Browser, len(c.fds) > 0 && len(c.text) == 0:
		return n, nil, errTwoEnds
	}
	return n, e, nil
}

var errTwoEnds = errors.New("a browser's pipe has two ends, and other descriptors have come")
