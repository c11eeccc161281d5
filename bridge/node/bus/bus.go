// Package bus carries messages between the nodes of a fleet: over NATS, with a server in the
// process unless there is a cluster already.
//
// A single node needs no network: its server listens nowhere. A node of several must also listen
// for clients, because nats-server starts no cluster without that. It listens on loopback, and
// requires a secret of this process. With Options.Cluster a node lets other nodes join; with
// Options.Join it joins them. Each node learns of all nodes that another one knows. Each node has
// one connection to its server.
//
// Messages of one sender to one subject arrive in order. The bus may lose a message, but never only
// a part of it: a message above the server's limit travels in parts (split.go). The package never
// stores a message, never blocks a sender, and does not interpret messages.
//
// With Options.Store a node keeps tables for all nodes (kv.go), by JetStream. One node does so, or
// three, each with a copy: two nodes with different copies could not tell which is right.
package bus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/pagewire/pagewire/bridge/internal/retry"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Options configure the bus.
type Options struct {
	// Name is the node's name, for logs of servers. A node with a store keeps the same name over
	// restarts.
	Name string
	// Store is a directory in which this node keeps tables; "" for none.
	Store string
	// Cluster is the address of this node's server for other nodes; "" for none. Join are the
	// addresses of other nodes.
	Cluster string
	Join    []string
	// Advertise is the address that other nodes are told, if it differs from Cluster.
	Advertise string
	// TLS is for connections between nodes. Both ends show a certificate of an authority in
	// RootCAs, which proves that they are nodes. It may be nil if all addresses are on loopback.
	TLS *tls.Config
	// Secret is common to all nodes. It may be "" if there is TLS.
	Secret string

	// URL is the address of an existing cluster, in place of all above; Creds is a file of NATS
	// credentials. If the cluster is not on this machine, its connections use TLS: ClientTLS, or
	// else the system's roots. If it is on this machine, without ClientTLS, they use only the
	// servers of URL.
	URL, Creds string
	ClientTLS  *tls.Config

	tries int // in place of routeTries, in tests

	// Changed is called when the bus connects and when it disconnects. Lost is called when the bus
	// has dropped messages because this node did not take them fast enough. Both may be nil.
	Changed func(up bool)
	Lost    func()
	// Log receives the log. Default none.
	Log *slog.Logger
}

// Alone reports whether the node is the only one.
func (o *Options) Alone() bool { return o.URL == "" && o.Cluster == "" }

// A Bus is a node's connection to the others. Its methods may be called concurrently.
type Bus struct {
	conn     *nats.Conn
	server   *server.Server    // nil for an existing cluster
	second   *server.Server    // see beside; only seconding sets it
	password string            // for clients of this process's server
	sender   [senderBytes]byte // for parts
	number   atomic.Uint32     // number of the last message in parts

	closed    context.Context // ends with Close
	close     context.CancelFunc
	seconding sync.WaitGroup
	copied    sync.Map // names of the tables for which copy runs
}

const (
	// A silent connection between nodes is closed after routePingsOut missed answers to pings, one
	// ping each routePing. The connection keeps messages in order: a dead one would hold them back
	// for as long as TCP does.
	routePing, routePingsOut = time.Second, 2
	// routeRetry is the pause before another attempt to connect.
	routeRetry = 500 * time.Millisecond
	// routeTries bounds the attempts, one a second, to reach a node again that another one has
	// named: an hour, longer than most networks are cut in two. Nearly always that node has ended:
	// without a bound, each node that had ever ended took a goroutine and an attempt each second. The
	// addresses of Options.Join are tried for ever.
	routeTries = 3600
	// pendingBytes and pendingMessages bound the queue of a subscription's handler. Messages above
	// them are lost.
	pendingBytes, pendingMessages = 256 << 20, 1 << 20
	startTimeout                  = 10 * time.Second
	// leaderPoll is the pause between looks for the leader of the store, and leaderTimeout the wait
	// for it, at a node's first start. nats-server elects one within 9 s, except where two servers
	// ask at once.
	leaderPoll, leaderTimeout = time.Second / 4, 15 * time.Second
	// storeBytes bounds a node's store on disk, and storeMemory the memory for the nodes that
	// follow a table.
	storeBytes, storeMemory = 4 << 30, 256 << 20
	// nodeTag begins the tag that names a server's node. tablesTag marks the servers that keep
	// tables. The second servers (see beside) have no tablesTag, because the second servers of two
	// nodes do not reach each other.
	nodeTag, tablesTag = "node:", "tables"
)

