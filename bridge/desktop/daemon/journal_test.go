package daemon

import (
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit/script"
)

// TestReplay plays the conversations in testdata: "a> " is a line of the agent, "d> " a line of the daemon, and "dies"
// is the daemon's end. The indented lines after it are sent to the agent or the daemon.
func TestReplay(t *testing.T) {
	script.Each(t, func(t *testing.T, file string) { script.Play(t, file, converse) })
}

func converse(s *script.Script) func(line string) {
	r := newJournal()
	long := func(text string) []byte {
		return []byte(strings.Replace(text, "{", `{"jsonrpc":"2.0",`, 1) + "\n")
	}
	say := func(to string, lines ...[]byte) {
		for _, line := range lines {
			s.Say("%s< %s", to, strings.Replace(strings.TrimSpace(string(line)), `{"jsonrpc":"2.0",`, "{", 1))
		}
	}
	return func(line string) {
		who, text, _ := strings.Cut(line, " ")
		var out output
		switch who {
		case "a>":
			if r.fromAgent(long(text)) {
				say("d", long(text))
			}
		case "d>":
			pass, more, err := r.fromDaemon(long(text))
			if pass {
				say("a", long(text))
			}
			if err != nil {
				s.Say("error: %v", err)
			}
			out = more
		case "dies":
			out = r.replay()
		default:
			s.T.Fatalf("unknown line %q", line)
		}
		say("d", out.toDaemon...)
		say("a", out.toAgent...)
	}
}
