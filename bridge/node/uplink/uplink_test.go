package uplink_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/dial"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/node/uplink"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/nodekit"
)

const app, private = "https://app.example", "https://private.example"

// A world is a node, and a desktop whose pages of app go there.
type world struct {
	t       *testing.T
	node    *node.Node
	login   *nodekit.Login
	end     func() // of the uplink
	desktop *gateway.Gateway
	log     *testkit.Log
	asked   atomic.Int64 // tickets
}

func open(t *testing.T, tools bool, ticket func(w *world, origin string) (string, error), shown ...string) *world {
	t.Helper()
	testkit.NoLeak(t)
	w := &world{t: t, log: testkit.LogOf(t, "the desktop"), login: nodekit.NewLogin(t)}
	var err error
	if w.node, err = node.Open(node.Options{}); err != nil {
		t.Fatal(err)
	}
	pages := dial.New(dial.Options{Node: w.node, Tickets: w.login.Verifier()})
	server := httptest.NewServer(pages)
	o := uplink.Options{URL: "ws" + strings.TrimPrefix(server.URL, "http"), Origins: []string{app, "https://*.example"},
		Deny: []string{private}, Shown: shown, Tools: tools, Log: slog.New(slog.NewTextHandler(w.log, nil)), Ticket: func(_ context.Context, origin string) (string, error) {
			w.asked.Add(1)
			return ticket(w, origin)
		}}
	uplink.RenewAtLeast(&o, 50*time.Millisecond)
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	w.desktop = gateway.New(gateway.Options{AllowPages: []string{app, private}, Share: uplink.New(ctx, o).Share})
	t.Cleanup(func() {
		w.desktop.Close()
		end()
		_ = pages.Close()
		server.Close()
		w.node.Close()
	})
	return w
}

func good(w *world, origin string) (string, error) { return w.login.Ticket("alice", origin), nil }

// page opens a page of an origin at the desktop, which sends only its epoch, as over CDP.
func (w *world) page(origin, uri, text string) (*testkit.Page, *gateway.Page) {
	w.t.Helper()
	page := testkit.NewPage(w.t, map[string]string{uri: text})
	page.Epoch("epoch of " + uri)
	var at *gateway.Page
	page.Attach(func(send func([]byte)) (_ testkit.Receiver, err error) {
		at, err = w.desktop.Attach(gateway.PageInfo{Tab: "a tab " + uri, Frame: "1.2", Origin: origin, URL: origin + "/",
			Title: "A title", Transport: "cdp"}, send)
		return at, err
	})
	return page, at
}

func agentOf(t *testing.T, g *gateway.Gateway) *testkit.Agent {
	t.Helper()
	port, err := g.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Connect(t, testkit.Transport(port), testkit.Legacy)
}

func (w *world) agent() *testkit.Agent { return w.login.Agent(w.node, "alice") }

// An agent at the node lists, reads and watches only resources of the origins that the user has chosen. An agent of the
// desktop has them all. They leave the node with the page, and with the uplink.
func TestPagesGoToTheNode(t *testing.T) {
	w := open(t, false, good)
	w.page(private, private+"/diary", "secret")
	doc, docPage := w.page(app, app+"/doc", "one")
	doc.SetTool("erase", testkit.Tool{})
	w.page(app, app+"/other", "x")
	far, near := w.agent(), agentOf(t, w.desktop)
	far.Shows(app+"/doc", app+"/other")
	near.Shows(app+"/doc", app+"/other", private+"/diary")
	far.Watch(app + "/doc")
	near.Watch(app + "/doc")
	doc.Set(app+"/doc", "two")
	far.Learns(app+"/doc", "two")
	near.Learns(app+"/doc", "two")
	doc.Offer(app+"/late", "late")
	far.Shows(app+"/doc", app+"/other", app+"/late")
	if n := w.asked.Load(); n != 1 {
		t.Errorf("%d tickets for two pages of an origin", n)
	}
	docPage.Close("it is closed")
	testkit.Eventually(t, "one page is left", func() bool { return w.node.Stats().Pages == 1 })
	w.end()
	testkit.Eventually(t, "no page is left", func() bool { return w.node.Stats().Pages == 0 })
	near.Shows(app+"/other", private+"/diary")
}