// Open connects to the bus. If an existing cluster is down, Open succeeds and the Bus goes on
// trying: Up reports the connection. An error names the wrong option, or says that the server does
// not come up.
func Open(o Options) (*Bus, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Changed == nil {
		o.Changed = func(bool) {}
	}
	if o.Lost == nil {
		o.Lost = func() {}
	}
	b := &Bus{password: rand.Text()}
	b.closed, b.close = context.WithCancel(context.Background())
	copy(b.sender[:], rand.Text())
	where, options := o.URL, dialing(o)
	if o.URL == "" {
		if err := b.embed(o); err != nil {
			return nil, err
		}
		options = append(options, nats.InProcessServer(b.server), nats.UserInfo(user, b.password))
	}
	var err error
	if b.conn, err = nats.Connect(where, options...); err != nil {
		b.stop()
		return nil, fmt.Errorf("connect to the bus %s: %w", withoutPasswords(o.URL), err)
	}
	if b.conn.IsConnected() {
		o.Changed(true)
	}
	return b, nil
}

func dialing(o Options) []nats.Option {
	list := []nats.Option{
		nats.Name("pagewire " + o.Name), nats.MaxReconnects(-1), nats.ReconnectWait(routeRetry),
		nats.ReconnectBufSize(-1), // messages from before an outage would be outdated after it
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
		nats.RetryOnFailedConnect(o.URL != ""),
		nats.ConnectHandler(func(*nats.Conn) { o.Changed(true) }),
		nats.ReconnectHandler(func(*nats.Conn) { o.Changed(true) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			o.Log.Warn("the bus is gone", "error", err)
			o.Changed(false)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			// A missing permission, which will not change.
			if !errors.Is(err, nats.ErrSlowConsumer) {
				o.Log.Error("the bus refuses what this node asks of it", "error", err)
				return
			}
			o.Log.Warn("the bus has lost messages for this node", "error", err)
			o.Lost()
		}),
	}
	if o.Creds != "" {
		list = append(list, nats.UserCredentials(o.Creds))
	}
	switch {
	case o.ClientTLS != nil:
		list = append(list, nats.Secure(o.ClientTLS))
	case o.URL != "" && !allLocal(o.URL):
		list = append(list, nats.Secure())
	case o.URL != "":
		// Connections to other machines would have no TLS.
		list = append(list, nats.IgnoreDiscoveredServers())
	}
	return list
}

func withoutPasswords(urls string) string {
	list := strings.Split(urls, ",")
	for i, one := range list {
		list[i] = one[strings.LastIndexByte(one, '@')+1:]
	}
	return strings.Join(list, ",")
}

// allLocal reports whether all servers of a list, as in nats://a:4222,nats://b:4222, are on this
// machine.
func allLocal(urls string) bool {
	return !slices.ContainsFunc(strings.Split(urls, ","), func(one string) bool {
		u, err := url.Parse(strings.TrimSpace(one))
		return err != nil || !weborigin.IsLoopbackHost(u.Hostname())
	})
}

