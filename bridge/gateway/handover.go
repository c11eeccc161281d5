package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
)

// A handover has what all agents share: the numbers and the order of tabs, and the names of tools.
// Each agent's process keeps one for the next gateway if this one dies. Without it a plain name
// that an agent has learned could lead to another origin's tool there. It has nothing of what the
// agent has seen. A process keeps it without looking into it, so it comes back as untrusted input.

const (
	handoverVersion = 2
	// MaxHandoverBytes bounds a handover. partBytes bounds each of its lists. Tabs that are gone
	// are left out first.
	MaxHandoverBytes = 256 << 10
	partBytes        = 72 << 10
)

// A handover is the decoded text. The members of its lists' entries have short names, for there may
// be 1,000 entries.
type handover struct {
	Version int                 `json:"v"`
	Tabs    []catalog.TabNumber `json:"tabs"`
	Names   []handedName        `json:"names"`
	// Last is the greatest number that a tab was ever given. Focused is the time of the last focus,
	// in ms since 1970; 0 if unknown.
	Last    int   `json:"last"`
	Focused int64 `json:"focused,omitempty"`
}

type handedName struct {
	Origin string `json:"o"`
	Tool   string `json:"t"`
	Name   string `json:"n"`
}

// handedOver is what the gateway has made of its state for the next one.
type handedOver struct {
	names atomic.Uint64 // counts changes of tools' names
	text  []byte        // at version made; nil until it is needed
	made  uint64
}

// version changes with the handover: with tabs' numbers and order, and with tools' names. It needs
// no lock.
func (g *Gateway) version() uint64 { return g.catalog.Version() + g.handedOver.names.Load() }

// Handover is the state for the next gateway if this one dies (AgentOptions.Handover): at most
// MaxHandoverBytes. HandoverVersion changes whenever it does. An agent's process must get it before
// a message, which may have a new name.
//
// Agents that had sessions must connect before the pages do. A tab that comes before all handovers
// that have it may get another number. A tab that is in none of them gets a number above all of
// theirs.
func (a *Agent) Handover() []byte {
	defer a.g.lock()()
	return a.g.handover()
}

// HandoverVersion takes no lock. It is 0 for an agent with which no other gateway goes on.
func (a *Agent) HandoverVersion() uint64 {
	if !remembers(a.transport) {
		return 0
	}
	return 1 + a.g.version()
}

// array encodes a list as JSON text of at most partBytes. An entry is left out if there is no room
// for it after the entries before it.
func array[T any](list []T) []byte {
	all := []byte("[")
	for _, one := range list {
		entry, err := json.Marshal(one)
		if err != nil || len(all)+len(entry)+len(",]") > partBytes {
			continue
		}
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, entry...)
	}
	return append(all, ']')
}

// handover makes the handover, which is the same for all agents, when it has changed. After Close
// it stays as it was.
func (g *Gateway) handover() []byte {
	h := &g.handedOver
	if version := g.version(); !g.closed && (h.text == nil || h.made != version) {
		focused := int64(0)
		if at, known := g.catalog.LastFocus(); known {
			ago := time.Duration(g.now()-at) * time.Millisecond
			focused = g.opt.wallClock().Add(-ago).UnixMilli()
		}
		var names []handedName
		g.tools.names.Given(func(origin, tool, name string) {
			names = append(names, handedName{origin, tool, name})
		})
		slices.SortFunc(names, func(a, b handedName) int {
			return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Tool, b.Tool))
		})
		tabs, last := g.catalog.TabNumbers()
		h.text = fmt.Appendf(nil, `{"v":%d,"tabs":%s,"last":%d,"focused":%d,"names":%s}`,
			handoverVersion, array(tabs), last, focused, array(names))
		h.made = version
	}
	return h.text
}

// restore applies a handover. It fails for a text that is none, and leaves out entries that are
// invalid. Names that are known here already stay.
func (g *Gateway) restore(text []byte) error {
	if len(text) > MaxHandoverBytes {
		return fmt.Errorf("it has %d bytes, and the limit is %d", len(text), MaxHandoverBytes)
	}
	var h handover
	if err := json.Unmarshal(text, &h); err != nil {
		return err
	}
	if h.Version != handoverVersion {
		return fmt.Errorf("it is of version %d, and not of %d", h.Version, handoverVersion)
	}
	for _, n := range h.Names {
		g.tools.names.Recall(n.Origin, n.Tool, n.Name)
	}
	ago := max(0, g.opt.wallClock().UnixMilli()-h.Focused)
	g.catalog.Restore(h.Tabs, h.Last, h.Focused, g.now()-bridge.Time(ago))
	if tabs, awaits := g.catalog.Awaited(); tabs > 0 && awaits {
		g.engine.Await(g.now(), true)
	}
	return nil
}
