package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/bus"
	"github.com/pagewire/pagewire/bridge/gateway/internal/quota"
	"github.com/pagewire/pagewire/bridge/gateway/relay"
	"github.com/pagewire/pagewire/bridge/gateway/weborigin"
	"github.com/pagewire/pagewire/bridge/link"
)

// Options say how a node takes part.
type Options struct {
	// Version is what agents, pages and other nodes are told. Default "0".
	Version string
	// Bus says where the others are. Changed and Lost are the node's own.
	Bus bus.Options
	// Space begins the names of all subjects. Default "pagewire".
	Space string
	// URL is where other nodes reach this one's HTTP; "" if they do not. InsecureHTTP lets this one reach others without
	// TLS past loopback.
	URL          string
	InsecureHTTP bool
	// Interval is how often a node says that it is there, and what was sent. Default 1 s.
	Interval time.Duration
	// Idle is how long a user's gateway stays that no agent uses. Default 5 minutes.
	Idle time.Duration
	// Limits bound what one page may say, OfferedBytes what all pages of the node offer, and UserBytes what those of
	// one user do. Default link.Limits', 1 GiB and 64 MiB.
	Limits                  link.Limits
	OfferedBytes, UserBytes int64
	// WaitingBytes bounds what waits for all agents at the node that do not read, and as much may wait for the gateways
	// of their users: what comes from other nodes. Default 512 MiB.
	WaitingBytes int64
	// Pages bounds the pages of the node, and UserPages those that one user has there. Default 100,000 and 256.
	Pages, UserPages int
	// UserMessages is how many messages a second what one user's pages say may cost on the bus, and five times as many
	// at once: above that they are not heard for a while. Default 2,000.
	UserMessages int
	// Users bounds for how many users there are agents at the node, and OtherUsers for how many others there are agents
	// of one user who may act for others. Default 20,000 and 1,000.
	Users, OtherUsers int
	// Tracer follows what agents ask for. Default none.
	Tracer Tracer
	// Gateway is how the gateways of users behave.
	Gateway gateway.Options
	// Log receives what happens. Default none.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Version, o.Space = cmp.Or(o.Version, "0"), cmp.Or(o.Space, "pagewire")
	o.Interval, o.Idle = cmp.Or(o.Interval, time.Second), cmp.Or(o.Idle, 5*time.Minute)
	o.OfferedBytes, o.UserBytes = cmp.Or(o.OfferedBytes, 1<<30), cmp.Or(o.UserBytes, 64<<20)
	o.WaitingBytes = cmp.Or(o.WaitingBytes, 512<<20)
	o.Pages, o.UserPages = cmp.Or(o.Pages, 100_000), cmp.Or(o.UserPages, 256)
	o.UserMessages = cmp.Or(o.UserMessages, defaultPace)
	o.Users, o.OtherUsers = cmp.Or(o.Users, 20_000), cmp.Or(o.OtherUsers, 1000)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Gateway.Version, o.Gateway.Log = o.Version, nil // of a user's pages it would log the URLs
	return o
}

// A Node is one of a fleet. Its methods may be called concurrently.
type Node struct {
	o     Options
	id    string
	bus   *bus.Bus
	began time.Time
	relay relay.Options

	offered *quota.Quota // what all pages offer, by user
	waiting *quota.Quota // what waits for the gateways of users

	// drops, in tests, reports whether a message gets lost.
	drops atomic.Pointer[func(subject string, text []byte) bool]

	stop    chan struct{}
	running sync.WaitGroup
	counts  counts

	mu       sync.Mutex
	closed   bool
	beats    uint64
	beaten   time.Time     // when the last one was said
	met      bool          // another node has been heard, or there need be none
	warned   bool          // it was logged that none was
	latency  time.Duration // until this node heard it
	peers    map[string]*peer
	unlike   map[string]*peer // nodes of another version
	lastPage uint64
	pages    map[uint64]*Page
	users    map[string]*userPages             // with pages here
	spent    map[string]*rate.Limiter          // by user whose last page has gone: its budget, until it is whole again
	cores    map[string]map[uint64]*remoteCore // of pages here, by the core's node and session
	lastCore uint64                            // session of a core here
	sessions map[uint64]*session               // of cores here
	readers  map[readerKey]*Reader             // users that have agents here
	others   map[string]int                    // by user: how many of those were made for agents of that other user
	asking   []string                          // users that are asked for, interval by interval
	found    []finding                         // that are to be said again
	finds    uint64                            // all that there have been
}

// A peer is a node that is alive, this one too.
type peer struct {
	count uint64
	seen  time.Time
	url   string
	older bool          // of one of another version: it has been there for longer than this node, or for as long
	dead  chan struct{} // closed when it is
}

