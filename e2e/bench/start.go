package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/andybalholm/brotli"
)

// A library is what a page loads by one script tag to offer resources to agents in it.
type library struct {
	name string
	kind kind
	path string // of the script, which is used as it is
	// more is what the first agent loads besides.
	more []string
	// transport is what the page's agent connects by: the official client's, and for Pagewire its own too.
	transport string
}

var libraries = []library{
	{"Pagewire", ours, "/dist/pagewire.js", []string{"/dist/pagewire.core.js", "/dist/pagewire.wasm"},
		"pagewire.connect()"},
	{mcpb, peer, "/node_modules/@mcp-b/global/dist/index.iife.js", nil, tabTransport},
}

const mcpb = "@mcp-b/global 5.1.0"

// tabTransport is @mcp-b's, which Pagewire's pages answer too.
const tabTransport = "new bench.TabClientTransport({ targetOrigin: location.origin })"

// sizes are of the files as they are delivered.
func (b *bench) sizes() []family {
	f := family{
		name:   "bytes",
		rounds: 1,
		rows: []row{
			{"before brotli", "bytes before the API exists, brotli", "B", goal{most: 0.1, of: best}, ""},
			{"before gzip", "bytes before the API exists, gzip", "B", goal{}, ""},
			{"before raw", "bytes before the API exists, raw", "B", goal{}, ""},
		},
	}
	if !b.short {
		f.rows = append(f.rows, []row{
			{"all brotli", "bytes in all, with an agent, brotli", "B", goal{most: 1, of: best}, ""},
			{"all gzip", "bytes in all, gzip", "B", goal{}, ""},
			{"all raw", "bytes in all, raw", "B", goal{}, ""},
			{"wasm", "the core's wasm, brotli", "B", goal{most: 46_000}, ""},
		}...)
	}
	for _, l := range libraries {
		f.contenders = append(f.contenders, contender{l.name, l.kind, func(context.Context) (figures, error) {
			got := figures{}
			paths := append([]string{l.path}, l.more...)
			if b.short {
				paths = paths[:1] // the wasm's brotli alone takes 10 s; make size prints it
			}
			for i, path := range paths {
				text, err := b.file(path)
				if err != nil {
					return nil, err
				}
				raw, gz, br := float64(len(text)), float64(zipped(text)), float64(brotlied(text))
				if i == 0 {
					got["before raw"], got["before gzip"], got["before brotli"] = raw, gz, br
				} else if i == len(l.more) {
					got["wasm"] = br
				}
				if !b.short {
					got["all raw"] += raw
					got["all gzip"] += gz
					got["all brotli"] += br
				}
			}
			return got, nil
		}})
	}
	return []family{f}
}

func zipped(text []byte) int {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	w.Write(text)
	w.Close()
	return out.Len()
}

func brotlied(text []byte) int {
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, brotli.BestCompression)
	w.Write(text)
	w.Close()
	return out.Len()
}

// register is the first use of the API; it throws where that cannot be called.
const register = `document.modelContext.registerResource({ uri: location.origin + "/state", name: "State", mimeType: "text/plain", read: async () => ({ contents: [{ uri: location.origin + "/state", text: "text" }] }) });`

// there is less: it throws where the API is not there.
const there = `if (typeof document.modelContext.registerResource !== "function") throw new Error("there is no API");`

// evaluate gives the time from the start of a script, its compilation included, until something more has run, in one go
// on a page that has come to rest: on one that is loading, what else the browser does then is most of the time.
const evaluate = `(async () => {
	await new Promise((done) => setTimeout(done, 300));
	const script = document.createElement("script");
	script.text = %s;
	const start = performance.now();
	document.head.append(script);
	%s
	return { ms: performance.now() - start };
})()`

// connect gives the time from nothing to the list of the page's resources.
const connect = `(async () => {
	const start = performance.now();
	const agent = new bench.Client({ name: "bench", version: "1" });
	await agent.connect(%s);
	const { resources } = await agent.listResources();
	const time = performance.now() - start;
	if (resources.length !== 1) throw new Error("listed " + resources.length + " resources instead of one");
	return { ms: time };
})()`

// startKinds are about how soon a page can use the API, and how soon an agent has what the page offers.
var startKinds = []struct {
	name string
	goal goal
	// tag says that the page has the library's script tag; else the expression evaluates its source.
	tag        bool
	expression func(l library, source string) string
}{
	{"start of the script to API there", goal{most: 0.25, of: best}, false,
		func(_ library, source string) string { return fmt.Sprintf(evaluate, source, there) }},
	{"start of the script to API used", goal{most: 0.25, of: best}, false,
		func(_ library, source string) string { return fmt.Sprintf(evaluate, source, register) }},
	{"script tag to API used, with its fetch", goal{most: 0.25, of: best}, true,
		func(library, string) string { return "({ ms: used - before })" }},
	{"first agent: connect to first list", goal{most: 0.5, of: best}, true,
		func(l library, _ string) string { return fmt.Sprintf(connect, l.transport) }},
	{"first agent: the same, over window.postMessage", goal{}, true,
		func(library, string) string { return fmt.Sprintf(connect, tabTransport) }},
	{"both: script tag to API, connect to first list", goal{}, true, func(l library, _ string) string {
		return fmt.Sprintf(connect, l.transport) + ".then(({ ms }) => ({ ms: ms + used - before }))"
	}},
}

// starts makes a family of each. Every page is the first of a fresh profile at an origin of its own: nothing is cached,
// neither files nor compiled code.
func (b *bench) starts() (all []family) {
	for _, s := range startKinds {
		f := family{name: "start: " + s.name, warm: !b.short, rows: []row{{"ms", s.name, "ms", s.goal, ""}}}
		for _, l := range libraries {
			f.contenders = append(f.contenders, contender{l.name, l.kind, func(ctx context.Context) (figures, error) {
				text, err := b.file(l.path)
				if err != nil {
					return nil, err
				}
				source, err := json.Marshal(string(text)) // it escapes what would end a script
				if err != nil {
					return nil, err
				}
				head := ""
				if s.tag {
					head = `<script>const before = performance.now();</script><script src="` + l.path +
						`"></script><script>` + register + `const used = performance.now();</script>`
				}
				return b.visit(ctx, head, s.expression(l, string(source)))
			}})
		}
		all = append(all, f)
	}
	return append(all, b.revisits())
}

// revisits is about the second and the third visit of a site whose files the browser may keep. Each page stays for as
// long as Chromium waits before it stores compiled wasm, 2 s, and longer, after 300 reads.
func (b *bench) revisits() family {
	const stays = `.then(async (first) => { await bench.stay(%s, 300, 2500); return first; })`
	f := family{name: "start: visits of one site", limit: time.Minute}
	for i, nth := range []string{"first", "second", "third"} {
		most := []float64{0.8, 0.5, 0.5}[i]
		f.rows = append(f.rows, row{nth, fmt.Sprintf("%s visit: connect to first list", nth), "ms",
			goal{most: most, of: best}, ""})
		if b.short && i == 1 {
			break
		}
	}
	for i, l := range libraries {
		wire := [...]string{"bench.overPort", "bench.overWindow"}[i]
		f.contenders = append(f.contenders, contender{l.name, l.kind, func(ctx context.Context) (figures, error) {
			head := `<script src="` + l.path + `"></script><script>` + register + `</script>`
			all, err := b.visits(ctx, len(f.rows), head, fmt.Sprintf(connect, l.transport)+fmt.Sprintf(stays, wire))
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