// What a page shows goes to the node only if the user has named it for the node. A grant in the extension
// does not count, nor that Pagewire launched the browser, nor the flag of an agent here.
func TestShownPagesAtTheNode(t *testing.T) {
	const uri, part = app + gateway.ShownPath, app + gateway.PartsPath + "jobs"
	for _, named := range []bool{false, true} {
		for _, info := range []gateway.PageInfo{{Granted: true}, {Launched: true}} {
			shown := []string{"https://other.example", private}
			if named {
				shown = []string{app}
			}
			w := open(t, false, good, shown...)
			here, _ := w.desktop.ConnectWith(gateway.AgentOptions{Shown: []string{app, "https://third.example"},
				Opened: []string{app}})
			near := testkit.Connect(t, testkit.Transport(here), testkit.Legacy)
			show := func(origin string) *testkit.Page {
				at := origin + gateway.ShownPath
				page := testkit.NewPage(t, map[string]string{at: "outline"})
				page.Epoch("epoch of " + at)
				info.Tab, info.Frame, info.Origin, info.URL = "a tab "+app+"/doc", "1.2", origin, origin+"/"
				info.Title, info.Shown, info.Transport = "A secret title", true, "cdp"
				page.Attach(func(send func([]byte)) (testkit.Receiver, error) { return w.desktop.Attach(info, send) })
				return page
			}
			outline := show(app)
			outline.Offer(part, "| lint | Succeeded |")
			w.page(app, app+"/doc", "one") // of that tab
			near.Shows(app+"/doc", part)
			far := w.agent()
			far.Shows(map[bool][]string{false: {app + "/doc"}, true: {app + "/doc", part}}[named]...)
			list, _ := far.Call("list_page_resources", nil)
			if !named {
				if n := w.node.Stats().Pages; n != 1 || strings.Contains(list, "secret") {
					t.Errorf("%d pages are at the node, which lists %s", n, list)
				}
				for _, uri := range []string{uri, uri + "/tab/1.1.2", part} {
					text, err := far.Read(uri)
					if err == nil || far.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}) == nil {
						t.Errorf("%s is read at the node: %q", uri, text)
					}
				}
				if outline.Asked() > 0 || outline.Watches(uri) {
					t.Error("the page was looked at")
				}
				continue
			}
			far.CheckText(uri, "outline")
			far.CheckText(uri+"/tab/1.1.2", "outline") // what the page offers itself is in this tab, too
			if !strings.Contains(list, "A part of the page (offered by the user): jobs") {
				t.Errorf("the node lists %s", list)
			}
			far.Watch(uri)
			outline.Set(uri, "another outline")
			far.Learns(uri, "another outline")
			show("https://third.example") // an agent has named that
			w.page("https://third.example", "https://third.example/doc", "three")
			far.Shows(app+"/doc", part, "https://third.example/doc")
		}
	}
}

// A document that comes to the desktop in two ways is one page at the node, and stays there when one of them ends.
func TestTwoWaysAtTheNode(t *testing.T) {
	for last := range 2 {
		w := open(t, false, good)
		uri := app + "/doc"
		var docs []*testkit.Page
		var ways []*gateway.Page
		for _, transport := range []string{"cdp", "websocket"} {
			doc := testkit.NewPage(t, map[string]string{uri: "one"})
			doc.Epoch("document")
			doc.Attach(func(send func([]byte)) (testkit.Receiver, error) {
				at, err := w.desktop.Attach(gateway.PageInfo{Tab: transport, Origin: app, URL: app + "/", Transport: transport}, send)
				ways = append(ways, at)
				return at, err
			})
			docs = append(docs, doc)
			testkit.Eventually(t, "one page is at the node", func() bool { return w.node.Stats().Pages == 1 })
		}
		far, near := w.agent(), agentOf(t, w.desktop)
		far.Shows(uri)
		near.Shows(uri)
		ways[1-last].Lost("it has ended")
		docs[last].Set(uri, "two")
		far.Reads(uri, "two")
		near.Reads(uri, "two")
		testkit.Eventually(t, "one page is at the node still", func() bool { return w.node.Stats().Pages == 1 })
	}
}

// Pages that come and go, before and after they are at the node, leave nothing: open looks for goroutines.
func TestPagesThatComeAndGo(t *testing.T) {
	w := open(t, false, good)
	for i := range 100 {
		uri := app + "/" + strconv.Itoa(i)
		_, at := w.page(app, uri, "x")
		if i%2 == 0 {
			testkit.Eventually(t, "it is at the node", func() bool { return w.node.Stats().Pages == 1 })
		}
		if i%4 < 2 {
			at.Lost("its browser has ended")
		} else {
			at.Close("it is closed")
		}
		testkit.Eventually(t, "none is at the node", func() bool { return w.node.Stats().Pages == 0 })
	}
}

