package fleet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/nodekit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A cluster is several processes of pagewire-node.
type cluster struct {
	login *nodekit.Login
	nodes []*process
}

type process struct {
	listen, admin string
	cmd           *exec.Cmd
}

func startCluster(b *testing.B, size int) *cluster {
	dir, c := b.TempDir(), &cluster{login: nodekit.NewLogin(b)}
	config := testkit.Must(
		json.Marshal(map[string]any{"public-url": nodekit.Public, "secret-file": dir + "/secret",
			"max-user-pages": 100_000, "log-level": "error",
			"issuers": []any{map[string]any{"issuer": c.login.Name, "jwks": c.login.Keys}}}))(b)
	testkit.OK(b, os.WriteFile(dir+"/secret", []byte("the nodes of a benchmark"), 0o600),
		os.WriteFile(dir+"/node.json", config, 0o600))
	join := testkit.Addr(b)
	for i := range size {
		n := &process{listen: testkit.Addr(b), admin: testkit.Addr(b)}
		args := []string{"--config", dir + "/node.json", "--listen", n.listen, "--admin", n.admin,
			"--cluster", join}
		if i > 0 {
			args[len(args)-1] = testkit.Addr(b)
			args = append(args, "--join", join)
		}
		n.cmd = testcmd.Command(filepath.FromSlash("../../../bin/pagewire-node"), args...)
		n.cmd.Stderr = os.Stderr
		n.start(b)
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		testkit.Eventually(b, "the nodes know each other",
			func() bool { return n.metric("nodes") == float64(size) })
	}
	return c
}

func (n *process) start(b *testing.B) {
	testkit.OK(b, n.cmd.Start())
	b.Cleanup(func() {
		_ = n.cmd.Process.Kill() // the benchmark may have killed it
		_ = n.cmd.Wait()
	})
}

// metric returns a metric of the process, or -1.
func (n *process) metric(name string) float64 {
	r, err := http.Get("http://" + n.admin + "/metrics")
	if err != nil {
		return -1
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		line := strings.TrimPrefix(strings.TrimPrefix(lines.Text(), "pagewire_"), "node_")
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				return v
			}
		}
	}
	return -1
}

// An agent is a session of the legacy era over HTTP.
type agent struct {
	b          *testing.B
	url, token string
	session    string
	id         int
	told       chan string
}

func openAgent(b *testing.B, addr, token string) *agent {
	a := &agent{b: b, url: "http://" + addr + "/mcp", token: token,
		told: make(chan string, 1000)}
	a.ask("initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	a.request(http.MethodPost,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
	go a.listen(a.request(http.MethodGet, "").Body)
	return a
}

func (a *agent) request(method, body string) *http.Response {
	r := testkit.Must(http.NewRequestWithContext(a.b.Context(), method, a.url,
		strings.NewReader(body)))(a.b)
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if a.session != "" {
		r.Header.Set("Mcp-Session-Id", a.session)
	}
	answer := testkit.Must(http.DefaultClient.Do(r))(a.b)
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(answer.Body) // the part that has arrived
		a.b.Fatalf("%s %s", answer.Status, text)
	}
	return answer
}

// ask sends a request, which must have a result.
func (a *agent) ask(method, params string) string {
	a.id++
	r := a.request(http.MethodPost,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, a.id, method, params))
	defer r.Body.Close()
	if s := r.Header.Get("Mcp-Session-Id"); s != "" {
		a.session = s
	}
	text := string(testkit.Must(io.ReadAll(r.Body))(a.b))
	if !strings.Contains(text, `"result"`) {
		a.b.Fatalf("%s %s is answered %s", method, params, text)
	}
	return text
}

// listen receives the agent's notifications.
func (a *agent) listen(body io.ReadCloser) {
	defer body.Close()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		if strings.Contains(lines.Text(), "resources/updated") {
			a.told <- lines.Text()
		}
	}
}

func (a *agent) watch(uri string) { a.ask("resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri)) }
