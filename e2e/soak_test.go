//go:build soak

package e2e

// A user's whole day in some minutes. Tabs, agents and a daemon come and go, with all transports,
// beside pages that know nothing of Pagewire and programs of others (soak_foreign_test.go), a
// gateway with hostile pages (soak_hostile_test.go), and a fleet (soak_fleet_test.go).
// soak_scopes_test.go hears what agents must not, and soak_report_test.go measures. The rules have
// their own tests. This test looks for faults that appear only after thousands of steps, and for
// growth.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// The tabs of each kind, and the resources of each tab. A tab changes one in each pause: 50 changes
// a second.
const (
	ownTabs, extensionTabs, launchedTabs = 12, 4, 4
	resourcesOfATab                      = 10
	soakPause                            = 400 * time.Millisecond
	soakAgents                           = 10
)

// soakPage changes a resource whenever its server says so, because a browser throttles the timers
// of hidden tabs. Counts begin with the time, so those of the next document are higher. The page
// sends its state to its server: agents must hold the same. At each seventh change another owner
// takes the resource's name, and the tool's.
const soakPage = `
	const tab = new URL(location).searchParams.get("tab"), born = Date.now(), uris = [], state = {}, owners = {};
	const own = (name, register) => {
		owners[name]?.abort();
		register(navigator.modelContext, { signal: (owners[name] = new AbortController()).signal });
	};
	const take = (uri) => own(uri, (context, options) =>
		context.registerResource({ uri, name: "r" + uri.slice(location.origin.length + 3), read: () => state[uri] }, options));
	const tool = () => own("mark", (context, options) => context.registerTool({ name: "mark" + tab, description: "Marks.",
		inputSchema: { type: "object", properties: { by: { type: "string" } } },
		execute: async ({ by }) => {
			await fetch("/ran?by=" + by, { method: "POST" });
			return { content: [{ type: "text", text: location.origin + " is marked" }] };
		} }, options));
	for (let i = 0; i < 10; i++) {
		const uri = location.origin + "/r/" + tab + "/" + i;
		uris.push(uri);
		state[uri] = uri + " is " + born + " at " + born;
		take(uri);
	}
	tool();
	(async () => {
		for (let n = 0; ; n++) {
			const answer = await fetch("/tick?tab=" + tab, { method: "POST", body: JSON.stringify(state) }).catch(() => 0);
			if (!answer.ok) return;
			if ((await answer.text()) !== "go") continue;
			const uri = uris[n % uris.length];
			state[uri] = uri + " is " + (born + n) + " at " + Date.now();
			if (n % 7) navigator.modelContext.notifyResourceUpdated(uri);
			else take(uri), tool();
		}
	})();`

// A soak is the world of one user. One goroutine calls its operations.
type soak struct {
	*soakReport
	fleet   *soakFleet
	web     *soakWeb
	peer    *soakPeer
	rand    *rand.Rand
	h       userHome
	x       *extended
	newer   string // the program of the next version
	kinds   map[string]*site
	tabs    []*soakTab
	number  int         // of tabs
	calm    atomic.Bool // the daemon and the nodes are not ended: growth shows only in long lives
	keeper  *soakAgent  // has launched a browser
	agents  []*soakAgent
	coreTab *soakTab

	mu      sync.Mutex
	paused  bool
	opening bool                 // tabs wait for the others
	ticks   map[string]int       // since the pause, by tab
	truth   map[string]string    // texts by URI
	due     map[string]time.Time // when a tab is to continue
	calls   map[string]*soakCall // of pages' tools
}

type soakTab struct {
	kind, number string
	ctx          context.Context // nil in the launched browser
	site         *site
	origin       string
	part         bool // a person has picked a part of it
}

// uri is one of the tab's resources.
func (b *soakTab) uri(i int) string {
	switch {
	case !b.isForeign():
		return fmt.Sprint(b.origin, "/r/", b.number, "/", i)
	case b.part && i%2 == 0:
		return b.origin + "/.pagewire/parts/mark"
	}
	return b.origin + "/.pagewire/shown"
}

