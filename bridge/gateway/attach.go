//go:build !js

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
)

// PageInfo says what page is at the other end of a Conn. Who attaches it vouches for it: nothing in it is the page's own
// word, but for Title.
type PageInfo struct {
	// Tab is the tab that the page is in: any text that stays the same for the tab's life, and is no other tab's.
	Tab string
	// Frame is "" for the document of the tab, and for a frame in it any text that is no other frame's of that tab.
	Frame string
	// Origin is the page's, as self.origin gives it. URIs at other origins are not taken from it.
	Origin string
	// URL and Title are for people.
	URL, Title string
	// Road says how the page came: "cdp", "websocket", "extension".
	Road string
	// Hub marks another gateway in place of a page: its URIs, its tools and the numbers of its tabs are taken as they are.
	Hub bool
}

// A Page is a page that is attached.
type Page struct {
	PageInfo
	g       *Gateway
	tab     *tab
	session *session
	done    chan struct{}
	relist  chan struct{}

	// Guarded by the gateway's lock.
	order     int // of arrival
	absent    bool
	gone      bool
	parked    []parked
	offers    map[string]*offer   // by the page's own URI
	bases     map[string][]*offer // the same, by the URI without the mark of a tab
	published []toolOffer
	upstream  map[string]*upstream // by the page's own URI: what is subscribed there
}

// An offer is a resource of a page.
type offer struct {
	page         *Page
	resource     bridge.Resource // as the page describes it
	base, suffix string          // its URI, and what that has behind it in a list with other tabs
}

// parked is a read that waits for the page's successor.
type parked struct {
	call *call
	uri  string // the agent's
}

// ErrDenied is what Attach returns for a page whose origin is not served.
var ErrDenied = errors.New("pages of this origin are not served")

// Attach takes a page on: it begins an MCP session over conn, lists what the page offers and keeps the list up to date, until
// conn ends or Close is called. It returns when the first list is in, or fails. The Conn is the gateway's from then on,
// also when it fails. Done tells when the page is gone.
func (g *Gateway) Attach(ctx context.Context, info PageInfo, conn Conn) (*Page, error) {
	if !info.Hub && !g.Admits(info.Origin) {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", info.Origin, ErrDenied)
	}
	p := &Page{PageInfo: info, g: g, done: make(chan struct{}), relist: make(chan struct{}, 1), offers: map[string]*offer{}, upstream: map[string]*upstream{}}
	ctx, cancel := context.WithTimeout(ctx, g.opt.ReadTimeout)
	defer cancel()
	s, err := newSession(ctx, g.client, conn,
		func(uri string) { g.changed(p, uri) },
		func(m *mcp.ProgressNotificationParams) { g.progress(p, m) },
		func(way Way, text []byte) { g.tap(Event{Way: way, Page: info.URL, Text: text}) })
	if err != nil {
		return nil, fmt.Errorf("no MCP session with the page %s: %w", info.URL, err)
	}
	p.session = s
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		s.close()
		return nil, ErrClosed
	}
	g.catalog.add(p)
	g.unlock()
	if err := p.list(ctx); err != nil {
		p.leave("its list could not be read", false)
		s.close()
		return nil, fmt.Errorf("list the resources of %s: %w", info.URL, err)
	}
	g.log.Info("page attached", "tab", p.tab.number, "origin", info.Origin, "url", info.URL, "road", info.Road)
	go p.follow()
	return p, nil
}

// Done is closed when the page is no longer attached.
func (p *Page) Done() <-chan struct{} { return p.done }

// Close gives the page up. Its resources go at once; without it, when the Conn ends, they wait for the tab's next page.
func (p *Page) Close(reason string) {
	p.leave(reason, false)
	p.session.close()
}

// follow lists anew whenever the page says so, until its session ends.
func (p *Page) follow() {
	ended := make(chan struct{})
	go func() {
		p.session.cs.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			p.leave(p.session.reason(), true)
			return
		case <-p.relist:
			ctx, cancel := context.WithTimeout(context.Background(), p.g.opt.ReadTimeout)
			err := p.list(ctx)
			cancel()
			if err != nil {
				p.g.log.Warn("a page's list could not be read", "url", p.URL, "error", err)
			}
		}
	}
}

// listChanged is go-sdk's word that a page's list is another one now.
func (g *Gateway) listChanged(cs *mcp.ClientSession) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for p := range g.catalog.pages {
		if p.session.cs == cs {
			select {
			case p.relist <- struct{}{}:
			default:
			}
		}
	}
}

