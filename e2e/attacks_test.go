//go:build attacks

package e2e

// Raw peers speak the link's frames by WebSocket, without the page layer. Each does its worst,
// again and again, while two agents list, read and follow an honest page. These tests measure the
// cost for others. TestLimits (link), TestPagesThatAreTooMuch and TestFloodIsCutOff (transports)
// prove that each limit ends an attacker.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// maxPeak is the maximum memory of a gateway under attack, in MB.
const maxPeak = 100

// An attack is one life of a raw peer. When it has ended, the peer begins another.
type attack struct {
	name string
	// live is the life of a page, after its hello unless silent is set.
	live   func(p *rawPeer)
	silent bool
	// peers is the number of simultaneous peers; 0 is 1.
	peers int
	// told is in a message to the attacker, or in the gateway's log.
	told string
	// reads is the last part of the attacker's URI that an agent reads meanwhile.
	reads string
	// fails is in the error of such a read.
	fails string
}

const nothing = "" // the gateway tolerates the attacker

// measured is the number of timed reads.
const measured = 300

// attacks are those of a hostile page on other pages' lists, memory and time. 1 << 20 is "1 MB".
var attacks = []attack{
	{name: "none, but processors that are busy", told: nothing, peers: 2, live: func(p *rawPeer) {
		for p.ctx.Err() == nil {
		}
	}},
	{name: "71 descriptors of 1 MB", told: "the limit is",
		live: func(p *rawPeer) { p.register(71, 1, 1<<20) }},
	{name: "a descriptor of 100 MB", told: "a message is too long; the limit is 17825792 bytes",
		live: func(p *rawPeer) { p.register(1, 1, 100<<20) }},
	{name: "300 descriptors of 261 KB", told: "the limit is",
		live: func(p *rawPeer) { p.register(300, 1, 261<<10) }},
	{name: "60 descriptors of 255 KB, from pages that come and go", told: nothing, peers: 3,
		live: func(p *rawPeer) { p.register(60, 1, 255<<10) }},
	{name: "10,001 resources", told: "the page has too many; the limit is 10000",
		live: func(p *rawPeer) { p.register(11, 1000, 1); p.stay() }},
	{name: "200,000 resources", told: "it says more calls than it may; the limit is 5000 a second",
		live: func(p *rawPeer) { p.register(200, 1000, 1) }},
	{name: "100,000 tools", told: "tools refused: 99000 of 100000 are left out",
		live: func(p *rawPeer) { p.say([]any{"setTools", manyTools()}); p.stay() }},
	{name: "endless bytes before the hello", told: "the limit is 65536", peers: 60, silent: true,
		live: func(p *rawPeer) { p.unfinished(1 << 40) }},
	{name: "frames that never end", told: "a message was left unfinished", peers: 40,
		live: func(p *rawPeer) { p.unfinished(16 << 20); p.stay() }},
	{name: "answers of 17 MB", reads: "big", fails: "the limit is 16777216",
		live: func(p *rawPeer) { p.answer("big", 16<<20+1) }},
	{name: "answers of 15 MB", reads: "big", live: func(p *rawPeer) { p.answer("big", 15<<20) }},
	{name: "a list that changes without end", told: "the limit is 5000 a second",
		live: func(p *rawPeer) { p.churn(`["register",%s],["unregister",%s]`) }},
	{name: "touches without end", told: "the limit is 5000 a second",
		live: func(p *rawPeer) { p.churn(`["touch",%[2]s,7]`) }},
	{name: "touches without end, of many pages", told: nothing, peers: 60,
		live: func(p *rawPeer) { p.churn(`["touch",%[2]s,7]`) }},
	{name: "as many touches as a page may say, of many pages", told: nothing, peers: 60,
		live: func(p *rawPeer) { p.steady(`[["touch","`+raiderOrigin+`/evil/0",7]]`, 4000) }},
}

