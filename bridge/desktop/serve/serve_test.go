package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/parts"
	"github.com/pagewire/pagewire/bridge/internal/userdir"
	"github.com/pagewire/pagewire/bridge/node/uplink"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A running is Agent, Daemon or Foreground in a goroutine.
type running struct {
	stop func()
	over chan error
}

// begin begins a running. It ends with the test or by stop, and must return no error.
func begin(t *testing.T, run func(context.Context) error) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{over: make(chan error, 1)}
	go func() { r.over <- run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := testkit.Receive(t, "it ends", r.over); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// connect begins run, and connects an agent to its standard input and output. leave ends the input.
func connect(t *testing.T, run func(context.Context, Options) error, o Options) (a *testkit.Agent, leave func()) {
	t.Helper()
	var fromAgent, toAgent io.ReadCloser
	var in, out io.WriteCloser
	fromAgent, in = io.Pipe()
	toAgent, out = io.Pipe()
	o.Stdio, o.In, o.Out = true, fromAgent, out
	r := begin(t, func(ctx context.Context) error {
		err := run(ctx, o)
		out.Close()
		return err
	})
	a = testkit.Connect(t, &mcp.IOTransport{Reader: toAgent, Writer: in}, testkit.Legacy)
	return a, func() {
		in.Close()
		r.stop()
	}
}

// options sets a home directory for the test, and returns the options of its processes.
func options(t *testing.T) Options {
	t.Helper()
	testkit.Home(t)
	return Options{Hub: testkit.Addr(t), Version: "1", Log: slog.New(slog.NewTextHandler(testkit.LogOf(t, "serve"), nil))}
}

// start begins a daemon, and returns when it listens.
func start(t *testing.T, o Options) *running {
	t.Helper()
	started := make(chan struct{})
	r := begin(t, func(ctx context.Context) error { return Daemon(ctx, o, func() { close(started) }) })
	testkit.Ends(t, "the daemon listens", started)
	return r
}

// daemonOf is start for a test that looks at the process, too.
func daemonOf(t *testing.T, o Options) *process {
	t.Helper()
	p := newProcess(o, secretsOf(&o))
	t.Cleanup(p.close)
	started := make(chan struct{})
	begin(t, func(ctx context.Context) error { return daemon.Run(ctx, p.options(func() { close(started) })) })
	testkit.Ends(t, "the daemon listens", started)
	return p
}

// Foreground replaces the daemon, serves the daemon's agents and its own, and ends with its own agent. A second one is
// refused.
func TestForeground(t *testing.T) {
	o := options(t)
	was := start(t, o)
	agent, leave := connect(t, Agent, o)
	ctx := t.Context()
	if s, err := Ask(ctx, o.Hub, "1"); err != nil || s.Agents != 1 || s.Version != "1" {
		t.Errorf("the daemon says %+v, %v", s, err)
	}
	o.HTTP = "127.0.0.1:0"
	own, leaveOwn := connect(t, Foreground, o)
	if err := testkit.Receive(t, "the daemon ends", was.over); err != nil {
		t.Error(err)
	}
	was.over <- nil
	for _, a := range []*testkit.Agent{agent, own} {
		if _, err := a.ListTools(ctx, nil); err != nil {
			t.Error(err)
		}
	}
	if s, err := Ask(ctx, o.Hub, "1"); err != nil || s.Agents != 2 {
		t.Errorf("it says %+v, %v", s, err)
	}
	want := fmt.Sprintf("runs already at 127.0.0.1:0 (process %d)", os.Getpid())
	if err := Foreground(ctx, o); !errors.Is(err, daemon.ErrOther) || !strings.Contains(err.Error(), want) {
		t.Errorf("a second one: %v, want %q", err, want)
	}
	leave()
	leaveOwn()
	if _, err := Ask(ctx, o.Hub, "1"); !errors.Is(err, daemon.ErrNone) {
		t.Errorf("behind its end: %v", err)
	}
}

// The last agent's process removes what a killed daemon has left, since no other may come.
func TestLastAgentLeavesNothing(t *testing.T) {
	o := options(t)
	o.Start = []string{"false"}
	dir := testkit.Must(userdir.Open(o.Hub))(t)
	defer dir.Close()
	files := strings.TrimSuffix(dir.Path("log"), ".log") + "-"
	socket := files + "daemon"
	l := testkit.Must(net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	testkit.OK(t, l.Close(), os.WriteFile(socket+".lock", nil, 0o600))
	a, leave := connect(t, Agent, o)
	a.URIs()
	leave()
	if left := testkit.Must(filepath.Glob(files + "*"))(t); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// An agent's process that serves alone has the port, and frees it for a daemon as soon as one runs.
func TestPortOfOneThatWasAlone(t *testing.T) {
	o := options(t)
	o.Start = []string{os.Args[0], roleDaemon, "1", o.Hub}
	place := filepath.Join(os.Getenv("HOME"), "pagewire")
	if err := os.WriteFile(place, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, leave := connect(t, Agent, o)
	a.URIs()
	testkit.Eventually(t, "it has the port", func() bool {
		c, err := net.Dial("tcp", o.Hub)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the daemon has the port", func() bool {
		s, err := Ask(t.Context(), o.Hub, "1")
		return err == nil && s.Addr == o.Hub
	})
	a.URIs()
	leave()
	testkit.Eventually(t, "the daemon has ended", func() bool {
		_, err := Ask(t.Context(), o.Hub, "1")
		return errors.Is(err, daemon.ErrNone)
	})
}

// An agent sees resources by its own flags, whether or not it was first.
func TestFlagsInEitherOrder(t *testing.T) {
	const shop, bank = "https://shop.example", "https://bank.example"
	flags := []daemon.Flags{{AllowOrigins: []string{shop}}, {DenyOrigins: []string{shop}}}
	want := [][]string{{shop + "/a"}, {bank + "/a"}}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			o := options(t)
			p := daemonOf(t, o)
			for _, origin := range []string{shop, bank} {
				page := testkit.NewPage(t, map[string]string{origin + "/a": "x"})
				page.Attach(func(send func([]byte)) (testkit.Receiver, error) {
					return p.g.Attach(gateway.PageInfo{Tab: origin, Origin: origin, URL: origin + "/", Transport: "test"},
						send)
				})
			}
			testkit.Eventually(t, "both are there", func() bool { return len(p.g.Snapshot().Resources) == 2 })
			for _, i := range order {
				o := o
				o.Flags = flags[i]
				a, _ := connect(t, Agent, o)
				list, err := a.ListResources(t.Context(), nil)
				var got []string
				for _, r := range list.Resources {
					got = append(got, r.URI)
				}
				if err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("with %+v it lists %v, %v; want %v", flags[i], got, err, want[i])
				}
			}
			if got := p.g.AllowedOrigins(); !slices.Equal(got, []string{shop}) {
				t.Errorf("pages may connect from %v", got)
			}
		})
	}
}