// deadAfter is after how many intervals a node that is silent is dead, and warnAfter after how many one that has heard
// none says so.
const deadAfter, warnAfter = 3, 10

// Each lookPause a node looks for others that the bus is connected with anew, and then sends saidAnew beats and sums, one
// each: the bus may not know at once that the other hears them. Agents are told a second sooner than by the next beat.
const lookPause, saidAnew = 100 * time.Millisecond, 3

// ErrFull is what Attach and Reader fail with above a limit, and ErrClosed after Close.
var (
	ErrFull   = errors.New("this node takes no more")
	ErrClosed = errors.New("this node goes away")
)

// spaceShape is that of Options.Space: a wildcard in it would have the node hear all other fleets of its cluster.
var spaceShape = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,7}$`)

// CheckURL says what is wrong with a node's URL. Agents' tokens pass there: it must be https, or on loopback, unless
// insecure says that nobody else is on the network between nodes. Each node checks its own, and those that it hears.
func CheckURL(text string, insecure bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("%.100q is no URL of a node: it is like https://10.0.0.7:8443", text)
	case u.Scheme == "http" && !insecure && !weborigin.IsLoopback(text):
		return fmt.Errorf("at %.100q other nodes would pass tokens on without TLS: use https, with --tls-cert and "+
			"--tls-key, or say --insecure-http if nobody else is on the network between nodes", text)
	}
	return nil
}

// Open makes a node and takes it onto the bus. Where that is not there yet, it goes on trying.
func Open(o Options) (*Node, error) {
	o = o.withDefaults()
	if !spaceShape.MatchString(o.Space) {
		return nil, fmt.Errorf("%.100q is not a name for subjects: it must be like pagewire or live.prod, of at most "+
			"64 letters, digits, - and _", o.Space)
	}
	n := &Node{
		o: o, id: rand.Text()[:16], began: time.Now(), stop: make(chan struct{}), peers: map[string]*peer{},
		pages: map[uint64]*Page{}, users: map[string]*userPages{},
		spent: map[string]*rate.Limiter{},
		cores: map[string]map[uint64]*remoteCore{}, sessions: map[uint64]*session{}, readers: map[readerKey]*Reader{},
		others: map[string]int{}, unlike: map[string]*peer{}, met: len(o.Bus.Join) == 0,
	}
	n.counts.refused, n.counts.logged = map[string]int64{}, map[string]time.Time{}
	n.offered, n.waiting = quota.New(o.OfferedBytes, o.UserBytes), quota.New(o.WaitingBytes, maxTodo)
	n.relay = relay.Options{Build: o.Version, Limits: o.Limits, Offered: n.offered, Send: n.toCore,
		AnyScheme: o.Gateway.AnyScheme}
	n.o.Gateway.Pool = gateway.NewPool(o.WaitingBytes, func() { n.Refuse("agent: reads nothing") })
	if o.Bus.Name == "" {
		o.Bus.Name = n.id
	}
	o.Bus.Log = o.Log
	again := make(chan struct{}, 1)
	ask := func() {
		select {
		case again <- struct{}{}:
		default:
		}
	}
	o.Bus.Lost = func() {
		n.counts.lost.Add(1)
		ask()
	}
	o.Bus.Changed = func(bool) { ask() }
	var err error
	if n.bus, err = bus.Open(o.Bus); err != nil {
		return nil, err
	}
	for subject, take := range map[string]func([]byte){
		n.subject("node", n.id): n.take, n.subject("ask"): n.take, o.Space + ".nodes": n.takeForAll,
	} {
		if _, err := n.bus.Subscribe(subject, take); err != nil {
			n.bus.Close()
			return nil, err
		}
	}
	n.running.Go(func() { n.run(again) })
	return n, nil
}

// ID is the node's name on the bus.
func (n *Node) ID() string { return n.id }

// Up reports whether the bus is there.
func (n *Node) Up() bool { return n.bus.Up() }

// Met reports whether this node has heard the others, if it is to join any: one of them at least, and for two intervals,
// in which each says that it is there. Until then it may wait for a node that is dead: URLOf.
func (n *Node) Met() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.met && (len(n.o.Bus.Join) == 0 || !n.isNew())
}

// Mismatch reports whether a node that has been on the bus for longer than this one has another version of it. It is
// false at the older node, which goes on: an upgrade that cannot succeed ends no fleet.
func (n *Node) Mismatch() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.unlike {
		if p.older {
			return true
		}
	}
	return false
}

// ClusterAddr is where other nodes find this one's server; "" where it listens nowhere.
func (n *Node) ClusterAddr() string { return n.bus.ClusterAddr() }

// Table opens a table that all nodes share: see bus.KV.
func (n *Node) Table(ctx context.Context, name string, age time.Duration) (*bus.KV, error) {
	return n.bus.KV(ctx, strings.ReplaceAll(n.o.Space, ".", "__")+"-"+name, age) // a bucket's name has no dot
}

// URLOf is where a node's HTTP is reached; ok is false if the node is not known to be alive, and dead is closed when it
// is not any more. A node that has just begun waits until it hears the other: it does not know yet where the others are,
// and agents would end sessions that are alive.
func (n *Node) URLOf(ctx context.Context, id string) (url string, dead <-chan struct{}, ok bool) {
	for {
		n.mu.Lock()
		p := n.peers[id]
		if p != nil {
			url, dead = p.url, p.dead
		}
		n.mu.Unlock()
		if p != nil || !n.isNew() {
			return url, dead, p != nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return "", nil, false
		case <-n.stop:
			return "", nil, false
		}
	}
}

// Close takes the node off the bus. Its pages' transports are to be closed, and its agents served no more, before that.
func (n *Node) Close() {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return
	}
	n.closed = true
	pages, readers := slices.Collect(maps.Values(n.pages)), slices.Collect(maps.Values(n.readers))
	n.mu.Unlock()
	for _, p := range pages {
		p.Lost()
	}
	var closing sync.WaitGroup
	for _, r := range readers {
		closing.Go(r.close) // some agents take a second to take their last word
	}
	closing.Wait()
	close(n.stop)
	n.running.Wait() // a beat behind the last word would bring the node back
	n.publish(n.o.Space+".nodes", []byte(kindBye+" "+version+" "+n.id+"\n"))
	n.bus.Close()
}

// subject is one that only nodes of this version use.
func (n *Node) subject(words ...string) string {
	return n.o.Space + "." + version + "." + strings.Join(words, ".")
}

// now is the clock of links.
func (n *Node) now() bridge.Time { return bridge.Time(time.Since(n.began).Milliseconds()) }

// publish says something on the bus. The receiver notices what gets lost.
func (n *Node) publish(subject string, pieces ...[]byte) {
	if drops := n.drops.Load(); drops != nil && (*drops)(subject, slices.Concat(pieces...)) {
		return
	}
	if n.bus.Publish(subject, pieces...) == nil {
		n.counts.said.Add(1)
	} else {
		n.counts.unsaid.Add(1)
	}
}

func (n *Node) sendTo(node string, pieces ...[]byte) { n.publish(n.subject("node", node), pieces...) }

func (n *Node) take(text []byte) {
	m, ok := parse(text)
	if !ok {
		return
	}
	n.counts.heard.Add(1)
	if k := kinds[m.kind]; k.take != nil && !k.toAll {
		k.take(n, &m)
	}
}

// takeForAll handles messages for all nodes. A node of another version does not belong to this fleet.
func (n *Node) takeForAll(text []byte) {
	m, ok := parse(text)
	if !ok || len(m.words) < 1 {
		return
	}
	if m.from != version {
		n.takeUnlike(&m)
	} else if k := kinds[m.kind]; k.toAll {
		k.take(n, &m)
	}
}

// takeUnlike takes the beat or the bye of a node of another version. What is behind COUNT may differ there.
func (n *Node) takeUnlike(m *message) {
	id := m.words[0]
	n.mu.Lock()
	p, begins := n.unlike[id], false
	switch {
	case m.kind == kindBye:
		delete(n.unlike, id)
	case m.kind == kindBeat && p == nil:
		begins = len(n.unlike) == 0
		n.unlike[id] = &peer{older: m.number(1)+deadAfter >= n.beats, seen: time.Now()}
	case m.kind == kindBeat:
		p.seen = time.Now()
	}
	n.mu.Unlock()
	if begins {
		n.o.Log.Warn("a node of another version is on the bus: it shares nothing with this one, and the younger of the two "+
			"is not ready. Update the older nodes, or give the younger another --space", "node", id, "version", m.from,
			"ours", version)
	}
}

func (n *Node) takeBye(m *message) { n.removePeer(m.words[0], "its node has ended") }

func (n *Node) takeBeat(m *message) {
	id, count, url := m.words[0], m.number(1), strings.TrimPrefix(m.word(2), "-")
	if url != "" && CheckURL(url, n.o.InsecureHTTP) != nil {
		n.Refuse("node: URL", "node", id)
		url = ""
	}
	n.mu.Lock()
	p := n.peers[id]
	news := p == nil || count != p.count+1
	if p == nil {
		p = &peer{dead: make(chan struct{})}
		n.peers[id] = p
	}
	if id == n.id && count == n.beats {
		n.latency = time.Since(n.beaten)
	}
	p.count, p.seen, p.url = count, time.Now(), url
	n.met = n.met || id != n.id
	n.mu.Unlock()
	if news {
		n.askFor(n.subject("node", id), n.readersUsers())
	}
}

func (n *Node) run(again <-chan struct{}) {
	ticks := time.NewTicker(n.o.Interval)
	defer ticks.Stop()
	looks := time.NewTicker(lookPause)
	defer looks.Stop()
	last, peers, more := time.Now(), 0, 0
	for {
		n.beat(time.Since(last) - n.o.Interval)
		last = time.Now()
		for due := false; !due; {
			select {
			case <-n.stop:
				return
			case <-again:
				n.askFor(n.subject("ask"), n.readersUsers())
				due = true
			case <-ticks.C:
				due = true
			case <-looks.C:
				before := peers
				if peers = n.bus.Peers(); peers > before {
					more = saidAnew
				}
				if more > 0 {
					more--
					n.sayBeat()
					n.sumCores()
					n.sumSessions()
				}
			}
		}
	}
}

func (n *Node) sayBeat() {
	n.mu.Lock()
	n.beats++
	n.beaten = time.Now()
	count := n.beats
	n.mu.Unlock()
	n.publish(n.o.Space+".nodes", []byte(kindBeat+" "+version+" "+n.id+" "+strconv.FormatUint(count, 10)+" "+
		cmp.Or(n.o.URL, "-")+"\n"))
}

// beat says that this node is there, and what was sent, and gives up silent nodes. If it is late itself, as in a
// process that was stopped, the others have that time more.
func (n *Node) beat(late time.Duration) {
	n.sayBeat()
	var dead []string
	n.mu.Lock()
	for id, p := range n.peers {
		if late > n.o.Interval {
			p.seen = p.seen.Add(late)
		}
		if time.Since(p.seen) > deadAfter*n.o.Interval {
			dead = append(dead, id)
		}
	}
	maps.DeleteFunc(n.unlike, func(_ string, p *peer) bool { return time.Since(p.seen) > deadAfter*n.o.Interval })
	dead = append(dead, n.neverHeard()...)
	alone := !n.met && !n.warned && n.beats >= warnAfter
	n.warned = n.warned || alone
	n.forgetSpent()
	n.mu.Unlock()
	if alone {
		n.o.Log.Warn("no other node has been heard: is one at an address of --join, with the same secret?")
	}
	for _, id := range dead {
		n.o.Log.Warn("a node is silent, and its pages and agents are given up", "node", id)
		n.removePeer(id, "its node is silent")
	}
	n.sumCores()
	n.sumSessions()
	n.sayFound()
	n.askSome()
	n.closeIdle()
}

// neverHeard are the nodes that have had sessions with this one for long, and have never sent a beat. The lock is held.
func (n *Node) neverHeard() (nodes []string) {
	old := func(began time.Time) bool { return time.Since(began) > deadAfter*n.o.Interval }
	for id, cores := range n.cores {
		for _, f := range cores {
			if n.peers[id] == nil && old(f.began) {
				nodes = append(nodes, id)
				break
			}
		}
	}
	for _, s := range n.sessions {
		if n.peers[s.at.node] == nil && old(s.began) && !slices.Contains(nodes, s.at.node) {
			nodes = append(nodes, s.at.node)
		}
	}
	return nodes
}

// removePeer ends all that this node has with a dead one.
func (n *Node) removePeer(id, reason string) {
	n.mu.Lock()
	if p := n.peers[id]; p != nil {
		close(p.dead)
		delete(n.peers, id)
	}
	cores := slices.Collect(maps.Values(n.cores[id]))
	var sessions []*session
	for _, s := range n.sessions {
		if s.at.node == id {
			sessions = append(sessions, s)
		}
	}
	n.mu.Unlock()
	for _, f := range cores {
		f.leave()
	}
	for _, s := range sessions {
		s.r.mailbox.post(func() { s.end(reason) })
	}
}

func (n *Node) askFor(subject string, users []string) {
	if len(users) > 0 {
		n.publish(subject, []byte(kindAsk+" "+n.id+"\n"), []byte(strings.Join(users, "\n")))
	}
}

// partOf is the part of the users that is asked for each interval.
const partOf = 10

func (n *Node) askSome() {
	if len(n.asking) == 0 {
		n.asking = n.readersUsers()
	}
	n.mu.Lock()
	some := min(len(n.asking), len(n.readers)/partOf+1)
	n.mu.Unlock()
	n.askFor(n.subject("ask"), n.asking[:some])
	n.asking = n.asking[some:]
}