func (b *Bus) embed(o Options) error {
	opts := &server.Options{
		ServerName: o.Name, DontListen: o.Cluster == "", Host: "127.0.0.1",
		Port: server.RANDOM_PORT, Username: user,
		Password: b.password, NoSigs: true, NoLog: true, MaxPending: pendingBytes,
		JetStream: o.Store != "", StoreDir: o.Store, DisableJetStreamBanner: true,
		JetStreamMaxStore:  storeBytes,
		JetStreamMaxMemory: storeMemory,
		// JetStreamUniqueTag puts each copy of a table at another node.
		Tags: []string{nodeTag + o.Name, tablesTag}, JetStreamUniqueTag: nodeTag,
	}
	if o.Cluster != "" {
		if err := o.cluster(opts); err != nil {
			return err
		}
	} else if len(o.Join) > 0 {
		return errors.New("to join other nodes a node must have an address where they find it: " +
			"name it by cluster")
	}
	var err error
	if b.server, err = start(opts); err != nil {
		b.stop()
		return fmt.Errorf("start the bus at %s: %w", o.Cluster, err)
	}
	if opts.JetStream && o.Cluster != "" {
		b.seconding.Go(func() { b.startSecond(o.beside(opts), o.Log) })
	}
	return nil
}

// startSecond starts the second server. At a node's first start it waits for a leader of the store:
// a server that does not know the others takes two for a majority, so two nodes with two servers
// each could elect a leader each, and no copies of tables were made (in 4 of 28 fleets). Where one
// node alone has a store, nobody is elected without the second.
func (b *Bus) startSecond(opts *server.Options, log *slog.Logger) {
	_, err := os.Stat(opts.StoreDir)
	for began := time.Now(); err != nil && !b.led() && time.Since(began) < leaderTimeout; {
		retry.Sleep(b.closed, leaderPoll)
	}
	if b.closed.Err() != nil {
		return
	}
	if b.second, err = start(opts); err != nil {
		log.Error("a store that one node alone has does not open: its second server does not start",
			"error", err)
	}
}

// led reports whether this node knows a leader of the store.
func (b *Bus) led() bool {
	info, err := b.server.Jsz(nil)
	return err == nil && info.Meta != nil && info.Meta.Leader != ""
}

func start(opts *server.Options) (*server.Server, error) {
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		return s, errors.New("it does not come up; is the address in use?")
	}
	return s, nil
}

// beside returns the options of a second server in the process of first, which has a store. In a
// cluster nats-server elects no leader among fewer than two servers with JetStream, so a node that
// alone has a store runs two. The second one listens on loopback, and no other node learns its
// address.
func (o *Options) beside(first *server.Options) *server.Options {
	opts := first.Clone()
	opts.ServerName += "-second"
	opts.Tags = opts.Tags[:1]
	opts.Port = server.RANDOM_PORT
	opts.StoreDir = filepath.Join(o.Store, "second")
	opts.Cluster.Host, opts.Cluster.Port = "127.0.0.1", server.RANDOM_PORT
	opts.Cluster.Advertise = ""
	opts.Cluster.NoAdvertise = true
	opts.Routes = []*url.URL{o.route(o.Cluster)}
	return opts
}

