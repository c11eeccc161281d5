package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/generated"
)

// wrongTools are tools that no agent gets, each with places for two numbers.
var wrongTools = []string{
	`{"name":"wrong%d","inputSchema":{"type":"object","required":%d}}`,
	`{"name":"wrong%d","inputSchema":{"type":"object","properties":[%d]}}`,
	`{"name":"wrong%d","inputSchema":{"type":"object","properties":{"p%d":"string"}}}`,
	`{"name":"wrong%d","inputSchema":{"type":"object","properties":{"p%d":{"enum":[]}}}}`,
	`{"name":"wrong%d","inputSchema":{"type":"string","title":"%d"}}`,
	`{"name":"wrong%d","inputSchema":[%d]}`,
	`{"name":"wrong%d","name":%d}`,
	`{"name":["wrong%d"],"title":%d}`,
	`{"nome":"wrong%d","title":"%d"}`,
	`["wrong%d",%d]`,
}

// Beside a page with thousands of wrong tools, one that changes its tools a thousand times in a
// row, and one whose answers are as large as they may be and wrong at their end, both official
// clients have the honest page, and what is right.
func TestClientsBesideTheWorstPages(t *testing.T) {
	t.Parallel()
	script := clientScript(t, "clients/generated.mjs")
	for name, open := range map[string]func(*testing.T) place{"gateway": gatewayPlace, "node": nodePlace} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := open(t)
			p := openHostile(t, at)
			openHonest(t, at)
			var clients []*client
			for _, which := range []string{"sdk 1", "sdk 2"} {
				clients = append(clients, openClient(t, which, script, at))
			}
			// each makes all clients list until a tool is there, and read the honest page.
			each := func(until string, then func(*client)) {
				t.Helper()
				var all sync.WaitGroup
				for _, c := range clients {
					all.Go(func() {
						var o outcome
						testkit.Eventually(t, until+" is listed", func() bool {
							o = c.do("list")
							return len(o.faults()) > 0 || o.lists(until) && o.lists("innocent") && o.lists(honest+"/cart")
						})
						for _, m := range o.messages {
							if slices.ContainsFunc(m.Listed, func(name string) bool { return strings.HasPrefix(name, "wrong") }) {
								t.Errorf("%s lists a wrong tool", c.name)
							}
						}
						read := c.do("read", honest+"/cart")
						if all := append(o.faults(), read.faults()...); len(all) > 0 || read.Error != "" {
							t.Errorf("%s, until %s: %q, %s", c.name, until, all, read.Error)
						}
						if then != nil {
							then(c)
						}
					})
				}
				all.Wait()
				if p.Refusal() != "" {
					t.Fatalf("the page's link has ended: %s", p.Refusal())
				}
			}
			each("innocent", nil)

			var wrong []string
			for n := range 10_000 {
				wrong = append(wrong, fmt.Sprintf(wrongTools[n%len(wrongTools)], n, n))
			}
			p.tools(append([]string{right("before_all")}, wrong...))
			each("before_all", nil)
			for n, some := range slices.Collect(slices.Chunk(wrong, 999)) { // more are refused unseen
				p.tools(append(some, right(fmt.Sprint("beside", n))))
			}
			each("beside10", nil)
			if n := len(p.Reports()); n == 0 || n > 101 { // the last one says that there are more
				t.Errorf("the page is told %d sentences", n)
			}

			changes := make(chan bool)
			go func() {
				for n := range 1000 {
					p.tools([]string{right(fmt.Sprint("turn", n))})
				}
				close(changes)
			}()
			each("innocent", func(c *client) {
				for range 10 {
					if o := c.do("read", honest+"/cart"); len(o.faults()) > 0 || o.Error != "" {
						t.Errorf("%s, while tools change: %q, %s", c.name, o.faults(), o.Error)
					}
				}
			})
			testkit.Ends(t, "the changes are posted", changes)
			each("turn999", nil)

			large := strings.Repeat("a", 16<<20-200)
			var offered []generated.Case
			for n, format := range []string{`{"content":[{"type":"text","text":"%s"}],"isError":"true"}`,
				`{"content":[{"type":"text","text":"%s"},{"type":"nothing","__proto__":{"polluted":true}}]}`} {
				offered = append(offered, generated.Case{Kind: generated.Result, Name: fmt.Sprint("large", n),
					Text: fmt.Sprintf(format, large)})
			}
			for n, format := range []string{`[{"uri":"https://odd.example/a","text":"%s","unheardOf":5}]`,
				`[{"uri":"https://odd.example/a","text":"%s"},{"uri":"https://bank.example/","text":"0"}]`} {
				offered = append(offered, generated.Case{Kind: generated.Contents,
					Name: fmt.Sprint(generated.Origin, "/large", n), Text: fmt.Sprintf(format, large)})
			}
			if os.Getenv("GATE_CASES") == "" { // make test has two of them
				offered = []generated.Case{offered[1], offered[3]}
			}
			p.offer(1, offered)
			each("large1", func(c *client) {
				for i, g := range offered {
					action := []any{"call", g.Name, map[string]any{}}
					if g.Kind == generated.Contents {
						action = []any{"read", g.Name}
					}
					o := c.do(action...)
					whole := slices.ContainsFunc(o.Said, func(text string) bool { return len(text) > len(large) })
					foreign := i == len(offered)-1
					if len(o.faults()) > 0 || (o.Error != "") != foreign || whole == foreign {
						t.Errorf("%s, %s: %.300q, %s, %d messages", c.name, g.Name, o.faults(), o.Error, len(o.Said))
					}
				}
			})
		})
	}
}

func right(name string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name)
}

// tools replaces the page's tools.
func (p *hostilePage) tools(list []string) {
	frame, _ := json.Marshal([]any{[]any{"setTools", "[" + strings.Join(list, ",") + "]"}})
	p.Post(string(frame))
}
