package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Acts reports whether a terminal acts upon a character of a text that pages or other programs
// choose: C0 and C1 controls move its cursor, and overrides of direction make one text look like
// another. It is the only rule for all output.
func Acts(r rune) bool { return !unicode.IsPrint(r) }

// Plain makes a text one line, and replaces characters that act.
func Plain(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Harmless(s))
}

// Harmless replaces characters that act, and keeps line ends and tabs.
func Harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return -1
		case Acts(r) && r != '\n' && r != '\t':
			return utf8.RuneError
		}
		return r
	}, s)
}

// Visible is a writer that writes characters that act as \uXXXX, which is equivalent in JSON. Each
// Write must have whole characters.
func Visible(to io.Writer) io.Writer { return visible{to} }

type visible struct{ to io.Writer }

func (v visible) Write(text []byte) (int, error) {
	var b []byte
	from := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r != '\n' && r != '\t' && (Acts(r) || r == utf8.RuneError && n == 1) {
			b = append(b, text[from:i]...)
			if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
				b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
			} else {
				b = fmt.Appendf(b, `\u%04x`, r)
			}
			from = i + n
		}
		i += n
	}
	if b == nil {
		return v.to.Write(text)
	}
	if _, err := v.to.Write(append(b, text[from:]...)); err != nil {
		return 0, err
	}
	return len(text), nil
}

func IndentedJSON(v any) string { return encoded(v, "  ") }

// JSON is a value on one line, which has a newline at its end; CompactJSON has none.
func JSON(v any) string { return encoded(v, "") }

func CompactJSON(v any) string { return strings.TrimSuffix(JSON(v), "\n") }

// encoded is json.Marshal without HTML's escapes, and with a newline at the end.
func encoded(v any, indent string) string {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", indent)
	_ = out.Encode(v) // it fails only for types that do not occur here
	return b.String()
}

// IsTerminal reports whether a stream is a terminal, where escape sequences act.
func IsTerminal(stream any) bool {
	if v, ok := stream.(visible); ok { // as stderr is
		stream = v.to
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	// The null device is a character device as well.
	null, nullErr := os.Stat(os.DevNull)
	return err == nil && info.Mode()&os.ModeCharDevice != 0 &&
		(nullErr != nil || !os.SameFile(info, null))
}
