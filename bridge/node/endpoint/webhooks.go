package endpoint

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/webhook"
	"github.com/pagewire/pagewire/bridge/wire"
)

// hooks deliver events by webhook. Its fields do not change.
type hooks struct {
	*webhook.Service
	node  *node.Node
	serve func(*gateway.Gateway) node.Server
}

// newHooks begins deliveries. They may call serve at once.
func newHooks(o webhook.Options, n *node.Node, serve func(*gateway.Gateway) node.Server) (*hooks,
	error) {
	h := &hooks{node: n, serve: serve}
	o.Node, o.Feed = n.ID(), h.feed
	o.Open = func(ctx context.Context, name string, age time.Duration) (webhook.Store, error) {
		return n.Table(ctx, name, age)
	}
	var err error
	h.Service, err = webhook.New(o)
	return h, err
}

// A principal is the sender of a request, in its context, and whether its token has ScopeEvents.
type principal struct {
	webhook.Principal
	events bool
}

// maxSubscribe bounds the bodies in which subscribes looks for the method, in bytes: a
// subscription's arguments have 4 KiB at most, and its URL 2 KiB. For a longer body only webhooksOf
// refuses a token without the scope.
const maxSubscribe = 64 << 10

// subscribes reports whether a request subscribes or unsubscribes by webhook. The body can still be
// read afterwards.
func subscribes(w http.ResponseWriter, r *http.Request) bool {
	method := r.Header.Get("Mcp-Method")
	if method == "" && r.Method == http.MethodPost && r.ContentLength >= 0 &&
		r.ContentLength <= maxSubscribe {
		body, err := agents.ReadBody(w, r, maxSubscribe)
		rest := r.Body
		if err == nil {
			rest = io.NopCloser(bytes.NewReader(body))
		}
		r.Body = rest
		m, _ := bridge.DecodeMessage(body)
		method = m.Method
	}
	return method == wire.EventsSubscribe || method == wire.EventsUnsubscribe
}

// of returns the webhooks of a request's principal.
func (h *hooks) of(r *http.Request) events.Webhooks {
	if p, ok := r.Context().Value(principal{}).(principal); ok && p.events {
		return h.For(p.Principal)
	}
	return noScope{}
}

// noScope refuses requests that need ScopeEvents.
type noScope struct{}

func (noScope) Subscribe(context.Context, events.WebhookRequest) ([]byte, *bridge.EventError) {
	return nil, &bridge.EventError{Kind: bridge.EventForbidden, Message: "this takes the scope " +
		ScopeEvents,
		Data: bridge.Text(`{"reason":"insufficient_scope"}`)}
}

func (n noScope) Unsubscribe(ctx context.Context, r events.WebhookRequest) ([]byte,
	*bridge.EventError) {
	return n.Subscribe(ctx, r)
}

// feed returns the events of a user's pages, which this node follows until it is closed.
func (h *hooks) feed(ctx context.Context, user string) (webhook.Feed, error) {
	reader, release, err := h.node.Reader("", user, false, h.serve)
	if err != nil {
		return nil, err
	}
	select {
	case <-reader.Ready():
		return feed{reader.Gateway, release}, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}

type feed struct {
	gateway *gateway.Gateway
	release func()
}

func (f feed) Follow(sub events.Subscription, cursor string, maxAge time.Duration,
	wake func()) (webhook.Follow, *bridge.EventError) {
	follow, refused := f.gateway.FollowEvents(sub,
		events.FollowOptions{Cursor: cursor, MaxAge: maxAge,
			MinInterval: events.WebhookInterval, Wake: wake})
	if refused != nil {
		return nil, refused
	}
	return follow, nil
}

func (f feed) Close() { f.release() }
