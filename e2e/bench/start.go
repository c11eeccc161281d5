package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/andybalholm/brotli"
)

// A library is loaded by a page with one script tag, to offer resources to agents in the page.
type library struct {
	name string
	kind kind
	path string // of the unmodified script
	// more are the files that the first agent also loads.
	more []string
	// transport is the transport of the page's agent, as JavaScript: the official client's, and for
	// Pagewire its own too.
	transport string
}

var libraries = []library{
	{"Pagewire", ours, "/dist/pagewire.js",
		[]string{"/dist/pagewire.core.js", "/dist/pagewire.wasm"},
		"pagewire.connect()"},
	{mcpb, peer, "/node_modules/@mcp-b/global/dist/index.iife.js", nil, tabTransport},
}

// compiled has Pagewire's files in its pages, and runs none of them for its list.
var compiled = library{listFloor, floor, libraries[0].path, nil, "bench.compiled()"}

const listFloor = "floor: client, and the files compiled"

const mcpb = "@mcp-b/global 5.1.0"

// tabTransport is @mcp-b's, which Pagewire's pages answer too.
const tabTransport = "new bench.TabClientTransport({ targetOrigin: location.origin })"

// sizes are of the delivered files.
func (b *bench) sizes() []family {
	f := family{
		name:   "bytes",
		rounds: 1,
		rows: []row{{"before brotli", "bytes before the API exists, brotli", "B",
			goal{most: 0.1, of: best}, ""}},
	}
	if !b.short {
		f.rows = append(f.rows,
			row{"all brotli", "bytes in all, with an agent, brotli", "B", goal{most: 1, of: best},
				""})
	}
	for _, l := range libraries {
		f.contenders = append(f.contenders,
			contender{l.name, l.kind, func(context.Context) (figures, error) {
				got := figures{}
				paths := append([]string{l.path}, l.more...)
				if b.short {
					// the brotli of the wasm alone takes 10 s; make size prints it
					paths = paths[:1]
				}
				for i, path := range paths {
					text, err := b.file(path)
					if err != nil {
						return nil, err
					}
					weight := float64(brotlied(text))
					if i == 0 {
						got["before brotli"] = weight
					}
					got["all brotli"] += weight
				}
				return got, nil
			}})
	}
	return []family{f}
}

func brotlied(text []byte) int {
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, brotli.BestCompression)
	w.Write(text)
	w.Close()
	return out.Len()
}

// starts measure how soon a page can use the API, and how soon an agent has the page's resources.
// Every page is the first of a fresh profile at an origin of its own: neither files nor compiled
// code are cached.
func (b *bench) starts() []family {
	start := func(name string, most float64,
		visit func(context.Context, library) (figures, error)) family {
		f := family{name: "start: " + name, warm: !b.short,
			rows: []row{{"ms", name, "ms", goal{most: most, of: best}, ""}}}
		for _, l := range libraries {
			f.contenders = append(f.contenders, contender{l.name, l.kind,
				func(ctx context.Context) (figures, error) { return visit(ctx, l) }})
		}
		return f
	}
	list := func(ctx context.Context, l library) (figures, error) {
		return b.visit(ctx, l.tag(), fmt.Sprintf("bench.firstList(() => %s)", l.transport))
	}
	first := start("first agent: connect to first list", 0.55, list)
	first.rows[0].goal.within = listFloor
	first.contenders = append(first.contenders, contender{listFloor, floor,
		func(ctx context.Context) (figures, error) { return list(ctx, compiled) }})
	return []family{
		start("start of the script to API there", 0.25,
			func(ctx context.Context, l library) (figures, error) {
				text, err := b.file(l.path)
				if err != nil {
					return nil, err
				}
				// Marshal escapes the text that would end a script
				source, err := json.Marshal(string(text))
				if err != nil {
					return nil, err
				}
				return b.visit(ctx, "", fmt.Sprintf("bench.evaluate(%s)", source))
			}),
		first,
		b.revisits(),
	}
}

// tag returns the script tags of a page with a resource.
func (l library) tag() string {
	return `<script src="` + l.path + `"></script>` + inline("register")
}

// revisits measures the second visit of a site whose files the browser may keep. Each page stays,
// after 300 reads, longer than the 2 s that Chromium waits before it stores compiled wasm.
func (b *bench) revisits() family {
	f := family{name: "start: visits of one site", limit: time.Minute, rows: []row{
		{"first", "first visit: connect to first list", "ms",
			goal{most: 0.8, of: best, within: listFloor}, ""},
		{"second", "second visit: connect to first list", "ms",
			goal{most: 0.6, of: best, within: listFloor}, ""},
	}}
	for i, l := range append(libraries, compiled) {
		wire := [...]string{"bench.overPort", "bench.overWindow", "bench.overPort"}[i]
		f.contenders = append(f.contenders,
			contender{l.name, l.kind, func(ctx context.Context) (figures, error) {
				all, err := b.visits(ctx, len(f.rows), l.tag(),
					fmt.Sprintf("bench.firstList(() => %s).then(bench.stay(%s, 300, 2500))",
						l.transport, wire))
				if err != nil {
					return nil, err
				}
				got := figures{}
				for i, r := range f.rows {
					got[r.key] = all[i]["ms"]
				}
				return got, nil
			}})
	}
	return f
}