// What pages show is for the agent whose flags name their origin, whether or not it was first, and
// for this user's commands. With the last such agent it is named no more. Agents on HTTP have the
// flags of the process.
func TestShownByFlags(t *testing.T) {
	const ci, uri = "https://ci.example", "https://ci.example/.pagewire/shown"
	o := options(t)
	o.Flags.Shown = []string{"https://http.example"}
	p := daemonOf(t, o)
	attach := func(launched bool) gateway.PageInfo {
		info := gateway.PageInfo{Tab: fmt.Sprint(launched), Origin: ci, URL: ci + "/", Transport: "test", Shown: true,
			Launched: launched}
		page := testkit.NewPage(t, map[string]string{uri: fmt.Sprint("launched: ", launched)})
		page.Attach(func(send func([]byte)) (testkit.Receiver, error) { return p.g.Attach(info, send) })
		return info
	}
	plain, ours := attach(false), attach(true)
	p.g.Focus("false")
	o.Flags.Shown = nil
	other, _ := connect(t, Agent, o)
	o.Flags.Shown = []string{ci}
	o.Flags.Parts = parts.Rules{ci: {"jobs": {Find: []parts.Anchor{{CSS: "table > a"}}, As: "table"}}}
	named, leave := connect(t, Agent, o)
	if got := p.g.Parts(plain)["jobs"]; !reflect.DeepEqual(got, o.Flags.Parts[ci]["jobs"]) {
		t.Errorf("the part is %+v", got)
	}
	o.Flags.Parts = nil
	named.CheckText(uri, "launched: false")
	named.CheckText(uri+"/tab/2", "launched: true")
	if !p.g.IsNamed(plain) || !p.g.IsNamed(ours) {
		t.Error("it is not named")
	}
	o.Flags.Shown = nil
	o.Launch = &daemon.Launch{Open: []string{"HTTPS://u:p@CI.example:443/run?a=1#b", "about:blank", "https://*.example/"}}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	end := testkit.Must(p.g.ConnectWith(o.scope(o.Flags)))(t)
	opened := testkit.Connect(t, testkit.Transport(end), testkit.Legacy)
	if text, err := opened.Read(uri); err == nil {
		t.Errorf("of a browser that Pagewire did not launch it reads %q", text)
	}
	opened.CheckText(uri+"/tab/2", "launched: true")
	leave()
	testkit.Eventually(t, "the agent has gone", func() bool { return !p.g.IsNamed(plain) })
	if !p.g.IsNamed(ours) {
		t.Error("what is opened is not named")
	}
	end.Close()
	testkit.Eventually(t, "the agent has gone", func() bool { return !p.g.IsNamed(ours) })
	if text, err := other.Read(uri); err == nil || len(other.URIs()) > 0 {
		t.Errorf("an agent without the flag reads %q", text)
	}
	plain.Origin = "https://http.example"
	if !p.g.IsNamed(plain) {
		t.Error("what the flags of the process name is not named")
	}
}

