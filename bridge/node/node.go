package node

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
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/node/relay"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Options configure a node.
type Options struct {
	// Version is the version that agents, pages and other nodes see. Default "0".
	Version string
	// Bus configures the connection to the other nodes. The node sets Changed and Lost itself.
	Bus bus.Options
	// Space begins the names of all subjects. Default "pagewire".
	Space string
	// URL is where other nodes reach this node's HTTP; "" if they do not. InsecureHTTP lets this node use URLs of others
	// that have no TLS and are not on loopback.
	URL          string
	InsecureHTTP bool
	// Interval is the pause between two beats, and between two sums of the sent frames. Default 1 s.
	Interval time.Duration
	// Idle is how long a user's gateway stays after its last use by an agent. Default 5 minutes.
	Idle time.Duration
	// Limits bound the messages of one page. OfferedBytes bounds the offers of all pages of the node, UserBytes those of
	// one user's pages. Default link.Limits', 1 GiB and 64 MiB.
	Limits                  link.Limits
	OfferedBytes, UserBytes int64
	// WaitingBytes bounds the queues for agents that do not read, over all agents of the node. The same bound holds for
	// the queues of messages from other nodes, over all users' gateways. Default 512 MiB.
	WaitingBytes int64
	// Pages bounds the pages of the node, and UserPages the pages of one user there. Default 100,000 and 256.
	Pages, UserPages int
	// UserMessages bounds the messages a second that one user's pages cost on the bus, with bursts of five times as many.
	// Above that the node pauses reading from these pages. Default 2,000.
	UserMessages int
	// Users bounds the users with agents at the node. OtherUsers bounds the users for whom the agents of one user act
	// there, besides that user. Default 20,000 and 1,000.
	Users, OtherUsers int
	// Tracer follows the requests of agents. Default none.
	Tracer Tracer
	// Gateway configures the gateways of users.
	Gateway gateway.Options
	// Log receives the log. Default none.
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
	o.Gateway.Version, o.Gateway.Log = o.Version, nil // a gateway's log would have the URLs of users' pages
	return o
}

// A Node is one node of a fleet. Its methods may be called concurrently.
type Node struct {
	o     Options
	id    string
	bus   *bus.Bus
	began time.Time
	relay relay.Options

	offered *quota.Quota // bytes of pages' offers, by user
	waiting *quota.Quota // bytes in the queues of users' gateways

	// drops is for tests: it reports whether to lose a message.
	drops atomic.Pointer[func(subject string, text []byte) bool]

	stop    chan struct{}
	running sync.WaitGroup
	counts  counts

	mu       sync.Mutex
	closed   bool
	beats    uint64
	beaten   time.Time     // when the last one was sent
	met      bool          // another node's beat has come, or Options.Bus.Join is empty
	warned   bool          // it was logged that no beat of another node has come
	latency  time.Duration // of this node's last beat over the bus and back
	peers    map[string]*peer
	unlike   map[string]*peer // nodes of another version
	lastPage uint64
	pages    map[uint64]*Page
	users    map[string]*userPages             // users with pages here
	spent    map[string]*rate.Limiter          // budgets of users without pages now, until they are full again
	cores    map[string]map[uint64]*remoteCore // of pages here, by the core's node and session
	lastCore uint64                            // session of a core here
	sessions map[uint64]*session               // of cores here
	readers  map[readerKey]*Reader             // gateways of users with agents here
	others   map[string]int                    // by user: number of readers for other users that this user's agents caused
	asking   []string                          // users whose pages are still to be asked for, some each interval
	found    []finding                         // findings that are to be sent again
	finds    uint64                            // number of the last finding
}

// A peer is a live node, including this one.
type peer struct {
	count uint64
	seen  time.Time
	url   string
	older bool          // of a node of another version: it has run for at least as long as this node
	dead  chan struct{} // closed when the node is dead
}

// deadAfter is the number of silent intervals after which a node counts as dead. warnAfter is the number of beats after
// which a node without any contact logs a warning.
const deadAfter, warnAfter = 3, 10

// Each lookPause a node looks for new connections of its server. It then sends beats and sums, saidAnew times: the
// other node may not have subscribed yet. So agents are notified up to a second earlier than by the next beat.
const lookPause, saidAnew = 100 * time.Millisecond, 3

