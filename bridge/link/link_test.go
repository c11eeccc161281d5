package link

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A recorder is a Core that writes down its calls.
type recorder struct{ log []string }

func (r *recorder) add(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) Hello(a About) error {
	if a.Epoch == "refused" {
		return errors.New("not this one")
	}
	r.add("hello %s %s", a.Epoch, a.Tab)
	return nil
}

func (r *recorder) Register(res bridge.Resource, _ string) error {
	if strings.HasPrefix(res.URI, "https://evil") {
		return errors.New("not at its origin")
	}
	r.add("register %s", res.URI)
	return nil
}
func (r *recorder) Unregister(uri string)            { r.add("unregister %s", uri) }
func (r *recorder) Touch(uri string, revision int64) { r.add("touch %s %d", uri, revision) }
func (r *recorder) SetTools(tools []bridge.Tool, _ string) error {
	r.add("tools %d", len(tools))
	return nil
}
func (r *recorder) Note(a About)  { r.add("note %d", a.Focused) }
func (r *recorder) Bye(gone bool) { r.add("bye %v", gone) }

const hello = `[["hello",1,"0.1.0",{"epoch":"e"}]]`

// begun returns a Peer after its hello.
func begun(t testing.TB, core Core, l Limits) *Peer {
	t.Helper()
	p := New(0, core, "test", l)
	if err := p.Receive(0, []byte(hello)); err != nil {
		t.Fatal(err)
	}
	p.Take(1 << 20)
	return p
}

// vectors reads a file of testdata.
func vectors(t testing.TB, name string) (list [][3]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(parts) != 3 {
			t.Fatalf("%s: %q is no vector", name, line)
		}
		list = append(list, [3]string(parts))
	}
	if len(list) == 0 {
		t.Fatalf("%s has no vectors", name)
	}
	return list
}

func outcome(err error) string {
	var ended *Ended
	if errors.As(err, &ended) {
		return ended.Reason
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t, "page.txt") {
		p := begun(t, &recorder{}, Limits{})
		if got := outcome(p.Receive(1, []byte(v[2]))); got != v[1] {
			t.Errorf("%s: %s\n got  %s\n want %s", v[0], v[2], got, v[1])
		}
	}
	for _, v := range vectors(t, "hello.txt") {
		p := New(0, &recorder{}, "test", Limits{})
		if got := outcome(p.Receive(1, []byte(v[2]))); got != v[1] {
			t.Errorf("%s: %s\n got  %s\n want %s", v[0], v[2], got, v[1])
		}
	}
}

