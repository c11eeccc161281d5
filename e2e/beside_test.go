package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/pelletier/go-toml/v2"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A second is a server of others at the browser of Pagewire: it acts, and Pagewire tells.
type second struct {
	peer
	// tabs and open are its calls that list the tabs and open one; take chooses one by its number,
	// if its calls do not name it.
	tabs toolCall
	open func(url string) toolCall
	take func(a *peerAgent) toolCall
	// find has the button's name in what look answers, and click clicks it.
	look  func(a *peerAgent) toolCall
	find  *regexp.Regexp
	click func(a *peerAgent, button string) toolCall
	// accept closes a dialog of the page.
	accept func(a *peerAgent) toolCall
	// evaluate calls a function of JavaScript in the page.
	evaluate func(a *peerAgent, function string) toolCall
}

type toolCall struct {
	tool string
	args map[string]any
}

var seconds = []second{
	{
		peer: peers[0],
		tabs: toolCall{"list_pages", none},
		open: func(url string) toolCall { return toolCall{"new_page", map[string]any{"url": url}} },
		look: func(a *peerAgent) toolCall {
			return toolCall{"take_snapshot", map[string]any{"pageId": a.page}}
		},
		find: regexp.MustCompile(`uid=(\S+) button "Add"`),
		click: func(a *peerAgent, button string) toolCall {
			return toolCall{"click", map[string]any{"pageId": a.page, "uid": button}}
		},
		accept: func(a *peerAgent) toolCall {
			return toolCall{"handle_dialog", map[string]any{"pageId": a.page, "action": "accept"}}
		},
		evaluate: func(a *peerAgent, function string) toolCall {
			return toolCall{"evaluate_script",
				map[string]any{"pageId": a.page, "function": function}}
		},
	},
	{
		peer: peers[1],
		tabs: toolCall{"browser_tabs", map[string]any{"action": "list"}},
		open: func(url string) toolCall {
			return toolCall{"browser_tabs", map[string]any{"action": "new", "url": url}}
		},
		take: func(a *peerAgent) toolCall {
			return toolCall{"browser_tabs", map[string]any{"action": "select", "index": a.page}}
		},
		look: func(*peerAgent) toolCall { return toolCall{"browser_snapshot", none} },
		find: regexp.MustCompile(`button "Add".* \[ref=(\w+)\]`),
		click: func(_ *peerAgent, button string) toolCall {
			return toolCall{"browser_click", map[string]any{"element": "Add", "target": button}}
		},
		accept: func(*peerAgent) toolCall {
			return toolCall{"browser_handle_dialog", map[string]any{"accept": true}}
		},
		evaluate: func(_ *peerAgent, function string) toolCall {
			return toolCall{"browser_evaluate", map[string]any{"function": function}}
		},
	},
}

// try is tool for a call that may fail.
func (a *peerAgent) try(c toolCall) (string, error) {
	r, err := a.session.CallTool(a.t.Context(),
		&mcp.CallToolParams{Name: c.tool, Arguments: c.args})
	if err != nil {
		return "", err
	}
	text := ""
	for _, content := range r.Content {
		if part, ok := content.(*mcp.TextContent); ok {
			text += part.Text
		}
	}
	if r.IsError {
		return "", errors.New(text)
	}
	return text, nil
}

// A besideWay is a way by which Pagewire has pages of the browser that the second server drives.
type besideWay struct {
	name string
	// args are of pagewire serve; nil for those of the manual.
	args func(port, url string) []string
	// path is of the page: the page with Pagewire, with its tag of a gateway, or without both.
	path string
	// launches is set if Pagewire starts the browser, and opens the page.
	launches bool
}

var besideWays = []besideWay{
	{name: "attached", path: "/page"},
	{name: "auto", path: "/page", args: func(string, string) []string {
		return []string{"--chrome", "auto"}
	}},
	{name: "launched", path: "/page", launches: true, args: func(port, url string) []string {
		return []string{"--launch", "--headless", "--debug-port", port, "--open", url}
	}},
	{name: "socket", path: "/gateway", args: func(string, string) []string {
		return []string{}
	}},
	{name: "shown", path: "/foreign", args: func(port, url string) []string {
		return []string{"--chrome", "http://127.0.0.1:" + port, "--shown", originOf(url)}
	}},
}

func originOf(url string) string { return strings.Join(strings.SplitN(url, "/", 4)[:3], "/") }

