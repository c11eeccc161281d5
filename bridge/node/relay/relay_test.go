package relay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/testkit/script"
)

const app = "https://app.example"

// large is LARGE in a conversation. One user's pages together have room for one such offer.
var large = strings.Repeat("x", 90_000)

// beginning is a page with a resource and a tool, and two cores. The second core gets no tools.
const beginning = `page < [["hello",1,"0",{"epoch":"e","tab":"tab-tab-1"}]]
page < [["register","{\"uri\":\"APP/doc\"}"],["setTools","[{\"name\":\"pay\"}]"]]
join a
join-reading b`

// The lines of a conversation are "WHO < FRAME" for a frame from the page or a core, "join CORE", "join-reading CORE"
// for a core without tools, "leave CORE", "close", and "held" for the kept bytes. The results are lines "WHO > FRAME"
// for frames to the page or a core.
func TestRelay(t *testing.T) {
	script.Each(t, func(t *testing.T, file string) {
		script.Play(t, file, func(s *script.Script) func(line string) {
			now, cores, kept := bridge.Time(0), map[string]*Core{}, quota.New(1<<30, 100_000)
			say := func(who string, frame []byte) {
				s.Say("%s", strings.NewReplacer(app, "APP", large, "LARGE").Replace(who+" > "+string(frame)))
			}
			r := New(0, "user", app, &Options{Build: "1", Offered: kept, Send: func(to *Core, frame []byte) {
				say(to.Owner.(string), frame)
			}})
			do := func(line string) {
				line = strings.NewReplacer("APP", app, "LARGE", large).Replace(line)
				who, frame, says := strings.Cut(line, " < ")
				verb, name, _ := strings.Cut(line, " ")
				var err error
				switch {
				case says && who == "page":
					err = r.Receive(now, link.Parse([]byte(frame), link.Limits{}))
				case says:
					err = cores[who].Receive(now, []byte(frame))
				case verb == "leave":
					cores[name].Leave()
				case verb == "close":
					r.Close()
				case verb == "held":
					s.Say("%d", kept.Held())
				default:
					cores[name] = r.Join(now, name, verb == "join")
				}
				if err != nil {
					s.Say("error: %v", err)
				}
				now += 1000 // the page has its answer by then
				for f := r.Take(now); f != nil; f = r.Take(now) {
					if string(f) != "[]" {
						say("page", f)
					}
				}
			}
			s.Hidden(func() {
				for line := range strings.SplitSeq(beginning, "\n") {
					do(line)
				}
			})
			return do
		})
	})
}

// A sentence of a core is cut to what a console needs.
func TestLongReport(t *testing.T) {
	r := New(0, "user", app, &Options{Build: "1", Offered: quota.New(1<<30, 1<<30), Send: func(*Core, []byte) {}})
	if err := r.Receive(0, link.Parse([]byte(`[["hello",1,"0",{"epoch":"e","tab":"tab-tab-1"}]]`), link.Limits{})); err != nil {
		t.Fatal(err)
	}
	if err := r.Join(0, nil, true).Receive(0, []byte(`[["report","`+large+`"]]`)); err != nil {
		t.Fatal(err)
	}
	if told := r.Take(1000); len(told) > maxReport+100 || !strings.Contains(string(told), "xxx") {
		t.Errorf("the page is told %d bytes", len(told))
	}
}

