package calls_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

const cart = "https://shop.example/cart"

// A desk is a page and its tools, with one call at a time. Its test runs in a bubble, with a clock
// of its own.
type desk struct {
	call
	lock  sync.Mutex
	tools *calls.Tools
	mute  bool // the page does not answer
	holds bool // it answers when held is called
	held  func()
	// refused is the URI that cannot be read.
	refused string
	said    []string // the texts of the result
	told    []string // the progress reports
	running int      // calls that have not returned
	end     func()   // ends the last one

	reminded, inline bool
}

// inBubble runs a test with a clock of its own.
func inBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

func open(t *testing.T, o calls.Options) *desk {
	t.Helper()
	p := (&page{text: "one"}).open()
	o.Revisions, o.PageChars, o.ReadTimeout, o.ProgressEvery = p.Books, 8000, 30*time.Second, 5*time.Second
	d := &desk{call: call{nil, p, p.NewMemory(seen.Limits{})}, tools: calls.New(o), end: func() {}}
	t.Cleanup(func() { d.end() })
	return d
}

// do runs f with the lock, and returns when all calls wait or have returned.
func (d *desk) do(f func()) {
	d.lock.Lock()
	f()
	d.lock.Unlock()
	synctest.Wait()
}

// run calls a tool, and returns the texts of the result so far.
func (d *desk) run(name, args string) []string {
	d.said = nil
	ctx, end := context.WithCancel(context.Background())
	d.end = end
	d.running++
	go func() {
		d.Turn = calls.Begin(&d.lock)
		defer d.Turn.End()
		d.tools.Run(ctx, d, name, []byte(args))
		d.running--
	}()
	synctest.Wait()
	return d.said
}

// pass lets time pass.
func (d *desk) pass(long time.Duration) {
	d.do(func() {}) // the test's own use of the desk comes before
	time.Sleep(long)
	synctest.Wait()
}

// touch makes the page report a change of a URI.
func (d *desk) touch(uri string) {
	d.do(func() {
		d.page.Updated(uri)
		d.tools.Changed()
	})
}

// change makes the page report that the cart has changed.
func (d *desk) change(text string) {
	d.page.text = text
	d.touch(cart)
}

func (d *desk) Look(ctx context.Context, uris ...string) map[string]*live.Look {
	found := map[string]*live.Look{}
	for _, uri := range uris {
		switch {
		case d.mute:
			d.Until(ctx, func() bool { return false })
		case uri == d.refused:
			found[uri] = &live.Look{URI: uri, Why: "the page says so"}
		default:
			if d.holds {
				calls.Await(ctx, d.Turn, func(done func(bool)) { d.held = func() { done(true) } })
			}
			found[uri] = d.call.Look(ctx, uri)[uri]
		}
	}
	return found
}

func (d *desk) Reminds() (told, inline bool) { return d.reminded, d.inline }

func (d *desk) Progress(done, total int, message string) {
	d.told = append(d.told, fmt.Sprint(done, "of", total, message))
}

func (d *desk) Complete(result []byte) {
	var r struct{ Content []live.TextContent }
	json.Unmarshal(result, &r)
	for _, c := range r.Content {
		d.said = append(d.said, c.Text)
	}
}

func TestAWaitEndsWithTheChange(t *testing.T) { synctest.Test(t, testAWaitEndsWithTheChange) }

func testAWaitEndsWithTheChange(t *testing.T) {
	d := open(t, calls.Options{})
	d.run(calls.Read, `{"uri":"`+cart+`"}`)
	if got := d.run(calls.Wait, `{}`); got != nil {
		t.Fatalf("it has not waited: %q", got)
	}
	for range 2 {
		d.pass(5 * time.Second)
	}
	if len(d.told) != 2 || !strings.Contains(d.told[0], "of20") {
		t.Errorf("who waits is told %q", d.told)
	}
	if d.touch(cart); d.said != nil {
		t.Errorf("what reads as before is no change: %q", d.said)
	}
	if d.change("two"); len(d.said) != 2 || d.said[1] != "two" || d.running != 0 {
		t.Errorf("the wait says %q, and %d calls go on", d.said, d.running)
	}
}

// While the cart is read, the list changes, and another agent has read the cart differently. The
// cart then reads as before, at a newer revision than that of the list's change.
func TestAWaitForTwo(t *testing.T) { synctest.Test(t, testAWaitForTwo) }

