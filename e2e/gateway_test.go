package e2e

// The gateway as its users have it: the binary, started by agents, with pages in a browser that it
// has launched.

import (
	"fmt"
	"io"
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

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// gatewayBinary returns the path of make build's binary.
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

// A counter is a page with the resource /count, a number that the page's own server keeps, so that
// it survives reloads.
type counter struct {
	*site
	value atomic.Int64
}

func serveCounter(t *testing.T) *counter {
	c := &counter{site: serve(t, page{script: `
		let have = "";
		const uri = location.origin + "/count";
		navigator.modelContext.registerResource({ uri, name: "count", read: () => have });
		setInterval(async () => {
			const next = await (await fetch("/state")).text();
			if (next === have) return;
			have = next;
			navigator.modelContext.notifyResourceUpdated(uri);
		}, 20);`})}
	files := c.Config.Handler
	c.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/state" {
			fmt.Fprint(w, c.value.Load())
			return
		}
		files.ServeHTTP(w, r)
	})
	return c
}

func (c *counter) uri() string { return c.URL + "/count" }

func (c *counter) set(n int) { c.value.Store(int64(n)) }

// A started is a `pagewire serve` on stdio with the agent that started it. log is the output of
// that process, without the daemon's.
type started struct {
	*testkit.Agent
	t   *testing.T
	cmd *exec.Cmd
	log *testkit.Log
}

func (h userHome) serve(t *testing.T, args ...string) *started {
	t.Helper()
	cmd, log := h.command(t,
		append([]string{"serve", "--hub", h.hub, "--log-level", "debug"}, args...)...)
	return &started{Agent: testkit.Connect(t, &mcp.CommandTransport{Command: cmd}, testkit.Legacy),
		t: t, cmd: cmd,
		log: log}
}

// holds waits until a subscriber that reads after each update has the wanted text.
func (s *started) holds(uri, want string) { s.t.Helper(); s.Learns(uri, want) }

// A page that connects by itself, in a browser that the gateway is attached to, is listed once.
func TestPageWithTwoTransports(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := serve(t, page{
		tag:    `<script src="/pagewire.js" data-gateway="ws://` + h.hub + `"></script>`,
		script: `navigator.modelContext.registerResource({ uri: location.origin + "/a", name: "a", read: () => "1" });`,
	})
	a := h.serve(t, "--launch", "--headless", "--open", s.URL)
	testkit.Eventually(t, "it is listed", func() bool { return a.Offers(s.URL + "/a") })
	testkit.Eventually(t, "it comes by itself too", func() bool {
		return strings.Contains(h.log(), "a document has another way")
	})
	if uris := a.URIs(); len(uris) != 1 || strings.Count(h.log(), "page attached") != 1 {
		t.Errorf("it is listed as %q", uris)
	}
	if got, err := a.Read(s.URL + "/a"); got != "1" {
		t.Errorf("read %q, %v", got, err)
	}
}

// A page's template answers for items that come and go beside it, and its schema's parameters reach
// it, checked. Agents that watch an item or a query are told of its changes.
func TestParametersReachThePage(t *testing.T) {
	t.Parallel()
	chromium, url := startChromium(t)
	s := serve(t, page{script: `
		const context = navigator.modelContext, at = (path) => location.origin + path;
		const items = { 1: "open", 2: "open", 3: "sent" };
		const read = (_, { params: { id } }) => items[id];
		context.registerResource({ uri: at("/item/{id}"), name: "item", read });
		context.registerResource({ uri: at("/items"), name: "items",
			uriSchema: { type: "object", properties: { status: { type: "string", enum: ["open", "sent"] } } },
			read: (_, { params: { status } }) => Object.keys(items).filter((id) => items[id] === status).join() });
		globalThis.set = (id, status) => {
			items[id] = status;
			for (const path of ["/items", "/item/" + id]) context.notifyResourceUpdated(at(path));
			if (status === "sent") context.unregisterResource(at("/item/" + id));
			else context.registerResource({ uri: at("/item/" + id), name: "at hand", read: () => status + " at hand" });
		};`})
	b, h := openIn(t, chromium, s), newHome(t)
	a, other := h.serve(t, "--chrome", url), h.serve(t)
	all, item, query := s.URL+"/items", s.URL+"/item/3", s.URL+"/items?status=open"
	a.Shows(all)
	a.Watch(item)
	a.CheckText(item, "sent")
	other.Watch(query)
	other.CheckText(query, "1,2")
	run[any](b, `set(3, "open")`)
	a.Learns(item, "open at hand")
	other.Learns(query, "1,2,3")
	a.Shows(all, item)
	run[any](b, `set(3, "sent")`)
	a.Learns(item, "sent")
	a.Shows(all)
	_, err := a.Read(all + "?status=lost")
	if err == nil || !strings.Contains(err.Error(), "status is not one of the values allowed") {
		t.Errorf("a status that there is not: %v", err)
	}
}