// A core watches a bounded number of URIs. Further ones take nothing, until it leaves others.
func TestWatchesOfACoreAreBounded(t *testing.T) {
	r := New(0, "user", app, &Options{Build: "1", Offered: quota.New(1<<30, 1<<30), Send: func(*Core, []byte) {}})
	first, second := r.Join(0, nil, true), r.Join(0, nil, true)
	watch := func(c *Core, i int, on bool) {
		t.Helper()
		if err := c.Receive(0, fmt.Appendf(nil, `[["watched","%s/%d",%v]]`, app, i, on)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxWatches + 5 {
		watch(first, i, true)
		watch(first, i, true)
	}
	if r.Watched() != maxWatches {
		t.Errorf("%d URIs are watched, want %d", r.Watched(), maxWatches)
	}
	watch(first, 0, false)
	watch(first, maxWatches, true)
	watch(second, maxWatches+1, true)
	if r.Watched() != maxWatches+1 {
		t.Errorf("with another core %d URIs are watched, want %d", r.Watched(), maxWatches+1)
	}
	if first.Leave(); r.Watched() != 1 {
		t.Errorf("after the core has left %d URIs are watched", r.Watched())
	}
}

// A tool whose result is too large has run, and its core must not take it for a failed call.
func TestResultThatIsTooLarge(t *testing.T) {
	limits := link.Limits{ContentsBytes: 1000}
	var last string
	r := New(0, "user", app, &Options{Build: "1", Limits: limits, Offered: quota.New(1<<30, 1<<30),
		Send: func(_ *Core, frame []byte) { last = string(frame) }})
	page := func(frame string) {
		if err := r.Receive(0, link.Parse([]byte(frame), limits)); err != nil {
			t.Fatal(err)
		}
	}
	page(`[["hello",1,"0",{"epoch":"e","tab":"tab-tab-1"}]]`)
	page(`[["setTools","[{\"name\":\"pay\"}]"]]`)
	c := r.Join(0, nil, true)
	for i, one := range []struct{ ask, want string }{
		{`[["callTool",1,"pay","{}",""]]`, `=1 0 {"content":[{"type":"text","text":"The tool has run, and its result is not ` +
			`shown: what the page gave has 1039 bytes; the limit is 1000"}],"isError":true}`},
		{`[["read",2,"` + app + `/doc","` + app + `/doc",""]]`,
			`[["complete",2,2,0,"what the page gave has 1039 bytes; the limit is 1000"]]`},
	} {
		if err := c.Receive(0, []byte(one.ask)); err != nil {
			t.Fatal(err)
		}
		r.Take(1000)
		page(fmt.Sprintf(`=%d 7 {"content":[{"type":"text","text":"%s"}]}`, i+1, large[:1000]))
		if last != one.want {
			t.Errorf("the core gets %s", last)
		}
	}
}

// A page's offers reach a core in order, in frames that fit into a message of the bus, in any amount.
func TestMuchThatIsOffered(t *testing.T) {
	var frames [][]byte
	r := New(0, "user", app, &Options{Build: "1", Offered: quota.New(1<<30, 1<<30), Send: func(_ *Core, frame []byte) {
		frames = append(frames, frame)
	}})
	say := func(frame string) {
		if err := r.Receive(0, link.Parse([]byte(frame), link.Limits{})); err != nil {
			t.Fatal(err)
		}
	}
	say(`[["hello",1,"0",{"epoch":"e","tab":"tab-tab-1"}]]`)
	const many = 20
	for i := range many {
		say(fmt.Sprintf(`[["register","{\"uri\":\"%s/%02d\",\"name\":\"%s\"}"]]`, app, i, strings.Repeat("x", 200<<10)))
	}
	r.Join(0, nil, true)
	all := ""
	for i, frame := range frames {
		if len(frame) > 2<<20 || !json.Valid(frame) {
			t.Errorf("frame %d of %d has %d bytes, or is none", i, len(frames), len(frame))
		}
		all += string(frame)
	}
	for i := range many {
		at := strings.Index(all, fmt.Sprintf("%s/%02d", app, i))
		if at < 0 {
			t.Fatalf("resource %d does not come, or comes too early", i)
		}
		all = all[at:]
	}
}

// A page's word that it starts a tool reaches the core that has called. A call that came late over the bus makes the
// page ask, and the core answers. A core that tells no time is not told.
func TestLateCalls(t *testing.T) {
	var toCore []string
	r := New(0, "user", app, &Options{Build: "1", Offered: quota.New(1<<30, 1<<30), Send: func(_ *Core, frame []byte) {
		toCore = append(toCore, string(frame))
	}})
	page := func(at bridge.Time, frame string) {
		t.Helper()
		if err := r.Receive(at, link.Parse([]byte(frame), link.Limits{})); err != nil {
			t.Fatal(err)
		}
	}
	page(0, `[["hello",1,"0",{"epoch":"e","tab":"tab-tab-1","starts":true}]]`)
	c, older := r.Join(1000, nil, true), r.Join(1000, nil, true)
	if !strings.Contains(toCore[0], `"starts":true`) {
		t.Errorf("the core is told %s", toCore[0])
	}
	core := func(at bridge.Time, frame string) {
		t.Helper()
		if err := c.Receive(at, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	core(1001, `[["hello",1,"0",{"now":500000}]]`)
	r.Take(2000)
	for _, step := range []struct{ who, says, page, core string }{
		{"core", `[["callTool",7,"pay","{}","",501010]]`, `[["callTool",1,"pay","{}","",2010]]`, ""}, // in time
		{"page", `[["started",1]]`, `[]`, `[["started",7]]`},
		{"core", `[["callTool",8,"pay","{}","",500010]]`, `[["callTool",2,"pay","{}","",0]]`, ""}, // late
		{"page", `[["starting",2]]`, `[]`, `[["starting",8]]`},
		{"core", `[["start",8,501015]]`, `[["start",2,2010]]`, ""},
		{"core", `[["end",8]]`, `[["end",2,true]]`, ""},
		{"page", `[["starting",2]]`, `[["end",2]]`, ""},
		{"page", `[["started",2]]`, `[]`, ""},
		{"older", `[["callTool",7,"pay","{}",""]]`, `[["callTool",3,"pay","{}","",2010]]`, ""},
		{"page", `[["starting",3]]`, `[["start",3,2010]]`, ""},
		{"page", `[["started",3]]`, `[]`, ""},
	} {
		toCore = nil
		switch step.who {
		case "page":
			page(2010, step.says)
		case "core":
			core(2010, step.says)
		default:
			if err := older.Receive(2010, []byte(step.says)); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(toCore, " "); got != step.core {
			t.Errorf("%s: the core gets %s, want %s", step.says, got, step.core)
		}
		if got := string(r.Take(3000)); got != step.page {
			t.Errorf("%s: the page gets %s, want %s", step.says, got, step.page)
		}
	}
}