// serveAdding serves pages with a button. Each click of it adds one to a number that the server
// keeps, so that it outlives the browser. The page has it in letters: what any page shows is told
// at once, but for digits that change all the time. While asks is set, it asks a person then.
func serveAdding(t *testing.T, hub string) (s *site, added *atomic.Int64, asks *atomic.Bool) {
	const body = `<h1>Cart</h1><button>Add</button><p id=count></p>`
	const script = `<script>
		let have = "", tell = () => {};
		const show = (text) => { document.getElementById("count").textContent = have = text; tell(); };
		fetch("/state").then((r) => r.text()).then(show);
		document.querySelector("button").onclick = () => {
			fetch("/state", { method: "POST" }).then((r) => {
				if (r.headers.has("asks")) setTimeout(() => alert("Sure?"));
				return r.text();
			}).then(show);
		};
	</script>`
	const declares = `<script>
		const uri = location.origin + "/cart";
		navigator.modelContext.registerResource({ uri, name: "cart", read: () => have });
		tell = () => navigator.modelContext.notifyResourceUpdated(uri);
	</script>`
	const tag = `<script src="/pagewire.js"></script>`
	withGateway := `<script src="/pagewire.js" data-gateway="ws://` + hub + `"></script>`
	s = serve(t, page{also: map[string]string{
		"/page":    body + script + tag + declares,
		"/gateway": body + script + withGateway + declares,
		"/foreign": body + script,
	}})
	added, asks = new(atomic.Int64), new(atomic.Bool)
	files := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/state" {
			files.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodPost {
			added.Add(1)
			if asks.Load() {
				w.Header().Set("asks", "")
			}
		}
		fmt.Fprint(w, inLetters(added.Load()))
	})
	return s, added, asks
}

// inLetters is the text of a number in the page.
func inLetters(n int64) string {
	digits := []byte(strconv.FormatInt(n, 10))
	for i := range digits {
		digits[i] += 'a' - '0'
	}
	return "added " + string(digits) + "."
}

// besideRounds are the clicks and the restarts of each case: BESIDE_CLICKS and three, or for make
// test a few, and all restarts only as the manual configures it.
func besideRounds(t *testing.T, way besideWay) (clicks, restarts int) {
	if all := os.Getenv("BESIDE_CLICKS"); all != "" {
		return testkit.Must(strconv.Atoi(all))(t), 3
	}
	if way.args == nil {
		return 8, 3
	}
	return 4, 1
}

// A server of others clicks, and Pagewire tells: of each click an agent by an update, one by a tool
// that waits, and one at the end of its next result. The browser is killed and started again, and
// both servers go on, as processes and sessions.
func TestBesideASecondServer(t *testing.T) {
	t.Parallel()
	for _, s := range seconds {
		for _, way := range besideWays {
			if way.name == "auto" && s.name != "chrome-devtools-mcp" {
				continue // it finds no browser by itself
			}
			t.Run(s.name+"/"+way.name, func(t *testing.T) {
				t.Parallel()
				testBeside(t, s, way)
			})
		}
	}
}

// goes makes the server choose the tab at a URL, and returns the name of the page's button there, or
// what is in the way.
func (s *second) goes(a *peerAgent, url string, opens bool) (button, lacks string) {
	tabs, err := a.try(s.tabs)
	if err == nil && opens && !strings.Contains(tabs, "("+url) {
		if _, err = a.try(s.open(url)); err == nil {
			tabs, err = a.try(s.tabs)
		}
	}
	if err == nil && !strings.Contains(tabs, "("+url) {
		return "", tabs
	}
	if err == nil {
		a.page = a.tabAt(tabs, url)
		if s.take != nil {
			_, err = a.try(s.take(a))
		}
	}
	look := ""
	if err == nil {
		look, err = a.try(s.look(a))
	}
	if err != nil {
		return "", err.Error()
	}
	if found := s.find.FindStringSubmatch(look); found != nil {
		return found[1], ""
	}
	return "", look
}