// A node gets what pages show of the origins that the process's own flags name, and not of those of --open.
func TestNodeGetsWhatItsUserNames(t *testing.T) {
	o := Options{Flags: daemon.Flags{Shown: []string{"https://a.example"}, DenyOrigins: []string{"https://b.example"}},
		Launch: &daemon.Launch{Open: []string{"https://c.example"}},
		Node:   &uplink.Options{URL: "wss://live.example", Origins: []string{"https://*.example"}}}
	testkit.OK(t, o.check())
	if got := fmt.Sprint(o.Node.Shown, o.Node.Deny); got != "[https://a.example] [https://b.example]" {
		t.Errorf("the node gets %s", got)
	}
}

// The origins of addresses are those that browsers give. A pattern is no address.
func TestOriginsOfAddresses(t *testing.T) {
	got := originsOf([]string{"https://a.example", "https://a.example/b", "HTTP://B.example:80/", "http://b.example:8080/x",
		"https://c.example:80/", "http://[::1]:3000/", "about:blank", "file:///etc/passwd", "data:text/html,x", "https://*.example/",
		"ftp://a.example/", "%", ""})
	want := []string{"https://a.example", "http://b.example", "http://b.example:8080", "https://c.example:80", "http://[::1]:3000"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// An agent without subscriptions gets a clear error, and another one at the same daemon has them.
func TestSubscriptionsAreAnAgentsOwn(t *testing.T) {
	const uri = "https://shop.example/a"
	for _, off := range [][]bool{{true, false}, {false, true}} {
		o := options(t)
		p := daemonOf(t, o)
		page := testkit.NewPage(t, map[string]string{uri: "x"})
		page.Attach(func(send func([]byte)) (testkit.Receiver, error) {
			return p.g.Attach(gateway.PageInfo{Tab: "a", Origin: "https://shop.example", URL: uri, Transport: "test"}, send)
		})
		for _, off := range off {
			o := o
			o.Flags.NoSubscriptions = off
			a, _ := connect(t, Agent, o)
			a.Shows(uri)
			var wire *jsonrpc.Error
			err := a.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri})
			refused := errors.As(err, &wire) && wire.Code == jsonrpc.CodeMethodNotFound
			if is := a.InitializeResult().Capabilities.Resources.Subscribe; is == off || refused != off || !off && err != nil {
				t.Errorf("off is %v: announced %v, error %v", off, is, err)
			}
		}
	}
}

