package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A world is a model of a user's processes: the pages, their texts, and the contents that each agent has seen. One
// goroutine calls its operations.
type world struct {
	t         *testing.T
	rand      *rand.Rand
	home, hub string
	log       *testkit.Log
	build     int // the newest build
	number    int // of the last page
	pages     []*modelPage
	agents    []*modelAgent

	mu    sync.Mutex
	calls int
	ran   map[int]int // how often the tool ran, by call

	steps, reads, lost, succeeded, refused, unanswered, forbidden int
	ends                                                          map[string]int // ends of daemons, by signal
}

func pick[T any](w *world, list []T) T { return list[w.rand.IntN(len(list))] }

// A modelPage has a resource with the text "URI is COUNT", and a tool that depends on it.
type modelPage struct {
	*testkit.Page
	w                 *world
	origin, uri, tool string
	count             int
	offersMore        bool
	documents         int

	leave context.CancelFunc
	left  chan struct{}
	turn  sync.Mutex // held while the page does something or gets a message, since a page has one thread
	conn  *websocket.Conn
}

func (p *modelPage) text() string { return fmt.Sprint(p.uri, " is ", p.count) }

// more is the URI that toggle offers and withdraws.
func (p *modelPage) more() string { return p.uri + "/more" }

func (w *world) openPage() {
	w.number++
	n := w.number
	p := &modelPage{w: w, origin: fmt.Sprint("http://localhost:", 3000+n%3), tool: fmt.Sprint("buy", n),
		left: make(chan struct{})}
	p.uri = fmt.Sprint(p.origin, "/page", n)
	p.Page = testkit.NewPage(w.t, map[string]string{p.uri: p.text()})
	p.SetTool(p.tool, testkit.Tool{
		Members: map[string]any{"_meta": map[string]any{"pagewire/freshState": map[string]any{"uris": []string{p.uri}}}},
		Run:     w.run,
	})
	p.begin()
	var ctx context.Context
	ctx, p.leave = context.WithCancel(w.t.Context())
	go p.live(ctx)
	w.pages = append(w.pages, p)
}

// run is each page's tool. With waits it runs until its call is cancelled.
func (w *world) run(ctx context.Context, args json.RawMessage, _ func(map[string]any)) any {
	var in struct {
		Call  int
		Waits bool
	}
	if err := json.Unmarshal(args, &in); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	w.ran[in.Call]++
	w.mu.Unlock()
	if in.Waits {
		<-ctx.Done()
	}
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": "bought"}}}
}

// begin begins another document of the page.
func (p *modelPage) begin() {
	p.documents++
	p.Epoch(fmt.Sprint("document ", p.documents, " of ", p.tool))
}

// live connects the page to one daemon after another, until the page leaves.
func (p *modelPage) live(ctx context.Context) {
	defer close(p.left)
	for ctx.Err() == nil {
		conn, _, err := websocket.Dial(ctx, "ws://"+p.w.hub+"/page", &websocket.DialOptions{
			Subprotocols: []string{"pagewire.v1"}, HTTPHeader: http.Header{"Origin": {p.origin}}})
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
			continue
		}
		p.turn.Lock()
		p.conn = conn
		p.Connect(func(frame []byte) { _ = conn.Write(ctx, websocket.MessageText, frame) }, // Read returns the error
			map[string]any{"tab": "0123456789-" + p.tool, "title": p.tool, "url": p.origin + "/"})
		p.turn.Unlock()
		for {
			_, frame, err := conn.Read(ctx)
			if err != nil {
				break
			}
			p.turn.Lock()
			p.Hear(frame)
			p.turn.Unlock()
		}
		conn.CloseNow()
	}
}

// do calls f in the page's one thread.
func (p *modelPage) do(f func()) {
	p.turn.Lock()
	defer p.turn.Unlock()
	f()
}

func (p *modelPage) change() {
	p.count++
	p.do(func() { p.Set(p.uri, p.text()) })
}

