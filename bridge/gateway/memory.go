//go:build !js

package gateway

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live/delta"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A memory is what is kept of an agent from one of its calls to the next.
type memory struct {
	*seen.Record
	// tag begins what we say of our own accord: a page cannot know it, and so not say it.
	tag string
	// refused counts the calls of a tool that were refused in a row, since what the agent has seen was old.
	refused map[string]int
	// told has, by URI, the revision up to which it was told by hooks (prompt.go).
	told map[string]int64
}

func newMemory(limits seen.Limits) *memory {
	return &memory{Record: seen.New(limits), tag: "[pagewire-" + strings.ToLower(rand.Text()[:6]) + "]",
		refused: map[string]int{}, told: map[string]int64{}}
}

// Transports of those that are no agents: none has a memory, and nothing is said to them that they did not ask for.
const (
	// TransportGateway is that of another gateway, whose agents have their memories there.
	TransportGateway = "gateway"
	// TransportCommand is that of the command line, and TransportInspector that of the inspector.
	TransportCommand, TransportInspector = "command", "inspector"
)

// remembers reports whether what comes by a transport is an agent that is the same one at its next call.
func remembers(transport string) bool {
	return transport != TransportRequest && transport != TransportGateway && transport != TransportCommand &&
		transport != TransportInspector
}

// give notes that an agent is given a part of a URI, or with "" all of it. a may be nil, or have no memory.
func (g *Gateway) give(a *Agent, l *look, part string) {
	if a == nil || a.memory == nil || g.tools.tracked[l.uri] == nil {
		return
	}
	_, had := a.memory.Last(l.uri)
	if forgotten := a.memory.Give(l.uri, l.version(part)); forgotten != "" {
		g.letGo(forgotten)
	}
	if !had {
		g.tools.hold(l.uri)
	}
}

// forget ends an agent's memory.
func (g *Gateway) forget(a *Agent) {
	if a.memory == nil {
		return
	}
	for uri := range a.memory.URIs {
		g.letGo(uri)
	}
	for uri := range a.memory.told {
		g.letGo(uri)
	}
	a.memory = nil
	g.remembering--
}

// reading notes, before the page is asked, that agents read a URI by the protocol's own way: they are given it, too.
func (g *Gateway) reading(c *call, uri string) {
	c.uri = uri
	if g.remembering == 0 {
		return
	}
	g.track([]string{uri}, func(map[string]string) {})
	c.revision = g.tools.revision(uri)
}

// gave notes that an agent is sent an answer with contents.
func (g *Gateway) gave(a *Agent, m bridge.Message) {
	c := g.calls[m.Call]
	if a.memory == nil && a.given == nil || c == nil || c.uri == "" || m.Contents == nil {
		return
	}
	if c.seen == nil { // others may have asked with it
		c.seen = decodeContents(c.uri, m.Contents)
		c.seen.epoch, c.seen.count = c.epoch, c.count
		c.seen.revision = g.tools.found(c.uri, c.revision, c.seen.hash)
	}
	if c.seen.why != "" {
		return
	}
	if a.given != nil {
		v := c.seen.version("")
		v.Gone = true
		a.given.Give(c.uri, v)
		return
	}
	g.give(a, c.seen, "")
}

// partOf is the part of a text that a name stands for: "" for all of it, a JSON Pointer, or lines.
func partOf(text, name string) (string, error) {
	switch {
	case name == "":
		return text, nil
	case strings.HasPrefix(name, partLines):
		return delta.Lines(text, strings.TrimPrefix(name, partLines))
	}
	return delta.At(text, strings.TrimPrefix(name, partPointer))
}

// What names of parts begin with.
const partPointer, partLines = "pointer ", "lines "

// partNames is the pointer or the lines that a part is.
func partNames(part string) (pointer, lines string) {
	if name, ok := strings.CutPrefix(part, partPointer); ok {
		return name, ""
	}
	return "", strings.TrimPrefix(part, partLines)
}

// same reports whether what an agent has of a URI is what it reads as now.
func same(v seen.Version, l *look) bool {
	if v.Hash == l.hash {
		return true
	}
	if v.Part == "" || v.Gone {
		return false
	}
	before, err := partOf(v.Text, v.Part)
	if err != nil {
		return false
	}
	after, err := partOf(l.text, v.Part)
	return err == nil && before == after
}

// A change is what an agent is told of one URI: which, and what it is now as far as there is room for that.
type change struct {
	URI      string          `json:"uri"`
	Revision int64           `json:"revision"`
	Since    int64           `json:"since,omitempty"`
	Pointer  string          `json:"pointer,omitempty"`
	Lines    string          `json:"lines,omitempty"`
	Patch    json.RawMessage `json:"patch,omitempty"` // RFC 6902
	Diff     string          `json:"diff,omitempty"`  // unified
	Now      json.RawMessage `json:"now,omitempty"`   // a JSON document as it is, any other text as a string
	Gone     bool            `json:"gone,omitempty"`  // there is no such part any more
	When     string          `json:"when,omitempty"`
}

// changeOf says what has become of what an agent has, in one line of JSON of at most so many characters: "" if there is
// no room, or no text. It makes no patch of what is too long to be one.
func changeOf(v seen.Version, l *look, when string, most int) string {
	c := change{URI: l.uri, Revision: l.revision, When: when}
	after, err := partOf(l.text, v.Part)
	c.Pointer, c.Lines = partNames(v.Part)
	before, gone := "", error(nil)
	if !v.Gone {
		before, gone = partOf(v.Text, v.Part)
	}
	switch {
	case err != nil:
		c.Gone = true
		return fitting(c, most)
	case len(l.images) > 0:
		return ""
	case v.Gone || gone != nil || max(len(before), len(after)) > maxInline:
	default:
		kind, text := delta.Of(before, after)
		d := c
		switch d.Since = v.Revision; kind {
		case delta.Patch:
			d.Patch = json.RawMessage(text)
		case delta.Diff:
			d.Diff = text
		}
		if kind != delta.None {
			return fitting(d, most)
		}
	}
	if len(after) > most {
		return ""
	}
	c.Now = json.RawMessage(line(after))
	if doc, err := wire.Parse([]byte(after), maxDepth); err == nil &&
		(doc.Kind() == wire.Object || doc.Kind() == wire.Array) {
		c.Now = json.RawMessage(doc)
	}
	return fitting(c, most)
}

// maxInline is how long a text may be that is looked at for what is said of it unasked, in bytes: the lock is held
// meanwhile.
const maxInline = 64 << 10

func fitting(c change, most int) string {
	if text := line(c); len(text) <= most {
		return text
	}
	return ""
}

// breaks are what some take for the end of a line and JSON text may hold as it is: only within its strings.
var breaks = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// line is a value as JSON text on one line, without escapes that HTML would want: a model pays for them.
func line(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return breaks.Replace(strings.TrimSuffix(b.String(), "\n"))
}

// originOf is a URI's.
func originOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