// The node's agents have the tools of the pages only if the user says so.
func TestTools(t *testing.T) {
	for _, tools := range []bool{false, true} {
		w := open(t, tools, good)
		doc, _ := w.page(app, app+"/doc", "one")
		doc.SetTool("erase", testkit.Tool{})
		far := w.agent()
		has := func() bool { return strings.Contains(strings.Join(far.ToolNames(), " "), "erase") }
		testkit.Eventually(t, "the desktop has the tool", func() bool {
			return strings.Contains(strings.Join(agentOf(t, w.desktop).ToolNames(), " "), "erase")
		})
		far.Shows(app + "/doc")
		far.Watch(app + "/doc")
		doc.Set(app+"/doc", "two") // it comes after the tools
		far.Learns(app+"/doc", "two")
		if tools {
			testkit.Eventually(t, "the node has the tool", has)
		} else if has() {
			t.Error("the node has the tool")
		}
	}
}

// A page stays at the node after its first ticket has ended, because the ticket is replaced.
func TestTicketsAreReplaced(t *testing.T) {
	w := open(t, false, func(w *world, origin string) (string, error) {
		return w.login.Signed("alice", map[string]any{"origin": origin,
			"exp": time.Now().Add(3*time.Second - tickets.Skew)}), nil
	})
	w.page(app, app+"/doc", "one")
	far := w.agent()
	far.Shows(app + "/doc")
	first := w.asked.Load()
	testkit.Eventually(t, "the ticket has ended and others came", func() bool { return w.asked.Load() >= first+2 })
	if w.log.Has("not at the node") {
		t.Error("the page was away")
	}
}

// If the node refuses a ticket, or there is none, the log says so once, with the remedy. The page goes to the node when
// there is a good ticket.
func TestRefusedTickets(t *testing.T) {
	for says, ticket := range map[string]func(*world) (string, error){
		"is to give, for this origin, a JWT of an issuer": func(w *world) (string, error) {
			return w.login.Ticket("alice", private), nil
		},
		"there is no ticket: the vault is locked": func(*world) (string, error) {
			return "", errors.New("the vault is locked")
		},
		"is to be a JWT": func(*world) (string, error) { return "password", nil },
	} {
		var right atomic.Bool
		w := open(t, false, func(w *world, origin string) (string, error) {
			if right.Load() {
				return good(w, origin)
			}
			return ticket(w)
		})
		w.page(app, app+"/doc", "one")
		testkit.Eventually(t, says, func() bool { return w.log.Has(says) })
		tried := w.asked.Load()
		testkit.Eventually(t, "it is tried again", func() bool { return w.asked.Load() > tried })
		if n := w.log.Count("not at the node"); n != 1 {
			t.Errorf("%s: said %d times", says, n)
		}
		right.Store(true)
		w.agent().Shows(app + "/doc")
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		url     string
		origins []string
		says    string
	}{
		{"wss://live.example", []string{app}, ""},
		{"ws://127.0.0.1:8080/page", []string{app}, ""},
		{"ws://live.example", []string{app}, "want wss:"},
		{"https://live.example", []string{app}, "want wss:"},
		{"live.example", []string{app}, "want a URL"},
		{"ws://node.localhost", []string{app}, "want wss:"},
		{"wss://user:pw@live.example", []string{app}, "want a URL"},
		{"wss://live.example", nil, "name the origins"},
	} {
		o := uplink.Options{URL: c.url, Origins: c.origins}
		if err := o.Check(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %v: %v", c.url, c.origins, err)
		}
	}
}

