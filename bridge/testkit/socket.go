package testkit

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// Dial connects the page to the gateway at an address by WebSocket, as a page of the origin in a
// browser does. It dials until the gateway listens, and again after each lost connection, until the
// test ends. ticket is for a node of a fleet; "" for none.
func (p *Page) Dial(addr, origin, ticket string) {
	p.DialAny(func() string { return addr }, origin, func() string { return ticket })
}

// DialAny is Dial for an address and a ticket that may change between connections.
func (p *Page) DialAny(addr func() string, origin string, ticket func() string) {
	ctx, tab := p.t.Context(), rand.Text()
	go func() {
		for ctx.Err() == nil {
			p.connected(ctx, addr(), origin, ticket(), tab)
			// a gateway that starts listens some milliseconds later
			time.Sleep(10 * time.Millisecond)
		}
	}()
}

// connected is one connection of Dial, from its beginning to its end.
func (p *Page) connected(ctx context.Context, addr, origin, ticket, tab string) {
	conn, _, err := websocket.Dial(ctx, "ws://"+addr+"/page", &websocket.DialOptions{
		Subprotocols: []string{"pagewire.v1"}, HTTPHeader: http.Header{"Origin": {origin}}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	// a lost connection fails the read
	post := func(frame []byte) { _ = conn.Write(ctx, websocket.MessageText, frame) }
	if ticket != "" {
		// A note is recognised by its beginning, so the order of its members matters.
		post(fmt.Appendf(nil, `{"type":"pagewire:ticket","ticket":%q}`, ticket))
	}
	p.Connect(post, map[string]any{"tab": tab, "title": origin, "url": origin + "/"})
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil || frame[0] != '[' {
			// a note: the node drains, and the page must go to another node
			p.Hear(nil)
			return
		}
		p.Hear(frame)
	}
}
