//go:build !js

package cdp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// maxMessage bounds, in bytes, what is held of one message of the browser: what a page says by its binding, which is a
// letter and a frame of the link, as the page said it; all else as it travels. What is longer is dropped while it is
// read.
const maxMessage = 17<<20 + 1

// tooLong is why what was dropped ends a page, or fails a command.
var tooLong = "a message is too long; the limit is " + strconv.Itoa(maxMessage-1) + " bytes"

// A message is an answer of the browser, or an event.
type message struct {
	ID      int64            `json:"id"`
	Session target.SessionID `json:"sessionId"`
	Method  string           `json:"method"`
	Params  jsonv2.Value     `json:"params"`
	Result  jsonv2.Value     `json:"result"`
	Error   *refusal         `json:"error"`
	// Dropped is set for an event that was too long: it has no Params then.
	Dropped *edges `json:"dropped"`

	said *said // of Runtime.bindingCalled, in place of Params
}

// call is what a page says by a binding, or nil for what a newer browser means by that.
func (m *message) call() *said {
	if m.said != nil || m.Dropped != nil {
		return m.said
	}
	e := decode(m, runtime.BindingCalled)
	if e == nil {
		return nil
	}
	return &said{e.Name, e.ExecutionContextID, []byte(e.Payload)}
}

// A refusal is why the browser does not do what a command says.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// edges are how a message that was dropped begins and ends: at most as many bytes of each as edge.
type edges struct {
	Begin string `json:"begin"`
	End   string `json:"end"`
}

// said is what a page has said by a binding. Of what was too long there is no payload.
type said struct {
	binding string
	context runtime.ExecutionContextID
	payload []byte
}

// A decoder reads the browser's messages one after the other.
//
// What pages say is most of what is large. It is unquoted while it arrives, and so held once: by way of the types of
// cdproto it was held four times, a message of 100 MB as 538.
type decoder struct {
	in   *bufio.Reader
	text []byte // for the next message, where nobody keeps it
}

const (
	// readSize is how much is read at once.
	readSize = 64 << 10
	// retained is how large a buffer may be that is kept for the next message.
	retained = 1 << 20
	// edge is how much of a message that is dropped is kept of its begin and of its end.
	edge = 256
	// window is how far a text is searched for its end, and for what is escaped: 1 MB takes 0.1 ms so, and 1 by the
	// byte.
	window = 1 << 10
	// maxTail is far more than what stands behind what a page has said.
	maxTail = 4 << 10
)

func newDecoder() *decoder { return &decoder{in: bufio.NewReaderSize(nil, readSize)} }

// The browser writes an event so. One that writes it otherwise is understood too, but its messages are bounded as they
// travel, where each quote of a page has become two bytes, or four.
var (
	callBegins   = []byte(`{"method":"Runtime.bindingCalled","params":{"name":"`)
	payloadComes = []byte(`","payload":"`)
)

// decode reads a message. Its errors are the connection's, or say that this is none.
func (d *decoder) decode(from io.Reader) (*message, error) {
	d.in.Reset(from)
	begin, err := d.in.Peek(edge)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if rest, ok := bytes.CutPrefix(begin, callBegins); ok {
		if name, _, ok := bytes.Cut(rest, payloadComes); ok {
			return d.call(string(name))
		}
	}
	return d.other()
}

// call reads what a page says by a binding.
func (d *decoder) call(binding string) (*message, error) {
	d.in.Discard(len(callBegins) + len(binding) + len(payloadComes))
	payload, err := d.unquote()
	if err != nil {
		return nil, err
	}
	tail, err := io.ReadAll(io.LimitReader(d.in, maxTail))
	if err != nil {
		return nil, err
	}
	var m struct {
		Params  runtime.EventBindingCalled `json:"params"`
		Session target.SessionID           `json:"sessionId"`
	}
	if err := jsonv2.Unmarshal(append([]byte(`{"params":{"name":""`), tail...), &m, decodeOptions); err != nil {
		return nil, noMessage(err)
	}
	return &message{Method: runtime.BindingCalled.Method, Session: m.Session,
		said: &said{binding, m.Params.ExecutionContextID, payload}}, nil
}

func noMessage(err error) error {
	return fmt.Errorf("the browser sends something that is not a message: %w", err)
}

// unquote reads the rest of a JSON string, and its quote. It returns nil for one that is too long.
func (d *decoder) unquote() ([]byte, error) {
	out := make([]byte, 0, max(edge, d.in.Buffered()))
	for dropped := false; ; {
		if _, err := d.in.Peek(1); err != nil {
			return nil, cutShort(err)
		}
		chunk, _ := d.in.Peek(min(window, d.in.Buffered()))
		n := len(chunk)
		if i := bytes.IndexByte(chunk, '"'); i >= 0 {
			n = i
		}
		if i := bytes.IndexByte(chunk[:n], '\\'); i >= 0 {
			n = i
		}
		if dropped = dropped || len(out)+n > maxMessage; dropped {
			out = nil
		} else {
			out = append(roomFor(out, n), chunk[:n]...)
		}
		ends := n < len(chunk) && chunk[n] == '"'
		escapes := n < len(chunk) && !ends
		d.in.Discard(n)
		switch {
		case ends:
			d.in.Discard(1)
			return out, nil
		case escapes:
			r, err := d.escaped()
			if err != nil {
				return nil, err
			}
			if !dropped {
				out = utf8.AppendRune(roomFor(out, utf8.UTFMax), r)
			}
		}
	}
}

