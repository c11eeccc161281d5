package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/e2e/bench/stale"
)

// The policies say when the agent looks. stale/README.md has them in exact words.
const (
	never  = "never look again"
	before = "look before each write"
	told   = "look when told"

	staleSeed = 2026
	// thinks is a short time for a model. Meanwhile Pagewire may count three changes at once again.
	thinks = 300 * time.Millisecond

	guarded = gatewayTag + "<script>guarded = true</script>"
)

type input = map[string]any

// A reach is how a contender's agent looks at the page's records, and calls a tool of the page.
type reach struct {
	rival
	tags string
	look func(context.Context, *player) (string, error)
	call func(ctx context.Context, p *player, tool string, in input) (string, error)
}

// reaches are the contenders. To add one, add an element.
var reaches = []reach{
	{ourOwn("Pagewire, freshState", overSocket), guarded, lookSince, callTool},
	{ourOwn("Pagewire", overSocket), gatewayTag, lookSince, callTool},
	{rival{name: "Pagewire, HTTP without a session", kind: ours, ready: readyHTTP}, guarded,
		lookSince, callHTTP},
	{snapshots(devtools), mcpbTag, lookByTool,
		func(ctx context.Context, p *player, tool string, in input) (string, error) {
			return callTool(ctx, p, "execute_webmcp_tool",
				input{"pageId": p.page, "toolName": tool, "input": inputText(in)})
		}},
	{snapshots(playwrite), mcpbTag, lookByTool,
		func(ctx context.Context, p *player, tool string, in input) (string, error) {
			return callTool(ctx, p, "webmcp_"+tool, in)
		}},
	{relayOff(), mcpbTag + relayTag, lookByTool,
		func(ctx context.Context, p *player, tool string, in input) (string, error) {
			return callTool(ctx, p, strings.Replace(p.tool, "state", tool, 1), in)
		}},
	{rival{name: agentBrowser, kind: peer, ready: findsTab}, mcpbTag,
		func(ctx context.Context, p *player) (string, error) {
			args := []string{"snapshot", "--delta", "--full"}
			if p.since != "" {
				args = args[:2]
			}
			p.since = "the last snapshot"
			return p.command(ctx, args...)
		},
		func(ctx context.Context, p *player, tool string, in input) (string, error) {
			return p.command(ctx, "webmcp", "invoke", tool, "--params", inputText(in))
		}},
}

func ourOwn(name string, r rival) rival {
	return rival{name: name, kind: ours, serve: r.serve, ready: offers("change")}
}

// relayOff is the relay in a browser without WebMCP, where @mcp-b/global has what it needs.
func relayOff() rival {
	r := snapshots(relay)
	r.off = true
	return r
}

// inputText is JSON of strings and numbers, which always encode.
func inputText(in any) string {
	text, _ := json.Marshal(in)
	return string(text)
}

// A player is the scripted agent at one contender's page, with one policy.
type player struct {
	*rig
	reach
	policy string
	hand   call // the person's: commands in the page's tab

	bytes, turns int    // in a model's context
	since        string // what the next look names as known
	belief       stale.State
	truth        stale.State   // which the agent does not know
	beliefs      []stale.State // at each write that the page has accepted
}

// turn counts what a call and its result add to a model's context.
func (p *player) turn(called, text string) {
	p.turns++
	p.bytes += len(called) + len(text)
}

// callTool calls a tool of the contender. A refusal is a result, with errTool.
func callTool(ctx context.Context, p *player, tool string, in input) (string, error) {
	text, err := p.agent.tool(ctx, tool, in)
	if errors.Is(err, errTool) {
		text = strings.TrimPrefix(err.Error(), fmt.Sprintf("%s: %v: ", tool, errTool))
	}
	p.turn(tool+inputText(in), text)
	return text, err
}

func (p *player) command(ctx context.Context, args ...string) (string, error) {
	text, err := p.cli(ctx, args...)
	p.turn("agent-browser "+strings.Join(args, " "), text)
	return text, err
}

func lookByTool(ctx context.Context, p *player) (string, error) {
	return p.call(ctx, p, "state", input{})
}

