package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp/remote"
	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// gateways are families in which the agent is a program of its own and the page is in a browser.
// Every contender has its own browser, site and home, all the time. The page offers the same state
// as a resource and as a tool, as far as the rival can.
func (b *bench) gateways() []family {
	rigs := map[string]*rig{}
	rivals := slices.Concat(rivals, relays)
	for _, r := range rivals {
		rigs[r.name] = &rig{rival: r, b: b}
	}
	reads, once := 300, 0
	if b.short {
		reads, once = 150, 1
	}
	// each makes contenders of the rivals for which `in` is true. A rival without such work does
	// not offer it.
	each := func(in func(rival) bool,
		work func(*rig) func(context.Context) (figures, error)) (list []contender) {
		for _, rival := range rivals {
			if !in(rival) {
				continue
			}
			r := rigs[rival.name]
			c := contender{r.name, r.kind, nil}
			if measure := work(r); measure != nil {
				c.measure = func(ctx context.Context) (figures, error) {
					if r.failed != nil {
						return nil, r.failed
					}
					return measure(ctx)
				}
			}
			list = append(list, c)
		}
		return list
	}
	all := func(r rival) bool { return !r.off && !r.tools }
	on := func(r rival) bool { return !r.off }
	unaided := func(r rival) bool { return !r.native && (r.off || r.kind != ours) }
	calls := func(r *rig) func(context.Context) (figures, error) {
		if r.call == nil {
			return nil
		}
		return func(ctx context.Context) (figures,
			error) {
			return r.trips(ctx, reads, &r.warmCalls, r.call)
		}
	}
	programs := func(r rival) bool { return r.serve != nil && !r.off }
	families := []family{
		{
			name: "gateway: read",
			rows: []row{
				{"p50", "gateway: read by CDP, p50", "ms",
					goal{most: 0.8, of: best, within: cdpRelay}, byCDP},
				{"p50", "gateway: read by WebSocket, p50", "ms",
					goal{most: 0.5, of: best, within: wsRelay}, bySocket},
				{"p50", "gateway: read by CDP, beside the bare wire", "ms",
					goal{most: 1.4, of: cdpFloor, within: cdpRelay}, byCDP},
				{"p50", "gateway: read by WebSocket, beside the bare wire", "ms",
					goal{most: 1.4, of: wsFloor, within: wsRelay}, bySocket},
				{"p50", "gateway: read by CDP, beside a relay", "ms", goal{most: 1.2, of: cdpRelay},
					byCDP},
				{"p50", "gateway: read by WebSocket, beside a relay", "ms",
					goal{most: 1.3, of: wsRelay}, bySocket},
			},
			contenders: each(all, func(r *rig) func(context.Context) (figures, error) {
				if r.read == nil {
					return nil
				}
				return func(ctx context.Context) (figures,
					error) {
					return r.trips(ctx, reads, &r.warmReads, r.read)
				}
			}),
		},
		{
			name: "gateway: tool call, WebMCP on",
			rows: []row{
				{"p50", "gateway: tool call by CDP, WebMCP on, p50", "ms",
					goal{most: 1, of: best, within: cdpToolRelay}, byCDP},
				{"p50", "gateway: tool call by WebSocket, WebMCP on, p50", "ms",
					goal{most: 0.9, of: best, within: wsToolRelay}, bySocket},
				{"p99", "gateway: tool call by CDP, WebMCP on, p99", "ms",
					goal{most: 1, of: best, within: cdpToolRelay}, byCDP},
				{"p99", "gateway: tool call by WebSocket, WebMCP on, p99", "ms",
					goal{most: 1, of: best, within: wsToolRelay}, bySocket},
				{"p50", "gateway: tool call by CDP, beside the browser's share", "ms",
					goal{most: 1.3, of: cdpToolFloor, within: cdpToolRelay}, byCDP},
				{"p50", "gateway: tool call by WebSocket, beside the browser's share", "ms",
					goal{most: 1.3, of: wsToolFloor, within: wsToolRelay}, bySocket},
			},
			contenders: each(on, calls),
		},
		{
			name: "gateway: tool call, WebMCP off",
			rows: []row{
				{"p50", "gateway: tool call by CDP, WebMCP off, p50", "ms",
					goal{most: 0.8, of: best, within: cdpRelay}, byCDP + off},
			},
			contenders: each(unaided, calls),
		},
		{
			name: "gateway: visible", rounds: once,
			rows: []row{
				{"reload", "visible after reload, by CDP", "ms",
					goal{most: 0.75, of: best, within: wsFloor}, byCDP},
				{"reload", "visible after reload, by WebSocket", "ms",
					goal{most: 0.75, of: best, within: wsFloor}, bySocket},
				{"reload", "visible after reload by CDP, beside a bare WebSocket", "ms",
					goal{most: 1.4, of: wsFloor}, byCDP},
			},
			contenders: each(func(r rival) bool { return programs(r) || r.look != nil },
				func(r *rig) func(context.Context) (figures, error) { return r.visible }),
		},
		{
			name: memory, rounds: 1,
			rows: []row{
				{"mb", "gateway: resident memory with 10 tabs, by WebSocket", "MB", goal{most: 20},
					bySocket},
			},
			contenders: each(programs,
				func(r *rig) func(context.Context) (figures, error) { return r.memory }),
		},
	}
	for i := range families {
		families[i].prepare = func(ctx context.Context) {
			var all sync.WaitGroup
			for _, c := range families[i].contenders {
				if r := rigs[c.name]; c.measure != nil && r.failed == nil {
					all.Go(func() {
						limited, cancel := context.WithTimeout(ctx, time.Minute)
						defer cancel()
						if r.failed = r.openOnce(limited); r.failed == nil &&
							families[i].name == memory {
							r.failed = r.open10(limited)
						}
					})
				}
			}
			all.Wait()
		}
	}
	return families
}

