package gate

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pagewire/pagewire/bridge/wire"
)

// What MCP and its extensions define, and a page does not give. All other members that the gate does not know are left
// out, too; these have a reason of their own.
var notThePages = map[string]string{
	// Of results.
	"resultType":    "only the server says whether a call is complete",
	"inputRequests": "only the server asks the user or the client's model",
	"requestState":  "only the server goes on with a request",
	"ttlMs":         "only the server says what may be cached",
	"cacheScope":    "only the server says what may be cached",
	"nextCursor":    "a result has no pages",
	"task":          "the call is no task (io.modelcontextprotocol/tasks)",
	"toolResult":    "it is from before MCP 2024-11-05",
	// Of content blocks.
	"icons": "a client would fetch them from where the page says",
	// Keys of _meta, and their prefixes. Every other key passes as data.
	"progressToken":        "it is the client's",
	"traceparent":          "a trace is the client's",
	"tracestate":           "a trace is the client's",
	"baggage":              "a trace is the client's",
	"ui":                   "it has a client show the server's Views (MCP Apps)",
	"mcp":                  "the prefix is reserved for MCP",
	"modelcontextprotocol": "the prefix is reserved for MCP",
	"pagewire":             "the prefix is Pagewire's own",
	"__proto__":            "it changes objects of careless readers",
}

// reserved is the reason why a key of _meta does not pass, or "". A label of its prefix decides, as MCP reserves them.
func reserved(key string) string {
	prefix, _, prefixed := strings.Cut(strings.ToLower(key), "/")
	why := notThePages[prefix]
	for _, label := range strings.Split(prefix, ".") {
		if prefixed && (label == "mcp" || label == "modelcontextprotocol") {
			why = notThePages[label]
		}
	}
	return why
}

const (
	// maxMeta bounds the keys that pass of one _meta, in bytes together, and maxKeys their number.
	maxMeta, maxKeys = 64 << 10, 100
)

// Meta returns what passes of a page's _meta, or nil: data under keys of others. own are the pagewire/ keys that the
// page gives here. note is called with each key that is left out, or with "_meta", and the reason.
func Meta(v wire.Value, own []string, note func(key, why string)) wire.Value {
	if v == nil {
		return nil
	}
	if v.Kind() != wire.Object {
		note("_meta", "it is no object")
		return nil
	}
	keys := map[string]wire.Value{}
	var order []string
	size, same := 0, true
	v.Members(func(k, m wire.Value) bool {
		key, _ := k.Text()
		why := ""
		if !slices.Contains(own, key) {
			why = reserved(key)
		}
		if size += len(k) + len(m); size > maxMeta || len(order) == maxKeys {
			why = "its _meta is longer than 64 KiB, or has more than 100 keys"
		}
		if why != "" {
			size -= len(k) + len(m)
			note(key, why)
		} else if keys[key] == nil {
			order = append(order, key)
		}
		same = same && why == "" && keys[key] == nil
		if why == "" {
			keys[key] = m
		}
		return true
	})
	switch {
	case same:
		return v
	case len(order) == 0:
		return nil
	}
	out := wire.Text("{")
	for i, key := range order {
		if i > 0 {
			out = out.Raw(",")
		}
		out = out.Str(key).Raw(":").Bytes(keys[key])
	}
	return wire.Value(out.Raw("}"))
}

const continuesKey = "pagewire/continues"

// meta is Meta for answers. Of a result it also returns whether the next document adds to it.
func (g *passage) meta(v wire.Value, result bool) (passes wire.Value, continues bool) {
	if result && v.Kind() == wire.Object {
		continues = v.Get(continuesKey).True()
	}
	passes = Meta(v, nil, func(key, why string) {
		if !result || key != continuesKey {
			g.note(key, "does not pass in _meta: "+why, "it is left out")
		}
	})
	return passes, continues
}

// mend rewrites text that Walk.Odd reports: half of a surrogate pair becomes U+FFFD, line separators are escaped, and a
// number beyond a double becomes null, as in JSON.stringify. The text is valid JSON.
func (g *passage) mend() {
	in := g.text
	out := make([]byte, 0, len(in)+len(in)/8)
	quoted := false
	for i := 0; i < len(in); {
		n := 1
		switch c := in[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && in[i+1] != 'u':
			n = 2
		case c == '\\':
			n = 6
			if r := hexOf(in[i+2:]); utf16.IsSurrogate(r) {
				low := rune(0)
				if r < 0xDC00 && bytes.HasPrefix(in[i+6:], []byte(`\u`)) {
					low = hexOf(in[i+8:])
				}
				if utf16.DecodeRune(r, low) != utf8.RuneError {
					n = 12
				} else {
					g.note("a text", "has half of a surrogate pair", "it is served as U+FFFD, use toWellFormed()")
					out, i = append(out, `\ufffd`...), i+6
					continue
				}
			}
		case c >= utf8.RuneSelf:
			var r rune
			if r, n = utf8.DecodeRune(in[i:]); wire.BreaksLines(r) {
				out, i = fmt.Appendf(out, `\u%04x`, r), i+n
				continue
			}
		case !quoted && (c == '-' || '0' <= c && c <= '9'):
			for i+n < len(in) && strings.IndexByte("+-.eE0123456789", in[i+n]) >= 0 {
				n++
			}
			if _, err := strconv.ParseFloat(string(in[i:i+n]), 64); err != nil {
				g.note("a number", "is beyond what a double holds", "it is served as null")
				out, i = append(out, "null"...), i+n
				continue
			}
		}
		out = append(out, in[i:i+n]...)
		i += n
	}
	g.text, g.mended = out, true
}

// hexOf is the number of four hexadecimal digits.
func hexOf(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(n)
}
