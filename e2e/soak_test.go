//go:build soak

package e2e

// A user's whole day in some minutes. Tabs, agents and a daemon come and go, with all transports,
// next to a fleet (soak_fleet_test.go), while soak_report_test.go measures. The rules have their
// own tests. This test looks for faults that appear only after thousands of steps, and for growth.

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
// sends its state to its server: agents must hold the same.
const soakPage = `
	const tab = new URL(location).searchParams.get("tab"), born = Date.now(), uris = [], state = {};
	for (let i = 0; i < 10; i++) {
		const uri = location.origin + "/r/" + tab + "/" + i;
		uris.push(uri);
		state[uri] = uri + " is " + born + " at " + born;
		navigator.modelContext.registerResource({ uri, name: "r" + tab + "." + i, read: () => state[uri] });
	}
	(async () => {
		for (let n = 0; ; n++) {
			const answer = await fetch("/tick?tab=" + tab, { method: "POST", body: JSON.stringify(state) }).catch(() => 0);
			if (!answer.ok) return;
			if ((await answer.text()) !== "go") continue;
			const uri = uris[n % uris.length];
			state[uri] = uri + " is " + (born + n) + " at " + Date.now();
			navigator.modelContext.notifyResourceUpdated(uri);
		}
	})();`

// A soak is the world of one user. One goroutine calls its operations.
type soak struct {
	*soakReport
	fleet   *soakFleet
	rand    *rand.Rand
	h       userHome
	x       *extended
	newer   string // the program of the next version
	kinds   map[string]*site
	tabs    []*soakTab
	number  int        // of tabs
	calm    bool       // the daemon and the nodes are not ended: growth shows only in long lives
	keeper  *soakAgent // has launched a browser
	agents  []*soakAgent
	coreTab *soakTab

	mu     sync.Mutex
	paused bool
	ticks  map[string]int       // since the pause, by tab
	truth  map[string]string    // texts by URI
	due    map[string]time.Time // when a tab is to continue
}

type soakTab struct {
	kind, number string
	ctx          context.Context // nil in the launched browser
	site         *site
}

