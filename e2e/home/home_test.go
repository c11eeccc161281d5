package home

// A home under fire: many connections at once that ask for all sorts of things, break off, or do not read, while
// resources change, come and go. What must hold throughout is that answers and notifications reach who asked for them,
// and afterwards that nothing at all is left. It is run with -race.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestHammer(t *testing.T) {
	const connections, generations, requests = 50, 3, 60
	before := runtime.NumGoroutine()
	refuse := errors.New("refused")
	h := NewAsking(bridge.Options{Rule: bridge.Rule{Origin: Origin}, UpdateInterval: 5},
		func(uri string, touch func(uri string)) error {
			switch rand.IntN(10) {
			case 0:
				return refuse
			case 1:
				touch(uri)
			}
			return nil
		})
	for i := range 8 {
		h.Set(fmt.Sprintf("%s/value/%d", Origin, i), "0")
	}
	h.Add(Origin+"/quick/{n}", func(_ context.Context, r bridge.Request) (string, error) { return r.Params, nil })
	h.Add(Origin+"/never", func(ctx context.Context, _ bridge.Request) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})

	stop := make(chan struct{})
	var changes sync.WaitGroup
	for i := range 4 {
		changes.Go(func() {
			mine := fmt.Sprintf("%s/mine/%d", Origin, i)
			for n := 0; ; n++ {
				select {
				case <-stop:
					h.Remove(mine)
					return
				default:
				}
				switch rand.IntN(20) {
				case 0:
					h.Remove(mine)
				case 1, 2:
					h.Set(mine, fmt.Sprint(n))
				case 3:
					h.Touch(Origin + "/quick/{n}")
				default:
					h.Set(fmt.Sprintf("%s/value/%d", Origin, rand.IntN(8)), fmt.Sprint(n))
				}
				time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			}
		})
	}

	var agents sync.WaitGroup
	for n := range connections {
		agents.Go(func() {
			for generation := range generations {
				a := connect(t, h, fmt.Sprintf("%d.%d.", n, generation))
				for range requests {
					a.ask()
				}
				a.leave()
			}
		})
	}
	agents.Wait()
	close(stop)
	changes.Wait()
	testkit.Eventually(t, "all that the agents held is gone", func() bool { return nothing(h.Stats()) })

	// The last ones are sent away by the home.
	var last []*agent
	for n := range 10 {
		a := connect(t, h, fmt.Sprintf("last%d.", n))
		for range 10 {
			a.ask()
		}
		last = append(last, a)
	}
	h.Shutdown()
	for _, a := range last {
		select {
		case <-a.ended:
		case <-time.After(testkit.Patience):
			t.Fatal("a connection outlives Shutdown")
		}
		a.write.Close()
	}
	if s := h.Stats(); !nothing(s) {
		t.Errorf("left after Shutdown: %+v", s)
	}
	if late := connect(t, h, "late."); true {
		select {
		case <-late.ended:
		case <-time.After(testkit.Patience):
			t.Error("a connection begins after Shutdown")
		}
		late.write.Close()
	}
	testkit.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// nothing reports whether no agent holds anything any more.
func nothing(s bridge.Stats) bool {
	return s.Ports == 0 && s.Subscriptions == 0 && s.Listens == 0 && s.Calls == 0 && s.Watched == 0
}

// An agent is one connection. Its ids all begin with its name, so that what reaches the wrong one shows.
type agent struct {
	t     *testing.T
	name  string
	write *io.PipeWriter
	read  *io.PipeReader
	ended chan struct{} // closed when the home has ended the connection
	pong  chan struct{}
	last  int

	mu    sync.Mutex
	asked map[string]bool // ids: false for what was cancelled
	pause time.Duration   // before each line that is read
}

func connect(t *testing.T, h *Home, name string) *agent {
	read, theirWriter := io.Pipe()
	theirReader, write := io.Pipe()
	a := &agent{t: t, name: name, write: write, read: read, ended: make(chan struct{}), pong: make(chan struct{}),
		asked: map[string]bool{}}
	if rand.IntN(10) == 0 {
		a.pause = 200 * time.Microsecond // so slow that its port becomes one that takes no more
	}
	go func() {
		if err := h.Serve(theirReader, theirWriter); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	}()
	go a.listen()
	return a
}