// An agent names the profile of its browser, launched or running, and can see only that profile.
func TestNamedBrowsers(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := serveCounter(t)
	browser, running := startChromium(t)
	openIn(t, browser, c.site)
	agents := map[string]*started{
		"Shopping": h.serve(t, "--launch", "--headless", "--open", c.URL, "--name", "Shopping",
			"--only", "profile=Shopping"),
		"Work": h.serve(t, "--chrome", running, "--name", "Work", "--only", "profile=Work"),
	}
	for profile, a := range agents {
		var titles []string
		testkit.Eventually(t, "both pages are open, and the agent of "+profile+" sees its own",
			func() bool {
				titles = nil
				for r, err := range a.Resources(t.Context(), nil) {
					if err != nil {
						t.Fatal(err)
					}
					titles = append(titles, r.Title)
				}
				return strings.Count(h.log(), "page attached") == 2 && len(titles) > 0
			})
		if len(titles) != 1 ||
			!strings.Contains(titles[0], " of headless Chrome, profile "+profile+", 127.0.0.1:") {
			t.Errorf("the agent of %s sees %q", profile, titles)
		}
	}
}

// A page that connects by itself, over a WebSocket, in any engine. The agent lists it, reads it, is
// notified of changes, and keeps its subscription when the page is reloaded.
func TestPageThatIsLoadedAnew(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	s := serve(t,
		page{tag: `<script src="/pagewire.js" data-gateway="ws://` + h.hub + `"></script>`,
			script: counting})
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
		testkit.Eventually(t, "the page is gone", func() bool { return !agent.Offers(uri) })
	}
}

// A page's own gateway, and a gateway that has set a function, as the extension does: both are
// used, in either order.
func TestGatewaysThatComeInOneTurn(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	s := serve(t, page{tag: `<script src="/pagewire.js"></script>`, script: counting + `
		globalThis.posted = [];
		pagewire.configure({ gateway: (frame) => posted.push(frame) });
		pagewire.configure({ gateway: "ws://` + h.hub + `" });`})
	p := open(t, noFlag, s)
	testkit.Eventually(t, "the agent lists the page",
		func() bool { return agent.Offers(s.URL + "/count") })
	if got := run[string](p, "return posted[0]"); !strings.HasPrefix(got, `[["hello",`) {
		t.Errorf("the function was given %q", got)
	}
}

// A program's processes end with it, even if another process keeps their stdin open.
func TestEndsWithItsProgram(t *testing.T) {
	t.Parallel()
	for args, runs := range map[string]func(h userHome, log *testkit.Log) bool{
		"serve": func(h userHome,
			_ *testkit.Log) bool {
			return len(h.daemons()) == 1
		},
		"watch --changes --all --lines": func(_ userHome,
			log *testkit.Log) bool {
			return log.Has("waiting for one")
		},
	} {
		t.Run(args, func(t *testing.T) {
			h := newHome(t)
			cmd, log := h.command(t)
			// A shell starts it, prints its process id, and is killed. Its stdin is our pipe, which
			// stays open.
			shell := testcmd.Command("sh", "-c", `"$0" `+args+
				` --hub "$1" < /dev/fd/3 & echo $!; wait`, cmd.Path, h.hub)
			shell.Env, shell.Stderr = cmd.Env, log
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			shell.ExtraFiles = []*os.File{r}
			_, out := testkit.Pipes(t, shell)
			r.Close()
			var pid int
			if _, err := fmt.Fscan(out, &pid); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "it runs", func() bool { return runs(h, log) })
			shell.Process.Kill()
			shell.Wait()
			testkit.Eventually(t, "it has ended", func() bool { return !running(pid) })
		})
	}
}

