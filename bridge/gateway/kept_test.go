package gateway

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// mayKeep has how many elements each field may have that keeps some of those who have gone, up to a bound.
var mayKeep = map[string]int{
	"calls.given.hashes": 1024, "calls.given.order": 1024, // what agents without a memory were given
	"seen.Record.issued": 1024, "seen.Record.order": 1024, // revisions that an agent was given
	"events.Log.entries": 256, "events.Log.floors": 256, // of sites that have entries
	"catalog.numbering.numbers": 8 * 2, // the tabs of the model, of both ways
	"tools.Names.given":         4, "tools.Names.owners": 8,
	// what a subscription to many pages follows, until it needs room
	"events.Changes.in": staying * events.MaxURIs, "events.Changes.items": staying * events.MaxURIs,
	"events.Changes.latest": staying * events.MaxURIs, "events.Following.asked": staying * events.MaxURIs,
	"events.Changes.dirty": staying * events.MaxURIs, "events.Changes.old": staying * events.MaxURIs, // until they are back
	"follow.count.followers": staying * events.MaxURIs, "follow.Books.watches": staying * events.MaxURIs,
}

// staying is the number of the subscriptions that stay.
const staying = 2

// Pages and agents come, ask for anything that the model of the door knows, and go. One agent stays, which follows all.
// In the end nothing is kept of those who have gone: each field has as many elements as in the beginning, and no closure
// holds them.
func TestNothingIsKept(t *testing.T) {
	seed := testkit.Seed(t, "KEPT_SEED")
	synctest.Test(t, func(t *testing.T) {
		w := newDoorModel(t, seed)
		defer w.g.Close()
		stays := &modelAgent{Agent: connect(t, w.g, AgentOptions{}), w: w}
		for _, subject := range []string{`{}`, fmt.Sprintf(`{"origin":%q}`, app)} {
			stays.ask("events/stream", `"name":"page.resource.updated","arguments":`+subject)
		}
		stays.ask("events/stream", `"name":"page.opened"`)
		stays.ask("subscriptions/listen", fmt.Sprintf(`"notifications":{"resourceSubscriptions":[%q],"resourcesListChanged":true}`,
			app+"/doc"))
		take := func() {
			synctest.Wait()
			for _, a := range append(slices.Clone(w.agents), stays) {
				for a.out.Size() > 0 {
					if _, err := a.Read(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		var before map[string]int
		for range 2 {
			for range 1000 {
				w.step()
				for range 2 {
					synctest.Wait()
					w.pump()
				}
				take()
			}
			for len(w.pages) > 0 {
				w.pages[0].leave(false)
			}
			for _, source := range []string{"s1", "s2"} {
				for len(w.frees[source]) > 0 {
					w.takeNameBack(source)
				}
			}
			for _, a := range w.agents {
				a.Close()
			}
			var gone []func() bool
			for _, p := range w.ended {
				gone = append(gone, reachable(p.Page))
			}
			for _, a := range w.agents {
				gone = append(gone, reachable(a.Agent))
			}
			w.agents, w.ended = nil, nil
			time.Sleep(24 * time.Hour) // nobody waits for anything any more
			take()
			stays.ask("resources/list", "") // which looks for what has run out
			take()
			runtime.GC()
			if kept := slices.DeleteFunc(gone, func(reachable func() bool) bool { return !reachable() }); len(kept) > 0 {
				t.Errorf("%d pages and agents are held after their end", len(kept))
			}
			now := testkit.Kept(w.g)
			for _, name := range slices.Sorted(maps.Keys(now)) {
				if most := max(mayKeep[name], before[name]); before != nil && now[name] > most {
					t.Errorf("%s has %d elements, and had %d", name, now[name], before[name])
				}
			}
			before = now
		}
	})
}

// reachable reports whether something, such as a closure, holds a value.
func reachable[T any](value *T) func() bool {
	p := weak.Make(value)
	return func() bool { return p.Value() != nil }
}