func TestTicketFile(t *testing.T) {
	login := nodekit.NewLogin(t)
	file := filepath.Join(t.TempDir(), "tickets")
	of := uplink.TicketFile(file)
	wanted := login.Ticket("alice", app)
	old := login.Signed("alice", map[string]any{"origin": app, "exp": time.Now().Add(-time.Hour)})
	lines := strings.Join([]string{login.Ticket("alice", private), old, wanted, old}, "\n")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := of(t.Context(), app); got != wanted || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := of(t.Context(), "https://else.example"); err == nil || !strings.Contains(err.Error(), "no ticket whose") {
		t.Error(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := of(t.Context(), app); err == nil || !strings.Contains(err.Error(), "chmod 600 "+file) {
		t.Error(err)
	}
}

func TestTicketCommand(t *testing.T) {
	if got, err := uplink.TicketCommand("echo  a.b.c")(t.Context(), app); got != "a.b.c "+app || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := uplink.TicketCommand("ls --colour-of=magic")(t.Context(), app); err == nil ||
		!strings.Contains(err.Error(), "magic") {
		t.Error(err)
	}
	// The command leaves a process running that holds its output open, like a command that starts a key agent.
	pid := filepath.Join(t.TempDir(), "pid")
	script := filepath.Join(t.TempDir(), "give")
	if err := os.WriteFile(script, []byte("sleep 600 &\necho $! >"+pid+"; echo a.b.c"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		text, _ := os.ReadFile(pid)
		if id, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			if p, err := os.FindProcess(id); err == nil {
				_ = p.Kill()
			}
		}
	})
	if got, err := uplink.TicketCommand("sh "+script)(t.Context(), app); got != "a.b.c" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A hundred pages of an origin ask for its ticket no more often than one page, even if there is no ticket. Pages of
// another origin do not wait for it.
func TestTicketsOfManyPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]int{}
		var mu sync.Mutex
		o := uplink.Options{URL: "ws://127.0.0.1:1", Origins: []string{app, private}, Log: slog.New(slog.DiscardHandler),
			Ticket: func(ctx context.Context, origin string) (string, error) {
				mu.Lock()
				asked[origin]++
				mu.Unlock()
				if origin == app {
					select {
					case <-ctx.Done():
					case <-time.After(10 * time.Second):
					}
				}
				return "", errors.New("the vault is locked")
			}}
		ctx, end := context.WithCancel(t.Context())
		share := uplink.New(ctx, o).Share
		for range 100 {
			hello(t, share, app)
		}
		hello(t, share, private)
		time.Sleep(time.Second)
		mu.Lock()
		if asked[private] == 0 {
			t.Error("pages of an origin wait for the ticket of another")
		}
		mu.Unlock()
		time.Sleep(59 * time.Second)
		end()
		synctest.Wait()
		if n := asked[app]; n < 2 || n > 5 {
			t.Errorf("%d tickets were asked for in a minute", n)
		}
	})
}

// hello shares a page that has sent its hello. Frames to the page and to the gateway are dropped.
func hello(t *testing.T, share func(gateway.PageInfo, func([]byte) error, func([]byte)) gateway.Sharer,
	origin string) gateway.Sharer {
	t.Helper()
	s := share(gateway.PageInfo{Tab: "a tab", Origin: origin, URL: origin + "/"}, func([]byte) error { return nil },
		func([]byte) {})
	if err := s.Receive([]byte(`[["hello",1,"0",{"epoch":"e"}]]`)); err != nil {
		t.Fatal(err)
	}
	return s
}

// A page that sends faster than the gateway receives must wait, and the queued bytes are bounded.
func TestPageThatSendsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		o := uplink.Options{URL: "ws://127.0.0.1:1", Origins: []string{app}, Log: slog.New(slog.DiscardHandler),
			Ticket: func(context.Context, string) (string, error) { return "", errors.New("there is none") }}
		free, taken := make(chan struct{}), 0
		s := uplink.New(ctx, o).Share(gateway.PageInfo{Tab: "a tab", Origin: app, URL: app + "/"}, func([]byte) error {
			<-free
			taken++
			return nil
		}, func([]byte) {})
		go func() { _ = s.Receive([]byte(`[["hello",1,"0",{"epoch":"e"}]]`)) }() // this goroutine delivers
		synctest.Wait()
		const frames = 100
		var sent atomic.Int64
		long := []byte(`[["register",` + strconv.Quote(`{"uri":"`+app+`/doc","name":"`+strings.Repeat("n", 60_000)+`"}`) + `]]`)
		go func() {
			for range frames {
				if err := s.Receive(long); err != nil {
					t.Error(err)
				}
				sent.Add(1)
			}
		}()
		synctest.Wait()
		if n := sent.Load(); n == 0 || n > 20 {
			t.Errorf("%d frames of 60 KB wait", n)
		}
		close(free)
		synctest.Wait()
		if sent.Load() != frames || taken < frames {
			t.Errorf("%d were sent, %d taken", sent.Load(), taken)
		}
	})
}

// A profile among a node's origins bounds its pages, as one of --only does. Pages of others are not shared.
func TestProfilesAtTheNode(t *testing.T) {
	for profile, shared := range map[string]bool{"Work": true, "Private": false, "": false} {
		n := uplink.New(t.Context(), uplink.Options{URL: "ws://127.0.0.1:1", Origins: []string{"profile=Work", app},
			Log: slog.New(slog.DiscardHandler)})
		got := n.Share(gateway.PageInfo{Tab: "a", Origin: app, Profile: profile}, func([]byte) error { return nil }, func([]byte) {})
		if (got != nil) != shared {
			t.Errorf("a page of the profile %q is shared: %t", profile, got != nil)
		}
	}
}
