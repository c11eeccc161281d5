package follow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

const app, cart = "https://app.example", "https://app.example/cart"

// pages are a Source with one page. It answers at once, or, while slow is set, when the test calls
// answers.
type pages struct {
	*Books
	page    *Page
	watched map[string]int // subscriptions that have not ended
	refused map[string]string
	key     string // of what answers for all URIs
	pace    coalesce.Pace
	slow    bool
	// subscribed has the URIs of agents' subscriptions. isHidden is set while none of the agents
	// sees the page.
	subscribed map[string]bool
	isHidden   bool
	answers    []func()
	changes    int
	now        time.Time
}

func open(t *testing.T) *pages {
	t.Helper()
	p := &pages{watched: map[string]int{}, refused: map[string]string{}, key: "key", now: time.Now(),
		subscribed: map[string]bool{}}
	p.page = NewPage(p.send)
	p.Books = New(p)
	return p
}

func (p *pages) send(uri string, on bool) {
	if !on {
		if p.watched[uri]--; p.watched[uri] == 0 {
			delete(p.watched, uri)
		}
		return
	}
	p.watched[uri]++
	if answer := func() { p.page.Confirm(uri) }; p.slow {
		p.answers = append(p.answers, answer)
	} else {
		answer()
	}
}

func (p *pages) Subscribed(uri string, on bool) {
	p.subscribed[uri] = on
	p.Books.Subscribed(uri, on)
}

func (p *pages) Lead(uri string) (*Page, string, string) { return p.page, uri, p.key }
func (p *pages) Sees(uri string) bool                    { return p.subscribed[uri] && !p.isHidden }
func (p *pages) Refuses(uri string, _ int) string        { return p.refused[uri] }
func (p *pages) Pace(string) (coalesce.Pace, bool)       { return p.pace, p.key != "" }
func (p *pages) Moved(string)                            {}
func (p *pages) Changed()                                { p.changes++ }
func (p *pages) Now() time.Time                          { return p.now }
func (p *pages) Time() coalesce.Time                     { return coalesce.Time(p.now.UnixMilli()) }

// read gives an agent the text of a URI.
func (p *pages) read(m *Memory, uri, text string) {
	p.Track([]string{uri}, func(string, string) {})
	l := live.DecodeContents(uri, fmt.Appendf(nil, `[{"uri":%q,"text":%q}]`, uri, text))
	l.Revision = p.Found(uri, p.Revision(uri), l.Hash)
	m.Given(l, "")
}

func uris(list []News) (names []string) {
	for _, n := range list {
		names = append(names, n.URI)
	}
	return names
}

func TestRevisionsGrow(t *testing.T) {
	p := open(t)
	last := p.Clock()
	grown := func(what string) {
		t.Helper()
		if p.Revision(cart) <= last || p.Revision(cart) != p.Clock() {
			t.Errorf("%s has revision %d after %d, and the clock is %d", what, p.Revision(cart), last, p.Clock())
		}
		last = p.Clock()
	}
	p.Updated(cart)
	if p.Revision(cart) != 0 || p.changes != 0 {
		t.Error("a change of what nobody follows is counted")
	}
	p.Track([]string{cart, cart}, func(string, string) {})
	grown("what is tracked")
	if p.watched[cart] != 1 || len(p.watched) != 1 {
		t.Errorf("it has %d subscriptions", p.watched[cart])
	}
	p.Updated(cart)
	grown("a change")
	p.now = p.now.Add(-time.Hour)
	p.Updated(cart)
	grown("a change after the clock was set back")
	if got := p.Found(cart, last, [32]byte{1}); got != last || p.Found(cart, last, [32]byte{1}) != last {
		t.Errorf("what has not changed has revision %d after %d", got, last)
	}
	if got := p.Found(cart, last, [32]byte{2}); got <= last || p.changes != 3 {
		t.Errorf("what reads differently has revision %d after %d, of %d changes", got, last, p.changes)
	}
	if got := p.Found(cart, last, [32]byte{3}); got != last {
		t.Errorf("what was read before the last change has revision %d, want %d", got, last)
	}
}

