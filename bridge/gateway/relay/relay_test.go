package relay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/internal/quota"
	"github.com/pagewire/pagewire/bridge/link"
)

const app = "https://app.example"

// A place is a page's relay, with frames in place of a page and of cores.
type place struct {
	t     *testing.T
	quota *quota.Quota
	relay *Relay
	cores map[string]*Core
	now   bridge.Time
	told  []string // who was told what
}

func openPlace(t *testing.T) *place {
	p := &place{t: t, quota: quota.New(1<<30, 100_000), cores: map[string]*Core{}}
	p.relay = New(0, "user", app, &Options{Build: "1", Offered: p.quota, Send: func(to *Core, frame []byte) {
		p.told = append(p.told, to.Owner.(string)+" > "+string(frame))
	}})
	return p
}

// do does a step: "WHO < FRAME" is said by the page or a core, "join WHO" begins a core with tools, "join-reading WHO"
// one without, and "leave WHO" ends one.
func (p *place) do(step string) (err error) {
	who, frame, says := strings.Cut(step, " < ")
	verb, name, _ := strings.Cut(step, " ")
	switch {
	case says && who == "page":
		err = p.relay.Receive(p.now, link.Parse([]byte(frame), link.Limits{}))
	case says:
		err = p.cores[who].Receive([]byte(frame))
	case verb == "leave":
		p.cores[name].Leave()
	default:
		p.cores[name] = p.relay.Join(name, verb == "join")
	}
	p.now += 1000 // the page has its answer by then
	for f := p.relay.Take(p.now); f != nil; f = p.relay.Take(p.now) {
		if string(f) != "[]" {
			p.told = append(p.told, "page > "+string(f))
		}
	}
	return err
}

// play does the steps of a script. The lines "WHO > FRAME" behind a step are all that it leads to.
func (p *place) play(script string) {
	p.t.Helper()
	lines := strings.Split(strings.TrimSpace(strings.NewReplacer("APP", app, "\t", "", "\n\n", "\n").Replace(script)), "\n")
	for len(lines) > 0 {
		step := lines[0]
		lines = lines[1:]
		var want []string
		for len(lines) > 0 && strings.Contains(lines[0], " > ") {
			want = append(want, lines[0])
			lines = lines[1:]
		}
		p.told = nil
		if err := p.do(step); err != nil {
			p.t.Fatalf("%s: %v", step, err)
		}
		if !slices.Equal(p.told, want) {
			p.t.Fatalf("%s\nleads to\n%s\nand not to\n%s", step, strings.Join(p.told, "\n"), strings.Join(want, "\n"))
		}
	}
}

// begins is a page that has a resource and a tool.
const begins = `
	page < [["hello",1,"0",{"epoch":"e","tab":"tab-tab-1"}]]
	page > [["hello",1,"1",{}]]
	page < [["register","{\"uri\":\"APP/doc\"}"],["setTools","[{\"name\":\"pay\"}]"]]
`

const about = `{"epoch":"e","tab":"tab-tab-1","frame":"","title":"","url":"","focused":0,"dial":0,"origin":"APP"}`

// joins are a core that may act, and one that may not: it is told of no tool.
const joins = begins + `
	join a
	a > [["hello",1,"1",` + about + `]]
	a > [["register","{\"uri\":\"APP/doc\"}"],["setTools","[{\"name\":\"pay\"}]"]]
	join-reading b
	b > [["hello",1,"1",` + about + `]]
	b > [["register","{\"uri\":\"APP/doc\"}"]]
`