func (s *soak) served(kind, tag string) *site {
	pause := soakPause
	if isForeign(kind) {
		pause = foreignPause
	}
	at := serve(s.t, page{tag: tag, script: soakPage})
	if kind == "extension" {
		at.Close()
		at = &site{Server: serveStrict(s.t, "script-src 'self'", soakPage)}
	}
	files := at.Config.Handler
	at.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/ran":
			s.ran(kind, r.URL.Query().Get("by"))
			return
		case r.URL.Path == "/" && isForeign(kind): // a small page
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><link rel=icon href=data:,><script>", foreignPage, "</script><body>")
			return
		}
		if r.URL.Path != "/tick" {
			files.ServeHTTP(w, r)
			return
		}
		var state map[string]string
		if err := json.NewDecoder(r.Body).Decode(&state); err != nil {
			return // the tab was closed meanwhile
		}
		s.mu.Lock()
		for uri, text := range state {
			s.truth[uri] = text
		}
		tab := r.URL.Query().Get("tab")
		s.ticks[tab]++
		pause := pause
		if s.opening {
			pause = 10 * time.Second
		}
		due := s.due[tab].Add(pause) // the next pause makes up for a busy machine's delay
		if due.Before(time.Now().Add(-pause)) {
			due = time.Now()
		}
		s.due[tab] = due
		s.mu.Unlock()
		select {
		case <-time.After(time.Until(due)):
		case <-r.Context().Done():
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.paused {
			s.count(&s.changes)
			fmt.Fprint(w, "go")
		}
	})
	s.kinds[kind] = at
	return at
}

func (s *soak) pick(n int) int { return s.rand.IntN(n) }

func (s *soak) nextTab(kind, origin string) *soakTab {
	s.number++
	b := &soakTab{kind: kind, number: strconv.Itoa(s.number), site: s.kinds[kind], origin: origin}
	if origin == "" {
		b.origin = b.site.URL
	}
	s.tabs = append(s.tabs, b)
	return b
}

func (b *soakTab) url() string { return b.origin + "/?tab=" + b.number }

func (s *soak) openTab(kind, origin string) *soakTab {
	b := s.nextTab(kind, origin)
	b.ctx, _ = chromedp.NewContext(s.x.ctx)
	if err := load(b.ctx, b.url()); err != nil {
		s.t.Fatalf("open a tab: %v", err)
	}
	return b
}

func (s *soak) closeTab() {
	i := s.pick(len(s.tabs))
	b := s.tabs[i]
	switch {
	case b.ctx == nil:
	case s.pick(2) == 0:
		s.did("tab reloaded")
		if err := load(b.ctx, b.url()); err != nil {
			s.t.Fatalf("load a tab anew: %v", err)
		}
	default:
		s.did("tab closed, and one opened")
		s.tabs = slices.Delete(s.tabs, i, i+1)
		_ = chromedp.Cancel(b.ctx) // it may have closed
		s.forget(b)
		s.openTab(b.kind, b.origin).part = b.part
	}
}

// load loads a URL into a tab. A browser that does not answer for two minutes ends the soak: one
// was silent for 27. The bound is not for the opening of the tab, because chromedp reads a tab's
// events under the context of its first action.
func load(tab context.Context, url string) error {
	if err := chromedp.Do(tab); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(tab, 2*time.Minute)
	defer cancel()
	return chromedp.Do(ctx, chromedp.Navigate(url))
}

// all are the agents of the user on stdio.
func (s *soak) all() []*soakAgent {
	return slices.DeleteFunc(append(slices.Clone(s.agents), s.keeper), func(a *soakAgent) bool { return a == nil })
}

// forget removes a tab's resources from the expectations of agents.
func (s *soak) forget(b *soakTab) {
	for _, a := range s.all() {
		a.mu.Lock()
		for uri := range a.watched {
			if strings.HasPrefix(uri, b.origin+"/r/"+b.number+"/") || strings.HasPrefix(uri, b.origin+"/.pagewire/") {
				delete(a.watched, uri)
			}
		}
		a.mu.Unlock()
	}
}

