//go:build !js

package bridge_test

import (
	"slices"
	"testing"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/testkit/script"
	"github.com/pagewire/pagewire/bridge/wire"
)

// nativeConversations has the conversations about features that a page's core lacks: see
// restrict.go.
const nativeConversations = "testdata/native"

func TestNativeConversations(t *testing.T) {
	script.EachIn(t, nativeConversations,
		func(t *testing.T, file string) { script.Play(t, file, converse) })
}

func TestAllThatTheNativeEngineSaysIsWellFormed(t *testing.T) {
	wellFormed(t, nativeConversations, 100)
}

// A port that loses a resource and a tool to another owner is told that its lists have changed, and
// so is the one that gains them. A port that sees neither owner is told nothing.
func TestListsOfAnotherOwner(t *testing.T) {
	owner := bridge.Owner{Origin: "https://x.test", Profile: "Work"} // of all that is offered
	h := &teller{told: map[string][]bridge.PortID{}}
	e := bridge.New(bridge.Options{Rule: bridge.Rule{Origin: "https://x.test"}, Tools: true}, h)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, profile := range []string{"Work", "Home", "Private"} {
		port := bridge.PortID(i + 1)
		must(e.Open(0, port))
		e.Restrict(port, sightOfProfile{profile, &owner})
		must(e.Receive(0, port, []byte(
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)))
	}
	offered := bridge.Resource{URI: "https://x.test/a", Name: "in Work"}
	tools := []bridge.Tool{{Name: "search", JSON: []byte(`{"name":"search"}`),
		Owner: func() bridge.Owner { return owner }}}
	must(e.Register(0, offered))
	must(e.SetTools(0, tools))
	for i, c := range []struct {
		profile string
		want    []bridge.PortID
	}{{"Home", []bridge.PortID{1, 2}}, {"another", []bridge.PortID{2}}, {"Work", []bridge.PortID{1}}} {
		now := bridge.Time(1000 * (i + 1))
		e.Tick(now)
		h.told = map[string][]bridge.PortID{}
		before := owner
		owner.Profile, offered.Name = c.profile, "in "+c.profile
		e.Replace(now, offered, before)
		must(e.SetTools(now, tools))
		for _, list := range []string{wire.ResourcesListChanged, wire.ToolsListChanged} {
			if got := h.told[list]; !slices.Equal(got, c.want) {
				t.Errorf("in %q: %s goes to %v, want %v", c.profile, list, got, c.want)
			}
		}
	}
}

// A teller notes which ports are told what.
type teller struct {
	quiet
	told map[string][]bridge.PortID
}

func (h *teller) CallTool(bridge.CallID, bridge.ToolCall) {}

func (h *teller) Send(to bridge.PortID, m bridge.Message) {
	method, _ := wire.Value(m.AppendTo(nil)).Get("method").Text()
	h.told[method] = append(h.told[method], to)
}

// A sightOfProfile sees what is a profile's. All resources are the same owner's.
type sightOfProfile struct {
	profile string
	owner   *bridge.Owner
}

func (s sightOfProfile) Sees(string) bool            { return s.Permits(*s.owner) }
func (s sightOfProfile) Permits(o bridge.Owner) bool { return o.Profile == s.profile }
func (s sightOfProfile) HidesTools() string          { return "" }
