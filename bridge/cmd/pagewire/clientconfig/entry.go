package clientconfig

import (
	"encoding/json"
	"strings"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
)

// serverName is the name of our server in clients.
const serverName = "pagewire"

// An entry is an object of a configuration, with its members in order.
type entry []member

type member struct {
	name  string
	value any // a string, a bool, a number, a []string, a header, an entry or a []any of these
}

// A header is an HTTP header that a client sends with each request.
type header struct{ name, value string }

// A part is a unit that config writes into a file: an entry, a hook, or all of the file.
type part struct {
	file string
	// at is the path from the root to the entry, or to the list of the hook; nil: all of the file.
	at     []string
	hook   bool
	events []string // of a hook: all at which config writes hooks
	// value is an entry, or the text of a file. marked is that text with marks in place of what
	// differs from machine to machine; "": nothing does.
	value  any
	marked string
	// folder is the outermost folder that only Pagewire uses; "": the file is in a folder of its
	// program.
	folder string
}

// mark is the text of a part in place of what differs from machine to machine.
const mark = "@machine@"

// generic converts a value to the types of encoding/json, for comparisons with decoded values.
func generic(value any) (is any) {
	_ = json.Unmarshal([]byte(jsonText(value)), &is) // jsonText has just made it
	return is
}

// jsonText returns the text of a file with a value.
func jsonText(v any) string { return jsonValue(v, "", "  ", "\n") + "\n" }

// jsonValue writes a value on several lines; indent is that of the first. A list of strings and a
// header take one line.
func jsonValue(v any, indent, unit, newline string) string {
	var items []string
	inner := func(v any) string { return jsonValue(v, indent+unit, unit, newline) }
	between := newline + indent + unit
	over := func(open, end string) string {
		return open + between + strings.Join(items, ","+between) + newline + indent + end
	}
	switch v := v.(type) {
	case entry:
		for _, m := range v {
			items = append(items, cli.CompactJSON(m.name)+": "+inner(m.value))
		}
		return over("{", "}")
	case []any:
		for _, one := range v {
			items = append(items, inner(one))
		}
		return over("[", "]")
	case []string:
		for _, s := range v {
			items = append(items, cli.CompactJSON(s))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case header:
		return "{ " + cli.CompactJSON(v.name) + ": " + cli.CompactJSON(v.value) + " }"
	}
	return cli.CompactJSON(v)
}
