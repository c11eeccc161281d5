//go:build !js

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/internal/hubclient"
	"github.com/pagewire/pagewire/bridge/gateway/internal/taburi"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
	"github.com/pagewire/pagewire/bridge/gateway/tools"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A joined is the hub in place of a page: a source. To the hub this gateway is an agent, by MCP.
type joined struct {
	p       *Page
	session *hubclient.Session
	relist  chan struct{}
}

// newClient is what shakes hands with a hub, and hears that its lists are others now.
func newClient(g *Gateway) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "pagewire-gateway", Version: g.opt.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ResourceListChangedHandler: func(_ context.Context, r *mcp.ResourceListChangedRequest) {
			g.listChanged(r.Session)
		},
		ToolListChangedHandler: func(_ context.Context, r *mcp.ToolListChangedRequest) { g.listChanged(r.Session) },
	})
}

// Join takes a hub's pages on: it begins an MCP session over conn, lists what the hub offers and keeps the list up to
// date, until conn ends or Close is called. It returns when the first list is in, or fails. The Conn is the gateway's
// from then on, also when it fails. Done tells when the hub is gone.
func (g *Gateway) Join(ctx context.Context, info PageInfo, conn mcpconn.Conn) (*Page, error) {
	info.Hub = true
	p := g.newPage(info)
	j := &joined{p: p, relist: make(chan struct{}, 1)}
	p.src = j
	shaking, cancel := context.WithTimeout(ctx, g.opt.ReadTimeout)
	defer cancel()
	s, err := hubclient.Connect(shaking, g.client, conn, hubclient.Heard{
		Updated: j.updated, Progressed: j.progressed,
		Sent:     func(text []byte) { g.tap(Event{Way: ToPage, Page: info.URL, Text: text}) },
		Received: func(text []byte) { g.tap(Event{Way: FromPage, Page: info.URL, Text: text}) },
	})
	if err != nil {
		return nil, fmt.Errorf("no MCP session with %s: %w", info.URL, err)
	}
	j.session = s
	g.mu.Lock()
	if g.closed {
		g.mu.Release()
		s.Close()
		return nil, ErrClosed
	}
	p.arrive()
	g.unlock()
	if err := j.list(ctx); err != nil {
		p.Close("its list could not be read")
		return nil, fmt.Errorf("list the resources of %s: %w", info.URL, err)
	}
	go j.follow()
	return p, nil
}

// follow lists anew whenever the hub says so, until its session ends.
func (j *joined) follow() {
	ended := make(chan struct{})
	go func() {
		j.session.Client.Wait()
		close(ended)
	}()
	g := j.p.g
	for {
		select {
		case <-ended:
			j.p.Lost(j.session.Reason())
			return
		case <-j.relist:
			if err := j.list(context.Background()); err != nil { // its session's end is its end
				g.log.Warn("the hub's list could not be read", "url", j.p.URL, "error", err)
			}
		}
	}
}

// listChanged is go-sdk's word that a hub's list is another one now.
func (g *Gateway) listChanged(cs *mcp.ClientSession) {
	g.mu.Lock()
	defer g.mu.Release()
	for p := range g.catalog.pages {
		if j, ok := p.src.(*joined); ok && j.session.Client == cs {
			select {
			case j.relist <- struct{}{}:
			default:
			}
		}
	}
}

// list reads what the hub offers and puts it into the catalog.
func (j *joined) list(ctx context.Context) error {
	offers := map[string]*offer{}
	resources := func(uri string) func(entry wire.Value) error {
		return func(entry wire.Value) error {
			r, err := hubResource(entry, uri)
			// It has what is absent from the same dead hub that we have it from.
			if err == nil && !wire.Value(r.Meta).Get(metaAbsent).True() {
				offers[r.URI] = &offer{page: j.p, resource: r}
			}
			return err
		}
	}
	if err := j.entries(ctx, "resources/list", "resources", resources("uri")); err != nil {
		return err
	}
	err := j.entries(ctx, "resources/templates/list", "resourceTemplates", resources("uriTemplate"))
	if err != nil {
		return err
	}
	var offered []toolOffer
	if caps := j.session.Client.InitializeResult().Capabilities; caps != nil && caps.Tools != nil {
		err = j.entries(ctx, "tools/list", "tools", func(entry wire.Value) error {
			o, err := hubTool(entry)
			offered = append(offered, o)
			return err
		})
		if err != nil {
			return err
		}
	}
	j.p.g.offered(j.p, offers, offered)
	return nil
}