// ask sends one message of some kind.
func (a *agent) ask() {
	a.last++
	id := fmt.Sprintf("%s%d", a.name, a.last)
	uri := Origin + [...]string{"/value/1", "/value/2", "/value/3", "/mine/0", "/mine/1", "/quick/1", "/quick/2",
		"/never", "/unknown"}[rand.IntN(9)]
	const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	request := func(method, params string) string {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked[id] = true
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":{%s}}`, id, method, params)
	}
	cancel := func() string {
		other := fmt.Sprintf("%s%d", a.name, 1+rand.IntN(a.last))
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q}}`, other)
	}
	var line string
	switch rand.IntN(12) {
	case 0:
		line = request("initialize",
			`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}`)
	case 1:
		line = request("resources/list", [...]string{"", modern}[rand.IntN(2)])
	case 2, 3:
		line = request("resources/read", fmt.Sprintf(`"uri":%q`, uri))
	case 4:
		line = request("resources/read", fmt.Sprintf(`%s,"uri":%q`, modern, uri))
	case 5, 6:
		line = request("resources/subscribe", fmt.Sprintf(`"uri":%q`, uri))
	case 7:
		line = request("resources/unsubscribe", fmt.Sprintf(`"uri":%q`, uri))
	case 8, 9:
		line = request("subscriptions/listen",
			fmt.Sprintf(`%s,"notifications":{"resourcesListChanged":true,"resourceSubscriptions":[%q,%q]}`, modern, uri,
				Origin+"/value/4"))
	case 10:
		line = cancel()
	default:
		line = [...]string{"{", "[]", "null", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
			"\x00\xff"}[rand.IntN(6)]
	}
	a.send(line)
}

func (a *agent) send(line string) {
	if _, err := io.WriteString(a.write, line+"\n"); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		a.t.Error(err)
	}
}

// leave ends the connection: in order, having been answered once more, or just so.
func (a *agent) leave() {
	if rand.IntN(2) == 0 {
		a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"ping"}`, a.name+"pong"))
		select {
		case <-a.pong:
		case <-time.After(testkit.Patience):
			a.t.Error("a ping is not answered")
		}
		a.write.Close()
	} else {
		a.read.Close()
		a.write.Close()
	}
	select {
	case <-a.ended:
	case <-time.After(testkit.Patience):
		a.t.Error("the home does not end a connection that has ended")
	}
}

// listen reads what the home sends, and checks that it is for this agent.
func (a *agent) listen() {
	defer close(a.ended)
	lines := bufio.NewScanner(a.read)
	for lines.Scan() {
		time.Sleep(a.pause)
		var m struct {
			ID     string
			Method string
			Params struct {
				Meta map[string]any `json:"_meta"`
			}
			Error *struct{ Code int }
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			a.t.Errorf("not JSON (%v): %s", err, lines.Text())
			return
		}
		id := m.ID
		if s, ok := m.Params.Meta["io.modelcontextprotocol/subscriptionId"].(string); ok {
			id = s
		}
		if id == a.name+"pong" {
			close(a.pong)
			continue
		}
		a.mu.Lock()
		switch {
		case id != "" && !strings.HasPrefix(id, a.name):
			a.t.Errorf("agent %s gets what is for another: %s", a.name, lines.Text())
		case m.Method == "" && m.Error != nil && m.ID == "": // to what had no id
		case m.Method == "" && !a.asked[m.ID]:
			a.t.Errorf("answered twice, or never asked: %s", lines.Text())
		case m.Method == "":
			delete(a.asked, m.ID)
		}
		a.mu.Unlock()
	}
}

// A connection that is not read makes its port one that takes no more, and one that takes everything again later.
func TestSlowReader(t *testing.T) {
	h := New(bridge.Options{Rule: bridge.Rule{Origin: Origin}, UpdateInterval: -1})
	h.Set(Origin+"/a", "0")
	read, theirWriter := io.Pipe()
	theirReader, write := io.Pipe()
	served := make(chan error)
	go func() { served <- h.Serve(theirReader, theirWriter) }()
	lines := bufio.NewScanner(read)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"https://x.test/a"}}`,
	} {
		if _, err := io.WriteString(write, line+"\n"); err != nil || !lines.Scan() {
			t.Fatal(err, lines.Err())
		}
	}
	for i := range 1000 {
		h.Set(Origin+"/a", fmt.Sprint(i+1))
	}
	sent := h.Stats().Updates
	if sent > 2*backlog {
		t.Errorf("%d updates are sent to a connection that nobody reads", sent)
	}
	for range sent { // the queue drains, and then the one comes that waited
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	if !lines.Scan() || !strings.Contains(lines.Text(), "updated") {
		t.Errorf("the last change is not announced: %s", lines.Text())
	}
	if got := h.Stats().Updates; got != sent+1 {
		t.Errorf("%d updates in all, want %d", got, sent+1)
	}
	write.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