func (o *Options) cluster(opts *server.Options) error {
	host, port, err := net.SplitHostPort(o.Cluster)
	n, numErr := strconv.Atoi(port)
	if err != nil || numErr != nil {
		return fmt.Errorf("%q is not an address for other nodes: it must be like 10.0.0.5:7434",
			o.Cluster)
	}
	if o.Secret == "" && o.TLS == nil {
		return errors.New("nodes that speak to each other need a certificate at each, or, on " +
			"loopback, a secret that all " +
			"of them know")
	}
	local := weborigin.IsLoopbackHost(host)
	if o.Advertise != "" {
		h, _, err := net.SplitHostPort(o.Advertise)
		local = local && err == nil && weborigin.IsLoopbackHost(h)
	}
	for _, peer := range o.Join {
		h, _, err := net.SplitHostPort(peer)
		if err != nil {
			return fmt.Errorf("%q is not an address of a node: it must be like 10.0.0.5:7434", peer)
		}
		local = local && weborigin.IsLoopbackHost(h)
		opts.Routes = append(opts.Routes, o.route(peer))
	}
	if !local && o.TLS == nil {
		return errors.New("nodes that speak to each other past loopback need TLS, with a " +
			"certificate at each")
	}
	opts.Cluster = server.ClusterOpts{
		Name: "pagewire", Host: host, Port: n, AuthTimeout: 2, TLSTimeout: 2,
		TLSConfig: mutual(o.TLS), Advertise: o.Advertise, PoolSize: -1,
		PingInterval: routePing, MaxPingsOut: routePingsOut,
		ConnectRetries: cmp.Or(o.tries, routeTries),
	}
	if o.Secret != "" {
		opts.Cluster.Username, opts.Cluster.Password = user, o.Secret
	}
	switch {
	case o.Store != "" && n == 0:
		return errors.New("a node with a store needs a port for other nodes that stays the same: " +
			"name it by cluster")
	case o.Store != "" && len(opts.Routes) == 0:
		// nats-server demands a route, and drops one to itself.
		opts.Routes = []*url.URL{o.route(o.Cluster)}
	case n == 0:
		opts.Cluster.Port = server.RANDOM_PORT
	}
	return nil
}

func (o *Options) route(host string) *url.URL {
	u := &url.URL{Scheme: "nats", Host: host}
	if o.Secret != "" {
		u.User = url.UserPassword(user, o.Secret)
	}
	return u
}

// mutual returns c with the demand that both ends show a certificate of the same authorities.
func mutual(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	c = c.Clone()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if c.ClientCAs == nil {
		c.ClientCAs = c.RootCAs
	}
	return c
}

// user is the nodes' user name for each other. Only the secret counts.
const user = "pagewire"

// ClusterAddr is the address of this node's server for other nodes; "" if it listens nowhere.
func (b *Bus) ClusterAddr() string {
	if b.server == nil || b.server.ClusterAddr() == nil {
		return ""
	}
	return b.server.ClusterAddr().String()
}

// Up reports whether the bus is connected.
func (b *Bus) Up() bool { return b.conn.IsConnected() }

// Peers is the number of other nodes' servers with a connection to this process's server: 0 in an
// existing cluster. A node that this one asks counts from its answer on, also for the moment until
// it refuses this one's secret.
func (b *Bus) Peers() int {
	if b.server == nil {
		return 0
	}
	return b.server.NumRoutes()
}

// Close leaves the bus.
func (b *Bus) Close() {
	b.conn.Close()
	b.stop()
}

func (b *Bus) stop() {
	b.close()
	b.seconding.Wait()
	for _, s := range []*server.Server{b.second, b.server} {
		if s != nil {
			s.Shutdown()
			s.WaitForShutdown()
		}
	}
}

// Publish sends a message, given in one piece or more, to the subscribers of a subject, including
// this node's. It fails if the bus is not connected, or if the message is above 18 MiB.
func (b *Bus) Publish(subject string, message ...[]byte) error {
	most := int(b.conn.MaxPayload())
	if most <= 0 { // it has never been connected
		return nats.ErrDisconnected
	}
	size := 1
	for _, piece := range message {
		size += len(piece)
	}
	if size > most {
		return split(b.sender, b.number.Add(1), bytes.Join(message, nil), most,
			func(part []byte) error { return b.conn.Publish(subject, part) })
	}
	text := make([]byte, 1, size)
	text[0] = whole
	for _, piece := range message {
		text = append(text, piece...)
	}
	return b.conn.Publish(subject, text)
}

// Subscribe calls take with each message to a subject, in order, on a goroutine of the
// subscription. take owns the message.
func (b *Bus) Subscribe(subject string, take func(message []byte)) (cancel func(), err error) {
	var parts assembly
	sub, err := b.conn.Subscribe(subject, func(m *nats.Msg) {
		if message := parts.add(m.Data); message != nil {
			take(message)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	if err := sub.SetPendingLimits(pendingMessages, pendingBytes); err != nil {
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil // it fails if the bus is closed
}
