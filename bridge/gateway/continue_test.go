package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A journey is a call of a page's tool that leads to another document.
type journey struct {
	t     *testing.T
	g     *Gateway
	first *testPage
	stop  context.CancelFunc // cancels the call
	ended chan bool          // has one when the call has ended
	// progress has the progress messages that the agent's program gets.
	progress chan string
}

func textResult(text string, members map[string]any) map[string]any {
	all := map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	for name, value := range members {
		all[name] = value
	}
	return all
}

// next opens the tab's next document, with the resource /results and more. Its own answer is says, or never comes if
// says is "".
func (j *journey) next(info PageInfo, says string, more ...string) *testPage {
	state := map[string]string{info.Origin + "/results": "3"}
	for _, path := range more {
		state[info.Origin+path] = ""
	}
	p := &testPage{t: j.t, page: testkit.NewPage(j.t, state)}
	offered := make(chan bool)
	defer close(offered)
	p.page.Arrived = func(ctx context.Context, _ json.RawMessage, _ func(map[string]any)) any {
		if <-offered; says == "" {
			<-ctx.Done()
		}
		return textResult(says, nil)
	}
	p.attach(j.g, info)
	return p
}

func results() PageInfo {
	info := tabInfo("a")
	info.Title, info.URL = "Results", app+"/results?q=cup"
	return info
}

// byExtension is a page of the extension: its Tab has its origin too.
func byExtension(origin string) PageInfo {
	return PageInfo{Tab: "page " + origin + " run-7", Origin: origin, URL: origin + "/", Title: "Secret",
		Transport: "extension"}
}

func (j *journey) waiting() {
	testkit.Eventually(j.t, "the call waits for a document", func() bool {
		defer j.g.lock()()
		// On a busy machine a short ReadTimeout may be over by now.
		return len(j.g.continued) == 1 || len(j.ended) == 1
	})
}

func (j *journey) leave() {
	j.first.crash()
	j.waiting()
}