// A rival is a way for agents to reach the pages of a browser.
type rival struct {
	name string
	kind kind
	// html is in the rival's pages, after offer, which is in all pages. ADDRESS is the rival's
	// port.
	html string
	// serve starts the program, and returns after its first answer. It is nil for a rival without a
	// program.
	serve func(ctx context.Context, r *rig) (*agent, error)
	// ready is called until it returns no error. It may look up the names that read and call need.
	ready func(context.Context, *rig) error
	read  func(context.Context, *rig) (string, error)
	call  func(context.Context, *rig) (string, error)
	// native means that the rival needs the browser's own WebMCP. off turns that off; otherwise it
	// is on.
	native, off bool
	// tools means that the rival has tools only: its reads are calls.
	tools bool
	// look returns the known state of the page, for a rival that has neither of the two.
	look func(context.Context, *rig) (string, error)
}

const (
	relay     = "@mcp-b/webmcp-local-relay 2.2.0"
	jason     = "@jason.today/webmcp 0.1.13"
	devtools  = "chrome-devtools-mcp 1.11.0"
	playwrite = "@playwright/mcp 0.0.83"
	wsFloor   = "floor: WebSocket echo"
	cdpFloor  = "floor: CDP call and binding"
	// The browser's share of a tool call: the page calls only its native executeTool.
	wsToolFloor  = "floor: WebSocket and executeTool"
	cdpToolFloor = "floor: CDP and executeTool"

	memory = "gateway: memory" // the family whose rigs have ten tabs

	byCDP    = "Pagewire, by CDP"
	bySocket = "Pagewire, by WebSocket"
	off      = ", WebMCP off"
)

// The pages' tags. state is a page's state, "NONCE padding": each document has a nonce of its own.
const (
	pagewireTag = `<script src="/dist/pagewire.js"></script>`
	gatewayTag  = `<script src="/dist/pagewire.js" data-gateway="ws://ADDRESS"></script>`
	mcpbTag     = `<script src="/node_modules/@mcp-b/global/dist/index.iife.js"></script>`
	relayTag    = `<script src="/node_modules/@mcp-b/webmcp-local-relay/dist/browser/embed.js"` +
		` data-relay-port="PORT"></script>`
)

var (
	overCDP = rival{
		name: byCDP, kind: ours, html: pagewireTag + inline("offer"),
		serve: func(ctx context.Context, r *rig) (*agent, error) {
			return startAgent(ctx, r.env(), r.b.program(), "serve", "--log-level", "error", "--hub",
				local(r.port),
				"--chrome", r.browser.URL)
		},
		ready: offers("state"), read: readState, call: callState,
	}
	overSocket = rival{
		name: bySocket, kind: ours, html: gatewayTag + inline("offer"),
		serve: func(ctx context.Context, r *rig) (*agent, error) {
			return startAgent(ctx, r.env(), r.b.program(), "serve", "--log-level", "error", "--hub",
				local(r.port))
		},
		ready: offers("state"), read: readState, call: callState,
	}
	socketFloor = rival{
		name: wsFloor, kind: floor,
		html:  inline("echo", "socket"),
		ready: echoes, read: echoState, call: echoState,
		look: func(_ context.Context, r *rig) (string, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.hello, nil
		},
	}
)

