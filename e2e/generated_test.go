package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/node/process"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/e2e/generated"
)

const honest = "https://honest.example"

// A place is a gateway, or a node, for pages and for agents on HTTP.
type place struct {
	pages, url, header string
	ticket             func(origin string) string
}

// gatewayPlace is `pagewire serve` in a process of its own.
func gatewayPlace(t *testing.T) place {
	h, address := newHome(t), testkit.Addr(t)
	command := h.servesHTTP(t, address)
	t.Cleanup(func() {
		command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("the gateway ends with %v", err)
		}
	})
	return h.place(t, address)
}

func (h userHome) servesHTTP(t *testing.T, address string) *exec.Cmd {
	command, _ := h.command(t, "serve", "--hub", h.hub, "--http", address, "--allow-origin",
		generated.Origin,
		"--allow-origin", honest,
		"--log-level", "error")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command
}

// place waits until the gateway listens.
func (h userHome) place(t *testing.T, address string) place {
	p := place{h.hub, "http://" + address + "/mcp", "", func(string) string { return "" }}
	testkit.Eventually(t, "the gateway listens", func() bool {
		token, err := os.ReadFile(filepath.Join(h.dir, "pagewire/token"))
		if err != nil {
			return false
		}
		p.header = "Bearer " + strings.TrimSpace(string(token))
		answer, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return p
}

// nodePlace is what pagewire-node runs.
func nodePlace(t *testing.T) place {
	const public = "https://live.example"
	login, err := issuertest.New("https://login.example", public)
	if err != nil {
		t.Fatal(err)
	}
	file := filesIn(t, t.TempDir())
	var listen net.Addr
	listen, _,
		_ = runNode(t,
		process.Options{Listen: "127.0.0.1:0", PublicURL: public, Cluster: "127.0.0.1:0",
			Log:        slog.New(slog.DiscardHandler),
			SecretFile: file("secret", []byte("the secret of the nodes")),
			Issuers:    []tickets.Issuer{{Issuer: login.Name, JWKS: file("keys", login.Keys())}}})
	return place{listen.String(), "http://" + listen.String() + "/mcp", "Bearer " +
		login.Token("alice",
			"pages:read pages:act"),
		func(origin string) string { return login.Ticket("alice", origin) }}
}

// A client is one of the official TypeScript clients, at a place.
type client struct {
	t    *testing.T
	name string
	in   io.Writer
	out  *bufio.Reader
	seen map[string]bool // faults, once each
}

// An outcome is what a client has done with an action.
type outcome struct {
	Error  string
	Code   any
	Faults []string
	Said   []string

	messages []generated.Message
}

func openClient(t *testing.T, name, script string, at place) *client {
	t.Helper()
	command := testcmd.Command("node", script, name, at.url, at.header)
	command.Stderr = testkit.LogOf(t, name)
	in, out := testkit.Pipes(t, command)
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("%s ends with %v", name, err)
		}
	})
	return &client{t, name, in, bufio.NewReader(out), map[string]bool{}}
}

// do lets the client act, and judges what the server says to it.
func (c *client) do(action ...any) (o outcome) {
	text, _ := json.Marshal(action)
	fmt.Fprintf(c.in, "%s\n", text)
	line, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		c.t.Fatalf("%s, %.200s: %v", c.name, text, err)
	}
	for _, text := range o.Said {
		o.messages = append(o.messages, generated.Judge(text))
	}
	return o
}

// faults are the reasons why the outcome is not what a client must have.
func (o outcome) faults() (all []string) {
	all = slices.Clone(o.Faults)
	answered, refused := false, false
	for i, m := range o.messages {
		for _, why := range m.Wrong {
			all = append(all, why+"\n  in "+o.Said[i][:min(len(o.Said[i]), 2000)])
		}
		answered, refused = answered || m.IsResult, refused || m.IsError
	}
	if o.Error != "" && !refused {
		all = append(all, "the client throws "+o.Error)
	} else if o.Error == "" && !answered {
		all = append(all, "the client has no answer")
	}
	return all
}

func (o outcome) lists(name string) bool {
	return slices.ContainsFunc(o.messages,
		func(m generated.Message) bool { return slices.Contains(m.Listed, name) })
}

