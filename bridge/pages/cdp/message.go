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

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// maxMessage bounds the bytes kept of one message of the browser. Of a page's call of its binding
// it counts the unquoted text, a letter and a frame; of others the raw text. A longer message is
// dropped while it is read.
const maxMessage = 17<<20 + 1

// tooLong is the reason when a dropped message ends a page, or fails a command.
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
	Dropped *edges `json:"-"`

	said *said // of Runtime.bindingCalled, in place of Params
}

// call returns a page's call of a binding, or nil for another message.
func (m *message) call() (c *said) {
	if c = m.said; c == nil {
		on(m, runtime.BindingCalled, func(e *runtime.EventBindingCalled) {
			c = &said{e.Name, e.ExecutionContextID, []byte(e.Payload)}
		})
	}
	return c
}

var decodeOptions = jsonv2.JoinOptions(jsonv2.DefaultOptionsV2(), jsonv2.AllowInvalidUTF8(true))

// on handles an event of a kind. It ignores an event that cannot be decoded, as a newer browser may
// send.
func on[T any](m *message, kind protocol.Event[T], do func(e *T)) {
	if m.Method != kind.Method {
		return
	}
	if e := new(T); jsonv2.Unmarshal(m.Params, e, decodeOptions) == nil {
		do(e)
	}
}

func yes() *bool { t := true; return &t }

// A refusal is the browser's reason for refusing a command.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// edges are the beginning and the end of a dropped message: at most edge bytes of each.
type edges struct{ Begin, End string }

// said is a page's call of a binding. A call that was too long has no payload.
type said struct {
	binding string
	context runtime.ExecutionContextID
	payload []byte
}

// A decoder decodes the browser's messages one after the other.
//
// Most large messages are calls of pages. They are unquoted while they arrive, and so held once.
// With the types of cdproto they were held four times: a message of 100 MB took 538 MB.
//
// Why does the gateway read the browser's messages itself? chromedp's types copy each message three
// times: 100 MB in one call of a page took the gateway to 538 MB. Now a message is unquoted while
// it arrives, into the one buffer that the link parses, and dropped above 17 MiB: 56 MB. The bound
// is on the unquoted text: a quote travels as up to four bytes, so a bound on what travels would
// refuse contents of 5 MiB.
type decoder struct {
	in   *bufio.Reader
	text []byte // for the next message, if no one keeps it
}

const (
	// readSize is how many bytes are read at once.
	readSize = 64 << 10
	// retained is the largest buffer that is kept for the next message.
	retained = 1 << 20
	// edge is how many bytes are kept of the beginning and of the end of a dropped message.
	edge = 256
	// window is how many bytes are searched at once for a quote or a backslash: 1 MB takes 0.1 ms,
	// byte by byte 1 ms.
	window = 1 << 10
	// maxTail bounds the text after a call's payload, which is far shorter.
	maxTail = 4 << 10
)

func newDecoder() *decoder { return &decoder{in: bufio.NewReaderSize(nil, readSize)} }

// The browser writes a call of a binding like this. A call in another notation is bounded by its
// raw text.
var (
	callBegins   = []byte(`{"method":"Runtime.bindingCalled","params":{"name":"`)
	payloadComes = []byte(`","payload":"`)
)

// decode reads a message. Its errors are the connection's, or mean an invalid message.
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

// call reads a page's call of a binding.
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
	if err := jsonv2.Unmarshal(append([]byte(`{"params":{"name":""`), tail...), &m,
		decodeOptions); err != nil {
		return nil, noMessage(err)
	}
	return &message{Method: runtime.BindingCalled.Method, Session: m.Session,
		said: &said{binding, m.Params.ExecutionContextID, payload}}, nil
}

func noMessage(err error) error {
	return fmt.Errorf("the browser sends something that is not a message: %w", err)
}

// unquote reads the rest of a JSON string, and its quote. It returns nil for a string that is too
// long.
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

// roomFor makes room for n more bytes. It doubles the buffer, up to the largest: append would make
// more garbage.
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

var plain = [256]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r',
	't': '\t'}

// escaped reads an escape after its backslash. Half a surrogate pair becomes U+FFFD.
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

// other reads a message that is not a call of a binding.
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
		if dropped != nil { // the next bytes may be its end
			d.text = append([]byte(nil), d.text[max(0, len(d.text)-edge):]...)
		}
		d.text = append(roomFor(d.text, len(chunk)), chunk...)
		d.in.Discard(len(chunk))
	}
}

// These patterns match only the real end of a message: within a string a backslash comes before
// each quote.
var (
	answerBegins = regexp.MustCompile(`^\{"id":([0-9]{1,18})[,}]`)
	eventBegins  = regexp.MustCompile(`^\{"method":"([A-Za-z.]+)"`)
	sessionEnds  = regexp.MustCompile(`,"sessionId":"([^"\\]+)"\}\s*$`)
	contextEnds  = regexp.MustCompile(
		`,"executionContextId":([0-9]{1,18})\}(?:,"sessionId":"[^"\\]*")?\}\s*$`)
	namesToolCall = regexp.MustCompile(
		`^\{"method":"[A-Za-z.]+","params":\{"invocationId":"([^"\\]+)"`)
)

// message returns the parts of a dropped message that its edges show.
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

// context returns the context in which a page called a binding, or 0.
func (e *edges) context() runtime.ExecutionContextID {
	id, _ := strconv.ParseInt(find(contextEnds, e.End), 10, 64)
	return runtime.ExecutionContextID(id)
}

// toolCall returns the invocation id in an event about a tool's call, or "".
func (e *edges) toolCall() string { return find(namesToolCall, e.Begin) }

func find(re *regexp.Regexp, text string) string {
	if m := re.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