// cut ends the connection. The page then makes another.
func (p *modelPage) cut() {
	p.do(func() {
		if p.conn != nil {
			p.conn.CloseNow()
		}
	})
}

// reload is cut with another document, whose resource has another text in half the cases.
func (p *modelPage) reload() {
	p.do(p.begin)
	if p.w.rand.IntN(2) == 0 {
		p.change()
	}
	p.cut()
}

func (p *modelPage) toggle() {
	if p.offersMore = !p.offersMore; p.offersMore {
		p.do(func() { p.Offer(p.more(), "more") })
	} else {
		p.do(func() { p.Withdraw(p.more()) })
	}
}

func (w *world) closePage() {
	i := w.rand.IntN(len(w.pages))
	p := w.pages[i]
	p.do(func() { p.Post(`[["bye",true]]`) })
	p.leave()
	testkit.Ends(w.t, "the page leaves", p.left)
	w.pages = slices.Delete(w.pages, i, i+1)
	for _, a := range w.agents {
		delete(a.watched, p.uri)
	}
}

// A modelAgent sends one request at a time. It reads a watched resource after each update.
type modelAgent struct {
	*testkit.Agent
	w       *world
	process *os.Process
	exited  chan struct{}
	watched map[string]bool
	scope   door.Scope // the origins that its user lets it see

	turn sync.Mutex        // held while it waits for an answer
	seen map[string]int    // the last count that it was told, by URI
	held map[string]string // the text that it read last, by URI
	// unseen counts the refusals of a first call, by URI. Each daemon may refuse one, and one more after an answer that
	// the page cannot be read.
	unseen, unread map[string]int
	// revisions has the last revision from read_page_resource, by URI.
	revisions map[string]int64
}

// openAgent starts an agent of a build. In a third of the cases its flags hide pages from it.
func (w *world) openAgent(build int) {
	var flags daemon.Flags
	origin := fmt.Sprint("http://localhost:", 3000+w.rand.IntN(3))
	switch w.rand.IntN(6) {
	case 0:
		flags.DenyOrigins = []string{origin}
	case 1:
		flags.OnlyOrigins = []string{origin}
	}
	given, err := json.Marshal(flags)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := testcmd.Command(os.Args[0], roleAgent, fmt.Sprint("1.0.", build), w.hub, string(given))
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // saves a second at the end of a process under -race
	cmd.Stderr = w.log
	in, out := testkit.Pipes(w.t, cmd)
	a := &modelAgent{w: w, scope: door.Scope{Deny: flags.DenyOrigins, Only: flags.OnlyOrigins},
		process: cmd.Process, exited: make(chan struct{}), watched: map[string]bool{},
		seen: map[string]int{}, held: map[string]string{}, revisions: map[string]int64{},
		unseen: map[string]int{}, unread: map[string]int{}}
	go func() {
		cmd.Process.Wait() // cmd.Wait would close the output, which is still read
		close(a.exited)
	}()
	a.Agent = testkit.Connect(w.t, &mcp.IOTransport{Reader: io.NopCloser(out), Writer: in},
		pick(w, []string{testkit.Legacy, testkit.Modern}))
	go func() {
		for {
			select {
			case uri := <-a.Updates:
				a.look(uri)
			case <-a.exited:
				return
			}
		}
	}()
	w.agents = append(w.agents, a)
}

// closeAgent ends an agent: it quits, or its process is killed.
func (w *world) closeAgent() {
	i := w.rand.IntN(len(w.agents))
	a := w.agents[i]
	w.agents = slices.Delete(w.agents, i, i+1)
	if w.rand.IntN(2) == 0 {
		a.process.Kill()
	}
	a.Close()
	testkit.Ends(w.t, "an agent's process ends", a.exited)
}

// look reads a URI. It fails while the page is absent. The agent gets an update when the page is back.
func (a *modelAgent) look(uri string) (text string, err error) {
	a.turn.Lock()
	defer a.turn.Unlock()
	if text, err = a.Read(uri); err == nil {
		a.held[uri] = text
		a.sees(text)
	}
	return text, err
}