// A Peer writes each call as in the good frames of core.txt, which the tests of the page's end
// read.
func TestWhatACoreSays(t *testing.T) {
	p := begun(t, &recorder{}, Limits{})
	p.Welcome("abcdefgh")
	_, endRead := p.Read("https://x.test/{id}", "https://x.test/5", `{"id":"5"}`, func(Answer) {})
	p.CallTool(0, "t", []byte(`{"a":1}`), []Seen{{"https://x.test/a", 3}, {"https://x.test/b", 0}},
		ToolHandler{Done: func(Answer) {}})
	p.Watched("https://x.test/a", true)
	p.Watched("https://x.test/a", false)
	p.Report(`a "sentence"`)
	endRead()
	want := `[["hello",1,"test",{"tab":"abcdefgh"}],["read",1,"https://x.test/{id}","https://x.test/5","{\"id\":\"5\"}"],` +
		`["callTool",2,"t","{\"a\":1}","[[\"https://x.test/a\",3],[\"https://x.test/b\",0]]"],` +
		`["watched","https://x.test/a",true],["watched","https://x.test/a",false],["report","a \"sentence\""],` +
		`["end",1]]`
	if got := string(p.Take(0)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p.Report(`a "sentence"`) || p.Take(1<<20) != nil {
		t.Error("it has more to say")
	}
}

func TestCallsReachTheCore(t *testing.T) {
	core := &recorder{}
	p := begun(t, core, Limits{})
	for _, frame := range []string{
		`[["register","{\"uri\":\"https://x.test/a\",\"name\":\"a\"}"],["touch","https://x.test/a",4]]`,
		`[["setTools","[{\"name\":\"t\"}]"],["note",{"focused":5}]]`,
		`[["unregister","https://x.test/a"],["bye",true]]`,
	} {
		if err := p.Receive(1, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"hello e ", "register https://x.test/a", "touch https://x.test/a 4", "tools 1",
		"note 5",
		"unregister https://x.test/a", "bye true"}
	if !slices.Equal(core.log, want) {
		t.Errorf("got %q", core.log)
	}
}

func TestAnswers(t *testing.T) {
	p := begun(t, &recorder{}, Limits{ContentsBytes: 20})
	var got []Answer
	done := func(a Answer) { got = append(got, a) }
	for range 5 {
		p.Read("k", "u", "", done)
	}
	_, end := p.Read("k", "u", "", done)
	var steps []string
	p.CallTool(0, "t", nil, nil, ToolHandler{Done: done,
		Progress: func(p bridge.Progress) { steps = append(steps, string(p.Members())) }})
	p.Take(0)
	for _, frame := range []string{
		`=1 7 [{"text":"x"}]`,
		`=1 8 ["again"]`, // it was answered
		`[["complete",2,1,3,"why"]]`,
		`[["complete",3,2,3,""]]`,
		`[["complete",4,3,3,"[\"https://x.test/a\"]"]]`,
		`=5 9 "` + strings.Repeat("x", 30) + `"`,
		`[["progress",7,"{\"progress\":1}"],["progress",7,"{}"],["progress",1,"{\"progress\":2}"]]`,
		`=7 9 {}`,
	} {
		if err := p.Receive(1, []byte(frame)); err != nil {
			t.Fatalf("%s: %v", frame, err)
		}
	}
	end()
	p.Receive(2, []byte(`=6 9 []`)) // it has ended
	want := []Answer{
		{Contents: []byte(`[{"text":"x"}]`), Revision: 7},
		{Failure: bridge.ReadFailed, Detail: "why", Said: true, Revision: 3},
		{Failure: bridge.InvalidContents, Revision: 3},
		{Failure: Stale, Stale: []string{"https://x.test/a"}, Revision: 3},
		{Failure: TooLarge, Detail: "what the page gave has 32 bytes; the limit is 20"},
		{Contents: []byte(`{}`), Revision: 9},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if fmt.Sprint(steps) != `["progress":1]` {
		t.Errorf("progress %q", steps)
	}
	if err := p.Receive(3, []byte(`[["progress",7,"x"]]`)); err == nil {
		t.Error("progress that is no JSON was taken")
	}
}

// A page has at most Limits.Asked calls at once: the others wait, in order, and a call that ends
// meanwhile is never sent.
func TestAsksOneAfterTheOther(t *testing.T) {
	p := begun(t, &recorder{}, Limits{Asked: 2})
	var ends []func()
	for range 5 {
		_, end := p.Read("k", "u", "", func(Answer) {})
		ends = append(ends, end)
	}
	if got := strings.Count(string(p.Take(0)), `"read"`); got != 2 {
		t.Fatalf("the page was asked %d at once", got)
	}
	ends[2]()
	p.Receive(1, []byte(`=1 0 []`))
	if got := string(p.Take(1)); got != `[["read",4,"k","u",""]]` {
		t.Errorf("then %s", got)
	}
	ends[1]() // the page works on that call
	if got := string(p.Take(2)); got != `[["end",2],["read",5,"k","u",""]]` {
		t.Errorf("then %s", got)
	}
}

// Each frame is answered: immediately if a call is urgent, otherwise within 10 ms. The end of a
// call shares the frame of the next call.
func TestEachFrameIsAnswered(t *testing.T) {
	p := begun(t, &recorder{}, Limits{})
	p.Receive(100, []byte(`[["touch","u",1]]`))
	if at, ok := p.Deadline(); !ok || at != 110 || p.Take(109) != nil {
		t.Fatalf("Deadline is %d, %v", at, ok)
	}
	if got := string(p.Take(110)); got != "[]" {
		t.Errorf("the answer is %q", got)
	}
	if _, ok := p.Deadline(); ok || p.Take(1<<20) != nil {
		t.Error("it was answered twice")
	}
	_, end := p.Read("k", "u", "", func(Answer) {})
	p.Take(120)
	p.Receive(130, []byte(`=1 0 []`))
	end()
	if p.Take(131) != nil {
		t.Error("the end of a call does not wait")
	}
	p.Read("k", "u", "", func(Answer) {})
	if got := string(p.Take(132)); got != `[["end",1],["read",2,"k","u",""]]` {
		t.Errorf("it says %s", got)
	}
}

// Contents pass the gate before a reader gets them.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ frame, got, ended string }{
		{`=1 3 [1]`, "[1] checked", "ok"},
		{`=1 3 bad`, "", "contents that are no JSON"},
		{`=1 3 ` + strings.Repeat("1", 30), "", "ok"}, // too long for the gate
		{`[["complete",1,1,3,"why"]]`, "", "ok"},
	} {
		p := begun(t, &recorder{}, Limits{ContentsBytes: 20})
		var got Answer
		p.Read("k", "u", "", func(a Answer) { got = a })
		f := Parse([]byte(c.frame), Limits{ContentsBytes: 20})
		f.Check(func(a Answer) (Answer, error) {
			if string(a.Contents) == "bad" {
				return a, errors.New("no JSON")
			}
			a.Checked = string(a.Contents) + " checked"
			return a, nil
		})
		err := p.Apply(1, f)
		if outcome(err) != c.ended || c.got != "" && got.Checked != c.got ||
			(c.got == "") != (got.Failure != "") {
			t.Errorf("%s: %v, and the reader has %+v", c.frame, err, got)
		}
	}
}

func TestClose(t *testing.T) {
	p := begun(t, &recorder{}, Limits{Asked: 1})
	var got []string
	for i := range 3 {
		p.Read("k", "u", "", func(a Answer) { got = append(got, fmt.Sprint(i, a.Detail)) })
	}
	p.Receive(1, []byte(`=1 0 []`))
	p.Close()
	p.Close()
	p.Read("k", "u", "", func(a Answer) { got = append(got, "late "+a.Detail) })
	const why = "the page went away before it answered"
	if want := []string{"0", "1" + why, "2" + why, "late " +
		why}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q", got)
	}
	if err := p.Receive(2, []byte("nonsense")); err != nil {
		t.Errorf("what comes behind the end: %v", err)
	}
}

