package delta

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pagewire/pagewire/bridge/wire"
)

// At returns the value at a JSON Pointer (RFC 6901) in a JSON text, with the text's own spelling.
// The error is a sentence about the last value that the pointer reaches.
func At(text, pointer string) (string, error) {
	v, err := wire.Parse([]byte(text), maxDepth)
	if err != nil {
		return "", errors.New("it is not JSON, so pointer does not work: use lines")
	}
	if pointer != "" && pointer[0] != '/' {
		return "", fmt.Errorf("the pointer %q does not begin with /", shorten(pointer))
	}
	at := ""
	for pointer != "" {
		token, rest, _ := strings.Cut(pointer[1:], "/")
		if rest != "" || strings.HasSuffix(pointer, "/") && pointer != "/" {
			rest = "/" + rest
		}
		next := step(v, unescaper.Replace(token))
		if next == nil {
			return "", fmt.Errorf("there is nothing at %q: %s", shorten(at+"/"+token), holds(v, at))
		}
		v, at, pointer = next, at+"/"+token, rest
	}
	return string(v), nil
}

var unescaper = strings.NewReplacer("~1", "/", "~0", "~")

// step returns the member or element of v that a token names, or nil.
func step(v wire.Value, token string) wire.Value {
	if v.Kind() == wire.Object {
		return v.Get(token)
	}
	want, err := strconv.Atoi(token)
	if v.Kind() != wire.Array || err != nil || want < 0 || token != strconv.Itoa(want) {
		return nil
	}
	for e := range v.Elements {
		if want == 0 {
			return e
		}
		want--
	}
	return nil
}

// holds describes v, the value at a pointer, in words for an error.
func holds(v wire.Value, at string) string {
	where := "the document"
	if at != "" {
		where = strconv.Quote(shorten(at))
	}
	switch v.Kind() {
	case wire.Array:
		n := 0
		for range v.Elements {
			n++
		}
		return fmt.Sprintf("%s is an array of %d", where, n)
	case wire.Object:
		var names []string
		long, more := 0, 0
		v.Members(func(key, _ wire.Value) bool {
			name, _ := key.Text()
			if long += len(name); len(names) == 20 || long > 400 {
				more++
			} else {
				names = append(names, strconv.Quote(name))
			}
			return true
		})
		if more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		if len(names) == 0 {
			return where + " is an object without members"
		}
		return where + " has " + strings.Join(names, ", ")
	}
	return where + " is a " + map[wire.Kind]string{wire.String: "string", wire.Number: "number",
		wire.Bool: "boolean",
		wire.Null: "null"}[v.Kind()]
}

func shorten(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Lines returns a range of lines, such as "10-20", "10-" or "10". The first line is 1. The error is
// a sentence.
func Lines(text, span string) (string, error) {
	head, tail, open := strings.Cut(span, "-")
	from, err := strconv.Atoi(strings.TrimSpace(head))
	to := from
	if open && err == nil {
		if to = int(^uint(0) >> 1); strings.TrimSpace(tail) != "" {
			to, err = strconv.Atoi(strings.TrimSpace(tail))
		}
	}
	if err != nil || from < 1 || to < from {
		return "", fmt.Errorf("lines %q is not a range such as 10-20", shorten(span))
	}
	at, n, start, end := 0, 0, -1, len(text)
	for line := range strings.Lines(text) {
		if n++; n == from {
			start = at
		}
		if at += len(line); n == to {
			end = at
			break
		}
	}
	if start < 0 {
		return "", fmt.Errorf("it has %d lines: there is no line %d", n, from)
	}
	return text[start:end], nil
}

// Page returns the text from a byte on, cut after most bytes, but at least one character. next is
// the first byte of the next page, and 0 at the end. The page ends at a line's end if there is one
// in its last quarter.
func Page(text string, from, most int) (page string, next int) {
	rest := text[min(max(from, 0), len(text)):]
	if len(rest) <= most {
		return rest, 0
	}
	end := most
	for end > max(most-utf8.UTFMax, 0) && !utf8.RuneStart(rest[end]) {
		end--
	}
	if line := strings.LastIndexByte(rest[:end], '\n'); line >= end*3/4 {
		end = line + 1
	}
	if end == 0 {
		_, end = utf8.DecodeRuneInString(rest)
	}
	if end == len(rest) {
		return rest, 0
	}
	return rest[:end], from + end
}
