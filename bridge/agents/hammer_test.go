package agents

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// Many agents on stdio send random requests at once, break off, or read slowly, while resources change, come and go.
// Answers and notifications reach the agent that asked for them, each answer once, and nothing is left.
func TestHammer(t *testing.T) {
	const connections, generations, requests = 20, 3, 60
	testkit.NoLeak(t)
	p := open(t)
	for i := range 8 {
		p.Offer(fmt.Sprintf("%s/value/%d", origin, i), "0")
	}
	p.Add(origin+"/quick/{n}", func(_ context.Context, uri string) (string, error) { return uri, nil })

	stop := make(chan struct{})
	var changes, agents sync.WaitGroup
	for i := range 4 {
		changes.Go(func() {
			mine := fmt.Sprintf("%s/mine/%d", origin, i)
			for n := 0; ; n++ {
				select {
				case <-stop:
					p.Withdraw(mine)
					return
				default:
				}
				switch rand.IntN(20) {
				case 0:
					p.Withdraw(mine)
				case 1, 2:
					p.Offer(mine, fmt.Sprint(n))
				case 3:
					p.Touch(origin + "/quick/{n}")
				default:
					p.Set(fmt.Sprintf("%s/value/%d", origin, rand.IntN(8)), fmt.Sprint(n))
				}
				time.Sleep(rand.N(300 * time.Microsecond))
			}
		})
	}
	for n := range connections {
		agents.Go(func() {
			for generation := range generations {
				a := hammer(t, p, fmt.Sprintf("%d.%d.", n, generation))
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
	testkit.Eventually(t, "all that the agents held is gone", func() bool { return held(p.g) == 0 })
}

// A hammerer is an agent whose ids all begin with its name, so that a message for another agent is recognized.
type hammerer struct {
	t     *testing.T
	name  string
	in    *io.PipeWriter
	out   *io.PipeReader
	ended chan struct{} // closed when Lines has returned and its output is read
	pong  chan struct{}
	last  int

	mu    sync.Mutex
	asked map[string]bool // ids without an answer
}

func hammer(t *testing.T, p *testPage, name string) *hammerer {
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	a := &hammerer{t: t, name: name, in: in, out: out, ended: make(chan struct{}), pong: make(chan struct{}),
		asked: map[string]bool{}}
	go func() {
		if err := serveLines(t.Context(), p.g, theirIn, theirOut); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
		theirIn.Close()
		theirOut.Close()
	}()
	go a.listen()
	return a
}

// ask sends a random message.
func (a *hammerer) ask() {
	a.last++
	id := fmt.Sprintf("%q", fmt.Sprint(a.name, a.last))
	uri := origin + [...]string{"/value/1", "/value/2", "/mine/0", "/mine/1", "/quick/1", "/slow", "/unknown"}[rand.IntN(7)]
	params := fmt.Sprintf(`"uri":%q`, uri)
	requests := []func() string{
		func() string { return strings.Replace(initialize("c"), `"id":0`, `"id":`+id, 1) },
		func() string { return legacyCall(id, "resources/list", "") },
		func() string { return legacyCall(id, "resources/read", params) },
		func() string { return legacyCall(id, "resources/subscribe", params) },
		func() string { return legacyCall(id, "resources/unsubscribe", params) },
		func() string { return call(id, "resources/list", "") },
		func() string { return call(id, "resources/read", params) },
		func() string { return listen(id, uri) },
	}
	switch n := rand.IntN(len(requests) + 2); n {
	case len(requests):
		a.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%s%d"}}`, a.name,
			1+rand.IntN(a.last)))
	case len(requests) + 1:
		a.send([]string{"{", "[]", "null", `{"jsonrpc":"2.0"}`, "\x00\xff"}[rand.IntN(5)])
	default:
		a.mu.Lock()
		a.asked[strings.Trim(id, `"`)] = true
		a.mu.Unlock()
		a.send(requests[n]())
	}
}

func (a *hammerer) send(line string) {
	if _, err := io.WriteString(a.in, line+"\n"); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		a.t.Error(err)
	}
}

// leave ends the connection: after the answer to a ping, or at once.
func (a *hammerer) leave() {
	if rand.IntN(2) == 0 {
		a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%spong","method":"ping"}`, a.name))
		testkit.Ends(a.t, "a ping is answered", a.pong)
	} else {
		a.out.Close()
	}
	a.in.Close()
	testkit.Ends(a.t, "a connection that its agent has ended", a.ended)
}

// listen reads messages, and checks that they are for this agent.
func (a *hammerer) listen() {
	defer close(a.ended)
	slow := rand.IntN(10) == 0
	for lines := bufio.NewReader(a.out); ; {
		// The last line may be cut off, if an agent that has left did not read it within 700 ms.
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		if slow {
			time.Sleep(200 * time.Microsecond)
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			a.t.Errorf("not JSON (%v): %s", err, line)
			return
		}
		id := strings.Trim(string(m.ID), `"`)
		owner := id
		if s := m.subscription(); s != "" {
			owner = strings.Trim(s, `"`)
		}
		if id == a.name+"pong" {
			close(a.pong)
			continue
		}
		a.mu.Lock()
		switch {
		case owner != "" && owner != "null" && !strings.HasPrefix(owner, a.name):
			a.t.Errorf("agent %s gets what is for another: %s", a.name, line)
		case m.Method != "" || id == "" || id == "null": // a notification, or the answer to a message without an id
		case !a.asked[id]:
			a.t.Errorf("answered twice, or never asked: %s", line)
		default:
			delete(a.asked, id)
		}
		a.mu.Unlock()
	}
}
