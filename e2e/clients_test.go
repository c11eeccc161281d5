package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/testkit"
	clients "github.com/pagewire/pagewire/e2e/clients/page"
)

// A meeting is where agents go.
type meeting struct {
	// url is the address for those on HTTP, and header what they need to send there as Authorization.
	url, header string
	// stdio is the command line for those on stdio.
	stdio []string
	// env is what both need to have in their environment.
	env []string
}

// agentsHub runs a gateway on HTTP, with the page of clients/page.
func agentsHub(t *testing.T, more ...string) meeting {
	t.Helper()
	h := newHome(t)
	// Clients start programs with few variables of their own environment: HOME is one of them, XDG_CONFIG_HOME is not.
	env := append(os.Environ(), "HOME="+h.dir, "XDG_CONFIG_HOME=")
	address := testkit.Addr(t)
	arguments := []string{"serve", "--hub", h.hub, "--allow-origin", clients.Origin, "--log-level", "warn"}
	command, _ := h.command(t, append(append(arguments, "--any-scheme", "--http", address), more...)...)
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
	testkit.Eventually(t, "the page is connected", func() bool { return clients.Connect(t, h.hub) == nil })
	token, err := os.ReadFile(filepath.Join(h.dir, ".config/pagewire/token"))
	if err != nil {
		t.Fatal(err)
	}
	header := "Bearer " + strings.TrimSpace(string(token))
	testkit.Eventually(t, "the gateway has the page", func() bool {
		r, err := http.NewRequest("GET", "http://"+h.hub+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", header)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return strings.Contains(string(text), `pagewire_pages{transport="websocket"} 1`)
	})
	return meeting{"http://" + address + "/mcp", header, append([]string{command.Path}, arguments...), env}
}

// The official TypeScript client, unmodified, in its three modes, over stdio and over HTTP: clients/client.ts has what
// it does and checks.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	typeScriptClients(t, agentsHub(t))
}

// clientScript bundles a script with the official client.
func clientScript(t *testing.T, entry string) (script string) {
	t.Helper()
	modules, _ := filepath.Abs("../js/node_modules")
	script = filepath.Join(t.TempDir(), "client.mjs")
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, Bundle: true, Format: api.FormatESModule,
		Platform:  api.PlatformNode,
		NodePaths: []string{modules}, Outfile: script, Write: true,
		Banner: map[string]string{
			"js": `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`},
	})
	if len(built.Errors) > 0 {
		t.Fatal(built.Errors[0].Text)
	}
	return script
}

// typeScriptClients runs it where agents go, by stdio where they go there so.
func typeScriptClients(t *testing.T, at meeting) {
	t.Helper()
	script := clientScript(t, "clients/client.mjs")
	for _, mode := range []string{"legacy", "auto", "modern"} {
		for transport, target := range map[string][]string{"stdio": at.stdio, "http": {at.url, at.header}} {
			if target == nil {
				continue
			}
			t.Run(mode+"/"+transport, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
				defer cancel()
				command := exec.CommandContext(ctx, "node", append([]string{script, mode, transport}, target...)...)
				command.Env = at.env
				if text, err := command.CombinedOutput(); err != nil || string(text) != "done\n" {
					t.Errorf("%v\n%s", err, text)
				}
			})
		}
	}
}

// MCP Inspector, unmodified: its command line, and mcpdo, which is how it subscribes.
func TestInspector(t *testing.T) {
	t.Parallel()
	node := node22(t)
	clients, _ := filepath.Abs("conformance/node_modules/@modelcontextprotocol/inspector/clients")
	at := agentsHub(t)
	env := append(at.env, "PATH="+filepath.Dir(node)+":"+os.Getenv("PATH"))
	run := func(t *testing.T, script string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		command := exec.CommandContext(ctx, node, append([]string{filepath.Join(clients, script)}, args...)...)
		command.Env = env
		var said strings.Builder
		command.Stderr = &said
		text, err := command.Output()
		if err != nil {
			t.Errorf("%s: %v\n%s%s", strings.Join(args, " "), err, text, &said)
		}
		return string(text)
	}
	const mcpdo = "mcpdo/build/mcp-bin.js"
	// A daemon of our own holds the connections.
	for line := range strings.Lines(run(t, mcpdo, "private")) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		value = strings.Trim(value, "'")
		env = append(env, name+"="+value)
		if name == "MCP_INSPECTOR_DAEMON_DIR" {
			t.Cleanup(func() { os.RemoveAll(value) })
		}
	}
	t.Cleanup(func() {
		stop := exec.Command(node, filepath.Join(clients, mcpdo), "daemon", "stop")
		stop.Env = env
		if text, err := stop.CombinedOutput(); err != nil {
			t.Errorf("stop the daemon: %v\n%s", err, text)
		}
	})

	// Each run is a process of Node, of a second: of eras and transports each comes once.
	for era, transport := range map[string]string{"legacy": "stdio", "modern": "http"} {
		target := map[string][]string{"stdio": at.stdio, "http": {at.url}}[transport]
		t.Run(era+"/"+transport, func(t *testing.T) {
			t.Parallel()
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
				if got := run(t, "launcher/build/index.js",
					append(append(args, "--"), target...)...); !strings.Contains(got, test.want) {
					t.Errorf("%s: %s", strings.Join(test.args, " "), got)
				}
			}

			name := era + "-" + transport
			run(t, mcpdo, append(append([]string{"connect", "@" + name, "--era", era}, headers...),
				append([]string{"--"}, target...)...)...)
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			subscribe := exec.CommandContext(ctx, node, filepath.Join(clients, mcpdo), "--format", "json",
				"--connection", name, "resources/subscribe", "https://x.test/clock")
			subscribe.Env = env
			subscribe.Stderr = os.Stderr
			out, err := subscribe.StdoutPipe()
			if err != nil || subscribe.Start() != nil {
				t.Fatal(err)
			}
			said := json.NewDecoder(bufio.NewReader(out))
			for i := range 5 {
				var m struct{ Type, URI string }
				want := "resources/updated"
				if i == 0 {
					want = "subscribed"
				}
				if err := said.Decode(&m); err != nil || m.Type != want || m.URI != "https://x.test/clock" {
					t.Errorf("told %+v, %v; want %s", m, err, want)
				}
			}
			subscribe.Process.Signal(syscall.SIGINT)
			io.Copy(io.Discard, out)
			subscribe.Wait() // as it ends when it is interrupted
			run(t, mcpdo, "disconnect", "@"+name)
		})
	}
}