// said finds a page's text in any message.
var said = regexp.MustCompile(`(http://localhost:\d+/page\d+) is (\d+)`)

// sees records the counts that the agent is told. A count must not be lower than an earlier one.
func (a *modelAgent) sees(text string) {
	a.may(text)
	for _, m := range said.FindAllStringSubmatch(text, -1) {
		count, _ := strconv.Atoi(m[2])
		if count < a.seen[m[1]] {
			a.w.t.Errorf("%s: the agent had seen %d, and is told %d: %s", m[1], a.seen[m[1]], count, text)
		}
		a.seen[m[1]] = count
	}
}

// pair picks an agent and a page that it may see, or nil. If the first page is hidden from the agent, pair calls
// isRefused.
func (w *world) pair() (*modelAgent, *modelPage) {
	a, p := pick(w, w.agents), pick(w, w.pages)
	if door.Admits(a.scope, bridge.Owner{Origin: p.origin}) {
		return a, p
	}
	w.isRefused(a, p)
	seen := slices.DeleteFunc(slices.Clone(w.pages), func(p *modelPage) bool { return !door.Admits(a.scope, bridge.Owner{Origin: p.origin}) })
	if len(seen) == 0 {
		return a, nil
	}
	return a, pick(w, seen)
}

// may fails the test if a text has the state of a page that is hidden from the agent.
func (a *modelAgent) may(text string) {
	for _, m := range said.FindAllStringSubmatch(text, -1) {
		if !door.Admits(a.scope, bridge.Owner{Origin: m[1][:strings.LastIndexByte(m[1], '/')]}) {
			a.w.t.Errorf("an agent of the scope %+v is told of %s: %s", a.scope, m[1], text)
		}
	}
}

// isRefused makes an agent try each way to a page that is hidden from it.
func (w *world) isRefused(a *modelAgent, p *modelPage) {
	a.turn.Lock()
	defer a.turn.Unlock()
	w.calls++
	n := w.calls
	ctx := a.Context()
	if text, err := a.Read(p.uri); err == nil {
		w.t.Errorf("an agent of the scope %+v reads %s", a.scope, text)
	}
	if text, failed, err := a.call("read_page_resource", map[string]any{"uri": p.uri}); err == nil && !failed {
		w.t.Errorf("an agent of the scope %+v reads %s by a tool", a.scope, text)
	}
	if text, failed, err := a.call(p.tool, map[string]any{"call": n}); err == nil && !failed || w.ranFor(n) > 0 {
		w.t.Errorf("an agent of the scope %+v calls %s, which says %q", a.scope, p.tool, text)
	}
	// This may succeed, as for an unknown resource. At the next daemon the agent gets an update for each subscription,
	// and its read fails.
	_ = a.Subscribe(ctx, &mcp.SubscribeParams{URI: p.uri})
	w.forbidden++
}

func (w *world) watch() {
	a, p := w.pair()
	if p == nil {
		return
	}
	if a.watched[p.uri] {
		delete(a.watched, p.uri)
		_ = a.Unsubscribe(a.Context(), &mcp.UnsubscribeParams{URI: p.uri}) // it fails if the page is absent
		return
	}
	if _, err := a.look(p.uri); err != nil {
		return // the page is absent
	}
	testkit.Eventually(w.t, "an agent subscribes", func() bool { // the next daemon may not have the page yet
		return a.Subscribe(a.Context(), &mcp.SubscribeParams{URI: p.uri}) == nil
	})
	a.watched[p.uri] = true
	a.look(p.uri)
}