func manyTools() string {
	var list []map[string]any
	for n := range 100_000 {
		list = append(list,
			map[string]any{"name": fmt.Sprint("t", n),
				"inputSchema": map[string]any{"type": "object"}})
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// A siege has two agents and an honest page.
type siege struct {
	t             *testing.T
	attack        attack
	h             userHome
	first, second *started
	honest        *testkit.Page
	count         int
}

const (
	honestOrigin = "http://localhost:3000"
	honestURI    = honestOrigin + "/count"
)

func TestAttacks(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			h := newHome(t)
			f := &siege{t: t, attack: a, h: h, first: h.serve(t), second: h.serve(t),
				honest: testkit.NewPage(t, map[string]string{honestURI: "0"})}
			f.honest.Dial(h.hub, honestOrigin, "")
			for _, a := range []*started{f.first, f.second} {
				testkit.Eventually(t, "the honest page is listed",
					func() bool { return a.Offers(honestURI) })
				a.Watch(honestURI)
			}
			f.fight()
		})
	}
}

func (f *siege) fight() {
	t := f.t
	f.reads(20) // objects that are made only once
	calm := f.reads(measured)
	raiders := testcmd.CommandContext(context.Background(), os.Args[0])
	raiders.Env = append(os.Environ(), raidersName+"="+f.attack.name, raidersHub+"="+f.h.hub)
	told := testkit.LogOf(t, "what the attackers are told")
	raiders.Stdout = told
	in, err := raiders.StdinPipe()
	if err == nil {
		err = raiders.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		raiders.Wait()
	})
	if f.attack.told != nothing {
		testkit.Eventually(t, "the attacker is told, or the log says, "+f.attack.told, func() bool {
			return told.Has(f.attack.told) || strings.Contains(f.h.log(), f.attack.told)
		})
	}
	if f.attack.reads != "" {
		testkit.Eventually(t, "reads of the attacker end as they should", f.readsEvil)
	}
	for range 3 {
		f.unharmed()
	}
	harsh := f.reads(measured)
	f.unharmed()
	daemon, pipe := peak(t, f.h.daemon(t)), peak(t, f.second.cmd.Process.Pid)
	t.Logf("reads p50 %v, p99 %v without, %v, %v with the attacker; VmHWM of the daemon %d MB, of an agent's pipe %d MB",
		calm[measured/2], calm[measured*99/100], harsh[measured/2], harsh[measured*99/100], daemon,
		pipe)
	if daemon >= maxPeak || pipe >= maxPeak {
		t.Errorf("VmHWM of the daemon is %d MB, of an agent's pipe %d MB, want below %d", daemon,
			pipe, maxPeak)
	}
}

// readsEvil reads the attacker's resource as an agent does, and reports whether the read ends as it
// should.
func (f *siege) readsEvil() bool {
	_, err := f.second.ReadResource(f.t.Context(),
		&mcp.ReadResourceParams{URI: raiderOrigin + "/evil/" + f.attack.reads})
	if f.attack.fails == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), f.attack.fails)
}

func (f *siege) unharmed() {
	f.t.Helper()
	f.count++
	value := strconv.Itoa(f.count)
	f.honest.Set(honestURI, value)
	for _, a := range []*started{f.first, f.second} {
		if !a.Offers(honestURI) {
			f.t.Errorf("the honest page is not listed")
		}
		a.holds(honestURI, value)
	}
}

// reads times n reads of the honest page, and returns the durations, sorted.
func (f *siege) reads(n int) (took []time.Duration) {
	f.t.Helper()
	for range n {
		began := time.Now()
		if _, err := f.first.Read(honestURI); err != nil {
			f.t.Fatalf("read the honest page: %v", err)
		}
		took = append(took, time.Since(began).Round(10*time.Microsecond))
	}
	slices.Sort(took)
	return took
}

// peak returns the maximum memory of a process so far, in MB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	kb, _ := strconv.Atoi(string(m[1]))
	return kb / 1000
}

// raiders attack from a process of their own. In the honest agent's process they would delay its
// reads themselves.
type raiders struct {
	attack attack
	hub    string

	mu   sync.Mutex
	told map[string]bool
}

const (
	raidersName, raidersHub = "PAGEWIRE_RAIDERS", "PAGEWIRE_RAIDERS_HUB"
	raiderOrigin            = "http://localhost:4000" // of the attackers' pages
)

