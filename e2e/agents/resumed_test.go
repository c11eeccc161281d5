package agents

import (
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// resumings are programs that can resume their last conversation in another process, with the
// arguments for the first prompt and for the second. The prompt is the last argument.
var resumings = []struct {
	name        string
	first, then []string
}{
	{"gemini-cli", []string{"-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p"},
		[]string{"-m", "gemini-2.5-flash", "--approval-mode", "yolo", "--resume", "latest", "-p"}},
	{"codex",
		[]string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
			"--dangerously-bypass-hook-trust"},
		[]string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
			"--dangerously-bypass-hook-trust", "resume", "--last"}},
	{"opencode", []string{"run"}, []string{"run", "--continue"}},
}

// openAtPrompt is in the report at a conversation's first prompt.
const openAtPrompt = "open in the user's browser as this conversation begins or goes on"

// A program ends, and another process of the program resumes the conversation. Nothing is known of
// what its model has seen. So its first request to the model names the cart, whether or not the
// user has changed it.
func TestResumed(t *testing.T) {
	for _, r := range resumings {
		if !runs(r.name) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			home := testkit.ShortDir(t)
			s := openShop(t, home)
			m := newModel(t, step{tool: "read_page_resource", args: object{"uri": cart}},
				step{say: "DONE"})
			p := programNamed(t, r.name, m.URL, s.gateway)
			p.install(t, home)
			config(t, home, append([]string{r.name, "--live", "--"}, s.gateway[2:]...)...)
			say := func(args []string, text string) (first string) {
				t.Helper()
				before := len(m.bodies)
				if out, err := p.run(t, home, slices.Concat(args, []string{text})...); err != nil ||
					len(m.bodies) == before {
					t.Fatalf("%v, after %d requests: %s", err, len(m.bodies)-before, out)
				}
				return m.bodies[before]
			}
			say(r.first, "Read the cart.")
			if last := m.last(); !strings.Contains(last, "b-19") {
				t.Fatalf("the model has not read the cart: %s", last)
			}
			for quantity := range 2 {
				s.Set(cart, cartOf(1+quantity))
				first := say(r.then, "And now?")
				before := strings.LastIndex(first, openAtPrompt)
				if !strings.Contains(first, "b-19") ||
					strings.Count(first, openAtPrompt) != 2+quantity ||
					!strings.Contains(first[max(0, before):], cart) ||
					strings.Contains(first, toldAtPrompt) {
					t.Errorf("with %d in the cart the first request is %s", 1+quantity,
						first[max(0, len(first)-3000):])
				}
			}
		})
	}
}
