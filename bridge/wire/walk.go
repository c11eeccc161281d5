package wire

// A Walk reads JSON text in order, and checks it (RFC 8259, valid UTF-8) in the same pass. The
// caller takes one value: by Value, Object or Array. An error is an *Error with code ParseError, or
// the callback's.
type Walk struct{ s scanner }

// NewWalk begins at the first value of text, which may be nested at most depth arrays and objects
// deep.
func NewWalk(text []byte, depth int) *Walk {
	return &Walk{scanner{text: text, depth: depth, pos: blank(text, 0)}}
}

// Kind is the kind of the next value, if it is valid.
func (w *Walk) Kind() Kind { return Value(w.s.text[w.s.pos:]).Kind() }

// Value takes the next value.
func (w *Walk) Value() (Value, error) { return w.s.take() }

// Object takes the next value, which must be an object. member is called with each key, and takes
// the member's value.
func (w *Walk) Object(member func(key Value) error) error { return w.s.object(member) }

// Array takes the next value, which must be an array. element is called for each element, and takes
// it.
func (w *Walk) Array(element func() error) error { return w.s.array(element) }

// Pos is the offset in the text of what comes next.
func (w *Walk) Pos() int { return w.s.pos }

// Since is the text from an offset to the end of the last value.
func (w *Walk) Since(pos int) Value { return w.s.text[pos:w.s.pos] }

// End returns an error if anything but white space follows.
func (w *Walk) End() error {
	if w.s.space(); w.s.pos != len(w.s.text) {
		return w.s.fail("text after the value")
	}
	return nil
}

// Odd reports whether the text until now has something that JSON allows and some readers do not
// take: an escaped surrogate, which may lack its other half, an unescaped line separator in a
// string, or a number that may be beyond a double.
func (w *Walk) Odd() bool { return w.s.odd }
