package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ name, arguments, canonical, wrong string }{
		{Updated, `{}`, `{}`, ""},
		{Updated, ` { "uri":"https://x.test/\u00e9\/", "minIntervalMs" : 1000 } `,
			`{"minIntervalMs":1000,"uri":"https://x.test/é/"}`, ""},
		{Updated, `{"uriPrefix":"https://x.test/\u2028<&>","origin":"https://x.test"}`,
			`{"origin":"https://x.test","uriPrefix":"https://x.test/` + "\u2028" + `<&>"}`, ""},
		{Opened, `{"origin":"https://x.test"}`, `{"origin":"https://x.test"}`, ""},
		{Opened, `{"uri":"https://x.test"}`, "", "no argument of page.opened"},
		{Updated, `{"include":"patch"}`, "", "no argument"},
		{Updated, `{"uri":5}`, "", "must be a string"},
		{Updated, `{"uri":""}`, "", "must be a string"},
		{Updated, `{"uri":"a\nb"}`, "", "must be a string"},
		{Updated, `{"minIntervalMs":999}`, "", "from 1000"},
		{Updated, `{"minIntervalMs":3600001}`, "", "from 1000"},
		{Updated, `{"minIntervalMs":1e4}`, "", "from 1000"},
		{Updated, `{"minIntervalMs":"5000"}`, "", "from 1000"},
		{Updated, `[]`, "", "must be an object"},
		{Updated, `{"uri":"` + strings.Repeat("x", 4096) + `"}`, "", "4096 bytes"},
		{"mcp.resource.updated", `{}`, "", "no event of this name"},
	} {
		s, refused := Parse(test.name, []byte(test.arguments))
		switch {
		case test.wrong == "" && (refused != nil || s.Arguments != test.canonical):
			t.Errorf("%s %s: %q, %v", test.name, test.arguments, s.Arguments, refused)
		case test.wrong != "" && (refused == nil || !strings.Contains(refused.Error(), test.wrong)):
			t.Errorf("%s %.60s is refused with %v", test.name, test.arguments, refused)
		}
		if refused == nil {
			if again, refused := Parse(s.Name, []byte(s.Arguments)); again != s || refused != nil {
				t.Errorf("%s is read again as %+v, %v", s.Arguments, again, refused)
			}
		}
	}
}

// Each member of a type is as the SEP requires, and the texts for a model are ASCII without semicolons.
func TestList(t *testing.T) {
	for _, webhook := range []bool{false, true} {
		var list []struct {
			Name, Description          string
			Delivery                   []string
			InputSchema, PayloadSchema struct {
				Type                 string
				AdditionalProperties *bool
				Properties           map[string]struct{ Type, Description string }
				Required             []string
			}
		}
		if err := json.Unmarshal(List(webhook), &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if strings.ContainsFunc(e.Description, func(r rune) bool { return r > 126 || r == ';' }) || e.Description == "" {
				t.Errorf("%s: %q", e.Name, e.Description)
			}
			if slices.Contains(e.Delivery, "webhook") != webhook || !slices.Contains(e.Delivery, "push") ||
				!slices.Contains(e.Delivery, "poll") {
				t.Errorf("%s is delivered by %v", e.Name, e.Delivery)
			}
			in := e.InputSchema
			if in.Type != "object" || in.AdditionalProperties == nil || *in.AdditionalProperties || in.Required != nil ||
				e.PayloadSchema.Type != "object" || e.PayloadSchema.AdditionalProperties != nil {
				t.Errorf("%s: schemas %+v", e.Name, e)
			}
			for name, property := range in.Properties {
				if property.Description == "" {
					t.Errorf("%s: %s has no description", e.Name, name)
				}
			}
		}
		if len(list) != 3 {
			t.Errorf("%d types", len(list))
		}
	}
}