// If no daemon can run, the agent's own process has the browser, and removes its files at the end.
func TestAloneWithABrowser(t *testing.T) {
	opened := make(chan struct{}, 9)
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { opened <- struct{}{} }))
	defer site.Close()
	o := options(t)
	temp := testkit.ShortDir(t)
	t.Setenv("TMPDIR", temp)
	if err := os.WriteFile(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "pagewire"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Launch = &daemon.Launch{Open: []string{site.URL}}
	_, leave := connect(t, Agent, o)
	testkit.Receive(t, "the browser is launched", opened)
	leave()
	testkit.Eventually(t, "the browser is gone", func() bool {
		left, _ := filepath.Glob(filepath.Join(temp, "*"))
		return len(left) == 0
	})
}

// Agents, and the person who reads the log of an agent's process, are told that no browser answers at the address of
// --chrome, and when it does. Secrets of the browser's address are not told.
func TestBrowserThatIsNotThere(t *testing.T) {
	o := options(t)
	start(t, o)
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	host := l.Addr().String()
	l.Close()
	const id = "/devtools/browser/7c1a-secret"
	log := testkit.LogOf(t, "the agent's process")
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.Flags.Chrome = "ws://" + host + id
	a, _ := connect(t, Agent, o)
	if text, _ := a.Call("list_page_resources", nil); !strings.Contains(text, "connect to the browser at ws://"+host) ||
		strings.Contains(text, "secret") {
		t.Errorf("it lists %s", text)
	}
	testkit.Eventually(t, "a person is told", func() bool { return log.Has("connect to the browser at ws://" + host) })
	if s := testkit.Must(Ask(t.Context(), o.Hub, o.Version))(t); len(s.Notices) != 1 || strings.Contains(s.Notices[0], "secret") {
		t.Errorf("the status has %q", s.Notices)
	}
	other, _ := connect(t, Agent, Options{Hub: o.Hub, Version: o.Version, Log: o.Log})

	l = testkit.Must(net.Listen("tcp", host))(t)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := testkit.Must(websocket.Accept(w, r, nil))(t)
		for err := error(nil); err == nil; {
			_, _, err = c.Read(r.Context())
		}
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	testkit.Eventually(t, "a person is told that the browser answers", func() bool { return log.Has("answers now") })
	if text, _ := other.Call("list_page_resources", nil); strings.Contains(text, host) {
		t.Errorf("then it lists %s", text)
	}
	if n := log.Count("WARN"); n != 2 {
		t.Errorf("there are %d messages", n)
	}
}

// The next daemon does not say that the browser answers before it has looked.
func TestBrowserThatIsNotThereAtTheNextDaemonEither(t *testing.T) {
	o := options(t)
	first := start(t, o)
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	l.Close()
	log := testkit.LogOf(t, "the agent's process")
	o.Flags.Chrome = "http://" + l.Addr().String()
	with := o
	with.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	connect(t, Agent, with)
	testkit.Eventually(t, "a person is told", func() bool { return log.Has("(--chrome) are missing") })
	silent := testkit.Must(net.Listen("tcp", l.Addr().String()))(t)
	defer silent.Close()
	first.stop()
	o.Flags.Chrome = ""
	start(t, o)
	testkit.Eventually(t, "a person is told that it is silent", func() bool { return log.Has("it has not answered yet") })
	if log.Has("answers now") {
		t.Errorf("a person was told that the browser answers:\n%s", log)
	}
}

// A browser that accepts the connection and says nothing is told of, too.
func TestBrowserThatIsSilent(t *testing.T) {
	g := gateway.New(gateway.Options{})
	defer g.Close()
	a := &attached{g: g, log: slog.New(slog.DiscardHandler), at: map[string]*attachment{}}
	defer a.close()
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	release := testkit.Must(a.want("http://"+l.Addr().String(), false))(t)
	testkit.Eventually(t, "agents are told", func() bool {
		return strings.Contains(strings.Join(g.Notices(), ""), l.Addr().String()+" (--chrome) are missing")
	})
	release()
	testkit.Eventually(t, "that is over with the agent", func() bool { return len(g.Notices()) == 0 })
}