// read reads by resources/read. The text may be older than the request, since it may share another agent's read that
// was under way.
func (w *world) read() {
	a, p := w.pair()
	if p == nil {
		return
	}
	switch text, err := a.look(p.uri); {
	case errors.Is(err, mcp.ErrConnectionClosed):
		w.t.Fatalf("an agent has no session any more: %v", err)
	case err != nil:
		w.lost++
	case !strings.HasPrefix(text, p.uri+" is ") || a.count(p) > p.count:
		w.t.Errorf("%q is read, and the page is %q", text, p.text())
	default:
		w.reads++
	}
}

func (a *modelAgent) count(p *modelPage) int {
	a.turn.Lock()
	defer a.turn.Unlock()
	return a.seen[p.uri]
}

// readByTool reads the changes since the agent's last revision, and reports whether there is an answer.
func (a *modelAgent) readByTool(p *modelPage) bool {
	a.turn.Lock()
	defer a.turn.Unlock()
	args := map[string]any{"uri": p.uri}
	if since, ok := a.revisions[p.uri]; ok {
		args["since"] = since
	}
	text, failed, err := a.call("read_page_resource", args)
	if err != nil || failed {
		return false
	}
	var head struct{ Revision int64 }
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&head); err != nil {
		a.w.t.Errorf("a result of read_page_resource: %v: %s", err, text)
	}
	a.revisions[p.uri] = head.Revision
	return true
}

// call calls a tool, and passes its result to sees. turn must be held.
func (a *modelAgent) call(name string, args map[string]any) (text string, failed bool, err error) {
	r, err := a.CallTool(a.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "", false, err
	}
	for _, c := range r.Content {
		text += c.(*mcp.TextContent).Text + "\n"
	}
	a.sees(text)
	return text, r.IsError, nil
}

// callTool calls a page's tool. Sometimes the page changes meanwhile, or the daemon ends.
func (w *world) callTool() {
	a, p := w.pair()
	if p == nil {
		return
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	w.calls++
	n := w.calls
	known, hasSeen := a.seen[p.uri]
	isStale, changes, dies := !hasSeen || known < p.count, w.rand.IntN(8) == 0, w.rand.IntN(30) == 0
	over := make(chan struct{})
	var text string
	var failed bool
	var err error
	go func() {
		defer close(over)
		text, failed, err = a.call(p.tool, map[string]any{"call": n, "waits": dies})
	}()
	if changes {
		p.change()
	}
	if dies {
		testkit.Eventually(w.t, "the tool runs, or is not to", func() bool {
			select {
			case <-over:
				return true
			default:
				return w.ranFor(n) > 0
			}
		})
		w.signalDaemon(syscall.SIGKILL)
	}
	testkit.Ends(w.t, "a call is answered", over)
	ran := w.ranFor(n)
	isRefused, isUnknown := failed && strings.Contains(text, " was not run"), strings.Contains(text, "cannot be read now")
	isUnseen := isRefused && strings.Contains(text, "you have not read what it depends on")
	if isUnseen {
		a.unseen[p.uri]++
	}
	if isUnknown {
		a.unread[p.uri]++
	}
	switch {
	case errors.Is(err, mcp.ErrConnectionClosed):
		w.t.Fatalf("an agent has no session any more: %v", err)
	case ran > 0 && isStale:
		w.t.Errorf("call %d of %s ran: the agent has seen %d (%v), and the page had %d", n, p.uri, known, hasSeen, p.count)
	case a.unseen[p.uri] > w.daemons()+a.unread[p.uri]:
		w.t.Errorf("call %d of %s was refused as the first for the %d. time, at %d daemons: %s", n, p.uri,
			a.unseen[p.uri], w.daemons(), text)
	case isRefused && (ran > 0 || !isStale && !changes && !isUnknown && !isUnseen):
		w.t.Errorf("call %d of %s was refused, ran %d times, the agent has seen %d, and the page had %d: %s", n, p.uri, ran,
			known, p.count, text)
	case isRefused:
		w.refused++
	case err == nil && !failed && ran != 1:
		w.t.Errorf("call %d of %s is answered, and ran %d times: %s", n, p.uri, ran, text)
	case err == nil && !failed:
		w.succeeded++
	default:
		w.unanswered++
	}
}

// daemons is the number of daemons that have begun.
func (w *world) daemons() int {
	return len(strings.Fields(readFile(filepath.Join(w.home, daemonsFile))))
}

func (w *world) ranFor(call int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ran[call]
}

// signalDaemon ends the daemon by a signal. It does nothing if no daemon answers.
func (w *world) signalDaemon(signal syscall.Signal) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	c, err := daemon.Dialer{Hub: w.hub}.Dial(ctx, daemon.Hello{Version: "1.0.0", As: daemon.AsProbe})
	if err != nil {
		return
	}
	c.Close()
	if syscall.Kill(c.Daemon.PID, signal) == nil {
		w.ends[signal.String()]++
	}
}

