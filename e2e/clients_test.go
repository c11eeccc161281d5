package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	clients "github.com/pagewire/pagewire/e2e/clients/page"
)

// A meeting is the place where agents find the page.
type meeting struct {
	// url is the address for agents on HTTP, and header their Authorization header.
	url, header string
	// stdio is the command line for agents on stdio.
	stdio []string
	// env is the environment for both.
	env []string
}

func agentsHub(t *testing.T, more ...string) meeting {
	t.Helper()
	h := newHome(t)
	// Clients start programs with few variables of their own environment: with HOME, and without
	// XDG_CONFIG_HOME.
	env := append(os.Environ(), "HOME="+h.dir, "XDG_CONFIG_HOME=")
	address := testkit.Addr(t)
	arguments := []string{"serve", "--hub", h.hub, "--allow-origin", clients.Origin, "--log-level",
		"warn"}
	command, _ := h.command(t,
		append(append(arguments, "--any-scheme", "--http", address), more...)...)
	command.Env = env
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("the gateway ends with %v", err)
		}
	})
	clients.Connect(t, h.hub, "")
	var header string
	testkit.Eventually(t, "the gateway has the page", func() bool {
		token, err := os.ReadFile(filepath.Join(h.dir, ".config/pagewire/token"))
		if err != nil {
			return false // the gateway has not started yet
		}
		header = "Bearer " + strings.TrimSpace(string(token))
		return strings.Contains(testkit.Metrics(h.hub, string(token)),
			`pagewire_pages{transport="websocket"} 1`)
	})
	return meeting{"http://" + address + "/mcp", header,
		append([]string{command.Path}, arguments...), env}
}

// The official TypeScript client, unmodified, in its three modes, over stdio and over HTTP.
// clients/client.mjs has its actions and checks.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	typeScriptClients(t, agentsHub(t))
}