// A follower notes what it is told.
type follower struct{ touched, changed int }

func (f *follower) Touched(string) { f.touched++ }
func (f *follower) Changed(string) { f.changed++ }

// Changes are counted, and told, at the pace of the page's resource. The last one always is.
func TestPace(t *testing.T) {
	p, f := open(t), &follower{}
	p.pace = coalesce.Pace{Interval: 100, Burst: 1}
	p.Track([]string{cart}, func(string, string) {})
	p.Follow(cart, f)
	told := func(when string, touched, changed, changes int) {
		t.Helper()
		if *f != (follower{touched, changed}) || p.changes != changes {
			t.Errorf("%s: the follower was told %+v, of %d changes", when, *f, p.changes)
		}
	}
	for range 3 {
		p.Reported(cart)
		p.Tick()
	}
	told("a burst", 3, 1, 1)
	at, due := p.Deadline()
	if p.now = p.now.Add(100 * time.Millisecond); !due || at != p.Time() {
		t.Errorf("the rest is due at %d, in %v", at, due)
	}
	p.Tick()
	told("its end", 3, 2, 2)
	p.Reported(cart)
	p.now = p.now.Add(time.Second)
	p.key = "" // no page offers it
	p.Tick()
	told("without a page", 4, 2, 2)
	p.key, p.now = "https://app.example/{name}", p.now.Add(time.Second)
	p.Check(cart)
	p.Sweep()
	told("another entry answers", 4, 3, 3)
	p.Unfollow(cart, f)
	p.Sweep()
	if p.Reported(cart); p.Len() > 0 || len(p.watched) > 0 {
		t.Errorf("%d are tracked, and %v watched", p.Len(), p.watched)
	}
	told("nobody follows it", 4, 3, 3)
}

// A change that an interval of an hour holds back is counted soon after its URI has a shorter one.
func TestPaced(t *testing.T) {
	p := open(t)
	p.pace = coalesce.Pace{Interval: 3_600_000, Burst: 1}
	p.Track([]string{cart}, func(string, string) {})
	p.Reported(cart)
	p.Reported(cart)
	p.pace.Interval = 100
	p.Paced(cart)
	if at, due := p.Deadline(); !due || at != p.Time()+100 {
		t.Errorf("it is due %d ms later, in %v", at-p.Time(), due)
	}
	p.Paced(app + "/doc") // nobody follows it
	p.now = p.now.Add(100 * time.Millisecond)
	if p.Tick(); p.changes != 2 {
		t.Errorf("%d changes are counted", p.changes)
	}
	if p.Paced(cart); p.changes != 2 {
		t.Error("without a change, one is counted")
	}
}

// A page has one subscription for all who follow its URI, until the last one leaves.
func TestOneSubscription(t *testing.T) {
	p := open(t)
	p.slow = true
	answers := 0
	end := p.Ask(cart, func() { answers++ })
	p.Subscribed(cart, true)
	p.Track([]string{cart}, func(string, string) { answers++ })
	if p.watched[cart] != 1 || answers != 0 {
		t.Errorf("%v are watched, and %d were answered", p.watched, answers)
	}
	p.answers[0]()
	end()
	p.Subscribed(cart, false)
	if p.Sweep(); p.watched[cart] != 1 || answers != 2 {
		t.Errorf("%v are watched, and %d were answered", p.watched, answers)
	}
	p.Subscribed(cart, true)
	p.now = p.now.Add(trackFor + time.Second)
	p.Track(nil, func(string, string) {})
	if p.Sweep(); p.watched[cart] != 1 || p.Len() != 0 {
		t.Errorf("%v are watched, of %d", p.watched, p.Len())
	}
	p.Subscribed(cart, false)
	p.Subscribed(cart, true)
	if p.Sweep(); p.watched[cart] != 1 || len(p.answers) != 1 {
		t.Errorf("%v are watched, and the page was told %d times", p.watched, len(p.answers))
	}
	p.page.Leave()
	if p.Ask(cart, func() { answers++ })(); answers != 2 || len(p.answers) != 2 {
		t.Errorf("%d were answered, and the page was told %d times", answers, len(p.answers))
	}
}

