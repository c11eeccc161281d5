package e2e

// The gateway as its users meet it: the binary, started by agents, with pages in a browser that it has launched.

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp/remote"
	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// The binary is the one that make build has written.
var gatewayBinary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../bin/pagewire")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("bin/pagewire is not built: run make build (%w)", err)
	}
	return path, nil
})

// A counter is a page whose state is a number that the test sets by way of the page's own server, so that it survives
// reloads.
type counter struct {
	*site
	mu    sync.Mutex
	value int
	moved chan struct{}
}

// serveCounter serves a page with the resource /count. It polls its server by long requests, as pages with live state
// do.
func serveCounter(t *testing.T) *counter {
	c := &counter{moved: make(chan struct{})}
	state := http.NewServeMux()
	state.HandleFunc("/state", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		have, _ := strconv.Atoi(r.URL.Query().Get("have"))
		for {
			c.mu.Lock()
			value, moved := c.value, c.moved
			c.mu.Unlock()
			if value != have || r.URL.Query().Get("have") == "" {
				fmt.Fprint(w, value)
				return
			}
			select {
			case <-moved:
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Second):
				fmt.Fprint(w, value)
				return
			}
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: state}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	c.site = serve(t, page{script: fmt.Sprintf(`
		let have = "";
		navigator.modelContext.registerResource({ uri: location.origin + "/count", name: "count", read: () => have });
		(async () => {
			for (;;) {
				try {
					const next = await (await fetch("http://%s/state?have=" + have)).text();
					if (next !== have) { have = next; navigator.modelContext.notifyResourceUpdated(location.origin + "/count"); }
				} catch { await new Promise((r) => setTimeout(r, 50)); }
			}
		})();`, l.Addr())})
	return c
}

func (c *counter) uri() string { return c.URL + "/count" }

func (c *counter) set(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value = n
	close(c.moved)
	c.moved = make(chan struct{})
}

// A started is a `pagewire serve` on stdio with the agent that started it. log is what that process says, and not what
// the daemon does.
type started struct {
	*testkit.Agent
	t    *testing.T
	cmd  *exec.Cmd
	log  *testkit.Log
	have int // what holds has read last
}

func (h userHome) serve(t *testing.T, args ...string) *started {
	t.Helper()
	cmd, log := h.command(t, append([]string{"serve", "--hub", h.hub, "--log-level", "debug"}, args...)...)
	return &started{Agent: testkit.Connect(t, &mcp.CommandTransport{Command: cmd}, testkit.Legacy), t: t, cmd: cmd,
		log: log}
}

// holds reads after each update, as a subscriber does, until it holds the count that it should, or a later one, and
// returns how many updates that took.
func (s *started) holds(uri, want string) int {
	s.t.Helper()
	atLeast, _ := strconv.Atoi(want)
	for updates := 0; ; updates++ {
		if s.have >= atLeast {
			return updates
		}
		testkit.Receive(s.t, fmt.Sprintf("the subscriber holds %s, after %d updates and %d", want, updates, s.have),
			s.Updates)
		if got, err := s.Read(uri); err == nil {
			s.have, _ = strconv.Atoi(got)
		}
	}
}

// What tools answer is tested at the gateway, and --inject where pages come by CDP.
func TestServe(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := serveCounter(t)
	a := h.serve(t, "--launch", "--headless", "--open", c.URL)
	testkit.Eventually(t, "the page's resource is listed", func() bool { return a.Offers(c.uri()) })
	a.Watch(c.uri())
	c.set(2)
	a.holds(c.uri(), "2")
	// The agent goes: so does everything else.
	began := time.Now()
	a.Close()
	t.Logf("it ended after %v", time.Since(began).Round(time.Millisecond))
	h.nothingLeft(t)
}

