package wire

import "unicode/utf8"

// A Kind is the type of a JSON value.
type Kind byte

// The kinds. Absent is the kind of an empty Value. A message has an optional member if the kind is
// above Null: some clients write null for what they do not set.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// A Value is the text of one valid JSON value without surrounding white space, or empty for an
// absent value. Its methods read the text in place: a Value is a view, copies nothing, and is valid
// only as long as its bytes are.
type Value []byte

// Kind tells the type of v.
func (v Value) Kind() Kind {
	if len(v) == 0 {
		return Absent
	}
	switch v[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// True reports whether v is the literal true.
func (v Value) True() bool { return len(v) > 0 && v[0] == 't' }

// Get returns the member key of an object: the last one if the key is repeated (as in JSON.parse),
// and an absent Value if there is none.
func (v Value) Get(key string) (member Value) {
	v.Members(func(k, m Value) bool {
		if k.Is(key) {
			member = m
		}
		return true
	})
	return member
}

// Members calls yield for each member of an object, in the order of the text, until it returns
// false. The key is a string Value. It calls nothing if v is not an object.
func (v Value) Members(yield func(key, member Value) bool) {
	if v.Kind() != Object {
		return
	}
	for i := blank(v, 1); v[i] == '"'; {
		end := skip(v, i)
		key := v[i:end]
		i = blank(v, blank(v, end)+1) // past the colon
		end = skip(v, i)
		if !yield(key, v[i:end]) {
			return
		}
		if i = blank(v, end); v[i] == ',' {
			i = blank(v, i+1)
		}
	}
}

// Elements calls yield for each element of an array, until it returns false. It calls nothing if v
// is not an array.
func (v Value) Elements(yield func(Value) bool) {
	if v.Kind() != Array {
		return
	}
	for i := blank(v, 1); v[i] != ']'; {
		end := skip(v, i)
		if !yield(v[i:end]) {
			return
		}
		if i = blank(v, end); v[i] == ',' {
			i = blank(v, i+1)
		}
	}
}

// Empty reports whether v is an array or an object without elements or members.
func (v Value) Empty() bool {
	k := v.Kind()
	return (k == Array || k == Object) && blank(v, 1) == len(v)-1
}

// Is reports whether v is the string s.
func (v Value) Is(s string) bool {
	if v.Kind() != String {
		return false
	}
	raw := v[1 : len(v)-1]
	if string(raw) == s {
		return plain(raw)
	}
	if len(raw) <= len(s) || plain(raw) { // an escape is longer than its character
		return false
	}
	got, _ := v.Text()
	return got == s
}

// Text returns the string of v. Unpaired escaped surrogates become U+FFFD, as in encoding/json.
func (v Value) Text() (text string, ok bool) {
	if v.Kind() != String {
		return "", false
	}
	raw := v[1 : len(v)-1]
	if plain(raw) {
		return string(raw), true
	}
	return string(unquote(make([]byte, 0, len(raw)), raw)), true
}

// Int returns the integer of v: a number without fraction or exponent that fits 53 bits, so that it
// is the same number in JavaScript and Go.
func (v Value) Int() (n int64, ok bool) {
	if !v.Integer() || len(v) > 17 {
		return 0, false
	}
	digits := v
	if v[0] == '-' {
		digits = v[1:]
	}
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	if v[0] == '-' {
		n = -n
	}
	return n, -1<<53 < n && n < 1<<53
}

// Integer reports whether v is a number written without fraction and exponent, of any size.
func (v Value) Integer() bool {
	if v.Kind() != Number {
		return false
	}
	for i, c := range v {
		if (c < '0' || c > '9') && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}

// Equal reports whether two request ids are the same: numbers by their text, strings by their
// unescaped text.
func (v Value) Equal(id Value) bool {
	if string(v) == string(id) {
		return true
	}
	if v.Kind() != String || id.Kind() != String || plain(v) && plain(id) {
		return false
	}
	a, _ := v.Text()
	return id.Is(a)
}

// unescaped is the string v without escapes, still in its quotes; nearly always it is v itself.
func (v Value) unescaped() []byte {
	if raw := v[1 : len(v)-1]; !plain(raw) {
		return append(unquote([]byte{'"'}, raw), '"')
	}
	return v
}

// plain reports whether the inside of a string has no escape, so that it is its own text.
func plain(raw []byte) bool {
	for _, c := range raw {
		if c == '\\' {
			return false
		}
	}
	return true
}

// unquote appends the unescaped inside of a valid JSON string.
func unquote(dst, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(raw[i+1:])
			i += 4
			if 0xD800 <= r && r < 0xDC00 && len(raw) > i+6 && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if low := hex4(raw[i+3:]); 0xDC00 <= low && low < 0xE000 {
					r = (r-0xD800)<<10 | (low - 0xDC00) + 0x10000
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r) // an unpaired surrogate becomes U+FFFD
		default: // " \ /
			dst = append(dst, raw[i])
		}
	}
	return dst
}

func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		switch {
		case c <= '9':
			c -= '0'
		case c >= 'a':
			c -= 'a' - 10
		default:
			c -= 'A' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// blank returns the index of the first byte from i on that is not white space.
func blank(v []byte, i int) int {
	for i < len(v) && (v[i] == ' ' || v[i] == '\n' || v[i] == '\r' || v[i] == '\t') {
		i++
	}
	return i
}

// skip returns the index just past the value that starts at i. The text has been checked.
func skip(v []byte, i int) int {
	switch v[i] {
	case '"':
		return skipString(v, i)
	case '{', '[':
		for depth := 0; ; {
			switch v[i] {
			case '"':
				i = skipString(v, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(v) {
		switch v[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

// special marks the bytes of a string that need special treatment: the quote, the backslash,
// control characters, and non-ASCII bytes.
//
// Why do branches and appends look odd in page code? Go's wasm turns every branch into a jump
// through a table. A table of the significant bytes, with one branch for four bytes, took decoding
// a request from 2.51 to 1.12 µs. Inline append(append(...)) takes some 150 bytes of wasm at each
// place; a method that is not inlined takes only a call, so wire.Text has methods.
var special = func() (t [256]uint8) {
	for c := range t {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			t[c] = 1
		}
	}
	return t
}()

// plainEnd returns the index of the first special byte from i on, or the length of the text. Half
// of a message is inside its strings, and every branch costs a jump through a table in Go's wasm:
// one branch for four bytes makes decoding a third faster there.
func plainEnd(text []byte, i int) int {
	for i+4 <= len(text) {
		four := text[i : i+4 : i+4]
		if special[four[0]]|special[four[1]]|special[four[2]]|special[four[3]] != 0 {
			break
		}
		i += 4
	}
	for i < len(text) && special[text[i]] == 0 {
		i++
	}
	return i
}

func skipString(v []byte, i int) int {
	for i++; ; i++ {
		i = plainEnd(v, i)
		switch v[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
}

// BreaksLines reports whether some readers, such as Python's splitlines, take a character for the
// end of a line that JSON allows unescaped in a string: NEL, LINE SEPARATOR, PARAGRAPH SEPARATOR.
func BreaksLines(r rune) bool { return r == 0x85 || r == 0x2028 || r == 0x2029 }