func TestWhatCannotBeFollowed(t *testing.T) {
	p := open(t)
	p.refused[app+"/no"] = "no page has it"
	told := map[string]string{}
	p.Track([]string{cart, app + "/no"}, func(uri, why string) { told[uri] = why })
	if want := map[string]string{cart: "", app + "/no": "no page has it"}; !maps.Equal(told, want) || p.Len() != 1 {
		t.Errorf("told: %q, and %d are tracked", told, p.Len())
	}
}

// The last agent that has a resource leaves during another agent's first read of it.
func TestGivenWhenTheOthersHaveLeft(t *testing.T) {
	p := open(t)
	first, second := p.NewMemory(seen.Limits{}), p.NewMemory(seen.Limits{})
	p.read(first, cart, "one")
	p.Track([]string{cart}, func(string, string) {})
	l := live.DecodeContents(cart, fmt.Appendf(nil, `[{"uri":%q,"text":"one"}]`, cart))
	l.Revision = p.Revision(cart)
	first.End()
	second.Given(l, "")
	if v, ok := second.Last(cart); !ok || v.Hash != l.Hash {
		t.Error("the second agent has seen nothing")
	}
	p.read(second, cart, "two")
	if p.watched[cart] != 1 {
		t.Errorf("it is watched %d times", p.watched[cart])
	}
	second.End()
	if p.Sweep(); p.Len() > 0 || len(p.watched) > 0 {
		t.Errorf("%d are tracked, and %v watched", p.Len(), p.watched)
	}
}

// A second Track of a resource waits for the answer to the first.
func TestTrackWaitsForTheAnswer(t *testing.T) {
	p := open(t)
	p.slow = true
	ended := 0
	for range 2 {
		p.Track([]string{cart}, func(string, string) { ended++ })
	}
	if ended != 0 || p.watched[cart] != 1 || len(p.answers) != 1 {
		t.Fatalf("%d have ended, with %d subscriptions", ended, p.watched[cart])
	}
	p.answers[0]()
	p.answers[0]()
	if ended != 2 || len(p.watched) != 1 {
		t.Errorf("%d have ended", ended)
	}
}

// A page that stands still keeps nobody from the others.
func TestTrackWaitsForNoOtherPage(t *testing.T) {
	p := open(t)
	p.slow = true
	var told []string
	p.Track([]string{cart, app + "/doc"}, func(uri, _ string) { told = append(told, uri) })
	p.answers[1]()
	if !slices.Equal(told, []string{app + "/doc"}) {
		t.Errorf("told of %q before the cart's page goes on", told)
	}
	if p.answers[0](); !slices.Equal(told, []string{app + "/doc", cart}) {
		t.Errorf("told of %q", told)
	}
}

// A page is no longer watched when no agent has its contents, and a while after the last request for them.
func TestPagesAreLeftAlone(t *testing.T) {
	p := open(t)
	a, b := p.NewMemory(seen.Limits{}), p.NewMemory(seen.Limits{URIs: 1})
	p.read(a, cart, "one")
	p.read(b, cart, "one")
	p.read(b, app+"/doc", "one") // its record drops the cart for this
	p.now = p.now.Add(trackFor + time.Second)
	p.Track(nil, func(string, string) {})
	if p.watched[cart] != 1 || p.watched[app+"/doc"] != 1 {
		t.Errorf("%v are watched, while each is what an agent has", p.watched)
	}
	a.Drop(cart)
	p.Sweep()
	if _, ok := a.Last(cart); ok || p.watched[cart] != 0 || p.watched[app+"/doc"] != 1 {
		t.Errorf("%v are watched", p.watched)
	}
	b.End()
	p.Sweep()
	if len(p.watched) != 0 || p.Len() != 0 {
		t.Errorf("%v are watched, of %d", p.watched, p.Len())
	}
	p.Track([]string{cart, app + "/doc"}, func(string, string) {})
	p.now = p.now.Add(trackFor + time.Second)
	p.Track([]string{app + "/doc"}, func(string, string) {})
	p.Sweep()
	if _, ok := p.watched[app+"/doc"]; ok && p.Len() == 1 && len(p.watched) == 1 {
		p.read(a, app+"/doc", "one")
	} else {
		t.Fatalf("%v are watched, of %d", p.watched, p.Len())
	}
	p.now = p.now.Add(followFor + time.Second)
	p.Updated(app + "/doc")
	p.Sweep()
	if len(p.watched) != 0 || !a.Old(app+"/doc") {
		t.Errorf("%v are watched after a change that nobody asked for", p.watched)
	}
}