// ErrFull is the error of Attach and Reader above a limit, and ErrClosed after Close.
var (
	ErrFull   = errors.New("this node takes no more")
	ErrClosed = errors.New("this node goes away")
)

// spaceShape is the shape of Options.Space. With a wildcard a node would get the messages of all fleets of its cluster.
var spaceShape = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,7}$`)

// CheckURL says what is wrong with a node's URL: agents' tokens are sent to it. It must be https, or on loopback,
// unless insecure says that nobody else is on the nodes' network. Each node checks its own URL and those in beats.
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

// Open makes a node and connects it to the bus. If the bus is not there yet, the node goes on trying.
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
		n.subject("node", n.id): n.receive, n.subject("ask"): n.receive, o.Space + ".nodes": n.receiveForAll,
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

// Up reports whether the bus is connected.
func (n *Node) Up() bool { return n.bus.Up() }

// Met reports whether Options.Bus.Join is empty, or another node's beat has come and two intervals have passed, in
// which each node sends a beat. Until then URLOf may wait for a dead node.
func (n *Node) Met() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.met && (len(n.o.Bus.Join) == 0 || !n.isNew())
}

// Mismatch reports whether a node that has run for longer than this one uses another version of the bus. It is false at
// the older node, which goes on: an upgrade that cannot succeed ends no fleet.
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

// ClusterAddr is the address of this node's server for other nodes; "" if it listens nowhere.
func (n *Node) ClusterAddr() string { return n.bus.ClusterAddr() }

// Table opens a table that all nodes share: see bus.KV.
func (n *Node) Table(ctx context.Context, name string, age time.Duration) (*bus.KV, error) {
	return n.bus.KV(ctx, strings.ReplaceAll(n.o.Space, ".", "__")+"-"+name, age) // a bucket's name has no dot
}

// URLOf is where a node's HTTP is reached; ok is false if the node is not known to be alive. dead is closed when the
// node is not alive any more. A node that has begun less than two intervals ago waits for a beat of the other: it does
// not know all nodes yet, and agents would end sessions that are alive.
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

// Close disconnects the node from the bus. The caller must close its pages' transports and stop serving agents before.
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
		closing.Go(r.close) // some agents take a second for their last message
	}
	closing.Wait()
	close(n.stop)
	n.running.Wait() // a beat after the bye would bring the node back
	n.publish(n.o.Space+".nodes", []byte(kindBye+" "+version+" "+n.id+"\n"))
	n.bus.Close()
}

// subject returns a subject that only nodes of this version use.
func (n *Node) subject(words ...string) string {
	return n.o.Space + "." + version + "." + strings.Join(words, ".")
}

// now is the clock of links, in milliseconds since the node began.
func (n *Node) now() bridge.Time { return bridge.Time(time.Since(n.began).Milliseconds()) }

// publish sends a message. The receiver notices a loss.
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

func (n *Node) receive(text []byte) {
	m, ok := parse(text)
	if !ok {
		return
	}
	n.counts.heard.Add(1)
	if k := kinds[m.kind]; k.take != nil && !k.toAll {
		k.take(n, &m)
	}
}

// receiveForAll handles messages for nodes of all versions. A node of another version is not one of this fleet.
func (n *Node) receiveForAll(text []byte) {
	m, ok := parse(text)
	if !ok || len(m.words) < 1 {
		return
	}
	if m.from != version {
		n.receiveOtherVersion(&m)
	} else if k := kinds[m.kind]; k.toAll {
		k.take(n, &m)
	}
}

// receiveOtherVersion handles a beat or bye of a node of another version. The words after COUNT may differ there.
func (n *Node) receiveOtherVersion(m *message) {
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

// beat sends a beat and the sums, and gives up silent nodes. If this node is late itself, as in a process that was
// stopped, the other nodes get so much more time.
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

// neverHeard returns the nodes with a session for over three intervals, and without a beat. The lock is held.
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

// removePeer ends all sessions with a dead node.
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
		s.r.mailbox.post(func() { s.close(reason) })
	}
}

func (n *Node) askFor(subject string, users []string) {
	if len(users) > 0 {
		n.publish(subject, []byte(kindAsk+" "+n.id+"\n"), []byte(strings.Join(users, "\n")))
	}
}

// Each interval a node asks for the pages of one in partOf of its users.
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
