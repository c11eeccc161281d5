package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/node"
)

// headerVia marks a request that another node has passed on.
const headerVia = "Pagewire-Via"

const (
	// proxyTimeout bounds the time in which another node must accept a connection.
	proxyTimeout = 2 * time.Second
	// silence bounds the pause in another node's answer: each node sends a comment every 15 s, also
	// while an answer is awaited. The bus need not notice a blocked connection between two nodes.
	silence = 45 * time.Second
)

// A passer passes requests on to the nodes of their sessions. Its fields do not change, and guard
// themselves.
type passer struct {
	node   *node.Node
	log    *slog.Logger
	proxy  *http.Transport
	held   *quota.Quota    // bodies of requests that are passed on
	closed context.Context // ends with Close
	close  context.CancelFunc
	// writeTimeout is that of package agents, except in tests.
	writeTimeout time.Duration
}

func newPasser(o *Options) passer {
	p := passer{node: o.Node, log: o.Log, held: quota.New(maxHeld, maxHeldEach),
		writeTimeout: agents.WriteTimeout,
		proxy: &http.Transport{DialContext: (&net.Dialer{Timeout: proxyTimeout}).DialContext,
			ForceAttemptHTTP2:   true,
			TLSClientConfig:     &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: silence,
			HTTP2: &http.HTTP2Config{SendPingTimeout: silence / 2, PingTimeout: silence / 2}}}
	p.closed, p.close = context.WithCancel(context.Background())
	return p
}

// Close ends the requests that are passed on to other nodes, each with an error, and closes the
// connections to them.
func (h *passer) Close() {
	h.close()
	h.proxy.CloseIdleConnections()
}

// elsewhere returns the other node that has a request's session. In the modern era the session
// header means nothing.
func (h *passer) elsewhere(r *http.Request) (node string, ok bool) {
	if agents.Modern(r.Header.Get("Mcp-Protocol-Version")) {
		return "", false
	}
	node, _, ok = strings.Cut(r.Header.Get("Mcp-Session-Id"), ".")
	return node, ok && node != h.node.ID()
}

// brokeOff is the answer to a request that another node received and did not answer.
const brokeOff = "The node of this session broke off before it answered. The request may have " +
	"been carried out: look " +
	"before you send it again"

// pass passes a request of a user on to the node of its session. It returns false for an initialize
// if there is no such node any more: then this node begins the session, and r still has its body.
// pass ends the request when that node is dead, because a node that hangs would keep it for good.
// If either node fails, the agent still gets an answer or an error.
//
// The body is read before the request is passed on. Otherwise the transport would read the body
// once more after sending it. If the answer had begun by then, the server would have closed the
// incoming body, and the transport would take that for a failure. The answer would then end in its
// middle: 30 of 15,000 did, when the processors were busy.
func (h *passer) pass(w http.ResponseWriter, r *http.Request, node, user string) (done bool) {
	room := r.ContentLength
	if room < 0 || room > gateway.MaxMessageBytes {
		room = gateway.MaxMessageBytes
	}
	if h.held.Take(user, room) != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, h.node, "full", http.StatusServiceUnavailable,
			"This node passes on as much as it may: ask again.")
		return true
	}
	defer h.held.Give(user, room)
	body, err := agents.ReadBody(w, r, gateway.MaxMessageBytes)
	request := agents.NewPassed(body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		// The session's node refuses a body that is one byte too long like a longer one.
		body = append(body, ' ')
	} else if err != nil {
		request.Refuse(w, http.StatusBadRequest, "The body could not be read: "+err.Error(), "")
		return true
	}
	if request.Streams {
		streams(r)
	}
	at, dead, alive := h.node.URLOf(r.Context(), node)
	target, err := url.Parse(at)
	if !alive || at == "" || err != nil || r.Header.Get(headerVia) != "" {
		if request.Begins {
			r.Body = io.NopCloser(bytes.NewReader(body))
			return false
		}
		lost(w, request)
		return true
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.closed, cancel)()
	go func() {
		select {
		case <-dead:
			cancel()
		case <-ctx.Done():
		}
	}()
	p := &passing{h: h, Passed: request, client: r, node: node, target: target, body: body}
	p.serve(ctx, w)
	return true
}

