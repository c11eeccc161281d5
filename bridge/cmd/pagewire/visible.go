package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Pages and other programs choose texts that are printed, and a terminal acts upon some characters: C0 and C1 controls
// move its cursor, and overrides of direction make one text look like another. acts is the only rule for all output.
func acts(r rune) bool { return !unicode.IsPrint(r) }

// plain makes a text one line, and replaces characters that act.
func plain(s string) string { return strings.NewReplacer("\n", " ", "\t", " ").Replace(harmless(s)) }

// harmless replaces characters that act, and keeps line ends and tabs.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return -1
		case acts(r) && r != '\n' && r != '\t':
			return utf8.RuneError
		}
		return r
	}, s)
}

// visible writes characters that act as \uXXXX, which is equivalent in JSON. Each Write must have whole characters.
type visible struct{ to io.Writer }

func (v visible) Write(text []byte) (int, error) {
	var b []byte
	from := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r != '\n' && r != '\t' && (acts(r) || r == utf8.RuneError && n == 1) {
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

func indentedJSON(v any) string { return encodedJSON(v, "  ") }

func compactJSON(v any) string { return strings.TrimSuffix(encodedJSON(v, ""), "\n") }

// encodedJSON is json.Marshal without HTML's escapes, and with a newline at the end.
func encodedJSON(v any, indent string) string {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", indent)
	_ = out.Encode(v) // it fails only for types that do not occur here
	return b.String()
}