func TestCursorsThatAreNone(t *testing.T) {
	good := Documents{Document("https://x.test", "a"): 5, Document("https://x.test", "b"): 0}
	for cursor, is := range map[string]bool{
		"": true, "e1:": true, good.String(): true, "e1:0123456789.9007199254740991": true,
		"c_99842": false, "e1": false, "e2:": false, "t1:5": false, "e1:,": false, "e1:0123456789": false,
		"e1:0123456789.": false, "e1:0123456789.-1": false, "e1:0123456789.01": false, "e1:0123456789.+1": false,
		"e1:0123456789.9007199254740992": false, "e1:012345678X.1": false, "e1:0123456789.1.2": false,
		"e1:" + strings.TrimSuffix(strings.Repeat("0123456789.1,", 65), ","): false, "\x00": false,
	} {
		refused := CheckCursor(Updated, cursor)
		if (refused == nil) != is || refused != nil && refused.Kind != bridge.EventInvalid {
			t.Errorf("%q: %v", cursor, refused)
		}
	}
	for cursor, is := range map[string]bool{"": true, TimeCursor(1764103000000000): true, "t1:": false, "t1:-5": false,
		"t1:x": false, "e1:": false, "5": false} {
		if refused := CheckCursor(Opened, cursor); (refused == nil) != is {
			t.Errorf("%q: %v", cursor, refused)
		}
	}
	many := Documents{}
	for i := range 200 {
		many[Document("https://x.test", fmt.Sprint(i))] = int64(i)
	}
	back, refused := ParseDocuments(many.String())
	if refused != nil || len(back) != maxDocuments || back[Document("https://x.test", "199")] != 199 {
		t.Errorf("of 200 documents %d come back: %v", len(back), refused)
	}
}

// A client is interrupted at any time, and continues at a process that knows only its cursor. It still gets the last
// state of every resource, and the same state never has two ids.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		sub, _ := Parse(Updated, []byte(`{}`))
		every := time.Duration(r.IntN(2)) * 3 * time.Second
		now := time.Unix(1764103000, 0)
		var log []string
		counts := map[string]int64{} // of documents
		states := map[string]State{} // the states that pages show
		known := map[string]State{}  // the states that the client knows
		waits := map[string]bool{}   // touched, and not yet changed
		ids := map[string]string{}   // by state
		of := map[string]int{}       // the number of each page's document
		page := func(i int) string { return fmt.Sprint("page", i%2) }
		document := func(page string) string { return Document("https://x.test", fmt.Sprint(page, of[page])) }
		uri := func(i int) string { return fmt.Sprint("https://x.test/", i) }
		for i := range 5 {
			states[uri(i)] = State{document(page(i)), 0, now}
		}
		begin := func(cursor string) *Changes {
			c := NewChanges(sub, every, seesAll)
			for _, u := range slices.Sorted(maps.Keys(states)) {
				c.Add(u, states[u])
			}
			if refused := c.Begin(cursor, -1, now); refused != nil {
				t.Fatal(refused)
			}
			clear(waits)
			return c
		}
		c := begin("")
		maps.Copy(known, states)
		cursor := ""
		take := func() bool {
			n, ok, _ := c.Next(now)
			if !ok {
				return false
			}
			log = append(log, fmt.Sprint("note ", n.Kind, n.Subject, " ", n.Occurrence.Cursor, n.Truncated))
			if cursor = n.Occurrence.Cursor; n.Kind == Event {
				known[n.Subject] = states[n.Subject]
				state := fmt.Sprint(states[n.Subject].Document, states[n.Subject].Count, n.Subject)
				if before := ids[state]; before != "" && before != n.ID {
					t.Errorf("seed %d: %s has the ids %s and %s", seed, state, before, n.ID)
				}
				ids[state] = n.ID
			}
			return true
		}
		take()
		for range 40 {
			i := r.IntN(5)
			u := uri(i)
			switch r.IntN(10) {
			case 0, 1, 2:
				d := document(page(i))
				counts[d]++
				states[u] = State{d, counts[d], now}
				waits[u] = true
				c.Touched(u, states[u])
				log = append(log, fmt.Sprint("touch ", u, states[u].Document, counts[d]))
			case 3, 4:
				for _, u := range slices.Sorted(maps.Keys(waits)) {
					c.Changed(u, states[u])
					delete(waits, u)
					break
				}
			case 5, 6:
				take()
			case 7:
				cursor = c.Cursor()
				log = append(log, "heartbeat "+cursor)
			case 8:
				log = append(log, "interrupted")
				c = begin(cursor)
				take()
			case 9:
				if r.IntN(3) > 0 {
					now = now.Add(time.Second)
					break
				}
				of[page(i)]++
				log = append(log, "reload "+page(i))
				for j := range 5 {
					if page(j) == page(i) {
						states[uri(j)] = State{document(page(i)), 0, now}
						c.Changed(uri(j), states[uri(j)])
						delete(waits, uri(j))
					}
				}
			}
		}
		for u := range waits {
			c.Changed(u, states[u])
		}
		for take() {
		}
		now = now.Add(time.Minute)
		for take() {
		}
		for u, state := range states {
			if k := known[u]; k.Document != state.Document || k.Count != state.Count {
				t.Fatalf("seed %d: the client knows %s as %v, and it is %v\n%s", seed, u, k, state, strings.Join(log, "\n"))
			}
		}
		if again, refused := c.At(c.Cursor(), -1, now); refused != nil {
			t.Fatal(refused)
		} else if n, _, _ := again.Next(now); n.Truncated {
			t.Fatalf("seed %d: its own cursor counts as a gap", seed)
		} else if n, ok, _ := again.Next(now); ok {
			t.Fatalf("seed %d: a client that knows all is told of %s", seed, n.Subject)
		}
	}
}