// Above manyCounted, what nobody holds ends sooner: one agent can ask for any number of URIs.
func TestManyURIsLeaveRoom(t *testing.T) {
	for _, count := range []int{manyCounted, manyCounted + 1} {
		p := open(t)
		a := p.NewMemory(seen.Limits{})
		p.read(a, cart, "one")
		var all []string
		for i := range count - 1 {
			all = append(all, fmt.Sprint(app, "/item/", i))
		}
		p.Track(all, func(string, string) {})
		p.now = p.now.Add(followFor + time.Second)
		p.Track(nil, func(string, string) {})
		p.Sweep()
		if want := map[bool]int{true: count, false: 1}[count <= manyCounted]; p.Len() != want || p.watched[cart] != 1 {
			t.Errorf("of %d are %d left, %d of what an agent has", count, p.Len(), p.watched[cart])
		}
	}
}

// What agents have read, and neither hold nor wait for, gives way to others: first what was needed longest ago.
func TestWhatIsOnlyReadGivesWay(t *testing.T) {
	p := open(t)
	a := p.NewMemory(seen.Limits{})
	doc, ignore := app+"/doc", func(string, string) {}
	p.read(a, cart, "one")
	end := p.Await([]string{doc}, ignore)
	b := p.NewMemory(seen.Limits{})
	p.read(b, doc, "one")
	b.End() // the call that waits goes on
	for i := range 5 {
		p.now = p.now.Add(time.Second)
		p.Track([]string{fmt.Sprint(app, "/item/", i)}, ignore)
	}
	if n := p.MakeRoom(); n != 3 || p.Revision(app+"/item/2") != 0 || p.Revision(app+"/item/3") == 0 {
		t.Errorf("%d give way, and %d are left", n, p.Len())
	}
	for p.MakeRoom() > 0 {
	}
	p.now = p.now.Add(trackFor + time.Second)
	p.Track(nil, ignore)
	if p.Sweep(); p.Counted() != 2 || len(p.watched) != 2 || p.Revision(cart) == 0 || p.Revision(doc) == 0 {
		t.Errorf("with one that is held and one that is awaited, %v are watched", p.watched)
	}
	end()
	if n := p.MakeRoom(); n != 1 || p.Revision(cart) == 0 {
		t.Errorf("after the wait %d give way", n)
	}
}

// What an agent was told that cannot be read is bounded, and ends when the agent is given it.
func TestUnread(t *testing.T) {
	p := open(t)
	m := p.NewMemory(seen.Limits{})
	for i := range 3 * maxUnread / 2 {
		m.Drop(fmt.Sprint(app, "/", i))
	}
	m.Drop(cart)
	if n := len(m.Unread); n > maxUnread || !m.Unread[cart] || p.Len() != 0 {
		t.Errorf("%d are unread, the cart: %v, and %d tracked", n, m.Unread[cart], p.Len())
	}
	if p.read(m, cart, "one"); m.Unread[cart] || len(m.Unread) == 0 {
		t.Errorf("it was given, and %d are unread", len(m.Unread))
	}
	if m.Empty(); len(m.Unread) > 0 {
		t.Errorf("%d are unread at its end", len(m.Unread))
	}
}