func testAWaitForTwo(t *testing.T) {
	const list = "https://shop.example/list"
	d := open(t, calls.Options{})
	d.run(calls.Read, `{"uri":"`+cart+`"}`)
	d.run(calls.Read, `{"uri":"`+list+`"}`)
	d.holds = true
	d.run(calls.Wait, fmt.Sprintf(`{"uris":[%q,%q],"since":%d}`, cart, list, d.page.Clock()))
	for _, uri := range []string{cart, list} {
		d.touch(uri)
	}
	d.page.Found(cart, d.page.Revision(cart), [32]byte{1})
	answer := d.held
	d.held = func() {}
	d.do(answer)
	d.page.text = "two"
	if d.do(d.held); len(d.said) != 2 || d.said[1] != "two" {
		t.Errorf("the wait says %q", d.said)
	}
}

// A revision covers all resources, but the agent has read the cart before the list. A cart that
// cannot be read is named once, and then the wait goes on.
func TestAWaitSinceAnotherWasRead(t *testing.T) {
	const list = "https://shop.example/list"
	for name, readable := range map[string]bool{"readable": true, "unreadable": false} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := open(t, calls.Options{})
			d.run(calls.Read, `{"uri":"`+cart+`"}`)
			d.change("two")
			d.page.Updated(list)
			d.run(calls.Read, `{"uri":"`+list+`"}`)
			if !readable {
				d.refused = cart
			}
			wait := func() {
				d.run(calls.Wait, fmt.Sprintf(`{"uris":[%q,%q],"since":%d}`, cart, list, d.page.Clock()))
			}
			if wait(); len(d.said) == 0 || !strings.HasPrefix(d.said[0], `{"changed":["`+cart+`"]`) ||
				readable != (len(d.said) == 2) {
				t.Fatalf("it says %q of the cart", d.said)
			}
			if wait(); d.said != nil {
				t.Errorf("it says %q again", d.said)
			}
			if d.change("three"); len(d.said) == 0 || !strings.HasPrefix(d.said[0], `{"changed":["`+cart+`"]`) {
				t.Errorf("it says %q of the next change", d.said)
			}
		}))
	}
}

func TestAWaitWithoutAChange(t *testing.T) { synctest.Test(t, testAWaitWithoutAChange) }

func testAWaitWithoutAChange(t *testing.T) {
	d := open(t, calls.Options{})
	d.run(calls.Wait, `{"uris":["`+cart+`"],"timeout_ms":7000}`)
	d.pass(7 * time.Second)
	if len(d.said) != 1 || !strings.HasSuffix(d.said[0], `,"timedOut":true}`) || d.running != 0 {
		t.Errorf("the wait says %q, and %d calls go on", d.said, d.running)
	}
	d.run(calls.Wait, `{"uris":["`+cart+`"]}`)
	d.end() // nobody waits any longer
	synctest.Wait()
	if d.change("two"); d.said != nil || d.running != 0 {
		t.Errorf("a wait that was given up says %q, and %d calls go on", d.said, d.running)
	}
}

// A page that never confirms its watch does not make the wait longer.
func TestAWaitForAPageThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, testAWaitForAPageThatDoesNotAnswer)
}

func testAWaitForAPageThatDoesNotAnswer(t *testing.T) {
	d := open(t, calls.Options{})
	d.page.deaf = cart
	d.run(calls.Wait, `{"uris":["`+cart+`"],"timeout_ms":7000}`)
	d.pass(7 * time.Second)
	if len(d.said) != 1 || !strings.HasSuffix(d.said[0], `,"timedOut":true}`) || d.running != 0 {
		t.Errorf("the wait says %q, and %d calls go on", d.said, d.running)
	}
}

// A page that has not confirmed its watch keeps no wait from the changes of another. What it did
// meanwhile is told once it goes on: since covers it, although nobody could see it.
func TestAWaitBesideAPageThatDoesNotAnswer(t *testing.T) {
	for name, remembers := range map[string]bool{"with a memory": true, "without a memory": false} {
		t.Run(name, inBubble(func(t *testing.T) { testAWaitBesideAPageThatDoesNotAnswer(t, remembers) }))
	}
}