func TestCallThatOutlivesItsDocument(t *testing.T) {
	continues := map[string]any{"_meta": map[string]any{"pagewire/continues": true}}
	for name, c := range map[string]struct {
		options Options
		first   PageInfo
		result  any // of the tool; nil if the tool does not end
		stays   bool
		act     func(j *journey)
		want    []string // in the texts, in order
		not     string   // not in the texts
		failed  bool
		err     string // instead of a result
	}{
		"the next document's own answer": {options: Options{progressEvery: time.Millisecond}, act: func(j *journey) {
			j.leave()
			for testkit.Receive(j.t, "progress", j.progress) != "waiting for the next page" {
			}
			j.next(results(), `{"@type":"ItemList"}`)
		}, want: []string{`{"@type":"ItemList"}`, `"Results", ` + app + "/results?q=cup", "\n" + app + "/results"}},
		"a document of many resources": {act: func(j *journey) {
			j.leave()
			var more []string
			for n := range maxArrived + 1 {
				more = append(more, fmt.Sprintf("/result/%d", n))
			}
			info := results()
			info.URL += strings.Repeat("x", maxArrivedURL)
			j.next(info, "found", more...)
		}, want: []string{"xxx. Its resources:\n", "\nand 2 more: list_page_resources"}, not: strings.Repeat("x", maxArrivedURL)},
		"after a result that is not all": {result: textResult("searching", continues), act: func(j *journey) {
			j.waiting()
			j.first.crash()
			j.next(results(), "found")
		}, want: []string{"searching", "found", "Results"}},
		"a result that is all": {result: textResult("nothing to search for", nil), act: func(*journey) {},
			want: []string{"nothing to search for"}},
		"a tool that leads nowhere": {stays: true, act: func(j *journey) {
			j.first.crash()
			j.next(results(), "found")
		}, err: "the page went away"},
		"no next document": {options: Options{ReadTimeout: 20 * time.Millisecond},
			result: textResult("searching", continues), act: func(*journey) {},
			want: []string{"searching", "no next document of " + app + " has answered within 20ms"}, failed: true},
		"a next document that says nothing": {options: Options{ReadTimeout: 200 * time.Millisecond},
			act: func(j *journey) {
				j.leave()
				j.next(results(), "")
			}, want: []string{"no next document"}, failed: true},
		"another origin": {act: func(j *journey) {
			j.leave()
			j.next(PageInfo{Tab: "a", Origin: "https://bank.example", URL: "https://bank.example/me", Title: "Secret",
				Transport: "test"}, "secret")
		}, want: []string{"a document of https://bank.example."}, not: "ecret"},
		"another origin, by the extension": {first: byExtension(app), act: func(j *journey) {
			j.leave()
			j.next(byExtension("https://bank.example"), "secret")
		}, want: []string{"a document of https://bank.example."}, not: "ecret"},
		"a document without Pagewire": {act: func(j *journey) {
			j.leave()
			j.g.Arrived(results())
		}, want: []string{`"Results", ` + app + "/results?q=cup."}},
		"while an agent sees the tab in front, which leads to no page": {act: func(j *journey) {
			openFront(j.t, j.g, AgentOptions{})
			j.leave()
			j.next(results(), "found")
		}, want: []string{"found", "Results", "\n" + app + "/results"}, not: door.FrontURI},
		"another tab": {options: Options{ReadTimeout: 100 * time.Millisecond}, act: func(j *journey) {
			j.leave()
			j.next(tabInfo("b"), "of another tab")
		}, want: []string{"no next document"}, not: "of another tab", failed: true},
		"a frame of the tab": {act: func(j *journey) {
			j.leave()
			frame := results()
			frame.Frame = "0"
			if j.next(frame, "advertisement").page.Running() != 0 {
				j.t.Error("the frame is asked")
			}
			j.next(results(), "found")
		}, want: []string{"found"}, not: "advertisement"},
		"two documents, of which the first goes on to the second": {act: func(j *journey) {
			j.leave()
			between := j.next(results(), "")
			testkit.Eventually(j.t, "the first is asked", func() bool { return between.page.Running() == 1 })
			between.crash()
			j.next(results(), "found")
		}, want: []string{"found"}},
		"two documents at once": {act: func(j *journey) {
			j.leave()
			before := j.next(results(), "")
			testkit.Eventually(j.t, "the first is asked", func() bool { return before.page.Running() == 1 })
			j.next(results(), "found")
		}, want: []string{"found"}},
		"a document that comes before the end of the one that was left": {act: func(j *journey) {
			j.next(results(), "found")
			j.first.crash()
		}, want: []string{"found"}},
		"the same document once more": {act: func(j *journey) {
			j.leave()
			j.first.attach(j.g, tabInfo("a"))
		}, err: "the page went away"},
		"a closed tab": {act: func(j *journey) {
			j.leave()
			j.g.CloseTab("a")
		}, err: "the page went away"},
		"a page that may not be read any more": {act: func(j *journey) { j.first.Close("the user says so") },
			err: "the page went away"},
		"an agent that gives up": {act: func(j *journey) {
			j.leave()
			j.stop()
			testkit.Eventually(j.t, "the call has ended", func() bool {
				defer j.g.lock()()
				return len(j.g.continued) == 0
			})
			j.next(results(), "found")
		}, err: "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.first.Tab == "" {
				c.first = tabInfo("a")
			}
			g := newGateway(t, c.options)
			progress := make(chan string, 100)
			a, _ := openAgentWith(t, g, AgentOptions{}, func(p *mcp.ProgressNotificationParams) {
				select {
				case progress <- p.Message:
				default:
				}
			})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan bool, 1)
			j := &journey{t, g, openPage(t, g, c.first, nil), stop, ended, progress}
			runs := make(chan bool)
			j.first.page.SetTool("search", testkit.Tool{
				Members: map[string]any{"_meta": map[string]any{"pagewire/navigates": !c.stays}},
				Run: func(ctx context.Context, _ json.RawMessage, _ func(map[string]any)) any {
					close(runs)
					if c.result == nil {
						<-ctx.Done()
					}
					return c.result
				}})
			a.hasTool("search")
			var result *mcp.CallToolResult
			var err error
			go func() {
				defer func() { ended <- true }()
				params := &mcp.CallToolParams{Name: "search", Arguments: map[string]any{}}
				params.SetProgressToken("p")
				result, err = a.CallTool(ctx, params)
			}()
			<-runs
			c.act(j)
			testkit.Receive(t, "the call ends", ended)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("it ends with %v, %v", result, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, part := range result.Content {
				texts = append(texts, part.(*mcp.TextContent).Text)
			}
			all, from := strings.Join(texts, "\n"), 0
			for _, want := range c.want {
				at := strings.Index(all[from:], want)
				if at < 0 {
					t.Fatalf("it ends with %q, which has no %q", texts, want)
				}
				from += at + len(want)
			}
			if c.not != "" && strings.Contains(all, c.not) || result.IsError != c.failed {
				t.Errorf("it ends with %q, failed %v", texts, result.IsError)
			}
		})
	}
}
