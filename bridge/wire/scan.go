package wire

import "unicode/utf8"

// A scanner checks JSON text, strictly by RFC 8259. It keeps only its position.
type scanner struct {
	text  []byte
	pos   int
	depth int  // how many more arrays and objects may open
	odd   bool // see Walk.Odd
}

// Parse checks that text is one JSON value (RFC 8259) in valid UTF-8, nested at most depth arrays
// and objects deep, and returns it. The error is an *Error with code ParseError.
func Parse(text []byte, depth int) (Value, error) {
	s := scanner{text: text, depth: depth}
	s.space()
	start := s.pos
	if err := s.value(); err != nil {
		return nil, err
	}
	end := s.pos
	s.space()
	if s.pos != len(text) {
		return nil, s.fail("text after the value")
	}
	return Value(text[start:end]), nil
}

func (s *scanner) fail(what string) *Error {
	return &Error{Code: ParseError, Message: "Parse error: " + what + " at byte " + Itoa(s.pos)}
}

func (s *scanner) space() { s.pos = blank(s.text, s.pos) }

// peek is the next byte, or 0 at the end of the text. A 0 byte starts no token, so the two need no
// distinction.
func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) value() error {
	switch c := s.peek(); c {
	case '{':
		return s.object(nil)
	case '[':
		return s.array(nil)
	case '"':
		return s.str()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return s.number()
		}
		if s.pos == len(s.text) {
			return s.fail("unexpected end")
		}
		return s.fail("unexpected character")
	}
}

// take scans a value and returns it.
func (s *scanner) take() (Value, error) {
	from := s.pos
	if err := s.value(); err != nil {
		return nil, err
	}
	return s.text[from:s.pos], nil
}

// object scans an object. member, if it is not nil, is called with each key, and scans the value.
func (s *scanner) object(member func(key Value) error) error {
	if s.depth--; s.depth < 0 {
		return s.fail("nested too deep")
	}
	s.pos++
	s.space()
	for first := true; s.peek() != '}'; first = false {
		if !first {
			if s.peek() != ',' {
				return s.fail("expected , or }")
			}
			s.pos++
			s.space()
		}
		from := s.pos
		if s.peek() != '"' {
			return s.fail("expected a member name")
		}
		if err := s.str(); err != nil {
			return err
		}
		key := s.text[from:s.pos]
		s.space()
		if s.peek() != ':' {
			return s.fail("expected :")
		}
		s.pos++
		s.space()
		err := error(nil)
		if member != nil {
			err = member(key)
		} else {
			err = s.value()
		}
		if err != nil {
			return err
		}
		s.space()
	}
	s.pos++
	s.depth++
	return nil
}

// array scans an array. element, if it is not nil, is called for each element, and scans it.
func (s *scanner) array(element func() error) error {
	if s.depth--; s.depth < 0 {
		return s.fail("nested too deep")
	}
	s.pos++
	s.space()
	for first := true; s.peek() != ']'; first = false {
		if !first {
			if s.peek() != ',' {
				return s.fail("expected , or ]")
			}
			s.pos++
			s.space()
		}
		err := error(nil)
		if element != nil {
			err = element()
		} else {
			err = s.value()
		}
		if err != nil {
			return err
		}
		s.space()
	}
	s.pos++
	s.depth++
	return nil
}

func (s *scanner) str() error {
	s.pos++
	for {
		s.pos = plainEnd(s.text, s.pos)
		switch c := s.peek(); {
		case c == '"':
			s.pos++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case s.pos == len(s.text):
			return s.fail("unexpected end in a string")
		case c < ' ':
			return s.fail("control character in a string")
		default:
			r, size := utf8.DecodeRune(s.text[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return s.fail("invalid UTF-8")
			}
			s.odd = s.odd || BreaksLines(r)
			s.pos += size
		}
	}
}

func (s *scanner) escape() error {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		from := s.pos
		for range 4 {
			s.pos++
			c := s.peek()
			if ('0' > c || c > '9') && ('a' > c || c > 'f') && ('A' > c || c > 'F') {
				return s.fail("expected four hexadecimal digits")
			}
		}
		s.pos++
		s.odd = s.odd || s.text[from+1]|' ' == 'd' && s.text[from+2] >= '8' // a surrogate
		return nil
	}
	return s.fail("unknown escape")
}

func (s *scanner) literal(word string) error {
	if len(s.text)-s.pos < len(word) || string(s.text[s.pos:s.pos+len(word)]) != word {
		return s.fail("unexpected character")
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.peek() == '.' {
		s.pos++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		from := s.pos
		err := s.digits()
		s.odd = s.odd || s.pos-from > 2
		return err
	}
	return nil
}

func (s *scanner) digits() error {
	from := s.pos
	for '0' <= s.peek() && s.peek() <= '9' {
		s.pos++
	}
	s.odd = s.odd || s.pos-from > 200 // with an exponent of two digits it fits
	if s.pos == from {
		return s.fail("expected a digit")
	}
	return nil
}