// A page that comes by itself, in a browser that the gateway is attached to, comes once.
func TestPageWithTwoTransports(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := serve(t, page{
		tag:    `<script src="/pagewire.js" data-gateway="ws://` + h.hub + `"></script>`,
		script: `navigator.modelContext.registerResource({ uri: location.origin + "/a", name: "a", read: () => "1" });`,
	})
	a := h.serve(t, "--launch", "--headless", "--open", s.URL)
	testkit.Eventually(t, "it is listed", func() bool { return a.Offers(s.URL + "/a") })
	testkit.Eventually(t, "it came by itself", func() bool {
		return strings.Contains(h.log(), "transport=websocket")
	})
	time.Sleep(2 * testkit.Moment) // for what must not come
	if a.Offers(s.URL+"/.pagewire/tab/1/a") || a.Offers(s.URL+"/.pagewire/tab/2/a") ||
		strings.Contains(h.log(), "transport=cdp") {
		t.Errorf("it came twice")
	}
	if got, err := a.Read(s.URL + "/a"); got != "1" {
		t.Errorf("read %q, %v", got, err)
	}
}

// A page that comes by itself, over a WebSocket, in whatever engine: the agent lists it, reads it, is told of changes,
// and keeps its subscription when the page is loaded anew.
func TestPageThatIsLoadedAnew(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	s := serve(t, page{tag: `<script src="/pagewire.js" data-gateway="ws://` + h.hub + `"></script>`, script: counting})
	uri := s.URL + "/count"
	for _, m := range modes {
		b := open(t, m, s)
		testkit.Eventually(t, "the agent lists the page", func() bool { return agent.Offers(uri) })
		if got, err := agent.Read(uri); got != "0" || err != nil {
			t.Errorf("it reads as %q, %v", got, err)
		}
		agent.Watch(uri)
		run[any](b, "set(7)")
		agent.holds(uri, "7")
		b.reload()
		run[any](b, "set(8)")
		agent.holds(uri, "8")
		if s.fetched("/pagewire.wasm") {
			t.Error("the page fetched the wasm, which is for agents in the page")
		}
		b.is.Close()
		agent.have = 0
		testkit.Eventually(t, "the page is gone", func() bool { return !agent.Offers(uri) })
	}
}

// A page's own gateway, and one that has handed over a function, as the extension does: both are taken, whichever is
// named last.
func TestGatewaysThatComeInOneTurn(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	s := serve(t, page{tag: `<script src="/pagewire.js"></script>`, script: counting + `
		globalThis.posted = [];
		pagewire.configure({ gateway: (frame) => posted.push(frame) });
		pagewire.configure({ gateway: "ws://` + h.hub + `" });`})
	p := open(t, noFlag, s)
	testkit.Eventually(t, "the agent lists the page", func() bool { return agent.Offers(s.URL + "/count") })
	if got := run[string](p, "return posted[0]"); !strings.HasPrefix(got, `[["hello",`) {
		t.Errorf("the function was given %q", got)
	}
}

// It ends when whoever started it is gone, even if something else keeps its stdin open.
func TestServeEndsWithItsParent(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	cmd, _ := h.command(t)
	// A shell starts it, says which process it is, and is killed. Its stdin is our pipe, which stays open.
	shell := exec.Command("sh", "-c", `"$0" serve --hub "$1" < /dev/fd/3 & echo $!; wait`, cmd.Path, h.hub)
	shell.Env, shell.Stderr = cmd.Env, cmd.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	shell.ExtraFiles = []*os.File{r}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it has started the daemon", func() bool { return len(h.daemons()) == 1 })
	shell.Process.Kill()
	shell.Wait()
	testkit.Eventually(t, "it has ended", func() bool { return !running(pid) })
}