// The last state is told, but not more often than the arguments allow.
func TestMinInterval(t *testing.T) {
	sub, _ := Parse(Updated, []byte(`{"minIntervalMs":10000}`))
	now := time.Unix(1764103000, 0)
	c := NewChanges(sub, 0, seesAll)
	c.Add("u", State{"d", 0, now})
	c.Begin("", -1, now)
	c.Next(now)
	told := 0
	for i := range int64(60) {
		c.Changed("u", State{"d", i + 1, now})
		n, ok, at := c.Next(now)
		if ok {
			if told++; !strings.HasPrefix(n.ID, fmt.Sprint(i+1, ".")) {
				t.Errorf("the event of change %d has the id %s", i+1, n.ID)
			}
		} else if at.IsZero() || at.Sub(now) > 10*time.Second {
			t.Errorf("it waits until %v", at)
		}
		now = now.Add(time.Second)
	}
	if told != 6 {
		t.Errorf("%d events in a minute", told)
	}
	if n, ok, _ := c.Next(now.Add(10 * time.Second)); !ok || !strings.HasPrefix(n.ID, "60.") {
		t.Errorf("the last change is told as %+v", n)
	}
}

func seesAll(string) bool { return true }

// An event waits while its subscriber does not see the resource, and no cursor covers it meanwhile.
func TestEventsOfWhatIsHidden(t *testing.T) {
	now, hidden := time.Unix(1764103000, 0), false
	c := NewChanges(Subscription{Name: Updated}, 0, func(string) bool { return !hidden })
	state := func(count int64) State { return State{Document: "d", Count: count, At: now} }
	c.Add("https://x.test/a", state(1))
	_ = c.Begin("", -1, now)
	c.Next(now)
	before := c.Cursor()
	c.Changed("https://x.test/a", state(2))
	hidden = true
	if n, ok, at := c.Next(now); ok || !at.IsZero() || c.Cursor() != before {
		t.Errorf("hidden, it is told as %+v, %v, and the cursor goes from %s to %s", n, at, before, c.Cursor())
	}
	again, _ := c.At(before, -1, now)
	again.Next(now)
	if n, ok, _ := again.Next(now); ok {
		t.Errorf("hidden, a poll tells %+v", n)
	}
	hidden = false
	if n, ok, _ := c.Next(now); !ok || n.Subject != "https://x.test/a" || c.Cursor() == before {
		t.Errorf("seen again, it is told as %+v, %v", n, ok)
	}
}

