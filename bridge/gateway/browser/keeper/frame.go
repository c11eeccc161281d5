//go:build !js

package keeper

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// What travels, on the browser's pipe as well as on the sockets, are messages of JSON text that each end in one NUL
// byte, which JSON text cannot contain. A frame is a message with its NUL.
const (
	// maxFromBrowser is the longest frame of the browser that is passed on: what a gateway takes of a page, 17 MiB, of
	// which each two bytes may have become six (as those of é, quoted). A page can make longer ones.
	maxFromBrowser = 52 << 20
	// maxFromClient is the longest frame of a client: an agent's message of 4 MiB, escaped. The browser ends its pipe
	// at 100 MiB.
	maxFromClient = 32 << 20
	// retained is how long a buffer may be that is kept for the next frame.
	retained = 1 << 20
	// readSize is how long a buffer is at first, and how much is read beyond a limit: what a pipe holds.
	readSize = 64 << 10
	// edge is how much of a frame that is too long is kept of its begin and of its end.
	edge = 256
)

var errTooLong = errors.New("a message that is too long")

// A frames reads frames.
type frames struct {
	from  io.Reader
	limit int
	skips bool // what is too long is passed over, as far as its NUL
	buf   []byte
	begin int // of what has not been given out
	end   int // of what has been read
	seen  int // up to here there is no NUL
}

func newFrames(from io.Reader, limit int) *frames {
	return &frames{from: from, limit: limit, buf: make([]byte, readSize)}
}

// next returns the next frame, which is valid until the next call. It fails with errTooLong as soon as a frame is too
// long; where those are passed over, it returns the edges of the frame then, put together, and goes on behind it when
// it is called again.
func (f *frames) next() ([]byte, error) {
	f.tidy()
	var head []byte // of a frame that is too long
	for {
		if i := bytes.IndexByte(f.buf[f.seen:f.end], 0); i >= 0 {
			frame := f.buf[f.begin : f.seen+i+1]
			f.begin += len(frame)
			f.seen = f.begin
			if head != nil {
				return append(head, frame[max(0, len(frame)-edge):]...), errTooLong
			}
			return frame, nil
		}
		f.seen = f.end
		if f.end-f.begin > f.limit {
			if !f.skips {
				return nil, errTooLong
			}
			if head == nil {
				head = bytes.Clone(f.buf[f.begin : f.begin+edge])
			}
			f.begin = f.end - edge // the end may be in it
		}
		f.makeRoom()
		n, err := f.from.Read(f.buf[f.end:])
		f.end += n
		if err != nil && n == 0 {
			return nil, err
		}
	}
}

// rest is what has not been given out, and all that comes.
func (f *frames) rest() io.Reader {
	return io.MultiReader(bytes.NewReader(f.buf[f.begin:f.end]), f.from)
}

// tidy lets a large buffer go when all of it has been given out.
func (f *frames) tidy() {
	if f.begin == f.end {
		f.begin, f.end, f.seen = 0, 0, 0
		if len(f.buf) > retained {
			f.buf = make([]byte, readSize)
		}
	}
}

func (f *frames) makeRoom() {
	if f.end < len(f.buf) {
		return
	}
	to := f.buf
	if 2*(f.end-f.begin) > len(f.buf) {
		to = make([]byte, min(2*len(f.buf), f.limit+readSize))
	}
	f.seen -= f.begin
	f.end = copy(to, f.buf[f.begin:f.end])
	f.begin, f.buf = 0, to
}

// A head is what of a message says where it belongs.
type head struct {
	session []byte
	method  []byte
	id      int64 // 0 where there is none
	// Where the member sessionId is, with the comma that goes with it; 0 and 0 where it is not.
	from, to int
}

// ofClient reads the head of a client's frame as far as its session, or all of it. It reports false for what is no
// object.
func ofClient(frame []byte) (h head, ok bool) {
	// As chromedp writes it, and most others: the session behind the id.
	begin := frame[:min(len(frame), 96)]
	if rest, ok := bytes.CutPrefix(begin, answerBegins); ok {
		digits, rest, _ := bytes.Cut(rest, sessionBegins)
		session, _, whole := bytes.Cut(rest, []byte{'"'})
		if id, err := strconv.ParseInt(string(digits), 10, 64); whole && err == nil {
			return head{session: session, id: id}, true
		}
	}
	return scan(frame, true)
}

// The browser writes an event from its method on, an answer from its id on, and the session behind all else.
var (
	eventBegins   = []byte(`{"method":"`)
	answerBegins  = []byte(`{"id":`)
	sessionBegins = []byte(`,"sessionId":"`)
	sessionEnds   = []byte("\"}\x00")
)

// sessionLength is that of a session's id: 128 bits in hexadecimal.
const sessionLength = 32

// ofBrowser reads the head of a frame of the browser: one that looks as the browser's do is not read between its begin
// and its end. What looks like that end is it: nothing else can stand there in JSON text.
func ofBrowser(frame []byte) (h head, ok bool) {
	h.from = len(frame) - len(sessionEnds) - sessionLength - len(sessionBegins)
	if h.from <= 0 || !bytes.HasSuffix(frame, sessionEnds) || !bytes.HasPrefix(frame[h.from:], sessionBegins) {
		return scan(frame, false)
	}
	h.to = len(frame) - 2
	h.session = frame[h.from+len(sessionBegins) : h.to-1]
	if rest, event := bytes.CutPrefix(frame, eventBegins); event {
		h.method, _, ok = bytes.Cut(rest, []byte{'"'})
		return h, ok
	}
	if rest, answer := bytes.CutPrefix(frame, answerBegins); answer {
		digits, _, _ := bytes.Cut(rest, []byte{','})
		id, err := strconv.ParseInt(string(digits), 10, 64)
		h.id = id
		return h, err == nil
	}
	return scan(frame, false)
}

// scan reads a head in whatever order its members are. Where untilSession is set, it stops behind the session.
func scan(frame []byte, untilSession bool) (h head, ok bool) {
	// What is not quite as it should be is for the browser to refuse.
	lax := []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}
	d := jsontext.NewDecoder(bytes.NewBuffer(frame[:len(frame)-1]), lax...)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return h, false
	}
	for first := true; d.PeekKind() == '"'; first = false {
		before := int(d.InputOffset())
		t, err := d.ReadToken()
		if err != nil {
			return h, false
		}
		name := t.String()
		value, err := d.ReadValue()
		if err != nil {
			return h, false
		}
		switch name {
		case "id":
			h.id, _ = strconv.ParseInt(string(value), 10, 64)
		case "method":
			h.method = bytes.Trim(value, `"`)
		case "sessionId":
			h.session, h.from, h.to = bytes.Clone(bytes.Trim(value, `"`)), before, int(d.InputOffset())
			if first { // the comma is behind it
				h.to += len(frame[h.to:]) - len(bytes.TrimLeft(frame[h.to:], " \t\r\n,"))
			}
			if untilSession {
				return h, true
			}
		}
	}
	_, err := d.ReadToken()
	return h, err == nil
}
