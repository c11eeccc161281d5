package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

const origin = "https://x.test"

// A testPage is a page with a gateway of its own.
type testPage struct {
	*testkit.Page
	g        *gateway.Gateway
	gaveUp   chan struct{} // receives one value for each slow read that was cancelled
	reading  chan struct{} // receives one value for each slow read that has begun
	released chan struct{} // closing it answers the slow reads
}

// open returns a page with /doc and /other, which tests can set; /slow and /slower, which are answered when released is
// closed; and /square/{n}.
func open(t *testing.T) *testPage {
	t.Helper()
	p := &testPage{gaveUp: make(chan struct{}, 1000), reading: make(chan struct{}, 1000), released: make(chan struct{})}
	p.g = gateway.New(gateway.Options{
		PageLimits: link.Limits{Calls: 1 << 30, CallsBurst: 1 << 30}, // some tests flood
	})
	p.Page = testkit.NewPage(t, nil)
	p.Attach(func(send func([]byte)) (testkit.Receiver, error) {
		return p.g.Attach(gateway.PageInfo{Tab: "a", Origin: origin, URL: origin + "/", Title: "Page",
			Transport: "test"}, send)
	})
	p.Offer(origin+"/doc", "one")
	p.Offer(origin+"/other", "other")
	slow := func(ctx context.Context, _ string) (string, error) {
		p.reading <- struct{}{}
		select {
		case <-ctx.Done():
			p.gaveUp <- struct{}{}
			return "", ctx.Err()
		case <-p.released:
			return "released", nil
		}
	}
	p.Add(origin+"/slow", slow)
	p.Add(origin+"/slower", slow)
	p.Add(origin+"/square/{n}", func(_ context.Context, uri string) (string, error) {
		var n int
		_, err := fmt.Sscanf(uri, origin+"/square/%d", &n)
		return fmt.Sprint(n * n), err
	})
	t.Cleanup(p.g.Close)
	return p
}

// versions are the versions of each era for testkit.Connect.
var versions = map[string]string{"legacy": testkit.Legacy, "modern": testkit.Modern}

// A watcher is an agent of either era.
type watcher struct {
	*testkit.Agent
	t *testing.T
}

func watch(t *testing.T, transport mcp.Transport, version string) *watcher {
	t.Helper()
	return &watcher{testkit.Connect(t, transport, version), t}
}

// converse checks a list, reads, and a tool call.
func (a *watcher) converse(p *testPage) {
	a.t.Helper()
	if !a.Offers(origin + "/doc") {
		a.t.Errorf("%s/doc is not listed", origin)
	}
	if got := a.Text(origin + "/square/12"); got != "144" {
		a.t.Errorf("read %q", got)
	}
	_, err := a.ReadResource(a.t.Context(), &mcp.ReadResourceParams{URI: origin + "/none"})
	if err == nil || !strings.Contains(err.Error(), "not found") {
		a.t.Errorf("an unknown resource reads as %v", err)
	}
	r, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: "list_page_resources"})
	if err != nil || r.IsError {
		a.t.Errorf("call a tool: %v, %v", r, err)
	}
}

// held counts the gateway's agents, subscriptions, listens and open requests.
func held(g *gateway.Gateway) int {
	s := g.Snapshot().Stats
	return len(g.Snapshot().Agents) + s.Subscriptions + s.Listens + s.Calls
}

type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		URI           string
		RequestID     json.RawMessage
		ProgressToken string
		Meta          map[string]json.RawMessage `json:"_meta"`
	}
	Result *struct {
		ResultType string
		Contents   []struct{ Text string }
	}
	Error *struct {
		Code    int
		Message string
		Data    map[string]any
	}
}

func (m message) subscription() string {
	return string(m.Params.Meta["io.modelcontextprotocol/subscriptionId"])
}

func (m message) code() int {
	if m.Error == nil {
		return 0
	}
	return m.Error.Code
}

func decode(t *testing.T, text []byte) (m message) {
	t.Helper()
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("not a message (%v): %s", err, text)
	}
	return m
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// call returns a request of the modern era.
func call(id, method, params string) string {
	if params != "" {
		params = "," + params
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + modernMeta + params + `}}`
}

func listen(id, uri string) string {
	return call(id, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["`+uri+`"]}`)
}

func TestMain(m *testing.M) {
	switch os.Getenv("SERVE_TEST") {
	case "parent": // starts the orphan, and ends as soon as the orphan runs
		orphan := testcmd.Command(os.Args[0])
		orphan.Env = append(os.Environ(), "SERVE_TEST=orphan")
		orphan.Stdout = os.Stdout
		alive, err := orphan.StdinPipe()
		watches, err2 := orphan.StderrPipe()
		if err != nil || err2 != nil || orphan.Start() != nil {
			os.Exit(1)
		}
		_ = alive // it ends with this process; the orphan does not read it
		watches.Read(make([]byte, 1))
		os.Exit(0)
	case "orphan":
		ctx, cancel := Orphaned(context.Background())
		defer cancel()
		os.Stderr.WriteString("x")
		<-ctx.Done()
		fmt.Println(errors.Is(context.Cause(ctx), ErrOrphaned))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process whose parent is killed ends, even if it does not read its stdin.
func TestOrphaned(t *testing.T) {
	parent := testcmd.Command(os.Args[0])
	parent.Env = append(os.Environ(), "SERVE_TEST=parent")
	said, err := parent.Output() // returns when the orphan, which has the same stdout, has ended
	if err != nil || string(said) != "true\n" {
		t.Errorf("the orphan says %q, %v", said, err)
	}

	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := Orphaned(t.Context())
		time.Sleep(time.Hour)
		if err := context.Cause(ctx); err != nil {
			t.Errorf("ended while its parent is there: %v", err)
		}
		cancel()
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("ended with %v", context.Cause(ctx))
		}
		synctest.Wait()
	})
}

// A page's answer with line ends reaches the agent as one line.
func TestPageCannotBreakLines(t *testing.T) {
	g := gateway.New(gateway.Options{})
	defer g.Close()
	p := testkit.NewPage(t, map[string]string{origin + "/a": ""})
	p.Contents(func(string) string { return "[\n{\"uri\":\"" + origin + "/a\",\r\n\"text\":\"x\"}\n]" })
	p.Attach(func(send func([]byte)) (testkit.Receiver, error) {
		return g.Attach(gateway.PageInfo{Tab: "a", Origin: origin, URL: origin + "/"}, send)
	})
	in := call("1", "resources/read", `"uri":"`+origin+`/a"`) + "\n"
	var out strings.Builder
	if err := serveLines(t.Context(), g, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || strings.Contains(out.String(), "\r") {
		t.Errorf("%d lines: %q", n, out.String())
	}
	if m := decode(t, []byte(out.String())); m.Result == nil || m.Result.Contents[0].Text != "x" {
		t.Errorf("answered %s", out.String())
	}
}
