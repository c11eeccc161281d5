package gate

import (
	"bytes"
	"strconv"

	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// What MCP and its extensions define, and a page does not give. All other members that the gate
// does not know are left out, too; these have a reason of their own.
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
	// Keys of _meta, and labels of their prefixes, as resource.Reserved has them. Every other key
	// passes as data.
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

const (
	// maxMeta bounds the keys that pass of one _meta, in bytes together, and maxKeys their number.
	maxMeta, maxKeys = 64 << 10, 100
	// continues is the one key of Pagewire that a page gives in an answer.
	continues = "pagewire/continues"
)

// meta passes the _meta of an answer, or nil: data under keys of others.
func (g *passage) meta(v wire.Value) wire.Value {
	if v.Kind() != wire.Object {
		return nil
	}
	list, same, _ := pairs(wire.NewWalk(v, nesting), maxKeys)
	if !same {
		g.leaveOut("_meta", "a key comes twice, or there are more than 100")
	}
	o := object{t: wire.Text("{")}
	for _, p := range list {
		key := words(p.key)
		why := notThePages[resource.Reserved(key)]
		if len(o.t)+len(p.value) > maxMeta {
			why = "it is longer than 64 KiB with the others"
		}
		if why == "" {
			o.key(key).Bytes(p.value)
			continue
		}
		if same = false; key != continues {
			g.leaveOut("_meta."+key, why)
		}
	}
	if same {
		return v
	}
	return only(len(o.t) > 1, wire.Value(o.Raw("}").t))
}

// mend rewrites text that Walk.Odd reports, and reports whether it has: half of a surrogate pair
// becomes U+FFFD, line separators are escaped, and a number beyond a double becomes null, as in
// JSON.stringify. The text is valid JSON.
func (g *passage) mend() bool {
	if !g.odd {
		return false
	}
	in := g.text
	out := make(wire.Text, 0, len(in))
	quoted := false
	for i, n := 0, 0; i < len(in); i += n {
		n = 1
		switch c := in[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\':
			n = 2
		case !quoted && (c == '-' || '0' <= c && c <= '9'):
			n = len(in[i:]) - len(bytes.TrimLeft(in[i:], "+-.eE0123456789"))
			if _, err := strconv.ParseFloat(string(in[i:i+n]), 64); err != nil {
				g.add("a number", "one that a double cannot hold is served as null")
				out = out.Raw("null")
				continue
			}
		}
		out = append(out, in[i:i+n]...)
	}
	g.text = wire.Text(make([]byte, 0, len(out))).Sound(wire.Value(out))
	if half := []byte("\uFFFD"); bytes.Count(g.text, half) > bytes.Count(in, half) {
		g.add("a text", "half of a surrogate pair is served as U+FFFD")
	}
	return true
}