// A soakAgent reads a watched resource after each notification of a change.
type soakAgent struct {
	*testkit.Agent
	s    *soak
	may  func(kind string) bool // the kinds of tabs in its scope
	cmd  *exec.Cmd              // nil for an agent of a node
	over chan struct{}

	turn sync.Mutex // held while it waits for an answer

	mu      sync.Mutex
	watched map[string]bool
	seen    map[string]int64
	held    map[string]string
	did     []string // the latest
}

func (s *soak) openAgent(program string, may func(kind string) bool, args ...string) *soakAgent {
	cmd, _ := s.h.command(s.t, append([]string{"serve", "--hub", s.h.hub}, args...)...)
	if program != "" {
		cmd.Path = program
	}
	era := []string{testkit.Legacy, testkit.Modern}[s.pick(2)]
	heard := &mcp.LoggingTransport{Transport: &mcp.CommandTransport{Command: cmd}, Writer: s.hears(args, may)}
	a := s.follows(testkit.Connect(s.t, heard, era))
	a.cmd, a.may = cmd, may
	return a
}

func (s *soak) follows(agent *testkit.Agent) *soakAgent {
	a := &soakAgent{Agent: agent, s: s, over: make(chan struct{}), watched: map[string]bool{},
		seen: map[string]int64{},
		held: map[string]string{}}
	go func() {
		for {
			select {
			case uri := <-a.Updates:
				a.note("is told of " + uri)
				a.look(uri, true)
			case <-a.over:
				return
			}
		}
	}()
	return a
}

// soakText is what a resource reads, or a line of what a page shows.
var soakText = regexp.MustCompile(`(?m)^(\S+) is (\d+) at (\d+)$`)

// soakPatience is longer than that of other tests: a busy machine is no fault.
const soakPatience = 2 * testkit.Patience

// look reads a URI, and reports a wrong answer. A read may fail while its page or the daemon is
// being replaced.
func (a *soakAgent) look(uri string, told bool) bool {
	a.turn.Lock()
	defer a.turn.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), soakPatience)
	defer cancel()
	a.note("reads " + uri)
	r, err := a.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	a.note(fmt.Sprintf("has read it: %v", err))
	switch {
	case a.isOver():
	case ctx.Err() != nil:
		a.s.finds(&a.s.stuck, "a read of %s has no answer", uri)
	case errors.Is(err, mcp.ErrConnectionClosed):
		a.s.finds(&a.s.wrong, "an agent has no session any more: %v", err)
	case err != nil:
		a.s.count(&a.s.failed)
	default:
		a.sees(uri, r.Contents[0].Text, told)
		return true
	}
	return false
}

// note keeps what the agent did last, for a finding.
func (a *soakAgent) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.did = append(a.did[max(0, len(a.did)-30):], time.Now().Format("15:04:05.000 ")+what)
}

func (a *soakAgent) isOver() bool {
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

func (a *soakAgent) sees(uri, text string, told bool) {
	m := soakText.FindStringSubmatch(text)
	foreign := strings.Contains(uri, "/.pagewire/")
	if m == nil && foreign {
		a.s.count(&a.s.failed) // its document is being loaded
		return
	}
	if m == nil || m[1] != uri && !(foreign && strings.HasPrefix(uri, m[1]+".pagewire/")) {
		a.s.finds(&a.s.wrong, "%s reads %q", uri, text)
		return
	}
	count, _ := strconv.ParseInt(m[2], 10, 64)
	at, _ := strconv.ParseInt(m[3], 10, 64)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch before, known := a.seen[uri]; {
	case count < before:
		a.s.finds(&a.s.wrong, "%s: an agent had seen %d, and reads %d", uri, before, count)
	case known && told && count > before:
		a.s.stale(time.Since(time.UnixMilli(at)))
	}
	a.seen[uri], a.held[uri] = count, m[0]
	a.s.count(&a.s.reads)
}

func (a *soakAgent) watch() {
	b := a.s.tabs[a.s.pick(len(a.s.tabs))]
	for ; !a.may(b.kind); b = a.s.tabs[a.s.pick(len(a.s.tabs))] {
		if a.s.pick(10) == 0 {
			a.tries(b)
			return
		}
	}
	uri := b.uri(a.s.pick(resourcesOfATab))
	a.mu.Lock()
	has := a.watched[uri]
	delete(a.watched, uri)
	a.mu.Unlock()
	if has {
		_ = a.Unsubscribe(a.s.t.Context(), &mcp.UnsubscribeParams{URI: uri}) // its page may be gone
		return
	}
	if !a.look(uri, false) {
		return // it is not listed yet
	}
	for end := time.Now().Add(soakPatience); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithDeadline(context.Background(), end)
		// the next daemon may not have its page yet
		err := a.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
		cancel()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			a.s.finds(&a.s.stuck, "%s cannot be subscribed to: %v", uri, err)
			return
		}
	}
	a.mu.Lock()
	a.watched[uri] = true
	a.mu.Unlock()
	a.look(uri, false)
}