func TestNews(t *testing.T) {
	p := open(t)
	m := p.NewMemory(seen.Limits{})
	for _, uri := range []string{cart, app + "/doc", "https://other.example/x", app + "/same"} {
		p.read(m, uri, "one")
	}
	if got := m.News(app); len(got) != 0 {
		t.Errorf("nothing has changed, and news are %v", got)
	}
	for _, uri := range []string{cart, app + "/doc", "https://other.example/x"} {
		p.Updated(uri)
	}
	want := []string{app + "/doc", cart, "https://other.example/x"}
	if got := uris(m.News(app)); !slices.Equal(got, want) {
		t.Errorf("news are %q, want %q", got, want)
	}
	m.Told(cart, p.Revision(cart))
	if got := uris(m.News(app)); !slices.Equal(got, slices.Delete(want, 1, 2)) || !m.Old(cart) {
		t.Errorf("news after one was told are %q", got)
	}
	p.Updated(cart)
	if got := uris(m.News(app)); slices.Contains(got, cart) {
		t.Errorf("what was named, and has not been read since, is news: %q", got)
	}
	p.read(m, cart, "two")
	p.Updated(cart)
	if got := uris(m.News(app)); got[0] != cart {
		t.Errorf("what was read, and has changed since, is no news: %q", got)
	}
}

// A telling has a bound, names no resource twice, and counts the resources that it leaves out.
func TestTell(t *testing.T) {
	p := open(t)
	m := p.NewMemory(seen.Limits{})
	for i := range 20 {
		p.read(m, fmt.Sprint(app, "/", i), "one")
	}
	if got := m.Tell(Telling{Head: "changed:", Chars: 400}); got != "" {
		t.Errorf("nothing is told as %q", got)
	}
	for i := range 20 {
		p.Updated(fmt.Sprint(app, "/", i))
	}
	named := map[string]bool{}
	for range 20 {
		list := m.News(app)
		text := m.Tell(Telling{Head: "changed:", More: "\nand %d more", Chars: 400, List: list})
		lines := strings.Split(text, "\n")
		if len(text) > 400 || !strings.HasPrefix(lines[0], m.Tag+" changed:") {
			t.Fatalf("told %q", text)
		}
		if len(m.News(app)) == 0 {
			lines = append(lines, "")
		} else if want := fmt.Sprintf("and %d more", len(m.News(app))); lines[len(lines)-1] != want {
			t.Fatalf("told %q, want %q behind it", text, want)
		}
		for _, line := range lines[1 : len(lines)-1] {
			if named[line] {
				t.Errorf("named twice: %s", line)
			}
			named[line] = true
		}
		if len(m.News(app)) == 0 {
			break
		}
	}
	if len(named) != 20 {
		t.Errorf("%d are named, want 20", len(named))
	}
}

// A resource that reads as before is no news, and contents in a telling count as seen.
func TestTellContents(t *testing.T) {
	p := open(t)
	m := p.NewMemory(seen.Limits{})
	found := map[string]*live.Look{}
	for _, name := range []string{"/cart", "/same"} {
		uri, text := app+name, "one"
		p.read(m, uri, text)
		p.Updated(uri)
		if uri == cart {
			text = "two"
		}
		l := live.DecodeContents(uri, fmt.Appendf(nil, `[{"uri":%q,"text":%q}]`, uri, text))
		l.Revision = p.Revision(uri)
		found[uri] = l
	}
	text := m.Tell(Telling{Head: "changed:", Chars: 600, List: m.News(app), Found: found,
		Older: map[string]bool{cart: true}})
	want := fmt.Sprintf("%s changed:\n{\"uri\":%q,\"revision\":%d,\"now\":\"two\",\"when\":\"before this call\"}", m.Tag,
		cart, p.Revision(cart))
	if text != want {
		t.Errorf("told %q, want %q", text, want)
	}
	if m.Old(cart) || m.Old(app+"/same") {
		t.Error("what was told is old")
	}
}