var revision = regexp.MustCompile(`"revision":(\d+)`)

// lookSince reads the resource. From the second look on it asks for what has changed.
func lookSince(ctx context.Context, p *player) (string, error) {
	in := input{"uri": p.site.URL + "/records"}
	if p.since != "" {
		in["since"] = json.Number(p.since)
	}
	text, err := p.call(ctx, p, "read_page_resource", in)
	if m := revision.FindStringSubmatch(text); m != nil {
		p.since = m[1]
	}
	return text, err
}

// readyHTTP starts Pagewire for agents over HTTP, once, and looks for the page's tool.
func readyHTTP(ctx context.Context, r *rig) error {
	if r.tool == "" {
		port, err := freePort()
		if err != nil {
			return err
		}
		cmd := testcmd.CommandContext(context.Background(), r.b.program(), "serve", "--no-token",
			"--log-level", "error", "--hub", local(r.port), "--http", local(port))
		cmd.Env = r.env()
		if err := cmd.Start(); err != nil {
			return err
		}
		r.b.onClose(func() { cmd.Process.Kill(); cmd.Wait() })
		r.tool = local(port)
	}
	s, err := connectHTTP(ctx, r)
	if err != nil {
		return err
	}
	defer s.Close()
	list, err := s.ListTools(ctx, nil)
	if err == nil && !strings.Contains(inputText(list), `"change"`) {
		err = errors.New("the page's tools are not listed")
	}
	return err
}

func connectHTTP(ctx context.Context, r *rig) (*mcp.ClientSession, error) {
	return mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: "http://" + r.tool + "/mcp"},
		&mcp.ClientSessionOptions{ProtocolVersion: testkit.Modern})
}

func callHTTP(ctx context.Context, p *player, tool string, in input) (string, error) {
	s, err := connectHTTP(ctx, p.rig)
	if err != nil {
		return "", err
	}
	defer s.Close()
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return "", err
	}
	text, err := toolText(tool, json.RawMessage(inputText(result)))
	p.turn(tool+inputText(in), text)
	return text, err
}

// show makes the page show a task, or a change.
func (p *player) show(k stale.Kind, title string, records ...stale.Record) error {
	lines := [][]any{}
	for _, r := range records {
		if r.ID > 0 {
			lines = append(lines, []any{r.ID, k.Line(r)})
		}
	}
	return p.hand.run(fmt.Sprintf("show(%q, %s)", title, inputText(lines)))
}

// learn makes the agent look. It fails if that does not lead to the page's state.
func (p *player) learn(ctx context.Context) error {
	text, err := p.look(ctx, p)
	p.belief.Learn(text)
	if err == nil && !maps.Equal(p.belief, p.truth) {
		err = fmt.Errorf("a look does not show the page's state: %s", text)
	}
	return err
}

// play plays a task.
func (p *player) play(ctx context.Context, t stale.Task) (old int, right bool, err error) {
	p.since, p.beliefs, p.belief, p.truth = "", nil, stale.State{}, maps.Clone(t.Start)
	var records []stale.Record
	for id := range len(t.Start) {
		records = append(records, t.Start[id+1])
	}
	err = p.show(t.Kind, t.Goal, records...)
	if err == nil {
		err = p.learn(ctx)
	}
	for i, goes := 0, true; err == nil && goes && i < len(t.Steps); i++ {
		time.Sleep(thinks)
		for _, late := range []bool{false, true} {
			for _, change := range t.Steps[i] {
				if err == nil && change.Late == late {
					err = p.show(t.Kind, "", t.Apply(change, p.truth))
				}
			}
			if err == nil && !late && p.policy == before {
				err = p.learn(ctx)
			}
		}
		if err == nil {
			goes, err = p.write(ctx, t)
		}
	}
	var took struct{ Result struct{ Value []stale.Write } }
	if err == nil {
		err = p.hand("Runtime.evaluate", input{"expression": "took()", "returnByValue": true},
			&took)
	}
	if err == nil {
		old, right = t.Judge(p.beliefs, took.Result.Value)
	}
	return old, right, err
}