func (a *soakAgent) close(kill bool) {
	close(a.over)
	if kill {
		_ = a.cmd.Process.Kill() // it may have ended
	}
	a.Close()
}

func (s *soak) renewAgents() {
	i := s.pick(len(s.agents))
	s.agents[i].close(s.pick(2) == 0)
	s.did("agent ended, and one began")
	program := s.newer // it retires an older daemon, once
	if !s.calm.Load() && s.pick(2) == 0 {
		program = ""
	}
	s.agents[i] = s.openScoped(program)
	for range 10 {
		s.agents[i].watch()
	}
}

func (s *soak) renewProfile() {
	if s.keeper != nil {
		s.did("profile closed, and one opened")
		s.keeper.close(false)
		s.without(func(b *soakTab) bool { return b.ctx == nil })
	}
	args := []string{"--launch", "--headless", "--name", "Soak", "--shown", s.foreignOrigin("named", "*")}
	for range launchedTabs {
		args = append(args, "--open", s.nextTab("launched", "").url())
	}
	for n := range namedTabs {
		args = append(args, "--open", s.nextTab("named", s.foreignOrigin("named", n)).url())
	}
	s.keeper = s.openAgent("", func(string) bool { return true }, args...)
	s.awaitTabs()
}

// awaitTabs waits until the launched browser has opened its tabs. All of them have 30 s for that,
// which a busy machine can exceed: then there is no browser, and a restart is as good as any.
func (s *soak) awaitTabs() {
	isOpen := func(b *soakTab) bool { return b.ctx != nil || s.ticks[b.number] > 0 }
	for end := time.Now().Add(soakPatience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s.mu.Lock()
		opened := !slices.ContainsFunc(s.tabs, func(b *soakTab) bool { return !isOpen(b) })
		s.mu.Unlock()
		if opened {
			return
		}
	}
	s.did("launch that took too long")
	s.renewProfile()
}

// without drops tabs that close.
func (s *soak) without(closes func(*soakTab) bool) {
	for _, b := range s.tabs {
		if closes(b) {
			s.forget(b)
		}
	}
	s.tabs = slices.DeleteFunc(s.tabs, closes)
}

func (s *soak) signalDaemons(signal syscall.Signal) {
	for _, pid := range s.h.daemons() {
		if syscall.Kill(pid, signal) == nil {
			s.did("daemon: " + signal.String())
		}
	}
}