// Each excess is reported with its limit, and is refused alone or ends the link.
func TestLimits(t *testing.T) {
	descriptor := func(uri string, length int) string {
		return fmt.Sprintf(`[["register","{\"uri\":\"%s\",\"name\":\"%s\"}"]]`, uri,
			strings.Repeat("n", length))
	}
	tools := func(n, length int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{\"name\":\"t%d\",\"description\":\"%s\"}`, i,
				strings.Repeat("d", length)))
		}
		return `[["setTools","[` + strings.Join(list, ",") + `]"]]`
	}
	l := Limits{FrameBytes: 4000, DescriptorBytes: 300, Resources: 3, ResourcesBytes: 700, Tools: 2,
		ToolsBytes: 550,
		URIBytes:   60}
	for _, c := range []struct {
		name   string
		frames []string
		told   string // by report
		ended  string
		held   int // calls of the core after hello
	}{
		{"a descriptor", []string{descriptor("https://x.test/a", 300)},
			"a descriptor has 336 bytes; the limit is 300",
			"", 0},
		{"a URI", []string{descriptor("https://x.test/"+strings.Repeat("a", 60), 1)},
			"a URI has 75 bytes; the limit is 60", "", 0},
		{"too many", []string{descriptor("https://x.test/1", 1), descriptor("https://x.test/2", 1),
			descriptor("https://x.test/3", 1), descriptor("https://x.test/4", 1)},
			"https://x.test/4: the page has too many; the limit is 3", "", 3},
		{"too much",
			[]string{descriptor("https://x.test/1", 250), descriptor("https://x.test/2", 250),
				descriptor("https://x.test/3", 250)},
			"the page's descriptors are too long together; the limit is 700 bytes", "", 2},
		{"another's", []string{descriptor("https://evil.test/1", 1)},
			"https://evil.test/1: not at its origin", "", 0},
		{"room again",
			[]string{descriptor("https://x.test/1", 250), descriptor("https://x.test/2", 250),
				`[["unregister","https://x.test/1"]]`, descriptor("https://x.test/3", 250)}, "", "",
			4},
		{"tools", []string{tools(3, 1)},
			"tools refused: 1 of 3 are left out: there are more; the limit is 2", "", 1},
		{"long tools", []string{tools(2, 400)},
			"2 of 2 are left out: t1 has 430 bytes; the limit is 300", "", 1},
		{"tools that are too long together", []string{tools(2, 260)}, "bytes; the limit is 550", "",
			1},
		{"a long tool", []string{tools(1, 300)}, "t0 has 330 bytes; the limit is 300", "", 1},
		{"a frame", []string{strings.Repeat(" ", 4001)}, "",
			"a frame has 4001 bytes; the limit is 4000", 0},
		{"nesting", []string{strings.Repeat("[", 70) + strings.Repeat("]", 70)}, "",
			"a frame that is neither calls nor contents", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := &recorder{}
			p := begun(t, core, l)
			ended := "ok"
			for _, frame := range c.frames {
				ended = outcome(p.Receive(1, []byte(frame)))
			}
			told := string(p.Take(1 << 20))
			if c.ended != "" && ended != c.ended || c.ended == "" && ended != "ok" {
				t.Errorf("ended: %s", ended)
			}
			if c.told != "" && !strings.Contains(told, c.told) ||
				c.told == "" && strings.Contains(told, "report") {
				t.Errorf("the page was told %s", told)
			}
			if c.ended != "" && !strings.Contains(told, `[["refused","`+c.ended) {
				t.Errorf("at the end the page was told %s", told)
			}
			if len(core.log)-1 != c.held {
				t.Errorf("the core was told %q", core.log)
			}
		})
	}
	// Only the tools above the limit are left out.
	core := &recorder{}
	begun(t, core, l).Receive(1, []byte(tools(3, 1)))
	if got := core.log[len(core.log)-1]; got != "tools 2" {
		t.Errorf("of too many tools the core was told %q", got)
	}
	p := New(0, &recorder{}, "test", Limits{})
	if got := outcome(
		p.Receive(0,
			[]byte(strings.Repeat(" ", 65<<10)))); got != "a frame has 66560 bytes; the limit "+
		"is 65536" {
		t.Errorf("before the hello: %s", got)
	}
	if got := outcome(New(0, &recorder{}, "test", Limits{}).Receive(0,
		[]byte(`[["hello",1,"0",{"epoch":"refused"}]]`))); got != "not this one" {
		t.Errorf("a page that the core refuses: %s", got)
	}
}