func (s *soak) served(kind, tag string) *site {
	at := serve(s.t, page{tag: tag, script: soakPage})
	if kind == "extension" {
		at.Close()
		at = &site{Server: serveStrict(s.t, "script-src 'self'", soakPage)}
	}
	files := at.Config.Handler
	at.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
		due := s.due[tab].Add(soakPause) // the next pause makes up for a busy machine's delay
		if due.Before(time.Now().Add(-soakPause)) {
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

func (s *soak) nextTab(kind string) *soakTab {
	s.number++
	b := &soakTab{kind: kind, number: strconv.Itoa(s.number), site: s.kinds[kind]}
	s.tabs = append(s.tabs, b)
	return b
}

func (b *soakTab) url() string { return b.site.URL + "/?tab=" + b.number }

func (s *soak) openTab(kind string) {
	b := s.nextTab(kind)
	b.ctx, _ = chromedp.NewContext(s.x.ctx)
	if err := load(b.ctx, b.url()); err != nil {
		s.t.Fatalf("open a tab: %v", err)
	}
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
		s.openTab(b.kind)
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

// forget removes a tab's resources from the expectations of agents.
func (s *soak) forget(b *soakTab) {
	for _, a := range append(s.agents, s.keeper) {
		if a == nil {
			continue
		}
		a.mu.Lock()
		for uri := range a.watched {
			if strings.Contains(uri, "/r/"+b.number+"/") {
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
	cmd  *exec.Cmd // nil for an agent of a node
	over chan struct{}

	turn sync.Mutex // held while it waits for an answer

	mu      sync.Mutex
	watched map[string]bool
	seen    map[string]int64
	held    map[string]string
}

func (s *soak) openAgent(program string, args ...string) *soakAgent {
	cmd, _ := s.h.command(s.t, append([]string{"serve", "--hub", s.h.hub}, args...)...)
	if program != "" {
		cmd.Path = program
	}
	era := []string{testkit.Legacy, testkit.Modern}[s.pick(2)]
	a := s.follows(testkit.Connect(s.t, &mcp.CommandTransport{Command: cmd}, era))
	a.cmd = cmd
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
				a.look(uri, true)
			case <-a.over:
				return
			}
		}
	}()
	return a
}

var soakText = regexp.MustCompile(`^(\S+) is (\d+) at (\d+)$`)

// look reads a URI, and reports a wrong answer. A read may fail while its page or the daemon is
// being replaced.
func (a *soakAgent) look(uri string, told bool) bool {
	a.turn.Lock()
	defer a.turn.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	r, err := a.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
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
	if m == nil || m[1] != uri {
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
	a.seen[uri], a.held[uri] = count, text
	a.s.count(&a.s.reads)
}

func (a *soakAgent) watch() {
	b := a.s.tabs[a.s.pick(len(a.s.tabs))]
	uri := fmt.Sprint(b.site.URL, "/r/", b.number, "/", a.s.pick(resourcesOfATab))
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
	for end := time.Now().Add(testkit.Patience); ; time.Sleep(20 * time.Millisecond) {
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
	if !s.calm && s.pick(2) == 0 {
		program = ""
	}
	s.agents[i] = s.openAgent(program)
	for range 20 {
		s.agents[i].watch()
	}
}

func (s *soak) renewProfile() {
	if s.keeper != nil {
		s.did("profile closed, and one opened")
		s.keeper.close(false)
		for _, b := range slices.Clone(s.tabs) {
			if b.kind == "launched" {
				s.forget(b)
			}
		}
		s.tabs = slices.DeleteFunc(s.tabs, func(b *soakTab) bool { return b.kind == "launched" })
	}
	args := []string{"--launch", "--headless"}
	for range launchedTabs {
		args = append(args, "--open", s.nextTab("launched").url())
	}
	s.keeper = s.openAgent("", args...)
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
	uri := func(b *soakTab) string { return fmt.Sprint(origin, "/r/", b.number, "/0") }
	for _, a := range s.agents {
		for _, b := range s.tabs {
			if b.kind != "extension" {
				continue
			}
			testkit.Eventually(s.t, "a page that is revoked is gone",
				func() bool { return !a.Offers(uri(b)) })
			if text, err := a.Read(uri(b)); err == nil {
				s.finds(&s.wrong, "behind the revocation an agent reads %q", text)
			}
		}
	}
	s.x.allow(origin)
}

func (s *soak) step() {
	switch n := s.pick(100); {
	case n < 50:
		s.agents[s.pick(len(s.agents))].watch()
	case n < 68:
		s.closeTab()
	case n < 78:
		s.renewAgents()
	case s.calm && n < 87:
	case n < 84:
		s.signalDaemons(syscall.SIGKILL)
	case n < 87:
		s.signalDaemons(syscall.SIGSTOP)
	case n < 91:
		s.did("extension's worker stopped")
		if worker := s.x.worker(); worker != "" {
			s.x.stop(worker)
		}
	case n < 94:
		s.killCore()
	case n < 95:
		s.renewProfile()
	case n < 97:
		s.revoke()
	case !s.calm:
		s.fleet.step()
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
	for end := time.Now().Add(testkit.Patience); time.Now().
		Before(end); time.Sleep(50 * time.Millisecond) {
		if lacks = s.lacks(); lacks == "" {
			lacks = s.fleet.lacks()
		}
		if lacks == "" {
			s.count(&s.settled)
			return
		}
	}
	s.finds(&s.lost, "%s", lacks)
	for _, a := range s.agents { // so that the same loss is not found again
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
	for i, a := range s.agents {
		a.mu.Lock()
		defer a.mu.Unlock()
		for uri := range a.watched {
			if a.held[uri] != s.truth[uri] {
				return fmt.Sprintf("agent %d, which speaks %s, holds %q of %q", i,
					a.InitializeResult().ProtocolVersion,
					a.held[uri], s.truth[uri])
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
		newer: filepath.Join(t.TempDir(), "pagewire")}
	s.h.ctx = context.Background() // for as many minutes as it takes
	s.soakReport = &soakReport{t: t, began: time.Now(), ops: map[string]int{}}
	build := testcmd.Command("go", "build", "-tags", "pagewire_assets", "-ldflags",
		"-X main.version=9.0.0", "-o", s.newer,
		"github.com/pagewire/pagewire/bridge/cmd/pagewire")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.fleet = s.openFleet()
	s.agents = []*soakAgent{s.openAgent("")}
	s.x = extend(t, s.h, true)
	s.served("extension", "")
	s.served("launched", "")
	for n := range 3 {
		s.served(fmt.Sprint("own ", n), `<script src="/pagewire.js" data-gateway="ws://`+s.h.hub+
			`"></script>`)
	}
	first := s.x.tab(s.kinds["extension"].URL + "/?tab=0")
	s.x.allow(s.kinds["extension"].URL)
	// nothing reads its events after tabTime, and then the events of all tabs wait
	_ = chromedp.Cancel(first.ctx)
	for range extensionTabs {
		s.openTab("extension")
	}
	for n := range ownTabs {
		s.openTab(fmt.Sprint("own ", n%3))
	}
	s.openCoreTab()
	s.renewProfile()
	for len(s.agents) < soakAgents {
		s.agents = append(s.agents, s.openAgent(""))
	}
	for _, a := range s.agents {
		for range 20 {
			a.watch()
		}
	}
	sampled := s.samples(s.h)
	all, began := time.Duration(minutes*float64(time.Minute)), time.Now()
	for n := 1; time.Since(began) < all; n++ {
		s.calm = time.Since(began) > all/2
		s.step()
		if time.Sleep(500 * time.Millisecond); n%30 == 0 {
			s.settle()
		}
	}
	s.settle()
	sampled()
	for _, a := range append(s.agents, s.keeper) {
		a.close(false)
	}
	testkit.Eventually(t, "no profile is left", func() bool { return len(profiles(s.h)) == 0 })
	s.write(seed)
}

// openCoreTab opens a tab whose core can be killed: see TestCoreDeath.
func (s *soak) openCoreTab() {
	at := serve(s.t, page{head: mortalCore, script: soakPage})
	ctx, _ := chromedp.NewContext(s.x.ctx)
	s.coreTab = &soakTab{ctx: ctx, site: at, number: "core"}
	if err := load(ctx, s.coreTab.url()); err != nil {
		s.t.Fatal(err)
	}
}