// overCDPOff is Pagewire in a browser whose own WebMCP is off.
func overCDPOff() rival {
	r := overCDP
	r.name, r.off = r.name+off, true
	return r
}

var rivals = []rival{
	overCDP, overSocket, overCDPOff(),
	{
		name: jason, kind: peer,
		// Its widget is made for pages without modules of their own.
		html: `<script>var module = { exports: {} };</script>` +
			`<script src="/node_modules/@jason.today/webmcp/build/webmcp.js"></script>` +
			inline("jason"),
		serve: func(ctx context.Context, r *rig) (*agent, error) {
			// Its server of pages starts first: the program's own first start of it loses a race
			// against itself.
			if err := r.background(ctx, "webmcp", "--foreground", "--port",
				strconv.Itoa(r.port)); err != nil {
				return nil, err
			}
			return startAgent(ctx, r.env(), r.bin("webmcp"), "--mcp", "--port",
				strconv.Itoa(r.port))
		},
		ready: offers(".*-state"), read: readState, call: callState,
	},
	{
		name: relay, kind: peer,
		html: inline("testing") + relayTag,
		serve: func(ctx context.Context, r *rig) (*agent, error) {
			return startAgent(ctx, r.env(), r.bin("webmcp-local-relay"), "--port",
				strconv.Itoa(r.port))
		},
		ready: offers("state(_.*)?"), call: callState,
	},
	{
		name: devtools, kind: peer, native: true, html: mcpbTag + inline("offer"),
		serve: func(ctx context.Context, r *rig) (*agent, error) {
			return startAgent(ctx, r.env(), "e2e/peers/node_modules/.bin/chrome-devtools-mcp",
				"--browserUrl",
				r.httpURL(), "--categoryExperimentalWebmcp", "--no-usage-statistics",
				"--no-performance-crux")
		},
		ready: func(ctx context.Context,
			r *rig) error {
			return r.finds(ctx, "list_pages", map[string]any{})
		},
		call: func(ctx context.Context, r *rig) (string, error) {
			return r.agent.tool(ctx, "execute_webmcp_tool",
				map[string]any{"pageId": r.page, "toolName": "state",
					"input": "{}"})
		},
	},
	{
		name: playwrite, kind: peer, native: true, html: mcpbTag + inline("offer"),
		serve: func(ctx context.Context, r *rig) (*agent, error) {
			return startAgent(ctx, r.env(), "e2e/peers/node_modules/.bin/playwright-mcp",
				"--cdp-endpoint", r.httpURL())
		},
		ready: func(ctx context.Context, r *rig) error {
			if err := r.finds(ctx, "browser_tabs", map[string]any{"action": "list"}); err != nil {
				return err
			}
			if _, err := r.agent.tool(ctx, "browser_tabs",
				map[string]any{"action": "select", "index": r.page}); err != nil {
				return err
			}
			// the snapshot makes it look up the page's tools
			_, err := r.agent.tool(ctx, "browser_snapshot", map[string]any{})
			r.tool = "webmcp_state"
			return err
		},
		call: callState,
	},
	socketFloor,
	{name: cdpFloor, kind: floor, html: inline("echo"), ready: attachBare, read: callBare,
		call: callBare},
	{
		name: wsToolFloor, kind: floor, native: true, tools: true,
		html:  inline("execute", "socket"),
		ready: echoes, call: echoState,
	},
	{
		name: cdpToolFloor, kind: floor, native: true, tools: true, html: inline("execute"),
		ready: attachBare, call: callBare,
	},
}

// offers looks up the page's tool, by a part of a regular expression for its name.
func offers(name string) func(context.Context, *rig) error {
	match := regexp.MustCompile("^" + name + "$")
	return func(ctx context.Context, r *rig) error {
		names, err := r.agent.toolNames(ctx)
		if i := slices.IndexFunc(names, match.MatchString); i >= 0 {
			r.tool = names[i]
			return nil
		}
		return fmt.Errorf("tools %q, %v", names, err)
	}
}

