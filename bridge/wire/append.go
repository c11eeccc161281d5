package wire

import "unicode/utf8"

// Text is JSON text that is being written. Its methods append and return the longer text, as append
// does. Raw and Bytes are not inlined: the code that grows a slice would take some 150 bytes of
// wasm at each of two hundred places.
type Text []byte

// Raw appends s as it stands.
//
//go:noinline
func (t Text) Raw(s string) Text { return append(t, s...) }

// Bytes appends b as it stands.
//
//go:noinline
func (t Text) Bytes(b []byte) Text { return append(t, b...) }

// Next goes on after a value: it appends a comma, unless the text, an array, an object or a member
// has just begun.
func (t Text) Next() Text {
	if n := len(t); n > 0 && t[n-1] != '[' && t[n-1] != '{' && t[n-1] != ':' {
		return t.Raw(",")
	}
	return t
}

const hexDigits = "0123456789abcdef"

// Str appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as in encoding/json.
// Characters that break lines are escaped.
func (t Text) Str(s string) Text {
	t = t.Raw(`"`)
	from := 0
	for i := 0; ; {
		for i < len(s) && special[s[i]] == 0 {
			i++
		}
		if i == len(s) {
			return t.Raw(s[from:]).Raw(`"`)
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				t = t.Raw(s[from:i]).Raw("\uFFFD")
				from = i + 1
			} else if BreaksLines(r) {
				t = append(t.Raw(s[from:i]).Raw(`\u`), hexDigits[r>>12], '0', hexDigits[r>>4&15],
					hexDigits[r&15])
				from = i + size
			}
			i += size
			continue
		}
		t = t.Raw(s[from:i])
		switch c {
		case '"':
			t = t.Raw(`\"`)
		case '\\':
			t = t.Raw(`\\`)
		case '\n':
			t = t.Raw(`\n`)
		case '\r':
			t = t.Raw(`\r`)
		case '\t':
			t = t.Raw(`\t`)
		default:
			t = append(t.Raw(`\u00`), hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
}

// Sound appends a page's value. Half of a surrogate pair in its strings becomes U+FFFD, and a
// number that may be beyond a double becomes null: some parsers refuse the whole message for one.
// Characters that break lines are escaped, as by Str.
func (t Text) Sound(v Value) Text {
	for i := 0; i < len(v); {
		end := i + 1
		if v[i] == '"' {
			if end = skipString(v, i); plainEnd(v, i+1) < end-1 {
				text, _ := v[i:end].Text()
				t = t.Str(text)
				i = end
			}
		} else if c := v[i]; c == '-' || '0' <= c && c <= '9' {
			if end = skip(v, i); !v[i:end].double() {
				t = t.Raw("null")
				i = end
			}
		}
		t = t.Bytes(v[i:end])
		i = end
	}
	return t
}

// double reports whether a number has so few digits before its point that a double holds it.
func (v Value) double() bool {
	exponent := 0
	for i, c := range v {
		if c|' ' == 'e' && v[i+1] != '-' {
			for _, d := range v[i+1:] {
				if d != '+' && exponent < 1000 {
					exponent = 10*exponent + int(d-'0')
				}
			}
		}
	}
	return len(v)+exponent <= 308
}

// Int appends n in decimal.
func (t Text) Int(n int) Text { return t.Int64(int64(n)) }

// Int64 appends n in decimal: an int may have 32 bits.
func (t Text) Int64(n int64) Text {
	u := uint64(n)
	if n < 0 {
		t = t.Raw("-")
		u = -u
	}
	return t.uint(u)
}

func (t Text) uint(u uint64) Text {
	if u >= 10 {
		t = t.uint(u / 10)
	}
	return append(t, byte('0'+u%10))
}

// Result appends the beginning of an answer, up to and including the colon of "result": the
// result's text and a closing brace complete it.
func (t Text) Result(id Value) Text {
	return t.Raw(`{"jsonrpc":"2.0","id":`).Bytes(id).Raw(`,"result":`)
}

// Notification appends the beginning of a notification, up to and including the colon of "params".
func (t Text) Notification(method string) Text {
	return t.Raw(`{"jsonrpc":"2.0","method":"`).Raw(method).Raw(`","params":`)
}

// An Error is a JSON-RPC error object.
type Error struct {
	Code    int
	Message string
	Data    Text // JSON, or nil for none
}

func (e *Error) Error() string { return e.Message }

// Failure appends a whole error answer. An absent id is left out, as in MCP's schema.
func (t Text) Failure(id Value, e *Error) Text {
	t = t.Raw(`{"jsonrpc":"2.0",`)
	if len(id) > 0 {
		t = t.Raw(`"id":`).Bytes(id).Raw(`,`)
	}
	return t.Error(e).Raw(`}`)
}

// Error appends the member "error".
func (t Text) Error(e *Error) Text {
	t = t.Raw(`"error":{"code":`).Int(e.Code).Raw(`,"message":`).Str(e.Message)
	if len(e.Data) > 0 {
		t = t.Raw(`,"data":`).Bytes(e.Data)
	}
	return t.Raw(`}`)
}

// Itoa is n in decimal.
func Itoa(n int) string { return string(Text(nil).Int(n)) }