// write makes a write, and after a refusal what the policy says. It reports whether the write was
// accepted.
func (p *player) write(ctx context.Context, t stale.Task) (accepted bool, err error) {
	for tries := 0; tries == 0 || tries < 3 && !accepted && p.policy != never; tries++ {
		id, belief := t.Plan(p.belief), maps.Clone(p.belief)
		text, err := p.call(ctx, p, "change", input{"id": id, "field": t.Done})
		accepted = err == nil
		if accepted {
			p.beliefs = append(p.beliefs, belief)
			p.truth.Set(id, t.Done)
			p.belief.Set(id, t.Done)
		} else if !errors.Is(err, errTool) {
			return false, err
		}
		if p.policy == told && strings.Contains(text, "/records") && p.belief.Learn(text) == 0 ||
			p.policy == before && !accepted {
			if err := p.learn(ctx); err != nil {
				return false, err
			}
		}
	}
	return accepted, nil
}

// session plays all tasks.
func (p *player) session(ctx context.Context, tasks []stale.Task) (got figures, err error) {
	opening, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := p.open(opening); err != nil {
		return nil, err
	}
	right, old := 0, 0
	err = p.inTab(ctx, p.target, func(call call) error {
		p.hand = call
		for i, t := range tasks {
			o, r, err := p.play(ctx, t)
			if err != nil {
				return fmt.Errorf("%s, task %d: %w", p.policy, i, err)
			}
			if old += o; r {
				right++
			}
		}
		return nil
	})
	fmt.Fprintf(os.Stderr, "        | %s | %s | %d | %d | %d | %d |\n", p.policy, p.reach.name, old,
		right, p.bytes, p.turns)
	return figures{p.policy + "old": float64(old), p.policy + "right": float64(right),
		p.policy + "bytes": float64(p.bytes), p.policy + "turns": float64(p.turns)}, err
}

// stale is the benchmark of yesterday's page: -stale measures only this. All play at the same time.
func (b *bench) stale() []family {
	n := 100
	if b.short {
		n = 10
	}
	tasks, err := stale.Tasks(staleSeed, n)
	f := family{name: "stale", rounds: 1}
	got, failed := make([]figures, len(reaches)), make([]error, len(reaches))
	f.prepare = func(ctx context.Context) {
		var all sync.WaitGroup
		var mu sync.Mutex
		for i, r := range reaches {
			got[i], failed[i] = figures{}, err
			r.html = r.tags + "<h1 id=title></h1><div id=records></div><p id=news>News</p>" +
				"<script>" + stale.Page + "</script>"
			for _, policy := range []string{never, before, told} {
				p := &player{rig: &rig{rival: r.rival, b: b}, reach: r, policy: policy}
				all.Go(func() {
					values, err := p.session(ctx, tasks)
					mu.Lock()
					defer mu.Unlock()
					maps.Copy(got[i], values)
					failed[i] = errors.Join(failed[i], err)
				})
			}
		}
		all.Wait()
	}
	for i, r := range reaches {
		f.contenders = append(f.contenders, contender{r.name, r.kind,
			func(context.Context) (figures, error) {
				got[i]["goal"] = got[i][before+"bytes"]
				if r.kind == ours {
					got[i]["goal"] = got[i][told+"bytes"]
				}
				return got[i], failed[i]
			}})
	}
	for _, policy := range []string{never, before, told} {
		old, right := goal{}, goal{}
		if policy == told {
			old, right = goal{exact: true}, goal{most: 0.95 * float64(n), least: true}
		}
		f.rows = append(f.rows, row{policy + "old", policy + ": writes on old state", "", old, ""},
			row{policy + "right", fmt.Sprintf("%s: tasks done right, of %d", policy, n), "", right, ""},
			row{policy + "bytes", policy + ": bytes in the model's context", "B", goal{}, ""},
			row{policy + "turns", policy + ": turns", "", goal{}, ""})
	}
	f.rows = append(f.rows, row{"goal", told + ": bytes, beside others that " + before, "B",
		goal{most: 0.33, of: best}, reaches[0].name})
	return []family{f}
}