// A hostilePage gives what the cases of its round say.
type hostilePage struct {
	*testkit.Page
	mu    sync.Mutex
	cases map[string]generated.Case // by Name
	ran   map[string]int
	uris  []string
}

func (p *hostilePage) caseOf(name string) generated.Case {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cases[name]
}

const fine = `{"content":[{"type":"text","text":"fine"}],"structuredContent":{"n":1}}`

func openHostile(t *testing.T, at place) *hostilePage {
	p := &hostilePage{Page: testkit.NewPage(t, nil), cases: map[string]generated.Case{},
		ran: map[string]int{}}
	p.Answer = func(name string, progress func(string)) string {
		c := p.caseOf(name)
		p.mu.Lock()
		p.ran[name]++
		p.mu.Unlock()
		switch c.Kind {
		case generated.Result:
			return c.Text
		case generated.Progress:
			progress(`{"progress":0}`)
			progress(c.Text)
		}
		return fine
	}
	p.Contents(func(uri string) string {
		if c := p.caseOf(uri); c.Kind == generated.Contents {
			return c.Text
		}
		return fmt.Sprintf(`[{"uri":%q,"text":"fine"}]`, uri)
	})
	p.Offer(generated.Origin+"/marker", "")
	p.Dial(at.pages, generated.Origin, at.ticket(generated.Origin))
	return p
}

// openHonest opens an honest page: what it offers is always listed, and read.
func openHonest(t *testing.T, at place) {
	p := testkit.NewPage(t, map[string]string{honest + "/cart": "3 items"})
	p.SetTool("innocent", testkit.Tool{})
	p.Dial(at.pages, honest, at.ticket(honest))
}

// offer replaces what the page offers with what the cases need, and markers of the round.
func (p *hostilePage) offer(round int, cases []generated.Case) (marker string) {
	marker = fmt.Sprint(generated.Origin, "/round/", round)
	p.mu.Lock()
	var calls []any
	for _, uri := range p.uris {
		calls = append(calls, []any{"unregister", uri})
	}
	p.uris = []string{marker}
	clear(p.cases)
	var registered []string
	tools := []string{fmt.Sprintf(`{"name":"round%d","inputSchema":{"type":"object"}}`, round)}
	for i, c := range cases {
		p.cases[c.Name] = c
		schema := ""
		if i%3 == 0 {
			schema = `,"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
		}
		switch c.Kind {
		case generated.Tool:
			tools = append(tools, c.Text)
		case generated.Resource:
			registered = append(registered, c.Text)
			p.uris = append(p.uris, c.Name)
		case generated.Contents:
			registered = append(registered, fmt.Sprintf(`{"uri":%q,"name":"c"}`, c.Name))
			p.uris = append(p.uris, c.Name)
		default:
			tools = append(tools,
				fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}%s}`, c.Name, schema))
		}
	}
	p.mu.Unlock()
	for _, r := range append(registered, fmt.Sprintf(`{"uri":%q,"name":"round"}`, marker)) {
		calls = append(calls, []any{"register", r})
	}
	calls = append(calls, []any{"setTools", "[" + strings.Join(tools, ",") + "]"})
	frame, _ := json.Marshal(calls)
	p.Post(string(frame))
	return marker
}

