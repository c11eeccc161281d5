package link

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge"
)

func TestLate(t *testing.T) {
	const skew = 5_000_000 // the core's clock is ahead, or behind
	for _, theirs := range []bridge.Time{0, skew, -skew} {
		var l Lateness
		if l.Late(1000, 1) || l.Known() {
			t.Error("a core that tells no time is asked")
		}
		l.Heard(skew, skew+theirs+3) // the way to the core took 3 ms at most
		for _, c := range []struct {
			sent, now bridge.Time // by our clock
			late      bool
		}{
			{10, 10, false}, {10, 250, false}, {10, 270, true}, {10, 60_000, true},
			{-3, 240, false},          // it was sent with the hello's answer
			{600_000, 600_050, false}, // ten minutes later
			{600_000, 600_300, true},  //
			{600_000, 10, true},       // our clock has stood still, or was set
			{36e5, 36e5 + 10, true},   // an hour later the clocks may differ more: ask once
		} {
			if got := l.Late(skew+c.now, skew+theirs+c.sent); got != c.late {
				t.Errorf("a skew of %d, sent at %d, at %d: %v", theirs, c.sent, c.now, got)
			}
		}
		if !l.Late(skew, 0) {
			t.Error("0 is not late")
		}
	}
}

// A page that says when it starts a tool is told the time, and asks before it starts a call late.
func TestStarts(t *testing.T) {
	for _, starts := range []bool{true, false} {
		p := New(5, &recorder{}, "test", Limits{})
		at := bridge.Time(5)
		say := func(frame string) string {
			t.Helper()
			at += 1000
			if err := p.Receive(at, []byte(frame)); err != nil {
				t.Fatal(err)
			}
			return string(p.Take(at + 1000))
		}
		var log []string
		handler := func(name string, now bool) ToolHandler {
			add := func(what string) { log = append(log, name+" "+what) }
			return ToolHandler{
				Done:     func(a Answer) { add(fmt.Sprint("done ", a.Began)) },
				Started:  func() { add("started") },
				Starting: func(bridge.Time) bool { add("starting"); return now },
			}
		}
		say(fmt.Sprintf(`[["hello",1,"0",{"epoch":"e","starts":%v}]]`, starts))
		p.Welcome("")
		p.CallTool(2000, "t", []byte("{}"), nil, handler("a", true))
		h := handler("b", false)
		h.Asks = true
		b, _ := p.CallTool(2001, "t", []byte("{}"), nil, h)
		_, endC := p.CallTool(2002, "t", []byte("{}"), nil, handler("c", true))
		p.Read("u", "u", "", func(Answer) {})
		if !starts {
			want := `[["hello",1,"test",{}],["callTool",1,"t","{}",""],["callTool",2,"t","{}",""],["callTool",3,"t","{}",""],` +
				`["read",4,"u","u",""]]`
			if got := string(p.Take(3000)); got != want {
				t.Errorf("an older page is told %s", got)
			}
			continue
		}
		want := `[["hello",1,"test",{"now":1005}],["callTool",1,"t","{}","",2000],["callTool",2,"t","{}","",0],` +
			`["callTool",3,"t","{}","",2002],["read",4,"u","u",""]]`
		if got := string(p.Take(3000)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for frame, want := range map[string]string{
			`[["starting",1]]`: `[["start",1,AT]]`,
			`[["starting",2]]`: `[]`, // the core decides later
			`[["starting",9]]`: `[["end",9]]`,
			`[["starting",4]]`: `[["end",4]]`, // it is a read
		} {
			got := say(frame)
			if want = strings.ReplaceAll(want, "AT", fmt.Sprint(int(at))); got != want {
				t.Errorf("%s: got %s, want %s", frame, got, want)
			}
		}
		p.Start(7000, b)
		endC()
		if got := string(p.Take(7000)); got != `[["start",2,7000],["end",3,true]]` {
			t.Errorf("got %s", got)
		}
		// c has ended; and a second word counts for nothing.
		if got := say(
			`[["starting",3],["started",3],["started",1],["started",1],["started",4],["started",9]]`); got != `[["end",3]]` {
			t.Errorf("got %s", got)
		}
		p.Close()
		slices.Sort(log)
		if got := strings.Join(log,
			", "); got != "a done true, a started, a starting, b done false, b starting" {
			t.Errorf("got %s", got)
		}
	}
}