// A list waits for the launched browser, and not for one that cannot be launched. That is said.
func TestLaunchThatFails(t *testing.T) {
	for name, run := range map[string]func(context.Context, Options) error{"a pipe": Agent, "in the foreground": Foreground} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			none := filepath.Join(t.TempDir(), "chromium")
			testkit.OK(t, os.WriteFile(none, []byte("#!/bin/sh\nexit 1\n"), 0o755))
			t.Setenv("PAGEWIRE_BROWSER", none)
			piped, other := name == "a pipe", o
			if piped {
				start(t, o)
			}
			t.Setenv("DISPLAY", "")
			t.Setenv("WAYLAND_DISPLAY", "")
			o.Launch = &daemon.Launch{Window: true}
			a, leave := connect(t, run, o)
			testkit.Settles(t, "it lists why", func() string { // the first answer waits 2 s for the browser
				text, _ := a.Call("list_page_resources", nil)
				if strings.Contains(text, "No browser could be launched: There is no display: --headless needs none.") {
					return ""
				}
				return text
			})
			if piped {
				a, _ := connect(t, Agent, other)
				leave()
				testkit.Eventually(t, "that is over with the agent that asked", func() bool {
					text, _ := a.Call("list_page_resources", nil)
					return !strings.Contains(text, "launched")
				})
			}
		})
	}
}

// The daemon's log is verbose while an agent with Flags.Debug is connected.
func TestDebugOfAnAgent(t *testing.T) {
	o := options(t)
	o.LogLevel = new(slog.LevelVar)
	start(t, o)
	connect(t, Agent, o)
	verbose := o
	verbose.Flags.Debug = true
	_, leave := connect(t, Agent, verbose)
	if got := o.LogLevel.Level(); got != slog.LevelDebug {
		t.Errorf("the level is %v", got)
	}
	leave()
	testkit.Eventually(t, "the level is as before", func() bool { return o.LogLevel.Level() == slog.LevelInfo })
}

// All agents that want a browser share one attachment, until the last of them leaves. It is made again when the first
// agent with inject comes, and when the last such agent leaves.
func TestAttached(t *testing.T) {
	asked, left := make(chan struct{}, 9), make(chan struct{}, 9)
	_, err := assets.FS()
	hasFiles := err == nil // without the files, an attachment with inject fails before it connects
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done() // the browser does not answer
		left <- struct{}{}
	}))
	defer s.Close()
	g := gateway.New(gateway.Options{})
	defer g.Close()
	a := &attached{g: g, log: slog.New(slog.DiscardHandler), at: map[string]*attachment{}}
	for _, url := range []string{"", "9222", "ftp://127.0.0.1", "http://"} {
		if _, err := a.want(url, false); err == nil {
			t.Errorf("%q is taken for a browser", url)
		}
	}
	want := func(inject bool) (release func()) {
		t.Helper()
		release, err := a.want(s.URL, inject)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	injects := func(want bool) {
		t.Helper()
		if a.at[s.URL].inject != want {
			t.Errorf("inject is %v", !want)
		}
	}
	first := want(false)
	testkit.Receive(t, "it is attached to", asked)
	second := want(false)
	third := want(true)
	testkit.Receive(t, "it is let go", left)
	if hasFiles {
		testkit.Receive(t, "it is attached to anew", asked)
	}
	injects(true)
	fourth := want(true)
	third()
	first()
	injects(true)
	fourth()
	if hasFiles {
		testkit.Receive(t, "it is let go", left)
	}
	testkit.Receive(t, "it is attached to anew", asked)
	injects(false)
	second()
	testkit.Receive(t, "it is let go", left)
	if len(a.at) > 0 {
		t.Errorf("there are %v", a.at)
	}
	a.close()
	if len(asked) > 0 {
		t.Error("it was attached to more often")
	}
}

