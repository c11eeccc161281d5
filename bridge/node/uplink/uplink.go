// Package uplink lets pages of a desktop dial out to the user's own node of a fleet, pagewire-node,
// as pages of a service do by themselves. The desktop's gateway and the node are two cores of such
// a page: package relay stands between them and the page.
//
// Only pages of the origins in Options leave the machine. Each has its own connection. The
// connection's Origin header is the page's origin, and its first message is a ticket for that
// origin. A ticket is replaced before it ends. The node's agents can call the tools of pages only
// if Options say so.
package uplink

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/internal/retry"
	"github.com/pagewire/pagewire/bridge/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/node/relay"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Options say which pages go to which node.
type Options struct {
	// URL is the node's: wss://live.example, or ws: on loopback. Without a path it is /page.
	URL string
	// Origins are patterns as in gateway.Options.AllowPages. Without any, no page matches. Deny has
	// the exceptions.
	Origins, Deny []string
	// Shown are those of these origins of whose pages the node also gets what they show. That
	// another agent's user has named an origin, or has granted it in the extension, does not count
	// here.
	Shown []string
	// Tools lets the node's agents call the tools of these pages.
	Tools bool
	// Ticket returns the text of a ticket for pages of an origin, as TicketFile and TicketCommand
	// do.
	Ticket func(ctx context.Context, origin string) (string, error)
	// Version is sent to the page. Log receives the log.
	Version string
	Log     *slog.Logger

	renewAtLeast time.Duration // replaces leastPause in tests
}

const (
	// retryFirst and retryLast are the first and the longest pause between two connections of a
	// page.
	retryFirst, retryLast = 500 * time.Millisecond, 15 * time.Second
	// dialTimeout bounds a connection's handshake.
	dialTimeout = 10 * time.Second
	// maxFrame bounds a frame of the node, in bytes. The node has the same bound for ours.
	maxFrame = 17 << 20
	// maxQueued is how many bytes a page and the node may send while earlier frames are being
	// delivered.
	maxQueued = 1 << 20
	// maxOffered bounds the descriptors that are kept for the node, of all pages together, to as
	// much as a gateway keeps.
	maxOffered = 64 << 20
)

// Check returns an error for an invalid URL, and if there are no Origins.
func (o *Options) Check() error {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("the node %q: want a URL such as wss://live.example", o.URL)
	case u.Scheme != "wss" && (u.Scheme != "ws" || !weborigin.IsLoopback("http://"+u.Host) ||
		// A name server decides where the last ones are.
		strings.HasSuffix(u.Hostname(), ".localhost")):
		return fmt.Errorf("the node %q: want wss:, or on this machine ws:, because the contents "+
			"of pages go there", o.URL)
	case len(o.Origins) == 0:
		return errors.New("no page goes to the node: name the origins of those that are to")
	}
	return nil
}

// A Node is the node to which pages of this machine connect. Its methods may be called
// concurrently.
type Node struct {
	o     Options
	url   *url.URL
	relay relay.Options
	began time.Time
	ctx   context.Context

	tickets tickets

	mu   sync.Mutex        // guards told
	told map[string]string // by origin: why its pages are not at the node; "" if they are

	sent sync.Map // document to a chan struct{} that is closed when the document has left the node
}

// New returns a Node that works until ctx ends. Options must have passed Check.
func New(ctx context.Context, o Options) *Node {
	n := &Node{o: o, ctx: ctx, began: time.Now(), told: map[string]string{},
		tickets: tickets{ctx: ctx, give: o.Ticket, of: map[string]*ticket{},
			atLeast: cmp.Or(o.renewAtLeast, leastPause)}}
	n.url, _ = url.Parse(o.URL) // Check has parsed it
	if n.url.Path == "" || n.url.Path == "/" {
		n.url.Path = "/page"
	}
	n.relay = relay.Options{Build: o.Version, Offered: quota.New(maxOffered, maxOffered),
		Send: func(to *relay.Core, frame []byte) { to.Owner.(func([]byte))(frame) }}
	return n
}

func (n *Node) now() bridge.Time { return bridge.Time(time.Since(n.began).Milliseconds()) }

// Share is gateway.Options.Share.
func (n *Node) Share(info gateway.PageInfo, receive func([]byte) error,
	send func([]byte)) gateway.Sharer {
	owner := bridge.Owner{Origin: info.Origin, Profile: info.Profile, Shown: info.Shown}
	served := door.Scope{Only: n.o.Origins, Deny: n.o.Deny, Shown: n.o.Shown}
	if len(n.o.Origins) == 0 || !door.Admits(served, owner) {
		return nil
	}
	p := &page{n: n, info: info, receive: receive, send: send}
	p.drained.L = &p.mu
	p.relay = relay.New(n.now(), "", info.Origin, &n.relay)
	p.relay.Seat(info.Given)
	p.ctx, p.stop = context.WithCancel(n.ctx)
	return p
}