func TestLogForgetsTheOldest(t *testing.T) {
	now := time.Unix(1764103000, 0)
	l := NewLog(now)
	sub, _ := Parse(Opened, []byte(`{"origin":"https://x.test"}`))
	everyOwner := func(o bridge.Owner) bool { return o.Profile == "" }
	begin := func(cursor string, maxAge time.Duration) (list []string, truncated bool) {
		v, refused := NewVisits(sub, l, everyOwner, cursor, maxAge, now)
		if refused != nil {
			t.Fatal(refused)
		}
		for n, ok, _ := v.Next(now); ok; n, ok, _ = v.Next(now) {
			truncated = truncated || n.Truncated
			if n.Kind == Event {
				list = append(list, n.Subject)
			}
		}
		return list, truncated
	}
	start := TimeCursor(now.UnixMicro())
	one := func() bridge.Owner { return bridge.Owner{Origin: "https://x.test"} }
	other := func() bridge.Owner { return bridge.Owner{Origin: "https://x.test", Profile: "other"} }
	v, _ := NewVisits(sub, l, func(o bridge.Owner) bool { return o != other() }, "", -1, now)
	v.Next(now)
	for i := range 300 {
		now = now.Add(time.Second)
		l.Add(Visit{Name: []string{Opened, Closed}[i%2], Page: fmt.Sprint(i), Owner: one, Time: now})
		l.Add(Visit{Name: Opened, Page: "other", Owner: other, Time: now})
	}
	if n, _, _ := v.Next(now); n.Kind != Active || !n.Truncated {
		t.Errorf("a gap is told as %+v", n)
	}
	if list, truncated := begin(start, -1); len(list) != 64 || !truncated {
		t.Errorf("of the start %d are left, truncated %v", len(list), truncated)
	}
	if list, truncated := begin("", -1); len(list) != 0 || truncated {
		t.Errorf("from now on there are %d, truncated %v", len(list), truncated)
	}
	recent := TimeCursor(now.Add(-20 * time.Second).UnixMicro())
	if list, truncated := begin(recent, -1); len(list) != 10 || truncated {
		t.Errorf("of 20 seconds there are %d, truncated %v", len(list), truncated)
	}
	if list, truncated := begin(recent, 10*time.Second); len(list) != 5 || !truncated {
		t.Errorf("of 10 seconds there are %d, truncated %v", len(list), truncated)
	}
	if list, truncated := begin(TimeCursor(now.Add(time.Hour).UnixMicro()), -1); len(list) != 0 || !truncated {
		t.Errorf("of the future there are %d, truncated %v", len(list), truncated)
	}
}

// The log is full of one site's frames. Who asks for another site's pages misses none, and has no gap. Who asks for all
// is told of the gap once.
func TestLogLeavesRoomForOtherSites(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		now := time.Unix(1764103000, 0)
		l := NewLog(now)
		var all []Visit
		add := func(origin string) {
			now = now.Add(time.Second)
			all = append(all, Visit{Name: Opened, Page: fmt.Sprint(len(all)), Time: now,
				Owner: func() bridge.Owner { return bridge.Owner{Origin: origin} }})
			l.Add(all[len(all)-1])
		}
		poll := func(origin, cursor string) (list []string, truncated bool, at string) {
			v, _ := NewVisits(Subscription{Name: Opened, Origin: origin}, l, seesOwner, cursor, -1, now)
			for {
				at = v.Cursor()
				n, ok, _ := v.Next(now)
				if !ok {
					return list, truncated, at
				}
				if truncated = truncated || n.Truncated; n.Kind == Event {
					list = append(list, n.Subject)
				}
			}
		}
		start := now
		few := 1 + r.IntN(20)
		for i := range 600 {
			add(fmt.Sprintf("https://frame%d.evil.test", i))
			if i*few/600 != (i+1)*few/600 {
				add("https://app.example")
			}
		}
		if list, truncated, _ := poll("https://app.example", TimeCursor(start.UnixMicro())); len(list) != few || truncated {
			t.Fatalf("seed %d: of %d events of a site %d are left, truncated %v", seed, few, len(list), truncated)
		}
		for _, origin := range []string{"", "https://frame0.evil.test"} {
			_, truncated, at := poll(origin, TimeCursor(start.UnixMicro()))
			if _, again, _ := poll(origin, at); !truncated || again {
				t.Fatalf("seed %d: a gap of %q is told %v, and then %v", seed, origin, truncated, again)
			}
		}
		for range 300 {
			add(fmt.Sprintf("https://site%d.test", r.IntN(400)))
		}
		for range 50 { // what is not told as a gap is there
			from, origin := r.IntN(len(all)), fmt.Sprintf("https://site%d.test", r.IntN(400))
			origin = []string{"", "https://app.example", origin}[r.IntN(3)]
			var want []string
			for _, v := range all[from+1:] {
				if origin == "" || v.Owner().Origin == origin {
					want = append(want, v.Page)
				}
			}
			list, truncated, _ := poll(origin, TimeCursor(all[from].Time.UnixMicro()))
			if !truncated && !slices.Equal(list, want) {
				t.Fatalf("seed %d: %q from %d: %q, want %q", seed, origin, from, list, want)
			}
		}
		if len(l.entries) != maxLogged || len(l.floors) > maxLogged {
			t.Fatalf("seed %d: the log has %d entries, and %d floors", seed, len(l.entries), len(l.floors))
		}
	}
}

