//go:build soak

package e2e

import (
	"io"
	"os/exec"
	"sync"
	"syscall"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/generated"
)

// A soakWeb is another user's gateway for agents on HTTP, which gets SIGKILL. Both official
// TypeScript clients, one of each era, take what the gate's generator makes.
type soakWeb struct {
	s       *soak
	h       userHome
	address string
	process *exec.Cmd
	page    *hostilePage
	script  string
	clients []*client
	cases   []generated.Case
	round   int
}

// hostileCases is how many cases a page offers at once.
const hostileCases = 20

func (s *soak) openWeb() *soakWeb {
	w := &soakWeb{s: s, h: newHome(s.t), address: testkit.Addr(s.t), script: clientScript(s.t, "clients/generated.mjs"),
		cases: generated.Cases(s.rand.Uint64(), 5000)}
	w.h.ctx = s.h.ctx
	w.process = w.h.servesHTTP(s.t, w.address)
	at := w.h.place(s.t, w.address)
	w.page = openHostile(s.t, at)
	openHonest(s.t, at)
	w.connect(at)
	return w
}

func (w *soakWeb) connect(at place) {
	for _, which := range []string{"sdk 1", "sdk 2"} {
		w.clients = append(w.clients, openClient(w.s.t, which, w.script, at))
	}
	testkit.Eventually(w.s.t, "the pages are connected", func() bool {
		o := w.clients[0].do("list")
		return o.lists(generated.Origin+"/marker") && o.lists("innocent")
	})
}

// end ends the gateway. Its clients end before.
func (w *soakWeb) end(signal syscall.Signal) {
	for _, c := range w.clients {
		c.in.(io.Closer).Close()
	}
	w.clients = nil
	_ = w.process.Process.Signal(signal) // its status is no news
	_ = w.process.Wait()
}

func (w *soakWeb) step() {
	if w.s.pick(4) == 0 {
		w.s.did("gateway on HTTP: killed")
		w.end(syscall.SIGKILL)
		w.page.mu.Lock()
		w.page.uris = nil // the next gateway has none of them
		w.page.mu.Unlock()
		w.process = w.h.servesHTTP(w.s.t, w.address)
		w.connect(w.h.place(w.s.t, w.address))
		return
	}
	w.s.did("hostile page")
	from := w.round * hostileCases % len(w.cases)
	some := w.cases[from : from+hostileCases]
	w.round++
	failed := w.s.t.Failed()
	marker := w.page.offer(w.round, some)
	var both sync.WaitGroup
	for _, c := range w.clients {
		both.Go(func() { c.takes(w.round, marker, w.page, some, map[string]int{}) })
	}
	both.Wait()
	if refusal := w.page.Refusal(); refusal != "" {
		w.s.finds(&w.s.wrong, "the link of the hostile page has ended: %s", refusal)
	} else if w.s.t.Failed() && !failed {
		w.s.count(&w.s.wrong)
	}
}