// finds looks up the rival's number of the page, in the list from one of the rival's tools.
func (r *rig) finds(ctx context.Context, tool string, arguments map[string]any) error {
	list, err := r.agent.tool(ctx, tool, arguments)
	if err != nil {
		return err
	}
	m := regexp.MustCompile(`(?m)^(?:- )?(\d+): .*` + regexp.QuoteMeta(r.site.URL+"/page")).
		FindStringSubmatch(list)
	if m == nil {
		return fmt.Errorf("%s: %q", tool, list)
	}
	r.page, err = strconv.Atoi(m[1])
	return err
}

func readState(ctx context.Context, r *rig) (string, error) {
	return r.agent.read(ctx, r.site.URL+"/state")
}

func callState(ctx context.Context, r *rig) (string, error) {
	return r.agent.tool(ctx, r.tool, map[string]any{})
}

func echoState(ctx context.Context, r *rig) (string, error) {
	r.mu.Lock()
	echo := r.echo
	r.mu.Unlock()
	if echo == nil {
		return "", errors.New("no page has connected")
	}
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"contents":[{"text":"%s"}]}}`,
		strings.Repeat("x", 100))
	if err := echo.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		return "", err
	}
	_, got, err := echo.Read(ctx)
	return string(got), err
}

func echoes(ctx context.Context, r *rig) error {
	_, err := echoState(ctx, r)
	return err
}

// attachBare attaches only to the page, as every gateway by CDP must.
func attachBare(ctx context.Context, r *rig) error {
	conn, err := remote.DialContext(ctx, r.browser.URL)
	if err != nil {
		return err
	}
	c := &bare{conn: conn}
	if err := c.attach(ctx, r.target); err != nil {
		conn.Close()
		return err
	}
	r.bare = c
	r.b.onClose(func() { conn.Close() })
	return nil
}

// attach gets the page's function. A target has its page's URL while it still has the empty
// document, and functions of that go away with it. reply exists only in the page's own document.
func (c *bare) attach(ctx context.Context, id string) error {
	for _, step := range []struct {
		method string
		params map[string]any
		result any
	}{
		{"Target.attachToTarget", map[string]any{"targetId": id, "flatten": true}, &c.session},
		{"Runtime.enable", nil, nil},
		{"Runtime.addBinding", map[string]any{"name": "answer"}, nil},
		{"Runtime.evaluate",
			map[string]any{"expression": `self.reply && ((text) => reply(text, answer))`},
			&c.function},
	} {
		result, err := c.call(ctx, c.session.ID, step.method, step.params)
		if err == nil && step.result != nil {
			err = json.Unmarshal(result, step.result)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.method, err)
		}
	}
	if c.function.Result.ID == "" {
		return errors.New("the page has not loaded")
	}
	return nil
}

// callBare makes the page return a text.
func callBare(ctx context.Context, r *rig) (string, error) {
	return r.bare.run(ctx, strings.Repeat("x", 200))
}

// run calls the page's function, and waits for its message.
func (c *bare) run(ctx context.Context, text string) (string, error) {
	c.said = ""
	_, err := c.call(ctx, c.session.ID, "Runtime.callFunctionOn", map[string]any{
		"functionDeclaration": "function (message) { this(message) }",
		"objectId":            c.function.Result.ID, "silent": true,
		"arguments": []any{map[string]any{"value": text}},
	})
	for err == nil && c.said == "" {
		_, err = c.next(ctx)
	}
	return c.said, err
}

// bare is one CDP session, for one call at a time.
type bare struct {
	conn    *remote.Conn
	last    int64
	said    string // by the page, through the binding
	session struct {
		ID target.SessionID `json:"sessionId"`
	}
	function struct {
		Result struct {
			ID string `json:"objectId"`
		} `json:"result"`
	}
}

func (c *bare) call(ctx context.Context, session target.SessionID, method string,
	params map[string]any) ([]byte,
	error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if params == nil {
		text = nil
	}
	c.last++
	id := c.last
	if err := c.conn.Write(ctx,
		&cdproto.Message{ID: id, SessionID: session, Method: cdproto.MethodType(method),
			Params: text}); err != nil {
		return nil, err
	}
	for {
		m, err := c.next(ctx)
		switch {
		case err != nil:
			return nil, err
		case m.ID == id && m.Error != nil:
			return nil, m.Error
		case m.ID == id:
			return m.Result, nil
		}
	}
}

func (c *bare) next(ctx context.Context) (*cdproto.Message, error) {
	m := new(cdproto.Message)
	err := c.conn.Read(ctx, m)
	if m.Method == "Runtime.bindingCalled" {
		c.said = string(m.Params)
	}
	return m, err
}

type rig struct {
	rival
	b       *bench
	opened  bool
	failed  error
	home    string
	port    int
	browser *launched.Started
	site    *httptest.Server
	agent   *agent
	bare    *bare

	warmReads, warmCalls int // warm-up calls so far

	target string // the first page, by CDP
	tool   string // the rival's name of the page's tool
	page   int    // the rival's number of the page

	mu      sync.Mutex
	echo    *websocket.Conn
	hello   string // the page's first message on it
	nonce   int
	reload  chan struct{} // makes the page that was opened first reload
	changes chan string   // states for the page to show next
	done    atomic.Int64
	token   sync.Mutex
}

// entry is a variable that marks the rival's processes. A daemon inherits few variables, and this
// is one of them.
func (r *rig) entry() string { return "TMPDIR=" + r.home }

func (r *rig) env() []string {
	return append(os.Environ(), r.entry(), "HOME="+r.home, "XDG_CONFIG_HOME="+r.home,
		"NODE_OPTIONS=--require "+r.b.guard(), "CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS=1",
		"WEBMCP_SERVER_TOKEN=0123456789abcdef0123456789abcdef")
}

func (r *rig) bin(name string) string { return "e2e/bench/node_modules/.bin/" + name }

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (r *rig) httpURL() string {
	rest, _ := strings.CutPrefix(r.browser.URL, "ws://")
	host, _, _ := strings.Cut(rest, "/")
	return "http://" + host
}

// background starts a program that serves no agent, and waits until it listens.
func (r *rig) background(ctx context.Context, name string, args ...string) error {
	cmd := testcmd.CommandContext(context.Background(), r.bin(name), args...)
	cmd.Env = r.env()
	if err := cmd.Start(); err != nil {
		return err
	}
	r.b.onClose(func() { cmd.Process.Kill(); cmd.Wait() })
	return until(ctx, 20*time.Millisecond, func() error {
		c, err := net.Dial("tcp", "localhost:"+strconv.Itoa(r.port))
		if err == nil {
			c.Close()
		}
		return err
	})
}

// openOnce opens the rig, once for all its families.
func (r *rig) openOnce(ctx context.Context) error {
	if r.opened {
		return nil
	}
	r.opened = true
	return r.open(ctx)
}

// open prepares the rig: it opens one page, and waits until the rival has it.
func (r *rig) open(ctx context.Context) (err error) {
	if r.home, err = os.MkdirTemp(r.b.dir, "rig-"); err != nil {
		return err
	}
	if r.port, err = freePort(); err != nil {
		return err
	}
	r.reload = make(chan struct{})
	r.site = httptest.NewServer(http.HandlerFunc(r.serveHTTP))
	r.b.onClose(r.site.CloseClientConnections)
	flags := []string{offline}
	if r.off {
		flags = append(flags, "--disable-features=WebMCP")
	}
	if r.browser,
		err = launched.Start(ctx, launched.Options{Flags: flags, DebugPort: "0"}); err != nil {
		return err
	}
	r.b.onClose(r.browser.Close)
	if r.serve != nil {
		if r.agent, err = r.serve(ctx, r); err != nil {
			return err
		}
		r.b.onClose(r.agent.close)
	}
	if r.target, err = r.openTab(ctx, "/page"); err != nil {
		return err
	}
	return until(ctx, 20*time.Millisecond, func() error {
		if err := r.ready(ctx, r); err != nil {
			return err
		}
		for _, work := range []func(context.Context, *rig) (string, error){r.read, r.rival.call} {
			if work != nil {
				if text, err := work(ctx, r); err != nil || !strings.Contains(text, "xxxx") {
					return fmt.Errorf("it answers %.200q, %v", text, err)
				}
			}
		}
		return nil
	})
}

func (r *rig) serveHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.URL.Path {
	case "/page":
		r.mu.Lock()
		r.nonce++
		nonce := r.nonce
		r.mu.Unlock()
		html := strings.NewReplacer("ADDRESS", local(r.port), "PORT", strconv.Itoa(r.port)).
			Replace(r.html)
		if req.URL.RawQuery == "" {
			html += inline("reload")
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		fmt.Fprintf(w,
			`<!doctype html><title>bench</title><link rel=icon href=data:,><body><script>const state = "nonce-%d-%s"</script>%s`,
			nonce, strings.Repeat("x", 100), html)
	case "/reload":
		select {
		case <-r.reload:
		case <-req.Context().Done():
		}
	case "/change":
		done, _ := strconv.ParseInt(req.FormValue("done"), 10, 64)
		r.done.Store(done)
		select {
		case change := <-r.changes:
			fmt.Fprint(w, change)
		case <-req.Context().Done():
		}
	case "/token":
		r.token.Lock() // the program gives one token at a time
		text, err := r.agent.tool(req.Context(), "_webmcp_get-token", map[string]any{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			r.token.Unlock()
			return
		}
		fields := strings.Fields(text)
		fmt.Fprint(w, fields[len(fields)-1])
		time.AfterFunc(200*time.Millisecond, r.token.Unlock)
	case "/socket":
		if c, err := websocket.Accept(w, req, nil); err == nil {
			if _, hello, err := c.Read(req.Context()); err == nil {
				r.mu.Lock()
				r.echo, r.hello = c, string(hello)
				r.mu.Unlock()
				<-req.Context().Done()
			}
		}
	default:
		r.b.ServeHTTP(w, req)
	}
}

// openTab opens a page of the site, and returns its target's id.
func (r *rig) openTab(ctx context.Context, path string) (string, error) {
	text, err := r.command(ctx, "Target.createTarget", map[string]any{"url": r.site.URL + path})
	if err != nil {
		return "", err
	}
	var tab struct{ TargetID string }
	err = json.Unmarshal(text, &tab)
	return tab.TargetID, err
}

func (r *rig) command(ctx context.Context, method string, params map[string]any) ([]byte, error) {
	conn, err := remote.DialContext(ctx, r.browser.URL)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return (&bare{conn: conn}).call(ctx, "", method, params)
}

// trips measures round trips, one after the other. Before the first it makes 1,500 others, so that
// browsers and Node have compiled the hot code (page.ts has the reason).
//
// A rival that needs more than five seconds for all of them (two, in a short run) is measured for
// that long only, and counts as warm after that long.
func (r *rig) trips(ctx context.Context, n int, warm *int,
	work func(context.Context, *rig) (string, error)) (figures,
	error) {
	budget := 5 * time.Second
	if r.b.short {
		budget = 2 * time.Second
	}
	once := func() (float64, error) {
		start := time.Now()
		text, err := work(ctx, r)
		if err == nil && !strings.Contains(text, "xxxx") {
			err = fmt.Errorf("answered %q", text)
		}
		return ms(start), err
	}
	for began := time.Now(); *warm < 1500 && time.Since(began) < budget; *warm++ {
		if _, err := once(); err != nil {
			return nil, err
		}
	}
	times := make([]float64, 0, n)
	for began := time.Now(); len(times) < n && (len(times) < 10 || time.Since(began) < budget); {
		took, err := once()
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return figures{"p50": quantile(times, 0.5), "p99": quantile(times, 0.99)}, nil
}

func ms(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1000 }

// visible measures the time from the order to reload until an agent has the new document's state.
func (r *rig) visible(ctx context.Context) (figures, error) {
	look := r.look
	if look == nil {
		look = r.read
	}
	if look == nil {
		look = r.rival.call
	}
	r.mu.Lock()
	want := fmt.Sprintf("nonce-%d-", r.nonce+1)
	r.mu.Unlock()
	select {
	case r.reload <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("the page does not ask what to do: %w", ctx.Err())
	}
	start := time.Now()
	err := until(ctx, 5*time.Millisecond, func() error {
		// A call to the old document never ends.
		limited, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		text, err := look(limited, r)
		if err != nil || !strings.Contains(text, want) {
			err = fmt.Errorf("it sees %.100q, %w", text, err)
			r.ready(limited, r) // call may need new names
		}
		return err
	})
	got := figures{"reload": ms(start)}
	time.Sleep(200 * time.Millisecond)
	return got, err
}

func (r *rig) memory(context.Context) (figures, error) {
	sum, err := resident(r.entry())
	return figures{"mb": sum / 1e6}, err
}

// open10 opens nine more tabs, and waits until all are idle.
func (r *rig) open10(ctx context.Context) error {
	for i := 1; i < manyTabs; i++ {
		if _, err := r.openTab(ctx, "/page?"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	time.Sleep(3 * time.Second)
	return nil
}

// until calls try until it returns no error. When ctx ends, it returns the last error.
func until(ctx context.Context, every time.Duration, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(every):
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
