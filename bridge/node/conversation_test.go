package node

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/script"
)

// A stage has the subjects of a conversation: nodes by their numbers, pages and agents by their names.
type stage struct {
	t      *testing.T
	nodes  []*Node
	pages  map[string]*tab
	agents map[string]*testkit.Agent
	wake   func()
}

// Each line of a conversation is an act, or waits for a result; testdata/README.md describes them.
func TestFleet(t *testing.T) {
	script.Each(t, func(t *testing.T, file string) {
		s := &stage{t: t, pages: map[string]*tab{}, agents: map[string]*testkit.Agent{}}
		script.Play(t, file, func(*script.Script) func(string) {
			return func(line string) {
				t.Log(line)
				words := strings.Fields(line)
				s.do(words[0], words[1], words[2:])
			}
		})
	})
}

func (s *stage) node(number string) *Node {
	i, err := strconv.Atoi(number)
	if err != nil || i >= len(s.nodes) {
		s.t.Fatalf("there is no node %s", number)
	}
	return s.nodes[i]
}

func (s *stage) do(verb, who string, rest []string) {
	p, a := s.pages[who], s.agents[who]
	var uris []string
	for _, path := range rest {
		uris = append(uris, app+path)
	}
	user := map[string]string{"alice": alice, "bob": bob}
	switch verb {
	case "nodes":
		count, _ := strconv.Atoi(who)
		s.nodes = openFleet(s.t, count)
	case "page":
		state := map[string]string{}
		for _, one := range rest[4:] {
			path, text, _ := strings.Cut(one, "=")
			state[app+path] = text
		}
		p = &tab{Page: testkit.NewPage(s.t, state), t: s.t, user: user[rest[1]], name: rest[2]}
		p.Epoch(rest[3])
		s.pages[who] = p
		p.dial(s.node(rest[0]))
	case "agent":
		s.agents[who] = openAgent(s.t, s.node(rest[0]), user[rest[1]])
	case "modern":
		s.agents[who] = agentBy(s.t, openReader(s.t, s.node(rest[0]), user[rest[1]]).Gateway, gateway.TransportRequest)
	case "close":
		a.Close()
	case "post":
		p.Post(strings.ReplaceAll(rest[0], "APP", app))
	case "dial":
		p.dial(s.node(rest[0]))
	case "cut":
		p.cut()
	case "set":
		p.Set(uris[0], rest[1])
	case "watched":
		testkit.Eventually(s.t, "it is watched: "+rest[1], func() bool { return strconv.FormatBool(p.Watches(uris[0])) == rest[1] })
	case "shows":
		a.Shows(uris...)
	case "watch":
		a.Watch(uris...)
	case "told":
		a.Told(uris...)
	case "learns":
		a.Learns(uris[0], rest[1])
	case "reads":
		a.Reads(uris[0], rest[1])
	case "holds":
		if got := a.Text(uris[0]); got != rest[1] {
			s.t.Errorf("%s reads %q", who, got)
		}
	case "silent":
		if len(a.Updates) > 0 {
			s.t.Errorf("%s was told of %s", who, <-a.Updates)
		}
	case "lacks":
		if text, err := a.Read(uris[0]); err == nil {
			s.t.Errorf("%s reads %q", who, text)
		}
	case "kill":
		kill(s.node(who))
	case "hang":
		s.wake = hang(s.t, s.node(who))
	case "wake":
		s.wake()
	case "part", "meet":
		all := func(string, []byte) bool { return verb == "part" }
		for _, n := range s.nodes {
			n.drops.Store(&all)
		}
	case "has":
		testkit.Eventually(s.t, "node "+who+" has so many: "+strings.Join(rest, " "), func() bool {
			stats := reflect.ValueOf(s.node(who).Stats())
			for i := 0; i < len(rest); i += 2 {
				if got := stats.FieldByName(rest[i]).Int(); strconv.FormatInt(got, 10) != rest[i+1] {
					return false
				}
			}
			return true
		})
	case "untroubled":
		if n := s.node(who).Stats(); n.Gaps+n.Lost+n.Unsaid != 0 || len(n.Refused) != 0 {
			s.t.Errorf("without any trouble there was %+v", n)
		}
	default:
		s.t.Fatalf("%q is no line of a conversation", verb)
	}
}
