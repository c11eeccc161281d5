package link

import (
	"errors"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// contentsMark begins a frame that is an answer's contents: =CALL REVISION JSON.
const contentsMark = '='

// contents takes the frame of an answer apart. What it returns is a part of frame.
func contents(frame []byte) (call uint32, revision int64, text []byte, ok bool) {
	n, rest, ok := number(frame[1:], 1<<32)
	if !ok {
		return 0, 0, nil, false
	}
	revision, rest, ok = number(rest, 1<<53)
	return uint32(n), revision, rest, ok
}

// number takes a decimal number below a bound and the space behind it off text.
func number(text []byte, below int64) (n int64, rest []byte, ok bool) {
	for i, c := range text {
		switch {
		case c == ' ' && i > 0:
			return n, text[i+1:], true
		case c < '0' || c > '9' || i > 15:
			return 0, nil, false
		}
		if n = n*10 + int64(c-'0'); n >= below {
			return 0, nil, false
		}
	}
	return 0, nil, false
}

// errCall is what a call is that the link does not have.
var errCall = errors.New("a call that is none of the link's")

// A call is one of a frame of calls, taken apart as far as its arguments.
type call struct {
	name string
	args [4]wire.Value
	n    int
}

// calls yields the calls of a frame, and reports whether it is one.
func calls(frame []byte, yield func(call) error) error {
	v, err := wire.Parse(frame, nesting)
	if err != nil || v.Kind() != wire.Array {
		return errors.New("a frame that is neither calls nor contents")
	}
	var failed error
	v.Elements(func(element wire.Value) bool {
		c, ok := takeApart(element)
		if !ok {
			failed = errCall
			return false
		}
		failed = yield(c)
		return failed == nil
	})
	return failed
}

func takeApart(v wire.Value) (c call, ok bool) {
	if v.Kind() != wire.Array {
		return c, false
	}
	i := 0
	ok = true
	v.Elements(func(element wire.Value) bool {
		switch {
		case i == 0:
			c.name, ok = element.Text()
		case i > len(c.args):
			ok = false
		default:
			c.args[i-1] = element
			c.n = i
		}
		i++
		return ok
	})
	return c, ok && i > 0
}

// text is an argument that must be a string.
func (c *call) text(i int) (string, bool) {
	return c.args[i].Text()
}

// integer is an argument that must be an integer from 0 to below a bound.
func (c *call) integer(i int, below int64) (int64, bool) {
	n, ok := c.args[i].Int()
	return n, ok && n >= 0 && n < below
}

func (c *call) boolean(i int) (on, ok bool) {
	kind := c.args[i].Kind()
	return c.args[i].True(), kind == wire.Bool
}

// portBound is above all numbers of ports.
const portBound = 1 << 30

func (c *call) port() (bridge.PortID, bool) {
	n, ok := c.integer(0, portBound)
	return bridge.PortID(n), ok && n > 0
}

// about reads what a page says of itself. Members of other types count as not said, but for the epoch.
func about(v wire.Value) (a About, ok bool) {
	if v.Kind() != wire.Object {
		return a, false
	}
	text := func(name string, most int) string {
		s, _ := v.Get(name).Text()
		if len(s) > most {
			return ""
		}
		return s
	}
	a = About{Epoch: text("epoch", 64), Tab: text("tab", 64), Frame: text("frame", 64), URL: text("url", 8192), Origin: text("origin", 1024)}
	if title, is := v.Get("title").Text(); is {
		a.Title = &title
	}
	a.Focused, _ = v.Get("focused").Int()
	return a, true
}