// Another program has the port: agents work without it, the log says so, and the other program
// receives nothing.
func TestForeignPort(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	l, err := net.Listen("tcp", h.hub)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	other := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		asked.Add(1)
	})}
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

// Three agents share one daemon and one browser, which two of them have requested. The daemon is
// killed, then it hangs, then it gets SIGTERM. Each time the agents continue with the next daemon,
// and hold the last state of the page in its browser. pagewire ls says what is lost. A browser that
// dies is launched again. It ends with the last agent that requested it.
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
	// changes sets the state, and waits until these agents have it.
	changes := func(n int, agents ...*started) {
		t.Helper()
		c.set(n)
		for _, a := range agents {
			a.holds(c.uri(), strconv.Itoa(n))
		}
	}
	last := profiles(h)
	if len(last) != 1 {
		t.Errorf("two agents have launched %d browsers, want 1", len(last))
	}
	for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM} {
		daemon := h.daemon(t)
		syscall.Kill(daemon, signal)
		ended := time.Now()
		changes(2*i+1, agents...)
		t.Logf("%v: all hold the last state after %v", signal,
			time.Since(ended).Round(time.Millisecond))
		changes(2*i+2, agents...)
		for _, a := range agents {
			settled(a)
			if !a.Offers(c.uri()) {
				t.Errorf("after %v it does not list the page", signal)
			}
		}
		if h.daemon(t) == daemon {
			t.Errorf("after %v the daemon is the same", signal)
		}
		testkit.Eventually(t, "there is one other browser", func() bool {
			now := profiles(h)
			return len(now) == 1 && !slices.Equal(now, last)
		})
		last = profiles(h)
		cmd, said := h.command(t, "ls", "--hub", h.hub)
		if err := cmd.Run(); err != nil || !said.Has("logins and drafts are lost") {
			t.Errorf("pagewire ls says %s, %v", said, err)
		}
	}
	syscall.Kill(h.browser(t), syscall.SIGKILL)
	changes(7, agents...)
	agents[0].cmd.Process.Kill()
	agents[0].Wait()
	changes(8, agents[1:]...)
	agents[1].Close()
	testkit.Eventually(t, "the browser is gone, and its page", func() bool {
		return len(profiles(h)) == 0 && !agents[2].Offers(c.uri())
	})
	agents[2].Close()
	h.nothingLeft(t)
}

// settled waits until updates no longer come. After the read of the last state, three may still
// come: an update under way, the trailing edge of the page's coalescing, and one notification that
// the page is back.
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

// A signal to the agent's group, as a closed terminal sends it, and the agent's death with standard
// error closed.
func TestWhatEndsAnAgentEndsItsBrowserToo(t *testing.T) {
	t.Parallel()
	s := serve(t, field)
	for name, end := range map[string]func(t *testing.T, h userHome, pid int, in, said io.Closer){
		"SIGHUP to the group": func(t *testing.T, h userHome, pid int, in, said io.Closer) {
			syscall.Kill(-pid, syscall.SIGHUP)
		},
		"nobody at its error": func(t *testing.T, h userHome, pid int, in,
			said io.Closer) {
			said.Close()
			in.Close()
		},
		"the browser hears": func(t *testing.T, h userHome, pid int, in, said io.Closer) {
			syscall.Kill(h.browser(t), syscall.SIGTERM)
			in.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			cmd, _ := h.command(t, "serve", "--hub", h.hub, "--log-level", "debug", "--launch",
				"--headless", "--open", s.URL)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.Stderr = nil
			said, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			in, out := testkit.Pipes(t, cmd)
			out.Close() // an ended agent reads neither
			testkit.Eventually(t, "the page is there",
				func() bool { return strings.Contains(h.log(), "page attached") })
			end(t, h, cmd.Process.Pid, in, said)
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			h.nothingLeft(t)
		})
	}
}