func testAWaitBesideAPageThatDoesNotAnswer(t *testing.T, remembers bool) {
	const list = "https://shop.example/list"
	d := open(t, calls.Options{})
	if !remembers {
		d.memory = nil
	}
	d.page.deaf = list
	d.run(calls.Read, `{"uri":"`+cart+`"}`)
	var head struct {
		Revision int64
		Changed  []string
	}
	told := func(when, uri string) {
		t.Helper()
		if len(d.said) != 2 || json.Unmarshal([]byte(d.said[0]), &head) != nil || !slices.Equal(head.Changed, []string{uri}) {
			t.Fatalf("%s the wait says %q", when, d.said)
		}
	}
	wait := func() []string {
		return d.run(calls.Wait, fmt.Sprintf(`{"uris":[%q,%q],"since":%d}`, cart, list, head.Revision))
	}
	json.Unmarshal([]byte(d.said[0]), &head)
	if wait(); d.said != nil {
		t.Fatalf("it has not waited: %q", d.said)
	}
	d.change("two")
	told("while the list's page stands still,", cart)
	if wait(); d.said != nil {
		t.Fatalf("it has not waited: %q", d.said)
	}
	d.do(func() { d.page.at.Confirm(list) })
	told("when it goes on,", list)
	if wait(); d.said != nil {
		t.Errorf("of no further change it says %q", d.said)
	}
}

func TestAPageThatDoesNotAnswer(t *testing.T) { synctest.Test(t, testAPageThatDoesNotAnswer) }

func testAPageThatDoesNotAnswer(t *testing.T) {
	d := open(t, calls.Options{})
	d.mute = true
	if got := d.run(calls.Read, `{"uri":"`+cart+`"}`); got != nil {
		t.Fatalf("it has not waited: %q", got)
	}
	d.pass(30 * time.Second)
	if want := cart + ": its page has not answered for 30s"; !slices.Equal(d.said, []string{want}) {
		t.Errorf("it says %q, want %q", d.said, want)
	}
}

func TestList(t *testing.T) { synctest.Test(t, testList) }

func testList(t *testing.T) {
	d := open(t, calls.Options{
		Listed:  slices.Values([]calls.Resource{{URI: cart, Title: "Cart", Tab: 1}, {URI: cart + "/{id}", Tab: 2}}),
		Notices: func(calls.Call) []string { return []string{"Something is wrong."} },
		Unseen:  func() bool { return false },
	})
	for args, want := range map[string]string{
		`{}`: `{"resources":[{"uri":"` + cart + `","title":"Cart"}],"templates":[{"uri":"` + cart +
			`/{id}"}],"note":"Something is wrong."}`,
		`{"tab":2}`: `{"resources":[],"templates":[{"uri":"` + cart + `/{id}"}],"note":"Something is wrong."}`,
		`{"contains":"CARTS"}`: `{"resources":[],"note":"No open page offers a resource that fits. ` +
			`Something is wrong."}`,
	} {
		if got := d.run(calls.List, args); !slices.Equal(got, []string{want}) {
			t.Errorf("%s lists %q, want %q", args, got, want)
		}
	}
	if d.tools.Run(t.Context(), d, "another", nil) {
		t.Error("a tool of another name is run")
	}
}

// A page with more resources than a list has places leaves room for those of another site.
func TestListOfManyResources(t *testing.T) { synctest.Test(t, testListOfManyResources) }

func testListOfManyResources(t *testing.T) {
	var listed []calls.Resource
	for i := range 1001 {
		listed = append(listed, calls.Resource{URI: fmt.Sprintf("https://aaa.example/%04d", i)})
	}
	listed = append(listed, calls.Resource{URI: cart}, calls.Resource{URI: cart + "/{id}"})
	d := open(t, calls.Options{
		Listed:  slices.Values(listed),
		Notices: func(calls.Call) []string { return nil },
		Unseen:  func() bool { return false },
	})
	got := d.run(calls.List, `{}`)
	end := `{"uri":"https://aaa.example/0197"},{"uri":"` + cart + `"}],"templates":[{"uri":"` + cart +
		`/{id}"}],"note":"There are more: narrow the list with contains or tab."}`
	if len(got) != 1 || strings.Count(got[0], `"uri":"https://aaa.example/`) != 198 ||
		!strings.HasSuffix(got[0], end) {
		t.Errorf("it lists %q", got)
	}
}