func (w *world) step() {
	switch n := w.rand.IntN(1000); {
	case n < 330:
		pick(w, w.pages).change()
	case n < 530:
		w.read()
	case n < 620:
		if a, p := w.pair(); p == nil {
		} else if a.readByTool(p) {
			w.reads++
		} else {
			w.lost++
		}
	case n < 780:
		w.callTool()
	case n < 850:
		w.watch()
	case n < 885:
		pick(w, w.pages).reload()
	case n < 900:
		pick(w, w.pages).cut()
	case n < 915:
		pick(w, w.pages).toggle()
	case n < 930:
		if len(w.pages) < 8 {
			w.openPage()
		}
	case n < 945:
		if len(w.pages) > 3 {
			w.closePage()
		}
	case n < 960:
		if len(w.agents) < 7 {
			w.openAgent(w.rand.IntN(w.build + 1))
		}
	case n < 965:
		w.build++ // a newer build retires the daemon
		w.openAgent(w.build)
	case n < 985:
		if len(w.agents) > 2 {
			w.closeAgent()
		}
	case n < 994:
		w.signalDaemon(syscall.SIGKILL)
	case n < 998:
		w.signalDaemon(syscall.SIGTERM)
	case n == 999:
		w.signalDaemon(syscall.SIGSTOP)
	}
}

// settle waits until each agent holds the last text of each watched page, and lists all pages that it may see. Then it
// checks that agents read the pages' texts.
func (w *world) settle() {
	w.t.Helper()
	testkit.Settles(w.t, "each agent holds the last state of what it watches", func() string {
		w.continueStopped(2)
		for i, a := range w.agents {
			for _, p := range w.pages {
				if !a.watched[p.uri] {
					continue
				}
				a.turn.Lock()
				held := a.held[p.uri]
				a.turn.Unlock()
				if held != p.text() {
					return fmt.Sprintf("agent %d, which speaks %s, holds %q of %q", i,
						a.InitializeResult().ProtocolVersion, held, p.text())
				}
			}
		}
		return ""
	})
	for _, a := range w.agents {
		var want []string
		for _, p := range w.pages {
			if !door.Admits(a.scope, bridge.Owner{Origin: p.origin}) {
				continue
			}
			if want = append(want, p.uri); p.offersMore {
				want = append(want, p.more())
			}
		}
		a.Shows(want...)
	}
	testkit.Settles(w.t, "the daemon has these pages and agents, and no more", func() string {
		s, err := Ask(w.t.Context(), w.hub, "1.0.0")
		if err != nil || s.Pages != len(w.pages) || s.Agents != len(w.agents) {
			return fmt.Sprintf("it says %+v, %v, of %d pages and %d agents", s, err, len(w.pages), len(w.agents))
		}
		return ""
	})
	for _, p := range w.pages {
		a := pick(w, w.agents)
		if !door.Admits(a.scope, bridge.Owner{Origin: p.origin}) {
			continue
		}
		testkit.Eventually(w.t, "a page is there again", func() bool { return a.readByTool(p) })
		if a.seen[p.uri] != p.count {
			w.t.Errorf("an agent reads %d of %s, which is %d", a.seen[p.uri], p.uri, p.count)
		}
	}
}

