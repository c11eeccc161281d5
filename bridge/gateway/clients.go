//go:build !js

package gateway

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/wire"
)

// Some clients fail on what MCP allows. What no client misses is changed for all (tools.Names and agentTools), and the
// rest for the client alone.

// wantsWhole reports whether a client reads priorities as integers: of Codex one that is no integer fails the whole
// list, read or call.
func wantsWhole(names ...string) bool {
	return strings.Contains(strings.ToLower(strings.Join(names, " ")), "codex")
}

// wholePriorities is an answer with the priority of each annotations rounded to 0 or 1.
func wholePriorities(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"priority"`)) {
		return message
	}
	v, err := wire.Parse(message, live.MaxDepth)
	if err != nil {
		return message
	}
	return appendWhole(make(wire.Text, 0, len(message)), v)
}

func appendWhole(out wire.Text, v wire.Value) wire.Text {
	separator := ""
	next := func() {
		out = out.Raw(separator)
		separator = ","
	}
	switch v.Kind() {
	case wire.Object:
		out = out.Raw("{")
		v.Members(func(key, member wire.Value) bool {
			next()
			out = out.Bytes(key).Raw(":")
			switch {
			case key.Is("annotations"):
				out = appendAnnotations(out, member)
			case key.Is("structuredContent"), key.Is("_meta"), key.Is("inputSchema"), key.Is("outputSchema"):
				out = out.Bytes(member) // a page's data
			default:
				out = appendWhole(out, member)
			}
			return true
		})
		return out.Raw("}")
	case wire.Array:
		out = out.Raw("[")
		v.Elements(func(element wire.Value) bool {
			next()
			out = appendWhole(out, element)
			return true
		})
		return out.Raw("]")
	}
	return out.Bytes(v)
}

func appendAnnotations(out wire.Text, v wire.Value) wire.Text {
	if v.Kind() != wire.Object {
		return out.Bytes(v)
	}
	separator := "{"
	v.Members(func(key, member wire.Value) bool {
		out = out.Raw(separator).Bytes(key).Raw(":")
		separator = ","
		if priority, err := strconv.ParseFloat(string(member), 64); err == nil && key.Is("priority") {
			member = wire.Value("0")
			if priority >= 0.5 {
				member = wire.Value("1")
			}
		}
		out = out.Bytes(member)
		return true
	})
	if separator == "{" {
		out = out.Raw("{")
	}
	return out.Raw("}")
}