// killCore kills the core in a page, which ends the agent in that page. The next agent finds the
// same resources.
func (s *soak) killCore() {
	s.did("core killed")
	ctx, cancel := context.WithTimeout(s.coreTab.ctx, testkit.Patience)
	defer cancel()
	had, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => {
		const first = await agent.connect("legacy"), had = await first.list();
		fatal = true;
		const brief = new AbortController();
		const more = { uri: location.origin + "/brief", name: "brief", read: () => "" };
		navigator.modelContext.registerResource(more, { signal: brief.signal });
		brief.abort();
		fatal = false;
		await agent.until(() => first.closed);
		const second = await agent.connect("modern"), has = await second.list();
		await second.client.close();
		return String(had) === String(has) && had.length >= 10 ? "" : had + " became " + has;
	})()`, chromedp.EvalAwaitPromise))
	switch {
	case ctx.Err() != nil:
		s.finds(&s.stuck, "a page whose core died: %v", err)
	case err != nil || had != "":
		s.finds(&s.wrong, "a page whose core died: %v, %s", err, had)
	}
}

// revoke takes a site's permission in the extension's popup, and gives it again. No agent reads
// meanwhile.
func (s *soak) revoke() {
	s.did("site revoked, and allowed")
	origin := s.kinds["extension"].URL
	p := s.x.popup(origin)
	p.do(chromedp.Click("[aria-label='" + origin + "'] [data-do=revoke]"))
	_ = chromedp.Cancel(p.ctx)
	uri := func(b *soakTab) string { return b.uri(0) }
	for _, a := range s.agents {
		for _, b := range s.tabs {
			if b.kind != "extension" {
				continue
			}
			testkit.Eventually(s.t, "a page that is revoked is gone",
				func() bool { return !a.Offers(uri(b)) })
			if text, err := a.Read(uri(b)); err == nil {
				s.finds(&s.leaks, "behind the revocation an agent reads %q", text)
			}
		}
	}
	s.x.allow(origin)
}

func (s *soak) step() {
	all := s.all()
	switch n := s.pick(100); {
	case n < 36:
		all[s.pick(len(all))].watch()
	case n < 42:
		s.keeper.watch()
	case n < 50:
		s.callTool(all[s.pick(len(all))])
	case n < 64:
		s.closeTab()
	case n < 72:
		s.renewAgents()
	case s.calm.Load() && n < 80:
	case n < 77:
		s.signalDaemons(syscall.SIGKILL)
	case n < 80:
		s.signalDaemons(syscall.SIGSTOP)
	case n < 83:
		s.did("extension's worker stopped")
		if worker := s.x.worker(); worker != "" {
			s.x.stop(worker)
		}
	case n < 85:
		s.killCore()
	case n < 86:
		s.renewProfile()
	case n < 88:
		s.revoke()
	case n < 90:
		s.pickPart()
	case n < 94:
		s.peer.step()
	case n < 97:
		s.web.step()
	case s.calm.Load():
	case n < 99:
		s.fleet.step()
	case s.pick(2) == 0:
		s.restartBrowser()
	}
}

// settle pauses the pages, and compares each agent's texts with the pages' own reports.
func (s *soak) settle() {
	s.mu.Lock()
	s.paused, s.ticks = true, map[string]int{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.paused = false
		s.mu.Unlock()
	}()
	lacks := ""
	for end := time.Now().Add(soakPatience); time.Now().
		Before(end); time.Sleep(50 * time.Millisecond) {
		if lacks = s.lacks(); lacks == "" {
			lacks = s.fleet.lacks()
		}
		if lacks == "" {
			s.count(&s.settled)
			s.t.Logf("after %v it is as the pages say", time.Since(s.began).Round(time.Second))
			return
		}
	}
	s.finds(&s.lost, "%s", lacks)
	for _, a := range s.all() { // so that the same loss is not found again
		a.mu.Lock()
		a.watched = map[string]bool{}
		a.mu.Unlock()
	}
}

func (s *soak) lacks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.tabs {
		if s.ticks[b.number] < 2 { // the second tick has the result of the last "go"
			return fmt.Sprintf("tab %s of %s has not said what it is", b.number, b.kind)
		}
	}
	for i, a := range s.all() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for uri := range a.watched {
			if a.held[uri] != s.truth[uri] {
				return fmt.Sprintf("agent %d, which speaks %s, holds %q of %q; %d updates wait; it did %q", i,
					a.InitializeResult().ProtocolVersion,
					a.held[uri], s.truth[uri], len(a.Updates), a.did)
			}
		}
	}
	return ""
}

// TestSoak fails at a wrong answer, a lost last state or a stuck request, and if anything is left
// of it at the end.
func TestSoak(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv("MINUTES"), 64)
	if err != nil {
		minutes = 3
	}
	seed := testkit.Seed(t, "SOAK_SEED")
	s := &soak{rand: rand.New(rand.NewPCG(seed, 1)), h: newHome(t), kinds: map[string]*site{},
		truth: map[string]string{}, due: map[string]time.Time{}, ticks: map[string]int{},
		calls: map[string]*soakCall{},
		newer: filepath.Join(t.TempDir(), "pagewire")}
	s.h.ctx = context.Background() // for as many minutes as it takes
	s.soakReport = &soakReport{t: t, began: time.Now(), ops: map[string]int{}}
	defer func() {
		testkit.OK(t, os.MkdirAll("../bin/soak", 0o755), os.WriteFile("../bin/soak/daemon.log", []byte(s.h.log()), 0o644))
	}()
	build := testcmd.Command("go", "build", "-tags", "pagewire_assets", "-ldflags",
		"-X main.version=9.0.0", "-o", s.newer,
		"github.com/pagewire/pagewire/bridge/cmd/pagewire")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for kind, tag := range map[string]string{"extension": "", "launched": "", "foreign": " ", "named": " "} {
		s.served(kind, tag)
	}
	for n, also := range []string{"", polyfill(t), globalServer(t)} { // libraries that want the same names
		s.served(fmt.Sprint("own ", n), `<script src="/pagewire.js" data-gateway="ws://`+s.h.hub+`"></script>`+also)
	}
	s.fleet = s.openFleet()
	s.web = s.openWeb()
	s.agents = []*soakAgent{s.openAgent("", notNamed)}
	s.openBrowser()
	s.renewProfile()
	s.peer = s.openPeer()
	for len(s.agents) < soakAgents {
		s.agents = append(s.agents, s.openScoped(""))
	}
	for _, a := range s.all() {
		for range 10 {
			a.watch()
		}
	}
	s.t.Logf("after %v all is open", time.Since(s.began).Round(time.Second))
	sampled := s.samples()
	all, began := time.Duration(minutes*float64(time.Minute)), time.Now()
	for n := 1; time.Since(began) < all; n++ {
		s.calm.Store(time.Since(began) > all/2)
		s.step()
		if time.Sleep(500 * time.Millisecond); n%30 == 0 {
			s.settle()
			s.write(seed)
		}
	}
	s.settle()
	sampled()
	t.Log("\n" + s.write(seed))
	for _, a := range s.all() {
		a.close(false)
	}
	s.x.end()
	s.web.end(syscall.SIGTERM)
	// For one profile it keeps the secret, since other browsers may go on.
	for _, of := range [][]string{{"--user-data-dir", filepath.Join(s.h.dir, "profile")}, nil} {
		uninstall, _ := s.h.command(t, append([]string{"extension", "uninstall"}, of...)...)
		testkit.OK(t, uninstall.Run())
	}
	testkit.OK(t, os.RemoveAll(filepath.Join(s.h.dir, "profile"))) // the browser's own
	s.h.nothingLeft(t)
	s.web.h.nothingLeft(t)
}

// openBrowser opens the browser with the extension, and its tabs.
func (s *soak) openBrowser() {
	s.opens(true)
	defer s.opens(false)
	s.x = extend(s.t, s.h, true, "--renderer-process-limit=4") // more would wait for each other on a busy machine
	first := s.x.tab(s.kinds["extension"].URL + "/?tab=0")
	s.x.allow(s.kinds["extension"].URL)
	// nothing reads its events after tabTime, and then the events of all tabs wait
	_ = chromedp.Cancel(first.ctx)
	for range extensionTabs {
		s.openTab("extension", "")
	}
	for n := range ownTabs {
		s.openTab(fmt.Sprint("own ", n%3), "")
	}
	for n := range foreignTabs {
		s.showTab(s.openTab("foreign", s.foreignOrigin("foreign", n)))
	}
	s.openCoreTab()
}

func (s *soak) opens(opening bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening = opening
}

func (s *soak) restartBrowser() {
	s.did("browser with the extension restarted")
	s.without(func(b *soakTab) bool { return b.ctx != nil })
	s.x.end()
	s.openBrowser()
}

// openCoreTab opens a tab whose core can be killed: see TestCoreDeath.
func (s *soak) openCoreTab() {
	at := serve(s.t, page{head: mortalCore, script: soakPage})
	ctx, _ := chromedp.NewContext(s.x.ctx)
	s.coreTab = &soakTab{ctx: ctx, site: at, origin: at.URL, number: "core"}
	if err := load(ctx, s.coreTab.url()); err != nil {
		s.t.Fatal(err)
	}
}
