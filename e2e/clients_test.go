package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
)

// The gateway as clients start it: what it is built from, and its arguments. Its page is that of e2e/clients/page.
var agentsCommand = struct {
	source string
	stdio  []string
	http   func(address string) []string
}{
	source: "./clients/server",
	stdio:  nil,
	http:   func(address string) []string { return []string{"-http", address} },
}

var agentsGateway = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pagewire-gateway-")
	if err != nil {
		return "", err
	}
	browsers.Lock()
	browsers.close = append(browsers.close, func() { os.RemoveAll(dir) })
	browsers.Unlock()
	path := filepath.Join(dir, "gateway")
	if text, err := exec.Command("go", "build", "-o", path, agentsCommand.source).CombinedOutput(); err != nil {
		return "", &buildError{string(text)}
	}
	return path, nil
})

type buildError struct{ text string }

func (e *buildError) Error() string { return e.text }

// agentsStdio returns the command line by which a client starts the gateway.
func agentsStdio(t *testing.T) []string {
	t.Helper()
	path, err := agentsGateway()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{path}, agentsCommand.stdio...)
}

// agentsHTTP starts the gateway as a process of its own and returns where its agents go.
func agentsHTTP(t *testing.T) (url string) {
	t.Helper()
	path, err := agentsGateway()
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	command := exec.Command(path, agentsCommand.http(address)...)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("the gateway ends with %v", err)
		}
	})
	url = "http://" + address + "/mcp"
	eventually(t, "the gateway answers", func() bool {
		r, err := http.Get(url)
		if err == nil {
			r.Body.Close()
		}
		return err == nil
	})
	return url
}

// The official TypeScript client, unmodified, in its three modes, over stdio and over HTTP: clients/client.ts has what it
// does and checks.
func TestTypeScriptClient(t *testing.T) {
	modules, _ := filepath.Abs("../js/node_modules")
	script := filepath.Join(t.TempDir(), "client.mjs")
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{"clients/client.mjs"}, Bundle: true, Format: api.FormatESModule, Platform: api.PlatformNode,
		NodePaths: []string{modules}, Outfile: script, Write: true,
		Banner: map[string]string{"js": `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`},
	})
	if len(built.Errors) > 0 {
		t.Fatal(built.Errors[0].Text)
	}
	url := agentsHTTP(t)
	for _, mode := range []string{"legacy", "auto", "modern"} {
		for transport, target := range map[string][]string{"stdio": agentsStdio(t), "http": {url}} {
			t.Run(mode+"/"+transport, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				command := exec.CommandContext(ctx, "node", append([]string{script, mode, transport}, target...)...)
				if text, err := command.CombinedOutput(); err != nil || string(text) != "done\n" {
					t.Errorf("%v\n%s", err, text)
				}
			})
		}
	}
}

// MCP Inspector, unmodified: its command line, and mcpdo, which is how it subscribes.
func TestInspector(t *testing.T) {
	node := node22(t)
	clients, _ := filepath.Abs("conformance/node_modules/@modelcontextprotocol/inspector/clients")
	home := t.TempDir()
	env := append(os.Environ(), "HOME="+home, "PATH="+filepath.Dir(node)+":"+os.Getenv("PATH"))
	run := func(t *testing.T, script string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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

	url := agentsHTTP(t)
	for _, era := range []string{"legacy", "modern"} {
		for transport, target := range map[string][]string{"stdio": agentsStdio(t), "http": {url}} {
			t.Run(era+"/"+transport, func(t *testing.T) {
				for _, test := range []struct {
					args []string
					want string
				}{
					{[]string{"resources/list"}, `"uri":"https://x.test/clock"`},
					{[]string{"resources/templates/list"}, `"uriTemplate":"https://x.test/square/{n}"`},
					{[]string{"resources/read", "--uri", "https://x.test/square/12"}, `"text":"144"`},
					{[]string{"tools/list"}, `"name":"list_page_resources"`},
					{[]string{"tools/call", "--tool-name", "test_simple_text"}, `"text":"This is a simple text response for testing."`},
					{[]string{"tools/call", "--tool-name", "read_page_resource", "--tool-arg", "uri=https://x.test/square/12"}, `"text":"144"`},
				} {
					args := append([]string{"--cli", "--protocol-era", era, "--format", "json", "-q", "--method"}, test.args...)
					if got := run(t, "launcher/build/index.js", append(append(args, "--"), target...)...); !strings.Contains(got, test.want) {
						t.Errorf("%s: %s", strings.Join(test.args, " "), got)
					}
				}

				name := era + "-" + transport
				run(t, mcpdo, append([]string{"connect", "@" + name, "--era", era, "--"}, target...)...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				subscribe := exec.CommandContext(ctx, node, filepath.Join(clients, mcpdo), "--format", "json", "--connection", name, "resources/subscribe", "https://x.test/clock")
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
}