// A page is a page of this desktop that is connected to the node too.
type page struct {
	n       *Node
	info    gateway.PageInfo
	receive func(frame []byte) error // the gateway's
	send    func(frame []byte)       // to the page
	ctx     context.Context          // of its connections
	stop    context.CancelFunc

	mu         sync.Mutex
	relay      *relay.Relay
	here       *relay.Core // the gateway's; nil until the page's hello
	queue      []func()    // gives frames to the gateway and to the page; called without the lock
	delivering bool        // a goroutine is emptying queue
	queued     int         // bytes that came since queue was empty
	drained    sync.Cond   // signals that queue is empty
	late       *time.Timer // sends frames to the page that are due while nothing else happens
	ended      bool
}

// Receive takes a frame of the page.
func (p *page) Receive(frame []byte) error {
	f := link.Parse(frame, link.Limits{})
	p.enter(frame)
	defer p.deliver()
	if p.ended {
		return nil
	}
	err := p.relay.Receive(p.n.now(), f)
	if err == nil && p.here == nil {
		p.introduce()
		p.here = p.relay.Join(p.n.now(), func(frame []byte) {
			// The gateway tells the page why, by Send.
			p.queue = append(p.queue, func() { _ = p.receive(frame) })
		}, true)
		go p.run(cmp.Or(p.relay.About().Epoch, p.info.Tab) + " " + p.info.Origin)
	}
	p.settle()
	return err
}

// enter takes the lock for a frame. It waits while more than maxQueued bytes are being delivered:
// otherwise the goroutine that delivers them might never end.
func (p *page) enter(frame []byte) {
	p.mu.Lock()
	for p.queued > maxQueued {
		p.drained.Wait()
	}
	p.queued += len(frame)
}

// introduce completes the page's description: over CDP and from the extension a page gives only its
// epoch.
func (p *page) introduce() {
	a := p.relay.About()
	if p.info.Given == "" && a.Tab == "" {
		sum := sha256.Sum256([]byte(p.info.Tab))
		a.Tab = hex.EncodeToString(sum[:16])
	}
	a.Frame, a.URL, a.Shown = p.info.Frame, p.info.URL, p.info.Shown
	if a.Title == nil {
		a.Title = &p.info.Title
	}
	a.Focused = max(a.Focused, p.info.Focused)
}

// Send takes a frame of the gateway.
func (p *page) Send(frame []byte) {
	p.mu.Lock()
	defer p.deliver()
	switch {
	case p.ended:
	case frame == nil:
		p.ended = true
		p.relay.Close()
		if p.late != nil {
			p.late.Stop()
		}
		p.stop()
		p.queue = append(p.queue, func() { p.send(nil) })
	case p.here != nil:
		// Before the page's hello the gateway has sent only its hello; the relay sends its own.
		if refused := (*relay.Refused)(nil); errors.As(p.here.Receive(p.n.now(), frame), &refused) {
			p.relay.Refuse(refused.Reason)
		}
		p.settle()
	}
}

// deliver gives the gateway and the page their frames, in order, and unlocks. They may answer
// meanwhile.
func (p *page) deliver() {
	for !p.delivering && len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = p.queue[1:]
		p.delivering = true
		p.mu.Unlock()
		next()
		p.mu.Lock()
		p.delivering = false
	}
	if len(p.queue) == 0 {
		p.queued = 0
		p.drained.Broadcast()
	}
	p.mu.Unlock()
}

// settle sends the page the frames that are due, and sets a timer for later ones. The lock is held.
func (p *page) settle() {
	for frame := p.relay.Take(p.n.now()); frame != nil; frame = p.relay.Take(p.n.now()) {
		p.queue = append(p.queue, func() { p.send(frame) })
	}
	at, ok := p.relay.Deadline()
	if !ok || p.ended {
		return
	}
	wait := time.Duration(max(at-p.n.now(), 1)) * time.Millisecond
	if p.late != nil {
		p.late.Reset(wait)
		return
	}
	p.late = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.deliver()
		if !p.ended {
			p.settle()
		}
	})
}

func (p *page) run(document string) {
	defer p.n.enter(p.ctx, document)()
	for range retry.Attempts(p.ctx, retryFirst, retryLast) {
		if err := p.connect(); p.ctx.Err() == nil {
			p.n.report(p.info.Origin, err)
		}
	}
}

