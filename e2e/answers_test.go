package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// The official TypeScript clients take each answer of a page that has passed the gate. The vectors
// are the gate's own, and have one wrong member or several. Clients refuse most of them as pages
// give them.
func TestClientsTakeAnswers(t *testing.T) {
	t.Parallel()
	own := func(uri string) bool { return strings.HasPrefix(uri, "https://app.example/") }
	var lines bytes.Buffer
	var names []string
	put := func(name, method, result string) {
		names = append(names, name)
		fmt.Fprintf(&lines, "{\"method\":%q,\"result\":%s}\n", method, result)
	}
	for file, method := range map[string]string{"results.txt": "tools/call", "contents.txt": "resources/read"} {
		text, err := os.ReadFile("../bridge/gateway/gate/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if rest, ok := strings.CutPrefix(line, "# "); ok {
				name = rest
			}
			page, ok := strings.CutPrefix(line, "page: ")
			switch {
			case !ok:
			case method == "tools/call":
				r, err := gate.ToolResult([]byte(page), own)
				if err != nil {
					t.Fatal(name, err)
				}
				put("", method, page)
				put(name, method, string(r.JSON(false)))
				put(name+", typed", method, string(r.JSON(true, "more")))
			default:
				c, err := gate.ReadContents([]byte(page), own)
				if err != nil {
					t.Fatal(name, err)
				}
				put("", method, `{"contents":`+page+`}`)
				if c.Why == "" {
					put(name, method, `{"contents":`+string(c.JSON)+`}`)
				}
			}
		}
	}
	cmd := testcmd.Command("node", clientScript(t, "clients/answers.mjs"))
	cmd.Stdin = &lines
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, failed.String())
	}
	refused := map[string]int{}
	answers := bufio.NewScanner(bytes.NewReader(out))
	for _, name := range names {
		var by map[string]string
		if !answers.Scan() || json.Unmarshal(answers.Bytes(), &by) != nil {
			t.Fatalf("%s has no answer: %s", name, out)
		}
		for client, why := range by {
			if name != "" {
				t.Errorf("%s, through the gate: %s: %s", name, client, why)
			} else {
				refused[client]++
			}
		}
	}
	if refused["sdk 1"] < 30 || refused["sdk 2"] < 30 {
		t.Errorf("without the gate the clients refuse %v: the test sees nothing", refused)
	}
	t.Logf("%d answers; without the gate the clients refuse %v", len(names), refused)
}