// A passing is a request that is passed on.
type passing struct {
	h *passer
	agents.Passed
	client *http.Request
	node   string
	target *url.URL
	body   []byte
	reused atomic.Bool // it uses a connection that was idle
	sent   atomic.Bool // the node may have executed it
}

func (p *passing) serve(ctx context.Context, w http.ResponseWriter) {
	w = timed{w, p.h.writeTimeout}
	proxy := &httputil.ReverseProxy{
		Transport: p, FlushInterval: -1, ErrorLog: slog.NewLogLogger(p.h.log.Handler(),
			slog.LevelDebug),
		Rewrite: p.rewrite, ModifyResponse: p.answered, ErrorHandler: p.failed,
	}
	proxy.ServeHTTP(w, p.client.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// On a second attempt, if the first sent nothing.
		GetConn:      func(string) { p.sent.Store(false) },
		GotConn:      func(c httptrace.GotConnInfo) { p.reused.Store(c.Reused) },
		WroteHeaders: func() { p.sent.Store(true) },
	})))
}

// RoundTrip repeats a request whose idle connection the other node has closed. http.Transport does
// not repeat a POST if it notices that before it writes. This happened to 1 of 3,000 requests on
// connections that had just been closed, and their sessions were given up.
func (p *passing) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		p.reused.Store(false)
		answer, err := p.h.proxy.RoundTrip(r)
		if err == nil || !p.reused.Load() || p.sent.Load() || r.Context().Err() != nil {
			return answer, err
		}
		if r.Body != nil {
			r.Body, _ = r.GetBody()
		}
	}
}

// A timed ends the connection of a client that reads nothing for a while. Otherwise the client
// would hold the request in both nodes, and its body in this one, for ever.
type timed struct {
	http.ResponseWriter
	timeout time.Duration
}

func (t timed) Write(text []byte) (int, error) {
	t.limit()
	return t.ResponseWriter.Write(text)
}

// FlushError is for http.ResponseController.
func (t timed) FlushError() error {
	t.limit()
	return http.NewResponseController(t.ResponseWriter).Flush()
}

func (t timed) limit() {
	_ = http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now().Add(t.timeout))
}

// Unwrap is for http.ResponseController.
func (t timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (p *passing) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.target)
	r.SetXForwarded()
	out := r.Out
	out.Header.Set(headerVia, p.h.node.ID())
	out.Header.Del("Expect") // the body has arrived
	out.Header.Del("Origin") // this node has checked it
	// With GetBody the transport can repeat a request that was not sent because the other node had
	// closed the idle connection.
	out.GetBody = func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(p.body)), nil
	}
	out.Body, _ = out.GetBody()
	if out.ContentLength = int64(len(p.body)); len(p.body) == 0 {
		out.Body = nil
	}
	out.TransferEncoding = nil
}

func (p *passing) answered(answer *http.Response) error {
	if p.client.Method == http.MethodPost &&
		answer.Header.Get("Content-Type") == "text/event-stream" {
		answer.Body = p.Stream(answer.Body, brokeOff, "broke_off")
	}
	return nil
}

func (p *passing) failed(w http.ResponseWriter, _ *http.Request, err error) {
	if p.client.Context().Err() == nil {
		p.h.log.Warn("the node of a session does not answer", "node", p.node, "error", err)
	}
	switch {
	case p.client.Method == http.MethodPost && p.sent.Load():
		p.Refuse(w, http.StatusBadGateway, brokeOff, "broke_off")
	case p.h.closed.Err() != nil:
		p.Refuse(w, http.StatusServiceUnavailable, "The server goes away", "shutdown")
	default:
		lost(w, p.Passed)
	}
}

// lost answers that a session's node is dead: the client begins a new session.
func lost(w http.ResponseWriter, request agents.Passed) {
	request.Refuse(w, http.StatusNotFound, "There is no such session any more: begin with "+
		"initialize", "")
}

// maxHeld bounds the bodies that are passed on, in bytes, and maxHeldEach those of one user: 64 and
// 16 of the largest.
const maxHeld, maxHeldEach = 64 * gateway.MaxMessageBytes, 16 * gateway.MaxMessageBytes

// refuse refuses a request of an agent before package agents has it.
func refuse(w http.ResponseWriter, n *node.Node, reason string, status int, sentence string) {
	n.Refuse("agent: " + reason)
	http.Error(w, sentence, status)
}