// An empty list says why it is empty.
func TestListOfNothing(t *testing.T) { synctest.Test(t, testListOfNothing) }

func testListOfNothing(t *testing.T) {
	for _, c := range []struct {
		unseen bool
		args   string
		want   string
	}{
		{false, `{}`, "No open page offers a resource: the user can open one"},
		{false, `{"contains":""}`, "No open page offers a resource: the user can open one"},
		{false, `{"contains":"cart"}`, "No open page offers a resource that fits."},
		{false, `{"tab":3}`, "No open page offers a resource that fits."},
		{true, `{}`, "A browser has not said yet which pages are open: list again"},
		{true, `{"tab":3}`, "A browser has not said yet which pages are open: list again"},
	} {
		d := open(t, calls.Options{
			Listed:  slices.Values([]calls.Resource(nil)),
			Notices: func(calls.Call) []string { return nil },
			Unseen:  func() bool { return c.unseen },
		})
		if got := d.run(calls.List, c.args); len(got) != 1 || !strings.HasPrefix(got[0], `{"resources":[],"note":"`+c.want) {
			t.Errorf("%s lists %q, want %q", c.args, got, c.want)
		}
	}
}

// Each notation that can mean only one value is taken. Everything else is an error that names the
// argument.
func TestLooseArguments(t *testing.T) { synctest.Test(t, testLooseArguments) }

func testLooseArguments(t *testing.T) {
	d := open(t, calls.Options{Listed: slices.Values([]calls.Resource{{URI: cart, Tab: 1}, {URI: cart + "/2", Tab: 2}}),
		Notices: func(calls.Call) []string { return nil }})
	const second = `{"resources":[{"uri":"` + cart + `/2"}]}`
	for args, want := range map[string]string{
		`{"tab":"2"}`: second, `{"tab":2.0}`: second, `{"tab":0.2e1}`: second, `{"tab":" 2 "}`: second, `{"tab":"2.0"}`: second,
		`{"TAB":2,"contains":null,"other":{}}`: second, `{"tab":" ","contains":2}`: second, `{"tab":2,"contains":" "}`: second, `{"tab":"","contains":2}`: second,
		`{"tab":1,"tab":2}`:    second,
		`{"tab":2.5}`:          "tab must be a whole number, such as 4000",
		`{"tab":"second"}`:     "tab must be a whole number, such as 4000",
		`{"tab":true}`:         "tab must be a whole number, such as 4000",
		`{"tab":[2]}`:          "tab must be a whole number, such as 4000",
		`{"tab":1e30}`:         "tab must be a whole number, such as 4000",
		`{"tab":"NaN"}`:        "tab must be a whole number, such as 4000",
		`{"contains":["a"]}`:   "contains must be a string",
		`{"contains":{"a":1}}`: "contains must be a string",
	} {
		if want[0] != '{' {
			want = calls.List + ": " + want
		}
		if got := d.run(calls.List, args); !slices.Equal(got, []string{want}) {
			t.Errorf("%s lists %q, want %q", args, got, want)
		}
	}
	const list = "uris must be a list of strings"
	for args, want := range map[string]string{
		`{"uris":[null]}`: list, `{"uris":[""]}`: list, `{"uris":[7]}`: list, `{"uris":[["a"]]}`: list, `{"uris":"[7]"}`: list,
		`{"timeout_ms":"soon"}`:                            "timeout_ms must be a whole number, such as 4000",
		`{"since":{}}`:                                     "since must be a whole number, such as 4000",
		`{"uris":null,"since":1}`:                          "name uris; without them it waits for what you have read, and that is nothing yet",
		`{"uris":[` + strings.Repeat(`"a",`, 50) + `"a"]}`: "uris has 51 URIs; the limit is 50",
	} {
		if got, want := d.run(calls.Wait, args), calls.Wait+": "+want; !slices.Equal(got, []string{want}) {
			t.Errorf("%s waits for %q, want %q", args, got, want)
		}
	}
	for _, uris := range []string{`["` + cart + `"]`, `"` + cart + `"`, `"[\"` + cart + `\"]"`} {
		if d.run(calls.Wait, `{"uris":`+uris+`,"timeout_ms":"500"}`); d.running != 1 {
			t.Errorf("with the uris %s it does not wait: %q", uris, d.said)
		}
		if d.pass(500 * time.Millisecond); d.running != 0 {
			t.Errorf("with the uris %s it waits too long", uris)
		}
	}
	first := d.run(calls.Read, `{"uri":"`+cart+`","since":null,"pointer":"","max_chars":"4000"}`)
	var head struct{ Revision float64 }
	if json.Unmarshal([]byte(first[0]), &head); head.Revision == 0 {
		t.Fatalf("it reads %q", first)
	}
	for _, since := range []string{strconv.FormatFloat(head.Revision, 'e', -1, 64), fmt.Sprintf("%.1f", head.Revision),
		fmt.Sprintf(`"%.0f"`, head.Revision)} {
		if got := d.run(calls.Read, `{"uri":"`+cart+`","lines":"","since":`+since+`}`); !strings.Contains(got[0], `"unchanged":true`) {
			t.Errorf("since %s it reads %q", since, got)
		}
	}
}