// hubResource is an entry of a hub's list, of resources or of templates; uri is the member that has the URI.
func hubResource(entry wire.Value, uri string) (bridge.Resource, error) {
	r, err := bridge.DecodeResource(entry)
	if err != nil {
		return r, err
	}
	r.URI, _ = entry.Get(uri).Text()
	r.Schema, r.MinInterval, r.Coalesced = nil, 0, true // by the hub's engine, which sees to the other two as well
	return r, nil
}

// hubTool is an entry of a hub's list of tools. Agents are shown it as the hub wrote it, but for the annotations of a
// page, which a hub of an older version passes on.
func hubTool(entry wire.Value) (toolOffer, error) {
	name, _ := entry.Get("name").Text()
	o, err := decodeTool(bridge.Tool{Name: name, JSON: entry})
	if err != nil {
		return o, err
	}
	if entry.Get("annotations") == nil {
		o.shown.text = slices.Clone(entry)
	} else {
		claimed := tools.Claimed(o.tool)
		o.shown.text = text(&claimed, true)
	}
	o.shown.as = name
	o.fresh = freshnessOf(o.tool.Meta, func(string) bool { return true })
	return o, nil
}

// entries reads a list of the hub to its end, and hands over each entry as the hub wrote it: go-sdk's types would drop
// what they have no field for, and most zeros. Each page of the list may take as long as a read. A list of more entries
// than a gateway holds has no end, nor has one of as many pages.
func (j *joined) entries(ctx context.Context, method, member string, each func(entry wire.Value) error) error {
	cursor := ""
	for left := maxResources; left > 0; {
		page, err := j.page(ctx, method, cursor)
		if err != nil {
			return err
		}
		n := 0
		page.Get(member).Elements(func(entry wire.Value) bool {
			n++
			err = each(entry)
			return err == nil
		})
		next, _ := page.Get("nextCursor").Text()
		switch {
		case err != nil:
			return fmt.Errorf("an entry of %s: %w", method, err)
		case next == "":
			return nil
		case next == cursor:
			return fmt.Errorf("its list repeats the cursor %q", next)
		}
		cursor = next
		left -= max(n, 1)
	}
	return fmt.Errorf("its list has no end: %d entries and pages are read of it", maxResources)
}

// maxListDepth is how deep a hub's list may be nested: as deep as an engine takes any text.
const maxListDepth = 1000

// page asks for one page of a list.
func (j *joined) page(ctx context.Context, method, cursor string) (wire.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, j.p.g.opt.ReadTimeout)
	defer cancel()
	result, err := j.session.List(ctx, method, cursor)
	if err != nil {
		return nil, err
	}
	return wire.Parse(result, maxListDepth)
}

// offered takes what a hub offers now, in place of what it offered before. What agents watch is subscribed to at the
// hub before they are told that it is there: no change is lost between the two.
func (g *Gateway) offered(p *Page, offers map[string]*offer, tools []toolOffer) {
	g.mu.Lock()
	if p.gone || p.absent {
		g.unlock()
		return
	}
	if len(offers) > 0 {
		clear(g.catalog.owners)
	}
	for _, o := range offers {
		o.find()
	}
	pending := 1
	ready := make(chan struct{})
	arrived := func() { // with the lock held
		if pending--; pending == 0 {
			close(ready)
		}
	}
	for uri := range g.interest {
		if wouldLead(uri, offers) && p.upstream[uri] == nil {
			pending++
			g.follow(p, uri, arrived)
		}
	}
	arrived()
	g.unlock()
	<-ready

	g.mu.Lock()
	defer g.unlock()
	if p.gone || p.absent {
		return
	}
	for _, o := range p.offers {
		if offers[o.resource.URI] == nil {
			g.withdraw(o)
		}
	}
	// In one order, so that the same pages always make the same list; and who owns a URI before the other tabs that
	// have it, of which one would have it here until then.
	for _, uri := range taburi.Sorted(maps.Keys(offers)) {
		g.offer(offers[uri])
	}
	p.published = tools
	g.retool()
	g.settle()
}