// roomFor makes room for n more bytes. It doubles what there is, up to the largest: append would make more garbage.
func roomFor(out []byte, n int) []byte {
	if len(out)+n <= cap(out) {
		return out
	}
	return append(make([]byte, 0, max(len(out)+n, min(2*cap(out), maxMessage+utf8.UTFMax))), out...)
}

func cutShort(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

var plain = [256]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads what a backslash begins. Half a character becomes U+FFFD.
func (d *decoder) escaped() (rune, error) {
	two, err := d.in.Peek(2)
	if err != nil {
		return 0, cutShort(err)
	}
	if r := plain[two[1]]; r != 0 {
		d.in.Discard(2)
		return r, nil
	}
	r, err := d.unit()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if next, err := d.in.Peek(2); err != nil || string(next) != `\u` {
		return utf8.RuneError, nil
	}
	before := r
	next, err := d.in.Peek(6)
	if err != nil {
		return 0, cutShort(err)
	}
	unit, err := strconv.ParseUint(string(next[2:]), 16, 16)
	if err != nil {
		return 0, noMessage(err)
	}
	if r = utf16.DecodeRune(before, rune(unit)); r != utf8.RuneError {
		d.in.Discard(6)
	}
	return r, nil
}

// unit reads a UTF-16 code unit: \u and four digits.
func (d *decoder) unit() (rune, error) {
	text, err := d.in.Peek(6)
	if err != nil {
		return 0, cutShort(err)
	}
	unit, err := strconv.ParseUint(string(text[2:]), 16, 16)
	if err != nil || text[1] != 'u' {
		return 0, noMessage(errors.New("a backslash that escapes nothing"))
	}
	d.in.Discard(6)
	return rune(unit), nil
}

// other reads a message that is no page's word.
func (d *decoder) other() (*message, error) {
	e, err := d.readAll()
	switch {
	case err != nil:
		return nil, err
	case e != nil:
		return e.message(), nil
	}
	m := new(message)
	if err := jsonv2.Unmarshal(d.text, m, decodeOptions); err != nil {
		return nil, noMessage(err)
	}
	return m, nil
}

// readAll reads a message into d.text, or returns the edges of one that is too long.
func (d *decoder) readAll() (dropped *edges, err error) {
	if d.text = d.text[:0]; cap(d.text) > retained {
		d.text = nil
	}
	for {
		_, err := d.in.Peek(1)
		if err == io.EOF {
			if dropped != nil {
				dropped.End = string(d.text[max(0, len(d.text)-edge):])
			}
			return dropped, nil
		}
		if err != nil {
			return nil, err
		}
		chunk, _ := d.in.Peek(d.in.Buffered())
		if dropped == nil && len(d.text)+len(chunk) > maxMessage {
			dropped = &edges{Begin: string(d.text[:edge])}
		}
		if dropped != nil { // what comes may be its end
			d.text = append([]byte(nil), d.text[max(0, len(d.text)-edge):]...)
		}
		d.text = append(roomFor(d.text, len(chunk)), chunk...)
		d.in.Discard(len(chunk))
	}
}

// What looks like the end of a message is it: in a string there is a backslash before each quote.
var (
	answerBegins  = regexp.MustCompile(`^\{"id":([0-9]{1,18})[,}]`)
	eventBegins   = regexp.MustCompile(`^\{"method":"([A-Za-z.]+)"`)
	sessionEnds   = regexp.MustCompile(`,"sessionId":"([^"\\]+)"\}\s*$`)
	contextEnds   = regexp.MustCompile(`,"executionContextId":([0-9]{1,18})\}(?:,"sessionId":"[^"\\]*")?\}\s*$`)
	namesToolCall = regexp.MustCompile(`^\{"method":"[A-Za-z.]+","params":\{"invocationId":"([^"\\]+)"`)
)

// message is what is known of one that was dropped.
func (e *edges) message() *message {
	m := &message{Session: target.SessionID(find(sessionEnds, e.End))}
	if id := find(answerBegins, e.Begin); id != "" {
		m.ID, _ = strconv.ParseInt(id, 10, 64)
		m.Error = &refusal{-32000, tooLong}
		return m
	}
	m.Method, m.Dropped = find(eventBegins, e.Begin), e
	return m
}

// context is that in which a page called a binding, or 0.
func (e *edges) context() runtime.ExecutionContextID {
	id, _ := strconv.ParseInt(find(contextEnds, e.End), 10, 64)
	return runtime.ExecutionContextID(id)
}

// toolCall is the id of the tool's call that an event is about, or "".
func (e *edges) toolCall() string { return find(namesToolCall, e.Begin) }

func find(re *regexp.Regexp, text string) string {
	if m := re.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