// A result ends with a reminder of other changes. It has contents only for the origin of the call.
func TestRemind(t *testing.T) { synctest.Test(t, testRemind) }

func testRemind(t *testing.T) {
	for name, how := range map[string]struct{ told, inline bool }{"off": {}, "names": {told: true},
		"inline": {told: true, inline: true}} {
		d := open(t, calls.Options{})
		d.reminded, d.inline = how.told, how.inline
		d.run(calls.Read, `{"uri":"`+cart+`"}`)
		d.change("two")
		block := d.tools.Remind(t.Context(), d, "https://shop.example")
		if strings.Contains(block, cart) != how.told || strings.Contains(block, `two`) != how.inline {
			t.Errorf("%s: it says %q", name, block)
		}
	}
}

// The gateway cannot distinguish agents without a memory. A revision that such an agent names means
// that it has only the contents, of that resource and part, that were given under it.
func TestSinceWithoutAMemory(t *testing.T) {
	const list, tab = "https://shop.example/list", "https://shop.example/cart/_tab2"
	read := func(uri, more string) string { return `{"uri":"` + uri + `"` + more + `}` }
	pointer, lines := `,"pointer":"/a"`, `,"lines":"1-1"`
	for name, c := range map[string]struct {
		first, then, args string // two calls, and a third that names the revision of the second
		wait              bool   // the second is a wait that times out
		has               bool
	}{
		"the same":                     {"", read(cart, ""), read(cart, ""), false, true},
		"another":                      {"", read(list, ""), read(cart, ""), false, false},
		"another, read before":         {read(cart, ""), read(list, ""), read(cart, ""), false, false},
		"another tab's":                {"", read(tab, ""), read(cart, ""), false, false},
		"a part of what it has":        {"", read(cart, ""), read(cart, pointer), false, true},
		"the part":                     {"", read(cart, pointer), read(cart, pointer), false, true},
		"all, of which it has a part":  {"", read(cart, pointer), read(cart, ""), false, false},
		"all, of which it has lines":   {"", read(cart, lines), read(cart, ""), false, false},
		"another part":                 {"", read(cart, `,"pointer":"/b"`), read(cart, pointer), false, false},
		"lines, and it has others":     {"", read(cart, `,"lines":"2-3"`), read(cart, lines), false, false},
		"a part, named like another's": {"", read(list, pointer), read(cart, pointer), false, false},
		"a wait for another":           {"", `{"uris":["` + list + `"],"timeout_ms":9}`, read(cart, ""), true, false},
		"a wait for another, told before": {read(cart, ""), `{"uris":["` + list + `"],"timeout_ms":9}`, read(cart, ""),
			true, false},
		"a wait for what it has not": {"", `{"uris":["` + cart + `"],"timeout_ms":9}`, read(cart, ""), true, false},
		"a wait since what it has": {read(cart, ""), `{"uris":["` + cart + `"],"timeout_ms":9,"since":SINCE}`,
			read(cart, ""), true, true},
		"a wait since what it has of another": {read(list, ""), `{"uris":["` + cart + `"],"timeout_ms":9,"since":SINCE}`,
			read(cart, ""), true, false},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := open(t, calls.Options{})
			d.memory = nil
			d.page.text = "{\"a\":[1],\n\"b\":[2],\n\"c\":[3]}"
			d.run(calls.Read, read(cart, lines)) // by another agent
			var head struct {
				Revision  int64
				Unchanged bool
			}
			since := func(args string) string {
				return strings.ReplaceAll(args, "SINCE", strconv.FormatInt(head.Revision, 10))
			}
			for _, args := range []string{c.first, c.then} {
				tool := calls.Read
				if strings.Contains(args, "uris") {
					tool = calls.Wait
				}
				if args == "" {
					continue
				}
				if d.run(tool, since(args)); c.wait && tool == calls.Wait {
					d.pass(9 * time.Millisecond)
				}
				if len(d.said) == 0 || json.Unmarshal([]byte(d.said[0]), &head) != nil || head.Revision == 0 {
					t.Fatalf("%s says %q", args, d.said)
				}
			}
			d.run(calls.Read, since(strings.TrimSuffix(c.args, "}")+`,"since":SINCE}`))
			if json.Unmarshal([]byte(d.said[0]), &head); head.Unchanged != c.has || (len(d.said) == 1) != c.has {
				t.Errorf("it says %q", d.said)
			}
		}))
	}
}