func clientScript(t *testing.T, entry string) (script string) {
	t.Helper()
	script = filepath.Join(t.TempDir(), "client.mjs")
	text, err := bundled(entry, "../js/node_modules",
		api.BuildOptions{Format: api.FormatESModule, Platform: api.PlatformNode,
			Banner: map[string]string{"js": `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`}})
	if err == nil {
		err = os.WriteFile(script, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// typeScriptClients runs the client over HTTP, and over stdio if the meeting has a command line.
// One run follows the other: in parallel they would wait for their turn behind all other tests,
// with the gateway open.
func typeScriptClients(t *testing.T, at meeting) {
	t.Helper()
	script := clientScript(t, "clients/client.mjs")
	for _, mode := range []string{"legacy", "auto", "modern"} {
		for transport, target := range map[string][]string{"stdio": at.stdio, "http": {at.url, at.header}} {
			if target == nil {
				continue
			}
			t.Run(mode+"/"+transport, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
				defer cancel()
				command := testcmd.CommandContext(ctx, "node", append([]string{script, mode, transport}, target...)...)
				command.Env = at.env
				if text, err := command.CombinedOutput(); err != nil || string(text) != "done\n" {
					t.Errorf("%v\n%s", err, text)
				}
			})
		}
	}
}

// An inspector is MCP Inspector, unmodified, with a daemon that keeps its connections.
type inspector struct {
	t         *testing.T
	node, dir string
	env       []string
}

const mcpdo = "mcpdo/build/mcp-bin.js"

func openInspector(t *testing.T, env []string) *inspector {
	t.Helper()
	dir, _ := filepath.Abs("conformance/node_modules/@modelcontextprotocol/inspector/clients")
	i := &inspector{t: t, node: node22(t), dir: dir}
	i.env = append(env, "PATH="+filepath.Dir(i.node)+":"+os.Getenv("PATH"))
	for line := range strings.Lines(i.run(mcpdo, "private")) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		value = strings.Trim(value, "'")
		i.env = append(i.env, name+"="+value)
		if name == "MCP_INSPECTOR_DAEMON_DIR" {
			t.Cleanup(func() { os.RemoveAll(value) })
		}
	}
	t.Cleanup(func() {
		stop := testcmd.Command(i.node, filepath.Join(dir, mcpdo), "daemon", "stop")
		stop.Env = i.env
		if text, err := stop.CombinedOutput(); err != nil {
			t.Errorf("stop the daemon: %v\n%s", err, text)
		}
	})
	return i
}

func (i *inspector) command(limit time.Duration, script string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(i.t.Context(), limit)
	i.t.Cleanup(cancel)
	command := testcmd.CommandContext(ctx, i.node, append([]string{filepath.Join(i.dir, script)}, args...)...)
	command.Env = i.env
	return command
}

func (i *inspector) run(script string, args ...string) string {
	i.t.Helper()
	command := i.command(testkit.Patience, script, args...)
	var said strings.Builder
	command.Stderr = &said
	text, err := command.Output()
	if err != nil {
		i.t.Errorf("%s: %v\n%s%s", strings.Join(args, " "), err, text, &said)
	}
	return string(text)
}

// subscribe subscribes by a connection of mcpdo. told waits for an update.
func (i *inspector) subscribe(connection, uri string) (told func()) {
	i.t.Helper()
	command := i.command(tabTime, mcpdo, "--format", "json", "--connection", connection, "resources/subscribe", uri)
	command.Stderr = os.Stderr
	_, out := testkit.Pipes(i.t, command)
	i.t.Cleanup(func() {
		command.Process.Signal(syscall.SIGINT)
		io.Copy(io.Discard, out)
		command.Wait() // an interrupt may end it with any status
	})
	said := json.NewDecoder(bufio.NewReader(out))
	says := func(want string) {
		i.t.Helper()
		var m struct{ Type, URI string }
		if err := said.Decode(&m); err != nil || m.Type != want || m.URI != uri {
			i.t.Fatalf("mcpdo says %+v, %v; want %s", m, err, want)
		}
	}
	says("subscribed")
	return func() { i.t.Helper(); says("resources/updated") }
}

// MCP Inspector: its command line, and mcpdo.
func TestInspector(t *testing.T) {
	t.Parallel()
	at := agentsHub(t)
	all := openInspector(t, at.env)
	// Each run starts Node processes of a second each: so each era and each transport has one run
	// only. They take turns, as those of typeScriptClients do.
	for era, transport := range map[string]string{"legacy": "stdio", "modern": "http"} {
		target := map[string][]string{"stdio": at.stdio, "http": {at.url}}[transport]
		t.Run(era+"/"+transport, func(t *testing.T) {
			i := *all
			i.t = t
			var headers []string
			if transport == "http" {
				headers = []string{"--header", "Authorization: " + at.header}
			}
			for _, test := range []struct {
				args []string
				want string
			}{
				{[]string{"resources/list"}, `"uri":"https://x.test/clock"`},
				{[]string{"resources/read", "--uri", "https://x.test/square/12"}, `"text":"144"`},
				{[]string{"tools/call", "--tool-name", "read_page_resource", "--tool-arg",
					"uri=https://x.test/square/12"}, `"text":"144"`},
			} {
				args := append([]string{"--cli", "--protocol-era", era, "--format", "json", "-q", "--method"},
					append(test.args, headers...)...)
				if got := i.run("launcher/build/index.js",
					append(append(args, "--"), target...)...); !strings.Contains(got, test.want) {
					t.Errorf("%s: %s", strings.Join(test.args, " "), got)
				}
			}

			name := era + "-" + transport
			i.run(mcpdo, append(append([]string{"connect", "@" + name, "--era", era}, headers...),
				append([]string{"--"}, target...)...)...)
			told := i.subscribe(name, "https://x.test/clock")
			for range 4 {
				told()
			}
			// Inspector's own daemon has 2 s for each command, which is short on a busy machine.
			late := false
			testkit.Eventually(t, "Inspector has disconnected", func() bool {
				text, err := i.command(testkit.Patience, mcpdo, "disconnect", "@"+name).CombinedOutput()
				if err != nil && strings.Contains(string(text), "daemon_timeout") {
					late = true // it may have disconnected all the same
					return false
				}
				if err != nil && !late {
					t.Errorf("disconnect: %v\n%s", err, text)
				}
				return true
			})
		})
	}
}

// The daemon is killed while either official TypeScript client is subscribed. The client continues
// through the same pipe, sees no error on its connection, reads again, and is notified of each
// change. (TestThreeAgents has the Go SDK, and package agents the agent programs. The conformance
// suites speak only HTTP, which `pagewire serve --http` answers without a pipe.)
func TestClientsOfADaemonThatIsKilled(t *testing.T) {
	t.Parallel()
	const origin = "http://localhost:3000"
	const uri = origin + "/state"
	script := clientScript(t, "clients/killed.mjs")
	for _, which := range []string{"stable", "modern"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			pipe, _ := h.command(t, "serve", "--hub", h.hub, "--log-level", "warn")
			p := testkit.NewPage(t, map[string]string{uri: "first"})
			p.Dial(h.hub, origin, "")
			client := testcmd.Command("node", append([]string{script, which, uri}, pipe.Args...)...)
			// Clients start programs with HOME and few other variables.
			client.Env, client.Stderr = append(os.Environ(), "HOME="+h.dir, "XDG_CONFIG_HOME="), testkit.LogOf(t, which)
			in, out := testkit.Pipes(t, client)
			t.Cleanup(func() {
				in.Close()
				if err := client.Wait(); err != nil {
					t.Errorf("it ends with %v", err)
				}
			})
			told, reads, ready := make(chan string, 1000), make(chan string, 1000), make(chan struct{})
			go func() {
				for lines := bufio.NewScanner(out); lines.Scan(); {
					switch what, text, _ := strings.Cut(lines.Text(), " "); what {
					case "told":
						told <- what
					case "read":
						reads <- text
					case "subscribed":
						close(ready)
					default:
						t.Errorf("the client says %s", lines.Text())
					}
				}
			}()
			testkit.Ends(t, "it has subscribed", ready)
			read := func() string { io.WriteString(in, "\n"); return testkit.Receive(t, "it reads", reads) }
			if got := read(); got != "first" {
				t.Errorf("it reads %q", got)
			}
			changes := func(texts ...string) {
				t.Helper()
				for _, text := range texts {
					p.Set(uri, text)
					for more := true; more; more = read() != text {
						testkit.Receive(t, "it is told", told)
					}
				}
			}
			changes("before")
			old := h.daemon(t)
			syscall.Kill(old, syscall.SIGKILL)
			testkit.Eventually(t, "the killed daemon has gone", func() bool { return !running(old) })
			if got := read(); got != "before" {
				t.Errorf("behind the daemon's end it reads %q", got)
			}
			// The notice that the page is back may cause the read of the first.
			changes("after", "and again")
			if h.daemon(t) == old {
				t.Error("the daemon is the same: this test shows nothing")
			}
		})
	}
}
