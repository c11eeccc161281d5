//go:build !js

package own_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/gateway/tools/own"
)

const cart = "https://shop.example/cart"

// A desk is a page and its tools, with one call, whose time is over when the test says so.
type desk struct {
	call
	tools *own.Tools
	mute  bool                     // the page does not answer
	later map[time.Duration]func() // what is to be called after a while, unless it was ended
	said  []string                 // the texts of the result
	told  []string                 // the progress
	ends  []func()
}

func open(t *testing.T, o own.Options) *desk {
	t.Helper()
	p := &page{text: "one"}
	p.Revisions = follow.New(p)
	o.Revisions, o.PageChars, o.ReadTimeout, o.ProgressEvery = p.Revisions, 8000, 30*time.Second, 5*time.Second
	return &desk{call: call{p, p.NewMemory(seen.Limits{})}, tools: own.New(o), later: map[time.Duration]func(){}}
}

// run calls a tool, and returns what it has said by then.
func (d *desk) run(name, args string) []string {
	d.said = nil
	d.tools.Run(d, name, []byte(args))
	return d.said
}

// change has the page tell of a change.
func (d *desk) change(text string) {
	d.page.text = text
	d.page.Updated(cart)
	d.tools.Changed()
}

func (d *desk) Look(uri string, done func(*live.Look)) (end func()) {
	if d.mute {
		return func() {}
	}
	return d.call.Look(uri, done)
}

func (d *desk) After(after time.Duration, f func()) (stop func()) {
	d.later[after] = f
	return func() { delete(d.later, after) }
}

func (d *desk) OnEnd(f func())          { d.ends = append(d.ends, f) }
func (d *desk) Progress(members string) { d.told = append(d.told, members) }

func (d *desk) Complete(result []byte) {
	var r struct{ Content []live.TextContent }
	json.Unmarshal(result, &r)
	for _, c := range r.Content {
		d.said = append(d.said, c.Text)
	}
	d.end()
}

func (d *desk) end() {
	for _, f := range d.ends {
		f()
	}
	d.ends = nil
}

func TestAWaitEndsWithTheChange(t *testing.T) {
	d := open(t, own.Options{})
	d.run(own.Read, `{"uri":"`+cart+`"}`)
	if got := d.run(own.Wait, `{}`); got != nil {
		t.Fatalf("it has not waited: %q", got)
	}
	for range 2 {
		d.later[5*time.Second]()
	}
	if len(d.told) != 2 || !strings.Contains(d.told[0], `"total":20`) {
		t.Errorf("who waits is told %q", d.told)
	}
	d.page.Updated(cart)
	if d.tools.Changed(); d.said != nil {
		t.Errorf("what reads as before is no change: %q", d.said)
	}
	if d.change("two"); len(d.said) != 2 || d.said[1] != "two" || len(d.later) != 0 {
		t.Errorf("the wait says %q, and %d timers are left", d.said, len(d.later))
	}
}

func TestAWaitWithoutAChange(t *testing.T) {
	d := open(t, own.Options{})
	d.run(own.Wait, `{"uris":["`+cart+`"],"timeout_ms":7000}`)
	d.later[7*time.Second]()
	if len(d.said) != 1 || !strings.HasSuffix(d.said[0], `,"timedOut":true}`) || len(d.later) != 0 {
		t.Errorf("the wait says %q, and %d timers are left", d.said, len(d.later))
	}
	d.run(own.Wait, `{"uris":["`+cart+`"]}`)
	d.end() // nobody waits any more
	if d.change("two"); d.said != nil || len(d.later) != 0 {
		t.Errorf("a wait that was given up says %q, and %d timers are left", d.said, len(d.later))
	}
}

func TestAPageThatDoesNotAnswer(t *testing.T) {
	d := open(t, own.Options{})
	d.mute = true
	if got := d.run(own.Read, `{"uri":"`+cart+`"}`); got != nil {
		t.Fatalf("it has not waited: %q", got)
	}
	d.later[30*time.Second]()
	if want := cart + ": its page has not answered for 30s"; !slices.Equal(d.said, []string{want}) {
		t.Errorf("it says %q, want %q", d.said, want)
	}
}

func TestList(t *testing.T) {
	d := open(t, own.Options{
		Listed:  slices.Values([]own.Resource{{URI: cart, Title: "Cart", Tab: 1}, {URI: cart + "/{id}", Tab: 2}}),
		Notices: slices.Values([]string{"Something is wrong."}),
	})
	for args, want := range map[string]string{
		`{}`: `{"resources":[{"uri":"` + cart + `","title":"Cart"}],"templates":[{"uri":"` + cart +
			`/{id}"}],"note":"Something is wrong."}`,
		`{"tab":2}`: `{"resources":[],"templates":[{"uri":"` + cart + `/{id}"}],"note":"Something is wrong."}`,
		`{"contains":"CARTS"}`: `{"resources":[],"note":"No open page offers a resource that fits. ` +
			`Something is wrong."}`,
	} {
		if got := d.run(own.List, args); !slices.Equal(got, []string{want}) {
			t.Errorf("%s lists %q, want %q", args, got, want)
		}
	}
	if d.tools.Run(d, "another", nil) {
		t.Error("a tool of another name is run")
	}
}

// Behind a result is said what else has changed, with what it is now where that is the origin that was asked.
func TestRemind(t *testing.T) {
	for name, o := range map[string]own.Options{"off": {}, "names": {Reminders: true}, "inline": {Reminders: true,
		Inline: true}} {
		d := open(t, o)
		d.tools.ReminderChars = 600
		d.run(own.Read, `{"uri":"`+cart+`"}`)
		d.change("two")
		var block string
		d.tools.Remind(d, "https://shop.example", func(said string) { block = said })
		if strings.Contains(block, cart) != o.Reminders || strings.Contains(block, `two`) != o.Inline {
			t.Errorf("%s: it says %q", name, block)
		}
	}
}