// The port is somebody else's: agents go on without it, that is said, and the other program is told nothing.
func TestForeignPort(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	l, err := net.Listen("tcp", h.hub)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	other := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })}
	other.ConnState = func(net.Conn, http.ConnState) { asked.Add(1) }
	go other.Serve(l)
	defer other.Close()
	c := serveCounter(t)
	args := []string{"--launch", "--headless", "--open", c.URL}
	a := h.serve(t, args...)
	testkit.Eventually(t, "the agent lists the page", func() bool { return a.Offers(c.uri()) })
	a.Watch(c.uri())
	c.set(1)
	a.holds(c.uri(), "1")
	testkit.Eventually(t, "it is said", func() bool {
		return strings.Contains(h.log(), "something else has the port: agents go on")
	})
	syscall.Kill(h.daemon(t), syscall.SIGKILL)
	c.set(2)
	a.holds(c.uri(), "2")
	if n := asked.Load(); n != 0 {
		t.Errorf("the other program was told something: %d", n)
	}
	other.Close()
	testkit.Eventually(t, "the port is taken when it is free", func() bool {
		answer, err := http.Get("http://" + h.hub + "/healthz")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
}

// Three agents share one daemon and one browser. The daemon is killed, then it hangs, then it is told to end: each agent
// goes on with the next one, and holds the last state.
func TestThreeAgents(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := serveCounter(t)
	args := []string{"--launch", "--headless", "--open", c.URL}
	agents := []*started{h.serve(t, args...), h.serve(t, args...), h.serve(t)}
	for _, a := range agents {
		testkit.Eventually(t, "it lists the page", func() bool { return a.Offers(c.uri()) })
		a.Watch(c.uri())
	}
	browsers := profiles(h)
	if len(browsers) != 1 {
		t.Errorf("two agents have launched %d browsers, want 1", len(browsers))
	}
	for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM} {
		daemon := h.daemon(t)
		syscall.Kill(daemon, signal)
		ended := time.Now()
		c.set(2*i + 1)
		for _, a := range agents {
			a.holds(c.uri(), strconv.Itoa(2*i+1))
		}
		t.Logf("%v: all hold the last state after %v", signal, time.Since(ended).Round(time.Millisecond))
		c.set(2*i + 2)
		for _, a := range agents {
			a.holds(c.uri(), strconv.Itoa(2*i+2))
			settled(a)
			if !a.Offers(c.uri()) {
				t.Errorf("after %v it does not list the page", signal)
			}
		}
		if h.daemon(t) == daemon {
			t.Errorf("after %v the daemon is the same", signal)
		}
	}
	if after := profiles(h); !slices.Equal(after, browsers) {
		t.Errorf("browsers %v, before %v", after, browsers)
	}
	// They leave together, as those do whose machine is shut down.
	var left sync.WaitGroup
	for _, a := range agents {
		left.Go(func() { a.Close() })
	}
	left.Wait()
	h.nothingLeft(t)
}