// enter waits until no page of a document is at the node. A document that comes in several ways has
// several pages here, and is one there.
func (n *Node) enter(ctx context.Context, document string) (leave func()) {
	for mine := make(chan struct{}); ; {
		other, taken := n.sent.LoadOrStore(document, mine)
		if !taken {
			return func() {
				n.sent.Delete(document)
				close(mine)
			}
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return func() {}
		}
	}
}

// connect returns when the connection has ended.
func (p *page) connect() error {
	ctx, end := context.WithCancel(p.ctx)
	defer end()
	first, renew, err := p.n.tickets.get(p.info.Origin)
	if err != nil {
		return err
	}
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	sendTicket(conn, first)
	core := p.join(conn)
	if core == nil {
		return nil
	}
	defer p.leave(core)
	go p.renew(ctx, conn, first, renew)
	for taken := false; ; taken = true {
		frame, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		if !taken {
			p.n.report(p.info.Origin, nil)
		}
		if err := p.handleFrame(core, frame); err != nil {
			return err
		}
	}
}

func (p *page) join(conn *wsconn.Conn) *relay.Core {
	p.mu.Lock()
	defer p.deliver()
	if p.ended {
		return nil
	}
	p.relay.About().Dial++
	return p.relay.Join(p.n.now(), conn.Send, p.n.o.Tools)
}

func (p *page) leave(core *relay.Core) {
	p.mu.Lock()
	defer p.deliver()
	if !p.ended {
		core.Leave()
		p.settle()
	}
}

// handleFrame takes a frame of the node. An error ends only the connection to the node.
func (p *page) handleFrame(core *relay.Core, frame []byte) error {
	p.enter(frame)
	defer p.deliver()
	if p.ended {
		return nil
	}
	err := core.Receive(p.n.now(), frame)
	p.settle()
	return err
}

// renew replaces tickets before they end. Otherwise the node ends the connection with the ticket.
func (p *page) renew(ctx context.Context, conn *wsconn.Conn, last string, pause time.Duration) {
	for {
		if retry.Sleep(ctx, pause); ctx.Err() != nil {
			return
		}
		text, next, err := p.n.tickets.get(p.info.Origin)
		if pause = next; err != nil {
			p.n.report(p.info.Origin, err)
			pause = p.n.tickets.atLeast
		} else if text != last {
			last = text
			sendTicket(conn, text)
		}
	}
}

func sendTicket(conn *wsconn.Conn, text string) {
	note, _ := json.Marshal(struct { // a note is recognised by its beginning
		Type   string `json:"type"`
		Ticket string `json:"ticket"`
	}{"pagewire:ticket", text})
	conn.Send(note)
}

func (p *page) dial(ctx context.Context) (*wsconn.Conn, error) {
	n, headers := p.n, http.Header{"Origin": {p.info.Origin}, "Host": {p.n.url.Host}}
	if p.info.Shown {
		headers.Set(link.ShownHeader, "?1")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var over net.Conn
	var err error
	at := func(port string) string {
		return net.JoinHostPort(n.url.Hostname(), cmp.Or(n.url.Port(), port))
	}
	if n.url.Scheme == "wss" {
		d := tls.Dialer{Config: &tls.Config{NextProtos: []string{"http/1.1"}}}
		over, err = d.DialContext(ctx, "tcp", at("443"))
	} else {
		over, err = new(net.Dialer).DialContext(ctx, "tcp", at("80"))
	}
	if err != nil {
		return nil, err
	}
	conn, answer, err := wsconn.Client(ctx, over, n.url.RequestURI(), headers,
		wsconn.Options{MaxMessage: maxFrame,
			Note: func(c *wsconn.Conn, _ []byte) {
				go c.Close() // the node shuts down, and sends its pages elsewhere
			}})
	if err != nil && answer != nil {
		err = fmt.Errorf("it answers %s: is a pagewire-node there?", answer.Status)
	}
	return conn, err
}

// report logs once why pages of an origin are not at the node. err is nil if they are.
func (n *Node) report(origin string, err error) {
	says := ""
	var refused websocket.CloseError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return // the node shuts down
	case errors.As(err, &refused) && refused.Code == websocket.StatusPolicyViolation:
		says = fmt.Sprintf("it refuses them: %s. What gives the tickets is to give, for this "+
			"origin, a JWT of an issuer "+
			"that the node lists, with aud the node's public URL, origin %s, and exp within an "+
			"hour", refused.Reason, origin)
		n.tickets.refused(origin)
	case err != nil:
		says = err.Error()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	before, known := n.told[origin]
	if n.told[origin] = says; known && before == says {
		return
	}
	if says == "" {
		n.o.Log.Info("pages are at the node", "origin", origin, "node", n.o.URL)
	} else {
		n.o.Log.Warn("pages are not at the node; it is tried again", "origin", origin, "node",
			n.o.URL, "reason", says)
	}
}