func testBeside(t *testing.T, s second, way besideWay) {
	h := newHome(t)
	address := testkit.Addr(t)
	port := strings.Split(address, ":")[1]
	shop, added, asks := serveAdding(t, h.hub)
	at, profile := shop.URL+way.path, filepath.Join(h.dir, "chromium")
	uri := shop.URL + "/cart"
	if way.path == "/foreign" {
		uri = shop.URL + "/.pagewire/shown"
	}
	ours, theirs := configured(t, s.name, port)
	if way.args != nil {
		ours = way.args(port, at)
	}

	restart := func() {
		syscall.Kill(h.browser(t), syscall.SIGKILL)
	}
	if way.name == "auto" {
		// The browser picks a port, and writes it into its profile: Chrome's own switch does, too.
		port = "0"
		theirs = append([]string{"--autoConnect", "--userDataDir", profile}, theirs[2:]...)
	}
	if !way.launches {
		restart = startAgainAndAgain(t, port, profile)
		restart()
	}
	agents := toldAgents{t, uri, h.serve(t, ours...), h.serve(t, ours...), h.serve(t, ours...)}
	daemon := h.daemon(t)
	beside := s.peer
	beside.args = func(string) []string { return theirs }
	a := connectPeer(t, beside, "")

	testkit.State(t, s.name+" sees in the page", func() string {
		text, err := a.try(s.evaluate(a, `() => [performance.now(), document.visibilityState,
			typeof uri, String(tell), globalThis.pagewire?.stats(), document.body.innerText]`))
		return fmt.Sprint(text, err)
	})

	// goes makes the second server find the page's button. It opens the page, if nobody else does.
	var button, refused string
	goes := func() {
		testkit.Settles(t, s.name+" finds the page's button", func() (lacks string) {
			button, lacks = s.goes(a, at, !way.launches)
			refused = cmp.Or(lacks, refused)
			return lacks
		})
	}
	// clicksOnce repeats a refused click, which does nothing. The number of the page in the second
	// server may change soon after the browser's start.
	clicksOnce := func() {
		before := added.Load()
		testkit.Settles(t, s.name+" clicks", func() string {
			_, err := a.try(s.click(a, button))
			if err == nil {
				return ""
			}
			if t.Logf("%s clicks again: %v", s.name, err); added.Load() != before {
				t.Fatal("the refused click has clicked")
			}
			goes()
			return err.Error()
		})
	}
	goes()
	testkit.Eventually(t, "the agent lists the page",
		func() bool { return agents.updated.Offers(uri) })
	agents.begin(inLetters(0))

	clicks, restarts := besideRounds(t, way)
	var took []time.Duration
	for life := range restarts + 1 {
		if life > 0 {
			want := inLetters(added.Load() + 1)
			waits := agents.waits(want)
			restart()
			refused = ""
			goes()
			t.Logf("restart %d: %s was refused: %.200q", life, s.name, refused)
			clicksOnce()
			agents.told(waits, want)
		}
		for range clicks*(life+1)/(restarts+1) - clicks*life/(restarts+1) {
			want := added.Load() + 1
			waits := agents.waits(inLetters(want))
			clicksOnce()
			since := time.Now()
			agents.told(waits, inLetters(want))
			took = append(took, time.Since(since))
			if n := added.Load(); n != want {
				t.Fatalf("the page counts %d clicks, want %d", n, want)
			}
		}
	}
	slices.Sort(took)
	t.Logf("%d clicks and %d restarts: the last of three agents was told after %v (p50; at most %v)",
		len(took), restarts, took[len(took)/2].Round(time.Millisecond),
		took[len(took)-1].Round(time.Millisecond))
	asks.Store(true) // the page stands still now, until the second server closes its dialog
	want := inLetters(added.Load() + 1)
	waits := agents.waits(want)
	clicksOnce()
	testkit.Settles(t, s.name+" closes the dialog", func() string {
		if _, err := a.try(s.accept(a)); err != nil {
			return err.Error()
		}
		return ""
	})
	agents.told(waits, want)
	if text := agents.updated.Text(uri); !strings.Contains(text, inLetters(added.Load())) {
		t.Errorf("at last it reads %s", text)
	}
	if now := h.daemon(t); now != daemon {
		t.Errorf("the daemon is another process")
	}
}

// startAgainAndAgain returns a function that kills the browser at a port, if there is one, and starts
// it with the same port and profile.
func startAgainAndAgain(t *testing.T, port, profile string) (restart func()) {
	end := func() {}
	t.Cleanup(func() { end() })
	return func() {
		end()
		of := testkit.Must(browser.Command(false, []string{"--remote-debugging-port=" + port,
			"--user-data-dir=" + profile}, "about:blank"))(t)
		cmd := testcmd.Command(of.Path, of.Args[1:]...)
		testkit.OK(t, cmd.Start())
		end = func() {
			cmd.Process.Kill()
			cmd.Wait()
			end = func() {}
		}
	}
}

// toldAgents are told of changes of one resource: one by updates, one by a tool that waits, and one
// by reminders.
type toldAgents struct {
	t                          *testing.T
	uri                        string
	updated, waiting, reminded *started
}