// list reads what the page offers and puts it into the catalog.
func (p *Page) list(ctx context.Context) error {
	offers := map[string]*offer{}
	add := func(o *offer) {
		if uri := o.resource.URI; p.mayOffer(uri) {
			offers[uri] = o
		} else {
			p.g.log.Warn("refused a resource that is not at its page's origin", "uri", uri, "origin", p.Origin)
		}
	}
	// On the wire: what go-sdk's types do not know (a page may describe its resources with members of newer protocols) is not lost
	// that matters to agents, and what they know is checked.
	for r, err := range p.session.cs.Resources(ctx, nil) {
		if err != nil {
			return err
		}
		if p.Hub && r.Meta[metaAbsent] == true {
			continue
		}
		size := r.Size
		if size == 0 {
			size = -1 // go-sdk does not tell 0 from none
		}
		add(&offer{page: p, resource: bridge.Resource{
			URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIMEType, Size: size,
			Icons: text(r.Icons, len(r.Icons) > 0), Annotations: text(r.Annotations, r.Annotations != nil), Meta: text(r.Meta, r.Meta != nil),
		}})
	}
	for r, err := range p.session.cs.ResourceTemplates(ctx, nil) {
		if err != nil {
			return err
		}
		if p.Hub && r.Meta[metaAbsent] == true {
			continue
		}
		add(&offer{page: p, resource: bridge.Resource{
			URI: r.URITemplate, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIMEType, Size: -1,
			Icons: text(r.Icons, len(r.Icons) > 0), Annotations: text(r.Annotations, r.Annotations != nil), Meta: text(r.Meta, r.Meta != nil),
		}})
	}
	var tools []toolOffer
	if caps := p.session.cs.InitializeResult().Capabilities; caps != nil && caps.Tools != nil {
		for t, err := range p.session.cs.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			if !p.Hub && looksLikeOurs(t.Name) {
				p.g.log.Warn("refused a tool whose name looks like one of the gateway's own", "tool", t.Name, "origin", p.Origin)
				continue
			}
			tools = append(tools, toolOffer{name: t.Name, tool: t})
		}
	}
	p.g.offered(p, offers, tools)
	return nil
}

// maxDescriptor bounds what one resource's description may take. The page layer's own bound is the same.
const maxDescriptor = 256 << 10

// mayOffer reports whether a page may offer a URI or template: one at its own origin.
func (p *Page) mayOffer(uri string) bool {
	if p.Hub {
		return true
	}
	return !strings.Contains(uri, "#") && p.owns(uri) // the fragment is the gateway's, which tells tabs apart by it
}

// leave takes a page out of the catalog. With return set its resources stay for Options.Grace, in case that the tab comes back with them.
func (p *Page) leave(reason string, mayReturn bool) {
	g := p.g
	g.mu.Lock()
	defer g.unlock()
	if p.absent || p.gone {
		if !mayReturn {
			g.drop(p)
		}
		return
	}
	close(p.done)
	g.log.Info("page gone", "tab", p.tab.number, "url", p.URL, "reason", reason)
	if !mayReturn || g.closed || p.tab.closed {
		g.drop(p)
		return
	}
	p.absent = true
	p.upstream = map[string]*upstream{}
	for uri := range p.bases {
		// Whoever takes its place may have come before its end was noticed.
		for q := range g.catalog.pages {
			if !q.absent && len(q.bases[uri]) > 0 {
				g.succeed(q, uri)
			}
		}
		g.place(uri)
	}
	g.retool()
	time.AfterFunc(g.opt.Grace, func() {
		g.mu.Lock()
		defer g.unlock()
		g.drop(p)
	})
}

// drop ends a page's part in the catalog.
func (g *Gateway) drop(p *Page) {
	if p.gone {
		return
	}
	if !p.absent {
		p.absent = true // nothing is asked of it any more
	}
	p.gone = true
	bases := p.bases
	p.offers, p.bases = nil, nil
	g.catalog.remove(p)
	for uri := range bases {
		g.place(uri)
	}
	for _, parked := range p.parked {
		g.complete(parked.call, reply{failure: errGone}, nil)
	}
	p.parked = nil
	g.retool()
	g.settle()
}

// CloseTab says that a tab is no more: its pages go at once.
func (g *Gateway) CloseTab(key string) {
	g.mu.Lock()
	var pages []*Page
	if t := g.catalog.tabs[key]; t != nil {
		t.closed = true
		for p := range g.catalog.pages {
			if p.tab == t {
				pages = append(pages, p)
			}
		}
	}
	g.unlock()
	for _, p := range pages {
		p.Close("its tab was closed")
	}
}

// Focus says that a tab is the one that the user looks at. It owns the URIs that other tabs have too.
func (g *Gateway) Focus(key string) {
	g.mu.Lock()
	defer g.unlock()
	g.catalog.told = true
	t := g.catalog.tabs[key]
	if t == nil {
		// The page has not come yet: it is focused when it does.
		g.catalog.focusNext = key
		return
	}
	if g.catalog.focus(t) {
		g.reown(t)
	}
}

// Retitle says what a page is called now. Agents learn of it within a few seconds: some pages count in their titles.
func (p *Page) Retitle(title string) {
	g := p.g
	g.mu.Lock()
	defer g.unlock()
	if p.Title == title || p.gone {
		return
	}
	p.Title = title
	if !p.tab.stale {
		p.tab.stale = true
		time.AfterFunc(retitleDelay, func() {
			g.mu.Lock()
			defer g.unlock()
			p.tab.stale = false
			for uri := range p.bases {
				g.place(uri)
			}
		})
	}
}

const retitleDelay = 3 * time.Second

func text(v any, present bool) []byte {
	if !present {
		return nil
	}
	t, err := json.Marshal(v)
	if err != nil || len(t) > maxDescriptor {
		return nil
	}
	return t
}
