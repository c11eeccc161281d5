package live

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pagewire/pagewire/bridge/gateway/live/delta"
)

// A Wish is an agent's request for a URI.
type Wish struct {
	URI   string
	Part  string // as PartOf takes it
	Since *int64 // the revision that the agent has
	At    Cursor // where the agent continues
	Chars int    // the maximum of the result with its head
	// Images is the maximum of the images, in base64; 0 for those that the look has.
	Images int
}

// A Cursor is the place where an agent continues to read a text. The text is that of a revision, or
// the delta from an earlier revision to it.
type Cursor struct {
	Revision, Since int64 // Since is 0 for the whole text
	From            int   // in bytes; 0 for no cursor
}

func (c Cursor) String() string {
	s := strconv.FormatInt(c.Revision, 10)
	if c.Since > 0 {
		s += "-" + strconv.FormatInt(c.Since, 10)
	}
	return s + ":" + strconv.Itoa(c.From)
}

// ParseCursor is the inverse of String. ok is false if s is no cursor.
func ParseCursor(s string) (c Cursor, ok bool) {
	what, from, _ := strings.Cut(s, ":")
	revision, since, delta := strings.Cut(what, "-")
	var err [3]error
	c.Revision, err[0] = strconv.ParseInt(revision, 10, 64)
	if delta {
		c.Since, err[1] = strconv.ParseInt(since, 10, 64)
	}
	c.From, err[2] = strconv.Atoi(from)
	return c, err == [3]error{} && c.From > 0 && c.Since >= 0
}

// A Head is the first line of a result.
type Head struct {
	Revision  int64  `json:"revision"`
	URI       string `json:"uri,omitempty"`
	Unchanged bool   `json:"unchanged,omitempty"`
	Since     int64  `json:"since,omitempty"`
	Delta     string `json:"delta,omitempty"`
	Pointer   string `json:"pointer,omitempty"`
	Lines     string `json:"lines,omitempty"`
	Part      string `json:"part,omitempty"`
	Next      *Next  `json:"next,omitempty"`
	Note      string `json:"note,omitempty"`
}

// Next are the arguments of the call for the next page.
type Next struct {
	URI     string `json:"uri"`
	Pointer string `json:"pointer,omitempty"`
	Lines   string `json:"lines,omitempty"`
	Cursor  string `json:"cursor"`
}

// Page returns as much of a text as fits in w.Chars with the head. If that is not all, it sets
// h.Part and h.Next.
func Page(h *Head, w Wish, text string) []any {
	h.Pointer, h.Lines = partNames(w.Part)
	if text == "" {
		return nil
	}
	room := w.Chars - len(Line(h))
	from := min(w.At.From, len(text))
	if from == 0 && utf8.RuneCountInString(text) <= room {
		return []any{AsText(text)}
	}
	room = max(room-200, w.Chars/2) // 200 for the head's longer text; a long URI may fill the head
	end := from
	for n := 0; n < room && end < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	page, upTo := delta.Page(text, from, end-from)
	first := utf8.RuneCountInString(text[:from])
	h.Part = fmt.Sprintf("characters %d-%d of %d", first, first+utf8.RuneCountInString(page),
		utf8.RuneCountInString(text))
	if upTo > 0 {
		h.Next = &Next{URI: w.URI, Pointer: h.Pointer, Lines: h.Lines,
			Cursor: Cursor{h.Revision, h.Since, upTo}.String()}
	}
	return []any{AsText(page)}
}