// running returns the state of each running daemon by its process id, as Linux spells it: "S (sleeping)".
func (w *world) running() map[int]string {
	states := map[int]string{}
	for _, pid := range strings.Fields(readFile(filepath.Join(w.home, daemonsFile))) {
		if line := readFile("/proc/" + pid + "/cmdline"); strings.Contains(line, w.hub) { // "" for a zombie
			_, state, _ := strings.Cut(readFile("/proc/"+pid+"/status"), "State:\t")
			n, _ := strconv.Atoi(pid)
			states[n], _, _ = strings.Cut(state, "\n")
		}
	}
	return states
}

// continueStopped continues stopped daemons, if at least so many run. One that was stopped while it ended has no socket
// any more, so no agent can find it and kill it. It has the port, so that pages do not reach the next one.
func (w *world) continueStopped(least int) {
	running := w.running()
	for pid, state := range running {
		if len(running) >= least && strings.HasSuffix(state, "(stopped)") {
			_ = syscall.Kill(pid, syscall.SIGCONT) // an agent may have killed it
		}
	}
}

// left lists the running daemons, and the files in the user's directory other than the token.
func (w *world) left() (list []string) {
	for pid, state := range w.running() {
		list = append(list, fmt.Sprintf("daemon %d, %s", pid, state))
	}
	files, _ := filepath.Glob(filepath.Join(w.home, "pagewire", "*"))
	for _, file := range files {
		if name := filepath.Base(file); name != "token" {
			list = append(list, name)
		}
	}
	return list
}

func readFile(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// Agents connect, subscribe, read, call and quit. Pages come, change, reload and leave. The daemon is killed, stopped,
// terminated, and retired by newer builds. No answer may be wrong. No tool may run twice, or for an agent that has not
// seen the present state. No agent may be told of a page that is hidden from it. Each agent must hold the last text of each
// watched page, and nothing may be left.
func TestRandomProcesses(t *testing.T) {
	steps, seed := 150, testkit.Seed(t, "DAEMON_SEED")
	// make test-models takes 2,000; 20,000 take 20 minutes on a busy machine.
	if given, err := strconv.Atoi(os.Getenv("DAEMON_STEPS")); err == nil {
		steps = given
	}
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), home: testkit.Home(t), hub: testkit.Addr(t),
		log: testkit.LogOf(t, "agents"), ran: map[int]int{}, ends: map[string]int{}}
	defer func() {
		if t.Failed() {
			t.Logf("there are %v; daemons said:\n%s", w.left(), readFile(filepath.Join(w.home, daemonLog)))
		}
	}()
	for range 4 {
		w.openAgent(0)
		w.openPage()
	}
	began := time.Now()
	// On a busy machine many steps fail because no daemon runs at that moment, so there are more steps.
	for ; (w.steps < steps || w.reads < steps/20 || w.succeeded < steps/20) && !t.Failed(); w.steps++ {
		if w.step(); w.steps%100 == 99 {
			w.settle()
		}
	}
	w.settle()
	t.Logf("%d steps, %.0f a second", w.steps, float64(w.steps)/time.Since(began).Seconds())
	for _, p := range w.pages {
		p.leave()
		testkit.Ends(t, "a page leaves", p.left)
	}
	for _, a := range w.agents {
		a.Close()
		testkit.Ends(t, "an agent's process ends", a.exited)
	}
	testkit.Eventually(t, "nothing is left", func() bool {
		w.continueStopped(1)
		return len(w.left()) == 0
	})
	for call, n := range w.ran {
		if n > 1 {
			t.Errorf("call %d ran %d times", call, n)
		}
	}
	t.Logf("%d reads were answered, %d were not, since the page was elsewhere; %d calls ran, %d were refused, %d had "+
		"no result, and %d times an agent tried what it may not see; daemons: %v, and %d builds", w.reads, w.lost, w.succeeded,
		w.refused, w.unanswered, w.forbidden, w.ends, w.build+1)
}