// Whatever a page gives, of all that MCP and WebMCP have with one member broken, both official
// clients take each list and each answer, through a gateway and through a node. They get no member
// that the gate does not know, and all of the honest page beside it. GATE_CASES=5000 is the number
// of different cases, and GATE_SEED=1 gives those of a run again.
func TestClientsTakeWhatIsGenerated(t *testing.T) {
	t.Parallel()
	count, seed := 300, uint64(48)
	if given, err := strconv.Atoi(os.Getenv("GATE_CASES")); err == nil {
		count = given
	}
	if os.Getenv("GATE_SEED") != "" {
		seed = testkit.Seed(t, "GATE_SEED")
	}
	cases := generated.Cases(seed, count)
	script := clientScript(t, "clients/generated.mjs")
	for name, open := range map[string]func(*testing.T) place{"gateway": gatewayPlace, "node": nodePlace} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log("GATE_SEED", seed)
			at := open(t)
			p := openHostile(t, at)
			openHonest(t, at)
			var clients []*client
			for _, which := range []string{"sdk 1", "sdk 2"} {
				clients = append(clients, openClient(t, which, script, at))
			}
			testkit.Eventually(t, "the pages are connected", func() bool {
				o := clients[0].do("list")
				return o.lists(generated.Origin+"/marker") && o.lists("innocent")
			})
			counts := map[string]int{}
			for round := 0; len(cases) > round*roundOf; round++ {
				some := cases[round*roundOf : min(len(cases), (round+1)*roundOf)]
				marker := p.offer(round, some)
				var both sync.WaitGroup
				for _, c := range clients {
					both.Go(func() { c.takes(round, marker, p, some, counts) })
				}
				both.Wait()
				if p.Refusal() != "" {
					t.Fatalf("round %d: the page's link has ended: %s", round, p.Refusal())
				}
				if t.Failed() && os.Getenv("GATE_KEEP") == "" {
					break // the first faults are enough
				}
			}
			for _, kind := range generated.Kinds {
				if counts[kind+" taken"] < count/50 {
					t.Errorf("too few of kind %s were taken", kind)
				}
			}
			t.Logf("%d different cases: %v", len(cases), counts)
		})
	}
}

// roundOf is how many cases a page offers at once.
const roundOf = 150

var countsMutex sync.Mutex

// takes takes all of a round.
func (c *client) takes(round int, marker string, p *hostilePage, cases []generated.Case, counts map[string]int) {
	var o outcome
	testkit.Eventually(c.t, "the round is listed", func() bool {
		o = c.do("list")
		for _, fault := range o.faults() {
			if !c.seen[fault] {
				c.t.Errorf("%s, round %d, list: %s", c.name, round, fault)
			}
			c.seen[fault] = true
		}
		return len(o.faults()) > 0 || o.lists(fmt.Sprint("round",
			round)) && o.lists(marker) && o.lists("innocent") && o.lists(honest+"/cart")
	})
	if len(o.faults()) > 0 {
		return
	}
	note := func(what string) {
		countsMutex.Lock()
		defer countsMutex.Unlock()
		counts[what]++
	}
	for _, g := range cases {
		var did outcome
		p.mu.Lock()
		before := p.ran[g.Name]
		p.mu.Unlock()
		switch is := o.lists(g.Name); {
		case !is && g.Broken == "":
			c.t.Errorf("%s: it is not listed: %v", c.name, g)
			fallthrough
		case !is:
			note(g.Kind + " left out")
			if g.Kind != generated.Tool && g.Kind != generated.Resource {
				c.t.Errorf("%s: an honest tool or resource is not listed, of %v", c.name, g)
			}
			continue
		case g.Kind == generated.Resource || g.Kind == generated.Contents:
			did = c.do("read", strings.Replace(g.Name, "{x}", "1", 1))
		case g.Kind == generated.Progress:
			did = c.do("progress", g.Name, map[string]string{"a": "x"})
		default:
			did = c.do("call", g.Name, map[string]string{"a": "x"})
		}
		note(g.Kind + " taken")
		if faults := did.faults(); len(faults) > 0 {
			c.t.Errorf("%s: %s\n%v", c.name, strings.Join(faults, "\n"), g)
			continue
		}
		p.mu.Lock()
		runs := p.ran[g.Name] - before
		p.mu.Unlock()
		refused := did.Error != ""
		switch {
		case refused && g.Kind == generated.Contents && g.Broken != "":
			note("contents refused")
		case refused && g.Kind == generated.Resource: // a uriSchema may refuse the URI
		case refused:
			c.t.Errorf("%s: it is refused, after %d runs: %v, %s\n%v", c.name, runs, did.Code, did.Error, g)
		}
	}
	if did := c.do("read", honest+"/cart"); len(did.faults()) > 0 || did.Error != "" {
		c.t.Errorf("%s, round %d: the honest page is not read: %v %v", c.name, round, did.Error, did.faults())
	}
}
