package agents

import (
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// resumings are programs that can resume their last conversation in another process, with the arguments for the first
// prompt and for the second. The prompt is the last argument.
var resumings = []struct {
	name        string
	first, then []string
}{
	{"gemini-cli", []string{"-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p"},
		[]string{"-m", "gemini-2.5-flash", "--approval-mode", "yolo", "--resume", "latest", "-p"}},
	{"codex", []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
		"--dangerously-bypass-hook-trust"},
		[]string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
			"--dangerously-bypass-hook-trust", "resume", "--last"}},
	{"opencode", []string{"run"}, []string{"run", "--continue"}},
}

// A program ends, its user changes the cart, and another process of the program resumes the conversation. Its first
// request to the model says that the cart has changed. Without a change it says nothing.
func TestResumed(t *testing.T) {
	for _, r := range resumings {
		if !runs(r.name) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			home := testkit.ShortDir(t)
			s := openShop(t, home)
			m := newModel(t, step{tool: "read_page_resource", args: object{"uri": cart}}, step{say: "DONE"})
			p := programNamed(t, r.name, m.URL, s.gateway)
			p.install(t, home)
			config(t, home, append([]string{r.name, "--live", "--"}, s.gateway[2:]...)...)
			say := func(args []string, text string) (first string) {
				t.Helper()
				before := len(m.bodies)
				if out, err := p.run(t, home, slices.Concat(args, []string{text})...); err != nil || len(m.bodies) == before {
					t.Fatalf("%v, after %d requests: %s", err, len(m.bodies)-before, out)
				}
				return m.bodies[before]
			}
			say(r.first, "Read the cart.")
			if last := m.last(); !strings.Contains(last, "b-19") {
				t.Fatalf("the model has not read the cart: %s", last)
			}
			if first := say(r.then, "And now?"); !strings.Contains(first, "b-19") || strings.Contains(first, toldAtPrompt) {
				t.Errorf("without a change the first request is %s", first[max(0, len(first)-3000):])
			}
			s.Set(cart, cartOf(2))
			first := say(r.then, "And now?")
			_, told, _ := strings.Cut(first, toldAtPrompt)
			if !strings.Contains(first, "b-19") || !strings.Contains(told, cart) {
				t.Errorf("after a change the first request is %s", first[max(0, len(first)-3000):])
			}
		})
	}
}