func TestRelay(t *testing.T) {
	for name, script := range map[string]string{
		"what the page offers": `
			page < [["register","{\"uri\":\"APP/new\"}"],["setTools","[]"],["unregister","APP/none"]]
			a > [["register","{\"uri\":\"APP/new\"}"],["setTools","[]"]]
			b > [["register","{\"uri\":\"APP/new\"}"]]
			page < [["unregister","APP/doc"]]
			a > [["unregister","APP/doc"]]
			b > [["unregister","APP/doc"]]
			join-reading c
			c > [["hello",1,"1",` + about + `]]
			c > [["register","{\"uri\":\"APP/new\"}"]]`,
		// A URI is watched at the page once, and is no more when the last core has left.
		"what is watched": `
			a < [["watched","APP/doc",true]]
			page > [["watched","APP/doc",true]]
			a < [["watched","APP/doc",true]]
			page < [["touch","APP/doc",1],["touch","APP/other",1]]
			a > [["touch","APP/doc",1]]
			b < [["watched","APP/doc",true]]
			b > [["touch","APP/doc",1]]
			page < [["touch","APP/doc",2]]
			a > [["touch","APP/doc",2]]
			b > [["touch","APP/doc",2]]
			a < [["watched","APP/doc",false]]
			page < [["touch","APP/doc",3]]
			b > [["touch","APP/doc",3]]
			leave b
			page > [["watched","APP/doc",false]]`,
		// A touch of a template, or of a resource with parameters, goes to each core that watches or reads a URI of it.
		"a template": `
			page < [["register","{\"uri\":\"APP/search\",\"uriSchema\":{}}"]]
			a > [["register","{\"uri\":\"APP/search\",\"uriSchema\":{}}"]]
			b > [["register","{\"uri\":\"APP/search\",\"uriSchema\":{}}"]]
			a < [["watched","APP/item/7",true],["watched","APP/search?q=x",true]]
			page > [["watched","APP/item/7",true],["watched","APP/search?q=x",true]]
			b < [["read",1,"APP/item/{id}","APP/item/8",""]]
			page > [["read",1,"APP/item/{id}","APP/item/8",""]]
			page < [["touch","APP/item/{id}",1]]
			a > [["touch","APP/item/{id}",1]]
			b > [["touch","APP/item/{id}",1]]
			page < [["touch","APP/search",9]]
			a > [["touch","APP/search",9]]
			page < [["touch","APP/searching",9]]`,
		// Calls have the numbers of their cores, and what a core leaves ends.
		"calls": `
			a < [["read",7,"APP/doc","APP/doc",""]]
			page > [["read",1,"APP/doc","APP/doc",""]]
			b < [["read",7,"APP/doc","APP/doc",""]]
			page > [["read",2,"APP/doc","APP/doc",""]]
			page < =2 1 [{"text":"of b"}]
			b > =7 1 [{"text":"of b"}]
			page < [["complete",1,1,0,"why"]]
			a > [["complete",7,1,0,"why"]]
			a < [["callTool",8,"pay","{}","[[\"APP/doc\",1]]"]]
			page > [["callTool",3,"pay","{}","[[\"APP/doc\",1]]"]]
			page < [["progress",3,"{\"progress\":1}"]]
			a > [["progress",8,"{\"progress\":1}"]]
			page < [["complete",3,3,2,"[\"APP/doc\",\"APP/x\"]"]]
			a > [["complete",8,3,2,"[\"APP/doc\",\"APP/x\"]"]]
			a < [["end",7],["end",8],["end",9]]
			page > [["end",1],["end",3]]
			leave b
			page > [["end",2]]`,
		"what the page says of itself": `
			page < [["note",{"title":"T","focused":5}]]
			a > [["note",{"title":"T","focused":5}]]
			b > [["note",{"title":"T","focused":5}]]
			page < [["bye",false]]
			a > [["bye",false]]
			b > [["bye",false]]
			join-reading c
			c > [["hello",1,"1",{"epoch":"e","tab":"tab-tab-1","frame":"","title":"T","url":"","focused":5,"dial":0,"origin":"APP"}]]
			c > [["register","{\"uri\":\"APP/doc\"}"],["bye",false]]`,
		"a report": `
			b < [["report","why"]]
			page > [["report","why"]]`,
	} {
		t.Run(name, func(t *testing.T) { openPlace(t).play(joins + strings.TrimLeft(script, "\n")) })
	}
}

// What a page offers is bounded and counted, and gone with it.
func TestWhatIsKept(t *testing.T) {
	p := openPlace(t)
	p.play(begins)
	before := p.quota.Held()
	large := strings.Repeat("x", 90_000)
	p.play(`
	page < [["register","{\"uri\":\"APP/large\",\"name\":\"` + large + `\"}"]]
	page < [["register","{\"uri\":\"APP/large\",\"name\":\"` + large + `\"}"]]`) // in its own place
	for uri, why := range map[string]string{app + "/more": "of this user together offer too much; the limit is 100000 bytes",
		"https://elsewhere.example/x": "not at the page's origin"} {
		p.told = nil
		if err := p.do(`page < [["register","{\"uri\":\"` + uri + `\",\"name\":\"` + large + `\"}"]]`); err != nil {
			t.Fatal(err)
		}
		if len(p.told) != 1 || !strings.HasPrefix(p.told[0], `page > [["report"`) || !strings.Contains(p.told[0], why) {
			t.Errorf("of %s the page is told %q", uri, p.told)
		}
	}
	if p.play(`page < [["unregister","APP/large"]]`); before == 0 || p.quota.Held() != before {
		t.Errorf("%d bytes are counted, and %d were before", p.quota.Held(), before)
	}
	if p.relay.Close(); p.quota.Held() != 0 {
		t.Errorf("%d bytes are counted when it is gone", p.quota.Held())
	}
}

// Frames of cores that are none are refused, and so are calls of tools by a core that may not act.
func TestFramesThatAreNone(t *testing.T) {
	p := openPlace(t)
	p.play(joins)
	for _, frame := range []string{"", "{}", "x", `[["dance"]]`, `[["read"]]`, `[["read",0,"a","b",""]]`,
		`[["read",4294967296,"a","b",""]]`, `[["callTool",1,"x","{}","{"]]`, `[["callTool",1,"x","{}","[[1,2]]"]]`,
		`[[["read"]]]`, `=1 2 []`, `[["end",9],["watched","x",false],["hello",1,"0",{}],[]]`} {
		if err := p.do("a < " + frame); err == nil {
			t.Errorf("%q is taken", frame)
		}
	}
	if err := p.do(`b < [["callTool",77,"pay","{}",""]]`); err == nil {
		t.Error("a core that may only read has called a tool")
	}
	if err := p.do(`a < [["refused","why"]]`); err == nil || err.Error() != "why" {
		t.Errorf("a core that refuses the page: %v", err)
	}
}

// What a page offers comes in frames that a message of the bus has room for, in order, however much it is.
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
	r.Join(nil, true)
	all := ""
	for i, frame := range frames {
		if len(frame) > 2<<20 || !json.Valid(frame) {
			t.Errorf("frame %d of %d has %d bytes, or is none", i, len(frames), len(frame))
		}
		all += string(frame)
	}
	last := 0
	for i := range many {
		at := strings.Index(all, fmt.Sprintf("%s/%02d", app, i))
		if at < last {
			t.Fatalf("resource %d is at %d, behind %d", i, at, last)
		}
		last = at
	}
}
