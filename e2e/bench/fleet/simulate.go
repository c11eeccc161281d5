//go:build !js

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/fleet"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/bus"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets"
)

// A simPage is a page without a socket: its frames are calls of functions.
type simPage struct {
	page     *fleet.Page
	revision atomic.Int64
	watched  atomic.Bool
	changed  chan struct{}
}

// A simulated is a fleet in this process, with pages and agents without sockets: more than there are descriptors for.
type simulated struct {
	nodes  []*fleet.Node
	pages  []*simPage
	agents int
	told   atomic.Int64
}

// simulate opens many pages, each of a user of its own, and a tenth as many agents, whose users are as Zipf has them,
// and says what each costs.
func simulate(pages int) error {
	s := &simulated{}
	defer s.end()
	if err := s.openNodes(4); err != nil {
		return err
	}
	empty := inUse()
	if err := s.openPages(pages); err != nil {
		return err
	}
	idle := inUse()
	row(fmt.Sprintf("simulation: %d pages at 4 nodes", pages), fmt.Sprintf("%.2f KB a page",
		float64(idle-empty)/1024/float64(pages)), "without its socket", "")
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 10, uint64(pages-1))
	before := s.messages()
	began := time.Now()
	if err := s.openAgents(pages/10, zipf); err != nil {
		return err
	}
	users := 0
	for _, n := range s.nodes {
		users += n.Stats().Readers
	}
	each := float64(inUse()-idle) / 1024 / float64(s.agents)
	row(fmt.Sprintf("simulation: %d agents of %d users", s.agents, users), fmt.Sprintf("%.1f KB an agent", each),
		fmt.Sprintf("%.1f messages to come", float64(s.messages()-before)/float64(s.agents)),
		fmt.Sprintf("in %.1f s", time.Since(began).Seconds()))
	return s.change(zipf)
}

func (s *simulated) openNodes(count int) error {
	var join []string
	for range count {
		n, err := fleet.Open(fleet.Options{Pages: 1 << 30, Users: 1 << 30, Bus: bus.Options{Cluster: "127.0.0.1:0",
			Join: join, Secret: "the secret of a simulation"}})
		if err != nil {
			return err
		}
		join = []string{n.ClusterAddr()}
		s.nodes = append(s.nodes, n)
	}
	return eventually("the nodes know each other", func() bool { return s.nodes[0].Stats().Nodes == count })
}

func (s *simulated) end() {
	var all sync.WaitGroup
	for _, n := range s.nodes {
		all.Go(n.Close)
	}
	all.Wait()
}

func (s *simulated) messages() (sum int64) {
	for _, n := range s.nodes {
		sum += n.Stats().Said
	}
	return sum
}

func simUser(i int) string { return tickets.UserOf("simulation", strconv.Itoa(i)) }

const simURI = origin + "/cart"

func (s *simulated) openPages(count int) error {
	for i := range count {
		p := &simPage{changed: make(chan struct{}, 1)}
		var err error
		p.page, err = s.nodes[i%len(s.nodes)].Attach(simUser(i), origin, func(frame []byte) {
			if frame == nil {
				return
			}
			if text := string(frame); strings.Contains(text, `"watched"`) {
				p.watched.Store(strings.Contains(text, ",true]"))
				go p.touch()
			}
		})
		if err != nil {
			return err
		}
		for _, frame := range []string{
			fmt.Sprintf(`[["hello",1,"0",{"epoch":"e%d","tab":"tab-%08d","title":"Cart","url":"https://app.example/"}]]`, i, i),
			`[["register","{\"uri\":\"https://app.example/cart\",\"name\":\"Cart\",\"mimeType\":\"application/json\"}"]]`,
		} {
			if err := p.page.Receive([]byte(frame)); err != nil {
				return err
			}
		}
		s.pages = append(s.pages, p)
	}
	return nil
}

// touch says what the revision is.
func (p *simPage) touch() {
	_ = p.page.Receive(fmt.Appendf(nil, `[["touch",%q,%d]]`, simURI, p.revision.Load())) // of a page that there is
}

func (s *simulated) openAgents(count int, zipf *rand.Zipf) error {
	var answered atomic.Int64
	for i := range count {
		n := s.nodes[i%len(s.nodes)]
		r, _, err := n.Reader(simUser(int(zipf.Uint64())), false, nil)
		if err != nil {
			return err
		}
		<-r.Ready()
		a, err := r.Gateway.Connect(gateway.TransportRequest)
		if err != nil {
			return err
		}
		for _, text := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
				`"clientInfo":{"name":"x","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + simURI + `"}}`,
		} {
			if err := a.Write(context.Background(), []byte(text)); err != nil {
				return err
			}
		}
		s.agents++
		go func() {
			for {
				text, err := a.Read(context.Background())
				switch {
				case err != nil:
					return
				case strings.Contains(string(text), `"id":2`):
					answered.Add(1)
				case strings.Contains(string(text), "resources/updated"):
					s.told.Add(1)
				}
			}
		}()
	}
	return eventually("each has subscribed", func() bool { return int(answered.Load()) == count })
}

// change has pages change as they are looked at, and counts what crosses the bus.
func (s *simulated) change(zipf *rand.Zipf) error {
	const changes = 20_000
	time.Sleep(2 * time.Second) // what begins is over
	idle := s.messages()
	time.Sleep(5 * time.Second)
	perSecond := float64(s.messages()-idle) / 5
	before, told := s.messages(), s.told.Load()
	began := time.Now()
	watched := 0
	for range changes {
		p := s.pages[zipf.Uint64()]
		p.revision.Add(1)
		if p.watched.Load() {
			watched++
			p.touch()
		}
	}
	took := time.Since(began)
	time.Sleep(time.Second)
	crossed := float64(s.messages()-before) - perSecond*(took+time.Second).Seconds()
	row(fmt.Sprintf("simulation: %d changes, %d watched", changes, watched), fmt.Sprintf("%.2f messages a change",
		crossed/float64(max(watched, 1))), fmt.Sprintf("%d updates to agents", s.told.Load()-told), fmt.Sprintf(
		"%.0f messages a second without any", perSecond))
	return nil
}