// An agent without a memory can continue the pages of a part, too.
func TestPagesOfAPartWithoutAMemory(t *testing.T) { synctest.Test(t, testPagesOfAPartWithoutAMemory) }

func testPagesOfAPartWithoutAMemory(t *testing.T) {
	d := open(t, calls.Options{})
	d.memory = nil
	d.page.text = strings.Repeat("0123456789abcdef\n", 200)
	args, got := `{"uri":"`+cart+`","lines":"2-190","max_chars":2000`, ""
	for cursor := ""; ; {
		var head struct{ Next *live.Next }
		said := d.run(calls.Read, args+cursor+`}`)
		if json.Unmarshal([]byte(said[0]), &head); len(said) != 2 || strings.Contains(said[0], "note") {
			t.Fatalf("behind %d characters it says %q", len(got), said)
		}
		if got += said[1]; head.Next == nil {
			break
		}
		cursor = `,"cursor":"` + head.Next.Cursor + `"`
	}
	if want := d.page.text[17 : 190*17]; strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("its pages are %q", got)
	}
}

// The gifts to agents without a memory are bounded, and the last gift stays.
func TestSinceWithoutAMemoryIsBounded(t *testing.T) {
	synctest.Test(t, testSinceWithoutAMemoryIsBounded)
}

func testSinceWithoutAMemoryIsBounded(t *testing.T) {
	d := open(t, calls.Options{})
	d.memory = nil
	d.page.text = `{"a":1}`
	var first, last string
	for i := range 1100 {
		said := d.run(calls.Read, fmt.Sprintf(`{"uri":"%s/%d"}`, cart, i))
		_, said[0], _ = strings.Cut(said[0], `"revision":`)
		if last, _, _ = strings.Cut(said[0], ","); i == 0 {
			first = last
		}
	}
	for args, unchanged := range map[string]bool{
		`{"uri":"` + cart + `/0","since":` + first + `}`: false, `{"uri":"` + cart + `/1099","since":` + last + `}`: true,
	} {
		if said := d.run(calls.Read, args); strings.Contains(said[0], `"unchanged":true`) != unchanged {
			t.Errorf("%s says %q", args, said)
		}
	}
}

// A page with long descriptions leaves room for the resources of another site, and programs show the whole list.
func TestListOfLongDescriptions(t *testing.T) { synctest.Test(t, testListOfLongDescriptions) }

func testListOfLongDescriptions(t *testing.T) {
	var listed []calls.Resource
	for i := range 150 {
		listed = append(listed, calls.Resource{URI: fmt.Sprintf("https://aaa.example/%04d", i),
			Title: strings.Repeat("t", 1024), Description: strings.Repeat("é", 40_000)})
	}
	listed = append(listed, calls.Resource{URI: cart})
	d := open(t, calls.Options{
		Listed:  slices.Values(listed),
		Notices: func(calls.Call) []string { return nil },
		Unseen:  func() bool { return false },
	})
	got := d.run(calls.List, `{}`)
	if len(got) != 1 || len(got[0]) > 41_000 || strings.Count(got[0], "aaa.example") < 25 || !strings.HasSuffix(got[0],
		strings.Repeat("é", 150)+`…"},{"uri":"`+cart+`"}],"note":"There are more: narrow the list with contains or tab."}`) {
		t.Errorf("it lists %.2000q", got)
	}
}