// With a token file that cannot be used, agents on stdio are still served. The reason and the remedy are reported once,
// and the file is not changed.
func TestAgentsGoOnWithoutAToken(t *testing.T) {
	config := testkit.ShortDir(t)
	for name, c := range map[string]struct{ text, config, why string }{
		"empty":                 {"", config, "remove it, and a new one is made"},
		"half":                  {token[:20], config, "remove it, and a new one is made"},
		"no home":               {"", "", "find a place for the token"},
		"a relative config dir": {"", "relative", "find a place for the token"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Chdir(filepath.Dir(file)) // no file must be made here
			t.Setenv("XDG_CONFIG_HOME", c.config)
			if c.config != config {
				file = ""
				for _, name := range []string{"HOME", "AppData", "home", access.TokenFileEnv} {
					t.Setenv(name, "")
				}
			}
			log := testkit.LogOf(t, "the gateway")
			in, agent := io.Pipe()
			out, gateway := io.Pipe()
			over := make(chan error, 1)
			addr := testkit.Addr(t)
			run := Foreground
			if file == "" { // then the daemon's socket has no directory either
				run = Agent
			}
			go func() {
				err := run(context.Background(), Options{Stdio: true, In: in, Out: gateway, Hub: addr, TokenFile: file,
					Log: slog.New(slog.NewTextHandler(log, nil))})
				in.CloseWithError(err)
				over <- err
			}()
			if _, err := io.WriteString(agent, ping+"\n"); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"result"`) {
				t.Errorf("the agent is answered %q, %v", line, err)
			}
			list := strings.Replace(ping, "server/discover", "tools/call", 1)
			list = strings.Replace(list, `"params":{`, `"params":{"name":"list_page_resources","arguments":{},`, 1)
			if _, err := io.WriteString(agent, list+"\n"); err != nil {
				t.Fatal(err)
			}
			if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, c.why) {
				t.Errorf("the agent is told %q, %v", line, err)
			}
			if n := log.Count("there is no token"); n != 1 || !log.Has(c.why) {
				t.Errorf("it is said %d times: %s", n, log)
			}
			agent.Close()
			if err := testkit.Receive(t, "it ends", over); err != nil {
				t.Error(err)
			}
			if now, _ := os.ReadFile("token"); string(now) != c.text {
				t.Errorf("the file holds %q now", now)
			}
			if made, _ := os.ReadDir("."); len(made) != 1 {
				t.Errorf("there are %v", made)
			}
			if err := Foreground(context.Background(), Options{Hub: addr, TokenFile: file}); err == nil ||
				!strings.Contains(err.Error(), c.why) {
				t.Errorf("without an agent it ends with %v", err)
			}
		})
	}
}

// A command of this user that asks for it is told which open tabs offer nothing, as many as there is room for. Others do
// not make a browser name its tabs.
func TestStatusNamesTabs(t *testing.T) {
	o := options(t)
	p := daemonOf(t, o)
	var asked atomic.Int32
	for i := range 2 * maxTabs {
		p.g.TabShows(gateway.PageInfo{Tab: fmt.Sprint(i), Origin: "https://ci.example", Title: strings.Repeat("\x01", 500),
			URL: fmt.Sprintf("https://ci.example/%03d/%s", i, strings.Repeat("\x01", 500))})
	}
	_, end := p.g.CountTabs(func(context.Context) []gateway.PageInfo {
		asked.Add(1)
		return nil
	})
	t.Cleanup(end)
	if is, err := Ask(t.Context(), o.Hub, "1"); err != nil || len(is.Tabs) > 0 || asked.Load() > 0 {
		t.Errorf("who has not asked for tabs is told of %d, %v; extensions are asked %d times", len(is.Tabs), err,
			asked.Load())
	}
	is, err := AskTabs(t.Context(), o.Hub, "1")
	if asked.Load() != 1 {
		t.Errorf("an extension is asked %d times", asked.Load())
	}
	if err != nil || len(is.Tabs) != maxTabs || len(is.Tabs[0].Title) != maxTabText ||
		!strings.HasPrefix(is.Tabs[1].URL, "https://ci.example/001/") {
		t.Errorf("%d tabs, %v", len(is.Tabs), err)
	}
}