func TestNewsAtPrompt(t *testing.T) {
	p := open(t)
	m := p.NewMemory(seen.Limits{})
	listed := []string{cart, app + "/doc"}
	if got := m.NewsAtPrompt(nil, listed, false); len(got) != 0 || len(p.watched) != 2 {
		t.Errorf("what there is at first is told: %v, and %d are tracked", got, p.Len())
	}
	p.Updated(cart)
	if got := uris(m.NewsAtPrompt(nil, listed, false)); !slices.Equal(got, []string{cart}) {
		t.Errorf("news are %q", got)
	}
	m.Told(cart, p.Revision(cart))
	if got := m.NewsAtPrompt(nil, listed, false); len(got) != 0 || !m.ToldOf(cart) || m.ToldOf(app+"/other") {
		t.Errorf("told twice: %v", got)
	}
	p.read(m, cart, "two")
	p.Updated(cart)
	m.Told(cart, p.Revision(cart))
	m.Refused["pay"]++
	m.Empty()
	if got := m.NewsAtPrompt(nil, nil, false); len(got) != 0 || m.Len() != 0 || len(m.Refused) != 0 {
		t.Errorf("what was told before it was forgotten is told again: %v", got)
	}
	p.Updated(cart)
	if got := uris(m.NewsAtPrompt(nil, nil, false)); !slices.Equal(got, []string{cart}) {
		t.Errorf("news of what pages list no more are %q", got)
	}
	m.End()
	if p.Len() != 0 {
		t.Errorf("%d are tracked at its end", p.Len())
	}
}

// Resources that the user chose or the agent has read come before listed ones.
func TestFollowedAreBounded(t *testing.T) {
	p := open(t)
	m := p.NewMemory(seen.Limits{})
	var listed []string
	for i := range MaxFollowed + 9 {
		listed = append(listed, fmt.Sprint(app, "/listed/", i))
	}
	m.NewsAtPrompt(nil, listed, false)
	p.read(m, app+"/read", "one")
	m.NewsAtPrompt([]string{app + "/chosen"}, listed, false)
	if p.Len() != MaxFollowed || p.watched[app+"/chosen"] != 1 || p.watched[app+"/read"] != 1 {
		t.Errorf("%d are followed, %d and %d of those that come first", p.Len(), p.watched[app+"/chosen"],
			p.watched[app+"/read"])
	}
}

// A site with more resources than there are places takes no place of another site, which comes
// later in the alphabet and later in time. Apart from that, what was followed stays.
func TestFollowedOfEachSite(t *testing.T) {
	p := open(t)
	m := p.NewMemory(seen.Limits{})
	var listed []string
	for i := range MaxFollowed + 88 {
		listed = append(listed, fmt.Sprintf("https://aaa.example/%03d", i))
	}
	m.NewsAtPrompt(nil, listed, false)
	for range 2 { // and nothing moves from one prompt to the next
		m.NewsAtPrompt(nil, append(slices.Clone(listed), cart, app+"/doc"), false)
		if p.Len() != MaxFollowed || p.watched[cart] != 1 || p.watched[app+"/doc"] != 1 {
			t.Errorf("%d are followed, %d and %d of the small site", p.Len(), p.watched[cart],
				p.watched[app+"/doc"])
		}
		for _, uri := range listed[:MaxFollowed-2] {
			if p.watched[uri] != 1 {
				t.Fatalf("%s is followed no more", uri)
			}
		}
	}
	p.Updated(cart)
	got := uris(m.NewsAtPrompt(nil, append(listed, cart), false))
	if !slices.Equal(got, []string{cart}) {
		t.Errorf("news are %q", got)
	}
}

// A listen begins after the answers for all of its URIs. The page that answered first reports until
// then, whatever other agents and pages do meanwhile.
func TestAskedUntilItBegins(t *testing.T) {
	p := open(t)
	p.Subscribed(cart, true)
	p.Sweep()
	p.isHidden = true
	p.Check(cart)
	if p.Sweep(); p.watched[cart] != 0 {
		t.Fatal("the page reports to agents that do not see it")
	}
	asked := p.Ask(cart, func() {})
	p.isHidden = false // the agent that listens sees it
	asked()
	if p.Sweep(); p.watched[cart] != 1 {
		t.Error("the page has answered, and does not report until the listen begins")
	}
	p.Books.Subscribed(cart, false)
	if p.Sweep(); p.watched[cart] != 1 {
		t.Error("another agent unsubscribes, and the page does not report until the listen begins")
	}
	p.isHidden = true
	p.Check(cart)
	if p.Sweep(); p.watched[cart] != 0 {
		t.Error("the page reports for a listen that has not begun")
	}
}