// kill -9 of tab, browser, daemon and the process that has launched the browser in turn, during a stream of updates.
func TestKills(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := serveCounter(t)
	args := []string{"--launch", "--headless", "--debug-port", "0", "--open", c.URL}
	starter := h.serve(t, args...)
	testkit.Eventually(t, "the page is listed", func() bool { return starter.Offers(c.uri()) })
	a := h.serve(t, args...)
	testkit.Eventually(t, "another agent lists the page", func() bool { return a.Offers(c.uri()) })
	a.Watch(c.uri())
	value := 0
	// stream changes the state all the time, until what is called returns; the state then is the last.
	stream := func(during func()) string {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
					value++
					c.set(value)
				}
			}
		}()
		func() {
			defer func() { close(stop); <-stopped }() // also where during ends the test
			during()
		}()
		return strconv.Itoa(value)
	}
	devtools := func() *remote.Conn {
		url := browserURL(t, h)
		conn, err := remote.DialContext(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	last := stream(func() { a.holds(c.uri(), "5") })
	a.holds(c.uri(), last)

	t.Run("tab", func(t *testing.T) {
		conn := devtools()
		defer conn.Close()
		target := pageTarget(t, conn, c.URL)
		last := stream(func() {
			// The renderer is killed as the system kills it; then the person reloads the page.
			renderer := rendererOf(t, h, conn, target)
			syscall.Kill(renderer, syscall.SIGKILL)
			// A reload before the browser has seen that is aborted.
			testkit.Eventually(t, "the daemon has seen it", func() bool { return strings.Contains(h.log(), "page gone") })
			session := call(t, conn, "", "Target.attachToTarget",
				map[string]any{"targetId": target, "flatten": true})["sessionId"].(string)
			call(t, conn, session, "Page.reload", nil)
		})
		a.holds(c.uri(), last)
		settled(a)
	})
	t.Run("browser", func(t *testing.T) {
		before := browserURL(t, h)
		last := stream(func() {
			syscall.Kill(h.browser(t), syscall.SIGKILL)
			testkit.Eventually(t, "another browser has the page", func() bool {
				url := browserURLOrNone(h)
				return url != "" && url != before && a.Offers(c.uri())
			})
		})
		a.holds(c.uri(), last)
		settled(a)
	})
	for name, kill := range map[string]func(){
		"daemon": func() { syscall.Kill(h.daemon(t), syscall.SIGKILL) },
		"serve":  func() { ends["KILL"](starter) },
	} {
		t.Run(name, func(t *testing.T) {
			before := h.browser(t)
			last := stream(kill)
			a.holds(c.uri(), last)
			settled(a)
			if h.browser(t) != before {
				t.Error("the browser is another one")
			}
		})
	}
	a.Close()
	h.nothingLeft(t)
}

// settled waits until updates no longer come, since nothing changes: behind the read of the last state may come what is
// still on its way, the trailing edge of what the page coalesced, and one announcement that the page is back.
func settled(s *started) {
	s.t.Helper()
	testkit.Eventually(s.t, "nothing is announced any more", func() bool {
		select {
		case <-s.Updates:
			return false
		case <-time.After(2 * testkit.Moment):
			return true
		}
	})
}

// browserURL finds where the launched browser listens, as another program would: in its profile.
func browserURL(t *testing.T, h userHome) string {
	t.Helper()
	var url string
	testkit.Eventually(t, "the browser listens", func() bool { url = browserURLOrNone(h); return url != "" })
	return url
}

func browserURLOrNone(h userHome) string {
	// What a killed browser has left goes away in a while; the last one is the one that runs.
	list := profiles(h)
	slices.SortFunc(list, func(a, b string) int { return modified(b).Compare(modified(a)) })
	for _, dir := range list {
		if text, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort")); err == nil {
			if lines := strings.Split(string(text), "\n"); len(lines) > 1 {
				return "ws://127.0.0.1:" + lines[0] + strings.TrimSpace(lines[1])
			}
		}
	}
	return ""
}