// wouldLead reports whether a URI that is watched would be a hub's, given what it offers.
func wouldLead(uri string, offers map[string]*offer) bool {
	if offers[uri] != nil {
		return true
	}
	for _, o := range offers {
		for _, key := range []string{o.resource.URI, taburi.Of(o.base, o.segment)} {
			if key == uri {
				return true
			}
			if i := strings.IndexByte(key, '{'); i >= 0 && strings.HasPrefix(uri, key[:i]) {
				return true // it may be: the hub says so when it is asked
			}
		}
	}
	return false
}

// text is a value as JSON text; nil if it is not present, or is none.
func text(v any, present bool) []byte {
	if !present {
		return nil
	}
	t, err := plainJSON(v)
	if err != nil {
		return nil
	}
	return t
}

// plainJSON is a value as JSON text that is no longer than it must be: json.Marshal makes six bytes of each "<".
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// locked makes what is to be done with a reply wait for the lock.
func (j *joined) locked(of func(hubclient.Reply) []byte, done func(reply)) func(hubclient.Reply) {
	g := j.p.g
	return func(r hubclient.Reply) {
		g.mu.Lock()
		defer g.unlock()
		switch {
		case r.Failure == hubclient.ErrGone:
			done(lost)
		case r.Failure != nil:
			failure := bridge.ReadFailed
			if r.Failure.Data.Reason != "" {
				failure = bridge.Failure(r.Failure.Data.Reason)
			}
			done(reply{failure: failure, detail: r.Failure.Message})
		default:
			done(reply{contents: of(r)})
		}
	}
}

func (j *joined) read(_, uri, _ string, done func(reply)) (end func()) {
	return j.session.Request("resources/read", map[string]string{"uri": uri},
		j.locked(func(r hubclient.Reply) []byte { return r.Contents }, done))
}

const tokenPrefix = "call-"

func (j *joined) callTool(id bridge.CallID, name string, args []byte, unless []condition,
	done func(reply)) (end func()) {
	meta := map[string]any{"progressToken": tokenPrefix + strconv.Itoa(int(id))}
	if len(unless) > 0 {
		meta[metaUnless] = unlessMeta(unless)
	}
	params := struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      map[string]any  `json:"_meta"`
	}{name, slices.Clone(args), meta}
	return j.session.Request("tools/call", params, j.locked(func(r hubclient.Reply) []byte { return r.Result },
		func(r reply) {
			if r.stale = staleOf(r.contents, unless); len(r.stale) > 0 {
				r.failure = link.Stale
			}
			done(r)
		}))
}

func (j *joined) watch(uri string, then func(known bool)) {
	j.session.Request("resources/subscribe", map[string]string{"uri": uri}, func(r hubclient.Reply) {
		j.p.g.mu.Lock()
		defer j.p.g.unlock()
		then(r.Failure == nil)
	})
}

func (j *joined) unwatch(uri string) {
	j.session.Request("resources/unsubscribe", map[string]string{"uri": uri}, func(hubclient.Reply) {})
}

func (j *joined) close() { j.session.Close() }

// updated is the hub's word that a resource has changed.
func (j *joined) updated(uri string) {
	g := j.p.g
	g.mu.Lock()
	defer g.unlock()
	g.changed(j.p, uri)
}

// progressed passes the hub's word on a tool call to the agent.
func (j *joined) progressed(m *mcp.ProgressNotificationParams) {
	token, _ := m.ProgressToken.(string)
	id, err := strconv.Atoi(strings.TrimPrefix(token, tokenPrefix))
	if err != nil {
		return
	}
	members, err := json.Marshal(struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitempty"`
		Message  string  `json:"message,omitempty"`
	}{m.Progress, m.Total, m.Message})
	if err != nil {
		return
	}
	g := j.p.g
	g.mu.Lock()
	defer g.unlock()
	if c := g.calls[bridge.CallID(id)]; c != nil && c.page == j.p {
		g.engine.Progress(g.now(), c.id, members[1:len(members)-1])
	}
}