func seesOwner(bridge.Owner) bool { return true }

// A cursor or subscription of an agent is refused, or survives the conversion to text and back.
func FuzzSubscription(f *testing.F) {
	f.Add("e1:3f0a9c21b7.14,b2b2b2b2b2.9223372036854775807", Updated, `{"uri":"https://a.example/x","minIntervalMs":1000}`)
	f.Add("t1:1764103000000000", Closed, `{"origin":"https://a.example"}`)
	f.Add("e1:", Opened, `{}`)
	f.Fuzz(func(t *testing.T, cursor, name, arguments string) {
		if d, refused := ParseDocuments(cursor); refused == nil {
			if again, refused := ParseDocuments(d.String()); refused != nil || !maps.Equal(d, again) {
				t.Errorf("%q is %v, and then %v, %v", cursor, d, again, refused)
			}
		}
		if at, refused := ParseTime(cursor); refused == nil {
			if again, refused := ParseTime(TimeCursor(at)); refused != nil || again != at {
				t.Errorf("%q is %d, and then %d, %v", cursor, at, again, refused)
			}
		}
		if s, refused := Parse(name, []byte(arguments)); refused == nil {
			if again, refused := Parse(name, []byte(s.Arguments)); refused != nil || again != s {
				t.Errorf("%s %q is %+v, and then %+v, %v", name, arguments, s, again, refused)
			}
		}
	})
}

// The gateway meets a page after a subscription has begun. It tells only the page's resources that have changed since
// the cursor, and the order in which the page answers for them does not matter.
func TestPageThatIsMetLater(t *testing.T) {
	now := time.Unix(1_764_000_000, 0)
	doc := Document("https://app.example", "epoch")
	for _, cursor := range []string{Documents{doc: 2}.String(), ""} {
		c := NewChanges(Subscription{Name: Updated}, 0, seesAll)
		if refused := c.Begin(cursor, -1, now); refused != nil {
			t.Fatal(refused)
		}
		if n, _, _ := c.Next(now); n.Kind != Active {
			t.Errorf("it begins with %+v", n)
		}
		want := []string{"x", "z"}
		for uri, count := range map[string]int64{"x": 5, "z": 3} {
			c.Add(uri, State{doc, count, now})
		}
		if cursor != "" {
			c.Add("unchanged", State{doc, 2, now})
		}
		var told []string
		for n, ok, _ := c.Next(now); ok; n, ok, _ = c.Next(now) {
			told = append(told, n.Subject)
		}
		if slices.Sort(told); !slices.Equal(told, want) {
			t.Errorf("from %q: it tells of %v, and not of %v", cursor, told, want)
		}
		if at := c.Cursor(); at != (Documents{doc: 5}).String() {
			t.Errorf("then the cursor is %s", at)
		}
	}
}