func (a *toldAgents) begin(first string) {
	for _, one := range []*started{a.updated, a.waiting, a.reminded} {
		testkit.Eventually(a.t, "the first state is there", func() bool {
			text, _ := one.Call("read_page_resource", map[string]any{"uri": a.uri})
			return strings.Contains(text, first)
		})
	}
	a.updated.Watch(a.uri)
}

// waits lets an agent wait until it is told of a state.
func (a *toldAgents) waits(want string) <-chan string {
	told := make(chan string, 1)
	ctx := a.t.Context()
	go func() {
		for ctx.Err() == nil {
			r, err := a.waiting.CallTool(ctx, &mcp.CallToolParams{Name: "wait_for_page_update",
				Arguments: map[string]any{"uris": []string{a.uri}}})
			if err != nil {
				told <- err.Error()
				return
			}
			for _, c := range r.Content {
				if text := c.(*mcp.TextContent).Text; strings.Contains(text, want) {
					told <- text
					return
				}
			}
		}
	}()
	return told
}

// told waits until all three know a state, each in its way.
func (a *toldAgents) told(waits <-chan string, want string) {
	a.t.Helper()
	testkit.Eventually(a.t, "an update is sent, and reads "+want, func() bool {
		for len(a.updated.Updates) > 0 {
			<-a.updated.Updates
			if text, _ := a.updated.Read(a.uri); strings.Contains(text, want) {
				return true
			}
		}
		return false
	})
	text := testkit.Receive(a.t, "the agent that waits has "+want, waits)
	if !strings.Contains(text, want) {
		a.t.Fatalf("the agent that waits for %s has %s", want, text)
	}
	testkit.Eventually(a.t, "a result ends with the change to "+want, func() bool {
		text, _ := a.reminded.Call("list_page_resources", map[string]any{"contains": "nothing"})
		_, changes, _ := strings.Cut(text, "] changed (page data")
		if !strings.Contains(changes, a.uri) {
			return false
		}
		text, _ = a.reminded.Call("read_page_resource", map[string]any{"uri": a.uri})
		return strings.Contains(text, want)
	})
}

// configured returns the arguments of Pagewire and of the second server that the manual gives, for
// another port. All programs get the same.
func configured(t *testing.T, name, port string) (ours, theirs []string) {
	t.Helper()
	type server struct {
		Command string
		Args    []string
	}
	text := string(testkit.Must(os.ReadFile("../demo/docs/beside.md"))(t))
	var installed struct{ Dependencies map[string]string }
	testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile("peers/package.json"))(t), &installed))
	found := 0
	blocks := regexp.MustCompile("(?s)```(json|toml)[^\n]*\n(.*?)```")
	for _, block := range blocks.FindAllStringSubmatch(text, -1) {
		var all struct {
			JSON map[string]server `json:"mcpServers"`
			TOML map[string]server `toml:"mcp_servers"`
		}
		if block[1] == "json" {
			testkit.OK(t, json.Unmarshal([]byte(block[2]), &all))
			all.TOML = all.JSON
		} else {
			testkit.OK(t, toml.Unmarshal([]byte(block[2]), &all))
		}
		for key, s := range all.TOML {
			if key == "pagewire" {
				ours = same(t, key, ours, s.Args)
				continue
			}
			if s.Command != "npx" || len(s.Args) < 2 || s.Args[0] != "-y" {
				t.Fatalf("%s: %s %q does not begin with npx -y", key, s.Command, s.Args)
			}
			i := strings.LastIndexByte(s.Args[1], '@')
			if of := s.Args[1][:max(i, 0)]; installed.Dependencies[of] != s.Args[1][i+1:] {
				t.Errorf("the manual has %s, and the tests %s", s.Args[1], installed.Dependencies[of])
			}
			if strings.ReplaceAll(s.Args[1][:max(i, 0)], "@playwright/", "playwright-") == name {
				theirs = same(t, key, theirs, s.Args[2:])
				found++
			}
		}
	}
	if len(ours) < 2 || ours[0] != "serve" || found == 0 {
		t.Fatalf("the manual has %q, and %d entries of %s", ours, found, name)
	}
	there := func(args []string) (all []string) {
		for _, arg := range args {
			all = append(all, strings.Replace(arg, "127.0.0.1:9222", "127.0.0.1:"+port, 1))
		}
		return all
	}
	return there(ours[1:]), there(theirs)
}

func same(t *testing.T, key string, before, now []string) []string {
	t.Helper()
	if before != nil && !slices.Equal(before, now) {
		t.Errorf("%s has %q, and elsewhere %q", key, before, now)
	}
	return now
}