func modified(path string) time.Time {
	info, err := os.Stat(filepath.Join(path, "DevToolsActivePort"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

var callID int64

// call makes one CDP call and returns its result.
func call(t *testing.T, conn *remote.Conn, session, method string, params map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	callID++
	m := &cdproto.Message{ID: callID, Method: cdproto.MethodType(method), Params: text}
	if session != "" {
		m.SessionID = target.SessionID(session)
	}
	if err := conn.Write(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for {
		var answer cdproto.Message
		if err := conn.Read(t.Context(), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.ID != callID {
			continue
		}
		if answer.Error != nil {
			t.Fatalf("%s: %v", method, answer.Error)
		}
		var result map[string]any
		if err := json.Unmarshal(answer.Result, &result); err != nil {
			t.Fatal(err)
		}
		return result
	}
}

func pageTarget(t *testing.T, conn *remote.Conn, url string) string {
	t.Helper()
	for _, info := range call(t, conn, "", "Target.getTargets", nil)["targetInfos"].([]any) {
		target := info.(map[string]any)
		if target["type"] == "page" && strings.HasPrefix(target["url"].(string), url) {
			return target["targetId"].(string)
		}
	}
	t.Fatalf("no tab shows %s", url)
	return ""
}

// rendererOf finds the process that a tab is in: the renderer that takes the time when the tab works. Those of the
// browser's own pages are none: while it starts they may take more.
func rendererOf(t *testing.T, h userHome, conn *remote.Conn, target string) int {
	t.Helper()
	session := call(t, conn, "", "Target.attachToTarget",
		map[string]any{"targetId": target, "flatten": true})["sessionId"].(string)
	renderers := func() map[int]float64 {
		all := map[int]float64{}
		for _, p := range call(t, conn, "", "SystemInfo.getProcessInfo", nil)["processInfo"].([]any) {
			process := p.(map[string]any)
			pid := int(process["id"].(float64))
			cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if process["type"] == "renderer" && !strings.Contains(string(cmdline), "--top-chrome-webui") {
				all[pid] = process["cpuTime"].(float64)
			}
		}
		return all
	}
	before := renderers()
	call(t, conn, session, "Runtime.evaluate", map[string]any{"expression": "for (const end = performance.now() + " +
		"300; performance.now() < end;);"})
	most, pid := 0.0, 0
	for id, time := range renderers() {
		if spent := time - before[id]; spent > most {
			most, pid = spent, id
		}
	}
	if pid == 0 {
		t.Fatal("no renderer has worked")
	}
	return pid
}

// The flags of an agent are its own, whichever agent was first: what one denies, another sees. Of what origins pages may
// come is what any of them allows.
func TestFlagsOfEachAgent(t *testing.T) {
	t.Parallel()
	const local, shop = "http://localhost:3000", "https://shop.example"
	const allows, denies, only = "--allow-origin=" + shop, "--deny-origin=" + local, "--only=" + local
	sees := map[string][]string{"": {local, shop}, allows: {local, shop}, denies: {shop}, only: {local}}
	for _, order := range [][]string{{"", denies, only, allows}, {allows, only, denies, ""}} {
		t.Run(strings.Join(order, ","), func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			agents := map[string]*started{}
			for _, flag := range order {
				agents[flag] = h.serve(t, strings.Fields(flag)...)
			}
			for _, origin := range []string{local, shop} {
				h.page(t, origin, testkit.NewPage(t, map[string]string{origin + "/a": "1"}))
			}
			for flag, a := range agents {
				var uris []string
				for _, origin := range sees[flag] {
					uris = append(uris, origin+"/a")
				}
				a.Shows(uris...)
			}
			for flag, a := range agents {
				for _, origin := range []string{local, shop} {
					got, err := a.Read(origin + "/a")
					if may := slices.Contains(sees[flag], origin); (err == nil) != may || may && got != "1" {
						t.Errorf("with %q, %s reads as %q, %v", flag, origin, got, err)
					}
				}
			}
		})
	}
}

// page connects a page to the daemon, as one in a browser does, until the test ends.
func (h userHome) page(t *testing.T, origin string, p *testkit.Page) {
	t.Helper()
	ctx := t.Context()
	var conn *websocket.Conn
	testkit.Eventually(t, "the daemon takes the page of "+origin, func() (ok bool) {
		var err error
		conn, _, err = websocket.Dial(ctx, "ws://"+h.hub+"/page", &websocket.DialOptions{
			Subprotocols: []string{"pagewire.v1"}, HTTPHeader: http.Header{"Origin": {origin}}})
		return err == nil
	})
	go func() {
		for {
			_, frame, err := conn.Read(ctx)
			if err != nil {
				return
			}
			p.Hear(frame)
		}
	}()
	p.Connect(func(frame []byte) { _ = conn.Write(ctx, websocket.MessageText, frame) },
		map[string]any{"tab": rand.Text(), "title": origin, "url": origin + "/"})
}