// init runs the attackers, if the environment names an attack, until standard input ends.
func init() {
	i := slices.IndexFunc(attacks, func(a attack) bool { return a.name == os.Getenv(raidersName) })
	if i < 0 {
		return
	}
	r := &raiders{attack: attacks[i], hub: os.Getenv(raidersHub), told: map[string]bool{}}
	for range max(1, r.attack.peers) {
		go func() {
			for {
				r.live(context.Background())
			}
		}()
	}
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// hears passes each message to the attackers on, once.
func (r *raiders) hears(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.told[text] {
		r.told[text] = true
		fmt.Println(text)
	}
}

// A rawPeer is one connection of an attacker to the WebSocket of pages.
type rawPeer struct {
	r     *raiders
	ctx   context.Context
	conn  *websocket.Conn
	calls chan []any // the gateway's messages
	over  chan struct{}
}

func (r *raiders) live(ctx context.Context) {
	conn, _, err := websocket.Dial(ctx, "ws://"+r.hub+"/page", &websocket.DialOptions{
		Subprotocols: []string{"pagewire.v1"}, HTTPHeader: http.Header{"Origin": {raiderOrigin}},
	})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	ctx, end := context.WithCancel(ctx)
	defer end()
	p := &rawPeer{r, ctx, conn, make(chan []any, 1000), make(chan struct{})}
	go p.listen(end)
	if !r.attack.silent {
		p.say([]any{"hello", 1, "0",
			map[string]any{"epoch": "e", "tab": strings.Repeat("0", 8) +
				strconv.FormatInt(time.Now().UnixNano(), 36)}})
	}
	r.attack.live(p)
	end()
	<-p.over
}

// listen receives the gateway's messages, and ends the peer with the connection.
func (p *rawPeer) listen(end func()) {
	defer close(p.over)
	defer end()
	for {
		_, text, err := p.conn.Read(p.ctx)
		if err != nil {
			p.r.hears(err.Error())
			return
		}
		var calls [][]any
		json.Unmarshal(text, &calls)
		for _, c := range calls {
			if c[0] == "report" || c[0] == "refused" {
				p.r.hears(c[1].(string))
			}
			select {
			case p.calls <- c:
			default:
			}
		}
	}
}

func (p *rawPeer) raw(frame string) { p.conn.Write(p.ctx, websocket.MessageText, []byte(frame)) }

func (p *rawPeer) say(calls ...[]any) {
	text, _ := json.Marshal(calls)
	p.raw(string(text))
}

func (p *rawPeer) stay() { <-p.ctx.Done() }

func (p *rawPeer) registration(name any, size int) []any {
	text, _ := json.Marshal(map[string]any{"uri": fmt.Sprint(raiderOrigin, "/evil/", name),
		"name": strings.Repeat("n", size)})
	return []any{"register", string(text)}
}

// register sends `frames` frames of `each` descriptors of about `size` bytes.
func (p *rawPeer) register(frames, each, size int) {
	for k := 0; k < frames && p.ctx.Err() == nil; k++ {
		var calls [][]any
		for n := range each {
			calls = append(calls, p.registration(k*each+n, size))
		}
		p.say(calls...)
	}
}

// unfinished begins a message, and stops after so many bytes.
func (p *rawPeer) unfinished(bytes int) {
	w, err := p.conn.Writer(p.ctx, websocket.MessageText)
	piece := []byte(strings.Repeat(" ", 64<<10))
	for sent := 0; sent < bytes && err == nil; sent += len(piece) {
		_, err = w.Write(piece)
	}
}

// steady sends a frame perSecond times a second, until the peer ends.
func (p *rawPeer) steady(frame string, perSecond int) {
	const tick = 10 * time.Millisecond
	for t := time.NewTicker(tick); p.ctx.Err() == nil; <-t.C {
		for range perSecond / int(time.Second/tick) {
			p.raw(frame)
		}
	}
}

// answer registers a resource, and answers its reads with so many bytes.
func (p *rawPeer) answer(name string, bytes int) {
	p.say(p.registration(name, 1))
	text := strings.Repeat("x", bytes)
	for {
		select {
		case <-p.ctx.Done():
			return
		case c := <-p.calls:
			if c[0] == "read" {
				p.raw(fmt.Sprintf(`=%.0f 0 [{"uri":%q,"text":"%s"}]`, c[1], c[3], text))
			}
		}
	}
}

// churn sends calls with one descriptor and its URI without end.
func (p *rawPeer) churn(calls string) {
	descriptor := strconv.Quote(p.registration(0, 1)[1].(string))
	frame := fmt.Sprintf("["+calls+"]", descriptor, strconv.Quote(raiderOrigin+"/evil/0"))
	frame, _, _ = strings.Cut(frame, "%!(EXTRA")
	for p.ctx.Err() == nil {
		p.raw(frame)
	}
}