// A page that overdraws its allowance is answered later, and sends no touches until then; if it
// goes on, the link ends. The allowance does not grow above a burst.
func TestTooManyCalls(t *testing.T) {
	l := Limits{Calls: 100, CallsBurst: 50}
	// 25 calls, and one for the frame
	frame := []byte(`[` + strings.Repeat(`["touch","u",1],`, 24) + `["touch","u",1]]`)
	p := begun(t, &recorder{}, l) // the hello has taken 2
	p.Receive(0, frame)
	if at, _ := p.Deadline(); at != 10 {
		t.Errorf("within the burst the answer is due at %d", at)
	}
	p.Take(10)
	p.Receive(10, frame)
	p.Receive(10, frame)
	// 2 + 3*26 - 50 - 1, at 100 a second.
	if at, _ := p.Deadline(); at != 10+290 {
		t.Errorf("the answer is due at %d", at)
	}
	if err := p.Receive(10,
		frame); outcome(err) != "it says more calls than it may; the limit is 100 a second" {
		t.Errorf("it goes on: %v", err)
	}
	p = begun(t, &recorder{}, l)
	for now := bridge.Time(0); now < 10_000; now += 1000 {
		if err := p.Receive(now, frame); err != nil {
			t.Fatalf("at %d: %v", now, err)
		}
	}
}

func FuzzReceive(f *testing.F) {
	for _, name := range []string{"page.txt", "hello.txt"} {
		for _, v := range vectors(f, name) {
			f.Add([]byte(v[2]))
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		core := &recorder{}
		fresh := New(0, core, "test", Limits{})
		fresh.Receive(0, slices.Clone(frame))
		p := begun(t, core, Limits{})
		answers := 0
		for range 3 {
			_, end := p.Read("k", "u", "", func(Answer) { answers++ })
			defer end()
		}
		p.Take(0)
		parsed := Parse(slices.Clone(frame), Limits{})
		parsed.Check(func(a Answer) (Answer, error) {
			_, err := wire.Parse(a.Contents, 64)
			return a, err
		})
		err := p.Apply(1, parsed)
		var ended *Ended
		if err != nil && !errors.As(err, &ended) {
			t.Fatalf("not an Ended: %v", err)
		}
		out := p.Take(1 << 40)
		if out == nil {
			t.Fatal("the frame was not answered")
		}
		if err == nil {
			// The answer is a frame of calls.
			if v, err := wire.Parse(out, 8); err != nil || v.Kind() != wire.Array {
				t.Fatalf("%s: %v", out, err)
			}
			p.Close()
		}
		if answers != 3 {
			t.Fatalf("3 reads had %d answers", answers)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	b.ReportAllocs()
	p := begun(b, &recorder{}, Limits{})
	answer := []byte(
		`[{"uri":"https://x.test/state","mimeType":"application/json","text":"{\"items\":[1,2,3]}"}]`)
	now := bridge.Time(0)
	for b.Loop() {
		id, end := p.Read("https://x.test/state", "https://x.test/state", "", func(Answer) {})
		p.Take(now)
		p.Receive(now, fmt.Appendf(nil, "=%d 1 %s", id, answer))
		end()
		now += 10
	}
}
