package socket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/internal/seats"
	"github.com/pagewire/pagewire/bridge/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// Here the other end is ours, down to the frames, and does what no browser does.

const local = "http://localhost:3000"

func (p *place) dial(origin string) (*wsconn.Conn, *http.Response, error) {
	return p.dialWith(http.Header{"Origin": {origin}})
}

func (p *place) dialWith(header http.Header) (*wsconn.Conn, *http.Response, error) {
	over, err := net.Dial("tcp", p.addr)
	if err != nil {
		return nil, nil, err
	}
	return wsconn.Client(p.t.Context(), over, "/page", header, wsconn.Options{MaxMessage: 1 << 20})
}

// connect opens a connection and says hello.
func (p *place) connect(origin, hello string) *wsconn.Conn {
	p.t.Helper()
	c, _, err := p.dial(origin)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	testkit.OK(p.t, c.Write(p.t.Context(), []byte(hello)))
	return c
}

// hello returns the first frame of a page, with its description.
func hello(about string) string { return `[["hello",1,"0",` + about + `]]` }

func hi(tab string) string { return hello(`{"tab":"` + tab + `","title":"Raw"}`) }

func say(t *testing.T, c *wsconn.Conn, frame string) {
	t.Helper()
	testkit.OK(t, c.Write(t.Context(), []byte(frame)))
}

// closes fails unless the connection's next message is its close, with a code and a text.
func closes(t *testing.T, what string, c *wsconn.Conn, code websocket.StatusCode, says string) {
	t.Helper()
	if _, err := c.Read(t.Context()); websocket.CloseStatus(err) != code || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: it ends with %v", what, err)
	}
}

// offer makes a connection after its hello a page with one resource.
func offer(t *testing.T, c *wsconn.Conn, uri string) {
	p := testkit.NewPage(t, map[string]string{uri: "raw"})
	p.Resume(func(frame []byte) { _ = c.Write(t.Context(), frame) }) // the reader notices a connection that has gone
	go func() {
		for {
			frame, err := c.Read(t.Context())
			if err != nil {
				return
			}
			p.Hear(frame)
		}
	}()
}

func TestWhoMayConnect(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{Extensions: []string{"abcdefghijklmnopabcdefghijklmnop"}})
	p.allow("https://denied.example")
	allows := p.allow("https://*.allowed.example")
	for origin, want := range map[string]string{
		"http://localhost:3000":              "",
		"http://127.0.0.1":                   "",
		"https://[::1]:8443":                 "",
		"https://app.localhost":              "",
		"https://a.allowed.example":          "",
		"https://allowed.example":            "start the gateway with --allow-origin https://allowed.example",
		"http://a.allowed.example":           "--allow-origin",
		"https://evil.example":               "Pages of https://evil.example may not connect",
		"https://localhost.evil.example":     "may not connect",
		"http://127.0.0.1.evil.example":      "may not connect",
		"https://denied.example":             "Pages of https://denied.example are not served",
		"null":                               "no origin of its own",
		"":                                   "Only pages connect here",
		"file://":                            "may not connect",
		"chrome-extension://ponmlkjihgfedcb": "This extension is not one",
		"chrome-extension://abcdefghijklmnopabcdefghijklmnop": "",
	} {
		c, response, err := p.dial(origin)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", origin, err)
			} else {
				c.Close()
			}
			continue
		}
		if err == nil {
			c.Close()
			t.Errorf("%s may connect", origin)
			continue
		}
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusForbidden || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s: %s", origin, response.Status, text)
		}
		if !p.log.Has("refused a page") {
			t.Error("nothing was logged")
		}
	}
	allows.Close()
	if c, _, err := p.dial("https://a.allowed.example"); err == nil {
		c.Close()
		t.Error("a page may connect that the agent had allowed which has gone")
	}
	response, err := http.Get("http://" + p.addr + "/page")
	if err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("a request that is no WebSocket: %v, %v", response, err)
	}
}

func TestPagesThatDoNotIntroduceThemselves(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{})
	for _, hello := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{`, ``, `[]`, `{"type":"pagewire:page","tab":"0123456789"}`,
		`[["touch","http://localhost:3000/a",1]]`,
		hello(`{}`), hello(`[]`), hi("short"), hi("0123456789 #2"), hi(strings.Repeat("x", 65)),
		hello(`{"tab":"0123456789","frame":"a"}`),
		hello(`{"tab":["0123456789"]}`), `[["hello","1","0",{"tab":"0123456789"}]]`,
	} {
		c := p.connect(local, hello)
		closes(t, hello, c, websocket.StatusPolicyViolation, "")
	}
	testkit.Eventually(t, "none is left", func() bool { return p.pages.Len() == 0 })
}

// A page's statements count only for the page itself, not for another origin or another origin's tab.
func TestPagesThatLie(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{})
	long, _ := json.Marshal(strings.Repeat("é", 2000))
	c := p.connect(local,
		hello(`{"tab":"0123456789","origin":"https://bank.example","url":"https://bank.example/","title":`+string(
			long)+`,"focused":1e300}`))
	offer(t, c, "https://bank.example/doc")
	other := p.connect("http://localhost:4000", hi("0123456789"))
	say(t, other, `[["register","{\"uri\":\"`+local+`/doc\",\"name\":\"another's\"}"]]`)
	offer(t, other, "http://localhost:4000/doc")
	say(t, c, `[["register","{\"uri\":\"`+local+`/own\",\"name\":\"own\"}"]]`)
	p.waitFor(2)
	var tabs []string
	testkit.Eventually(t, "both are attached", func() bool {
		tabs = nil
		for _, s := range p.g.Snapshot().Pages {
			tabs = append(tabs, s.Tab)
			if s.Origin == local && (s.URL != local+"/" || len(s.Title) > 1<<10 || !strings.HasPrefix(s.Title, "éé")) {
				t.Errorf("the page is at %s and called %d bytes", s.URL, len(s.Title))
			}
		}
		return len(tabs) == 2
	})
	if tabs[0] == tabs[1] {
		t.Errorf("two origins share the tab %s", tabs[0])
	}
	p.agent().Shows(local+"/own", "http://localhost:4000/doc")

	// Only the extension reports the tab in front.
	forged := p.connect("http://localhost:5000", hello(`{"tab":"0123456789","origin":"pagewire://front"}`))
	say(t, forged, `{"focused":true,"tab":"0123456789","origin":"https://bank.example","url":"https://bank.example/"}`)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for err := error(nil); err == nil; _, err = forged.Read(ctx) {
	}
	if ctx.Err() != nil {
		t.Error("a page has reported the tab in front, and was not refused")
	}
}

func TestTabOfTwoDocuments(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{})
	first := p.connect(local, hi("0123456789"))
	offer(t, first, local+"/doc")
	one := p.waitFor(1)[0]
	// It is alive, so another document with the id gets another tab, and that tab's id.
	c := p.connect(local, hi("0123456789"))
	text, err := c.Read(t.Context())
	var calls [][]any
	if err != nil || json.Unmarshal(text, &calls) != nil || len(calls) != 1 || calls[0][0] != "hello" {
		t.Fatalf("the second document was told %s, %v", text, err)
	}
	given, _ := calls[0][3].(map[string]any)["tab"].(string)
	if !seats.IsNamed(given, "") || given == "0123456789" {
		t.Fatalf("the second document was given the tab %q", given)
	}
	offer(t, c, local+"/doc")
	if two := p.waitFor(2)[1]; !strings.HasSuffix(two.Tab, given) {
		t.Errorf("the second document is in the tab %s", two.Tab)
	}
	// It goes, and the next document with its id gets its tab at once.
	first.Close()
	offer(t, p.connect(local, hi("0123456789")), local+"/doc")
	if again := p.waitFor(2)[0]; again.Tab != one.Tab || again.Number != one.Number {
		t.Errorf("the tab was %+v and is %+v", one, again)
	}
	// A document that does not answer a ping loses its tab. Its successor waits only for the ping.
	p.connect(local, hi("abcdefghij"))
	testkit.Eventually(t, "it has its place", func() bool { return p.pages.seats.Len() == 3 })
	offer(t, p.connect(local, hi("abcdefghij")), local+"/doc")
	p.waitFor(3)
}

func TestOversizeFrame(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{})
	c := p.connect(local, hi("0123456789"))
	offer(t, c, local+"/doc")
	p.waitFor(1)
	// A frame of the largest size is accepted, without effect; one byte more ends the connection.
	answer := "=99 0 "
	say(t, c, answer+`"`+strings.Repeat("x", maxFrame-2-len(answer))+`"`)
	testkit.OK(t, c.Ping(testkit.Patience))
	c.Write(t.Context(), bytes.Repeat([]byte("x"), maxFrame+1))
	testkit.Ends(t, "the connection ends", c.Closed())
	p.waitFor(0)
	const why = "a message is too long; the limit is 17825792 bytes"
	if ended := p.g.Snapshot().Ended; !p.log.Has(why) || ended[why] != 1 {
		t.Errorf("it is not logged, or not counted: %v", ended)
	}
}

// After too many dropped pages, a page of that origin waits or must come later. Another origin's is served at once.
func TestPagesThatBeginAnewAtOnce(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{})
	const tooLong = "a message is too long; the limit is 65536 bytes"
	for range maxLetGo {
		c := p.connect(local, strings.Repeat("x", maxHello+1))
		closes(t, "a long hello", c, websocket.StatusMessageTooBig, tooLong)
	}
	testkit.Eventually(t, "all are counted", func() bool { return p.g.Snapshot().Ended[tooLong] == maxLetGo })
	p.pages.origins.mu.Lock()
	o := p.pages.origins.acquire(local)
	p.pages.origins.mu.Unlock()
	testkit.Eventually(t, "it is known that they were let go", func() bool {
		p.pages.origins.mu.Lock()
		defer p.pages.origins.mu.Unlock()
		return o.letGo == maxLetGo
	})
	p.pages.origins.mu.Lock()
	o.last = time.Now().Add(time.Hour) // so that the machine's speed does not matter
	for pause, why := o.wait(time.Now()); why == ""; pause, why = o.wait(time.Now()) {
		if pause > maxWait {
			t.Errorf("one waits for %v", pause)
		}
	}
	o.next = time.Now().Add(time.Hour)
	p.pages.origins.mu.Unlock()
	c := p.connect(local, hi("0123456789"))
	later := "too many pages of " + local + " were let go; the limit is 20"
	closes(t, "one more", c, websocket.StatusTryAgainLater, later)
	offer(t, p.connect("http://localhost:4000", hi("0123456789")), "http://localhost:4000/doc")
	p.waitFor(1)
	p.pages.origins.mu.Lock()
	o.last = time.Now().Add(-2 * letGoTime)
	p.pages.origins.mu.Unlock()
	offer(t, p.connect(local, hi("0123456789")), local+"/doc")
	p.waitFor(2)
	p.pages.origins.mu.Lock()
	o.pages--
	p.pages.origins.mu.Unlock()
}

// While the calls of an origin wait, its pages still answer agents.
func TestAnOriginThatRestsIsRead(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{})
	busy := p.connect(local, hello(`{"tab":"busy012345","title":"Before"}`))
	offer(t, busy, local+"/busy")
	offer(t, p.connect(local, hi("read012345")), local+"/doc")
	p.waitFor(2)
	a := p.agent()
	a.Watch(local + "/doc") // the touch that answers it is a call
	p.pages.origins.mu.Lock()
	o := p.pages.origins.all[local]
	p.pages.origins.mu.Unlock()
	o.turn.Lock()
	o.credit, o.paid = -time.Hour, time.Now()
	o.turn.Unlock()
	titled := func(title string) bool {
		return slices.ContainsFunc(p.attached(), func(s gateway.PageState) bool { return s.Title == title })
	}
	say(t, busy, `[["note",{"title":"Heard"}]]`)
	testkit.Eventually(t, "the last call before the rest is heard", func() bool { return titled("Heard") })
	say(t, busy, `[["note",{"title":"Too early"}]]`)
	for range 10 {
		a.CheckText(local+"/doc", "raw")
	}
	if titled("Too early") {
		t.Error("the origin is heard while it rests")
	}
}

func TestPagesThatAreTooMuch(t *testing.T) {
	t.Parallel()
	p := openPlaceFor(t, Options{}, 3*time.Second)
	doc := "http://localhost:4000/doc"
	offer(t, p.connect("http://localhost:4000", hi("0123456789")), doc)
	p.waitFor(1)
	a := p.agent()
	a.Watch(doc)

	t.Run("flood", func(t *testing.T) {
		c := p.connect(local, hi("flood00000"))
		offer(t, c, local+"/doc")
		p.waitFor(2)
		touch := `["touch","` + local + `/doc",1]`
		many := []byte("[" + touch + strings.Repeat(","+touch, 5999) + "]") // however slow the machine is
		for c.Write(t.Context(), many) == nil {
			if got := a.Text(doc); got != "raw" {
				t.Fatalf("another page reads %q", got)
			}
		}
		p.waitFor(1)
		if !p.log.Has("it says more calls than it may; the limit is 5000 a second") {
			t.Error("it is not logged why")
		}
	})
	t.Run("many", func(t *testing.T) {
		testkit.Eventually(t, "the others are gone", func() bool { return len(p.attached()) == 1 })
		for i := range maxPerOrigin {
			p.connect(local, hi(fmt.Sprintf("many%06d", i)))
		}
		testkit.Eventually(t, "they are in", func() bool { return p.documents(local) == maxPerOrigin })
		c := p.connect(local, hi("onetoomany"))
		closes(t, "one too many", c, websocket.StatusTryAgainLater, "takes no more")
		if got := a.Text(doc); got != "raw" {
			t.Errorf("another origin's page reads %q", got)
		}
		// Other origins take all that they get, and leave a place.
		for i := range 8 {
			for leave, ok := p.pages.places.Try(fmt.Sprint(i), quota.Room{Places: maxPages}); ok; {
				defer leave()
				leave, ok = p.pages.places.Try(fmt.Sprint(i), quota.Room{Places: maxPages})
			}
		}
		last := p.connect("http://localhost:7000", hi("another001"))
		offer(t, last, "http://localhost:7000/doc")
		p.waitFor(2)
		p.connect("http://localhost:7000", hi("another002"))
		closes(t, "more than it leaves", p.connect("http://localhost:7000", hi("another003")), websocket.StatusTryAgainLater, "takes no more")
		// They never answer, and are given up.
		testkit.Eventually(t, "they are gone", func() bool { return p.documents(local) == 0 })
	})
}

const (
	extensionID = "abcdefghijklmnopabcdefghijklmnop"
	secret      = "0123456789abcdef0123456789abcdef0123456789a"
)

func known() (string, error) { return secret, nil }

// connectExtension opens a connection as the extension, and proves itself.
func (p *place) connectExtension() *wsconn.Conn {
	p.t.Helper()
	c, _, err := p.dial("chrome-extension://" + extensionID)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	testkit.OK(p.t, testkit.Prove(p.t.Context(), c.Notes(), secret, p.addr))
	return c
}

// A program that forges the extension's origin needs the secret. A program without an origin is refused even with it:
// the native host has its own socket. Both offer nothing, and are counted.
func TestForgedExtension(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	refused := map[string]int{}
	count := func(reason string, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		refused[reason]++
	}
	p := openPlace(t, Options{Extensions: []string{extensionID}, Secret: known, Refused: count})
	hello := hello(`{"tab":"tab-00000042","origin":"https://bank.example","url":"https://bank.example/"}`)
	attempts := 0
	for range 2 {
		for name, attempt := range map[string]func(*wsconn.Conn) error{
			"the page at once": func(c *wsconn.Conn) error { return c.Write(t.Context(), []byte(hello)) },
			"another secret": func(c *wsconn.Conn) error {
				return testkit.Prove(t.Context(), c.Notes(), "x"+secret[1:], p.addr)
			},
			"another address": func(c *wsconn.Conn) error {
				return testkit.Prove(t.Context(), c.Notes(), secret, "127.0.0.1:1")
			},
			"a proof of its own": func(c *wsconn.Conn) error {
				return errors.Join(
					c.Write(t.Context(), []byte(`{"type":"pagewire:hello","nonce":"`+strings.Repeat("a", 43)+`"}`)),
					c.Write(t.Context(), []byte(`{"type":"pagewire:proof","proof":"`+strings.Repeat("a", 43)+`"}`)))
			},
		} {
			attempts++
			c, _, err := p.dial("chrome-extension://" + extensionID)
			if err != nil {
				t.Fatal(err)
			}
			attempt(c) // its result does not matter
			c.Write(t.Context(), []byte(hello))
			offer(t, c, "https://bank.example/balance")
			testkit.Ends(t, name+" is refused", c.Closed())
		}
	}
	for _, header := range []http.Header{{}, {"Authorization": {"Bearer " + secret}}} {
		if _, response, err := p.dialWith(header); err == nil || response == nil ||
			response.StatusCode != http.StatusForbidden {
			t.Errorf("without an origin, with %v: %v", header, err)
		}
	}
	testkit.Eventually(t, "each is counted", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return refused["proof"] == attempts && refused["origin"] == 2
	})
	if got := p.agent().URIs(); len(got) > 0 {
		t.Errorf("an agent is shown %v", got)
	}
	p.connectExtension() // and the extension that knows the secret comes in
}

// Without an installed extension its origin is refused.
func TestNoSecret(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]func() (string, error){"none": nil,
		"an error": func() (string, error) { return "", errors.New("not installed") }} {
		p := openPlace(t, Options{Extensions: []string{extensionID}, Secret: known})
		c := p.connect("chrome-extension://"+extensionID, `{"type":"pagewire:hello","nonce":"`+strings.Repeat("a",
			43)+`"}`)
		closes(t, name, c, websocket.StatusPolicyViolation, "pagewire extension install")
	}
}

// Nothing large is accepted before the hello.
func TestLargeHello(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{})
	c := p.connect(local, hello(`{"tab":"0123456789","title":"`+strings.Repeat("x", maxHello)+`"}`))
	closes(t, "a large hello", c, websocket.StatusMessageTooBig, "")
}

// A daemon that is replaced serves no pages any more: the contexts of its requests end.
func TestPagesEndWithTheContextOfTheirRequests(t *testing.T) {
	g := gateway.New(gateway.Options{})
	defer g.Close()
	h := New(g, Options{})
	defer h.Close()
	ctx, end := context.WithCancel(t.Context())
	server := httptest.NewUnstartedServer(h)
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	defer server.Close()
	p := &place{t: t, addr: server.Listener.Addr().String()}
	c := p.connect(local, hello(`{"tab":"tab-00000001"}`))
	end()
	var err error
	for err == nil { // earlier calls
		_, err = c.Read(t.Context())
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("it ends with %v", err)
	}
}

func TestExtension(t *testing.T) {
	t.Parallel()
	const id = extensionID
	p := openPlace(t, Options{Extensions: []string{id}, Secret: known})
	connect := func(hello string) *wsconn.Conn {
		c := p.connectExtension()
		testkit.OK(t, c.Write(t.Context(), []byte(hello)))
		return c
	}
	hello := func(origin string) string {
		return hello(`{"tab":"tab-00000042","origin":"` + origin + `","url":"` + origin + `/x"}`)
	}
	for _, origin := range []string{"https://denied.example", "", "null", "file://", "chrome-extension://" + id,
		"https://app.example/path", "https://user@app.example"} {
		c := connect(hello(origin))
		closes(t, fmt.Sprintf("a page of %q", origin), c, websocket.StatusPolicyViolation, "")
	}
	offer(t, connect(hello("https://app.example")), "https://app.example/doc")
	page := p.waitFor(1)[0]
	if page.Origin != "https://app.example" || page.URL != "https://app.example/x" || page.Transport != "extension" {
		t.Errorf("the page is %+v", page)
	}
	p.agent().CheckText("https://app.example/doc", "raw")
}

// What the user shows of a page is beside the page in its tab, for an agent without a flag. Only the
// extension can bring it: to a page's hello `shown` is nothing.
func TestExtensionShowsAPage(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{Extensions: []string{extensionID}, Secret: known})
	const app, about = "https://app.example", `{"tab":"tab-00000042","origin":"https://app.example"`
	page, shown := p.connectExtension(), p.connectExtension()
	testkit.OK(t, page.Write(t.Context(), []byte(hello(about+`}`))))
	offer(t, page, app+"/doc")
	testkit.OK(t, shown.Write(t.Context(), []byte(hello(about+`,"shown":true}`))))
	offer(t, shown, app+"/.pagewire/shown")
	two := p.waitFor(2)
	if two[0].Tab != two[1].Tab || two[0].Shown == two[1].Shown {
		t.Errorf("attached are %+v", two)
	}
	a := p.agent()
	a.CheckText(app+"/doc", "raw")
	a.CheckText(app+"/.pagewire/shown", "raw")

	forged := p.connect(local, hello(`{"tab":"0123456789","shown":true}`))
	say(t, forged, `[["register","{\"uri\":\"`+local+`/.pagewire/shown\",\"name\":\"shown\"}"]]`)
	offer(t, forged, local+"/doc")
	for _, s := range p.waitFor(3) {
		if s.Shown && s.Origin == local {
			t.Errorf("a page speaks for its user: %+v", s)
		}
	}
	if text, err := a.Read(local + "/.pagewire/shown"); err == nil {
		t.Errorf("a page's words are read as the user's: %q", text)
	}
}

// A node that ends tells all its pages in time. It tells few pages no faster than other nodes can accept them.
func TestDrainPace(t *testing.T) {
	for _, pages := range []int{0, 1, 500, 15_000, 20_000, 100_000} {
		const left = 20 * time.Second
		pace := drainPaceOf(pages, left)
		if took := time.Duration(pages/pace) * drainPause; took > left*3/4 || pages <= 15_000 && pace != drainPace {
			t.Errorf("%d pages: %d each %v, which takes %v", pages, pace, drainPause, took)
		}
	}
	if pace := drainPaceOf(100, 0); pace < 100 {
		t.Errorf("without time left, %d", pace)
	}
}

// An origin's work is free up to a credit, which comes back with time. Further work is spread out.
func TestOriginThatKeepsTheGatewayBusy(t *testing.T) {
	o := newOrigin("http://localhost:3000")
	now := time.Now()
	for range maxCredit / time.Millisecond {
		if pause := o.spend(now, time.Millisecond); pause != 0 {
			t.Fatalf("it pauses for %v", pause)
		}
	}
	began, worked := now, time.Duration(0)
	for range 1000 {
		now = now.Add(time.Millisecond + o.spend(now.Add(time.Millisecond), time.Millisecond))
		worked += time.Millisecond
	}
	if part := now.Sub(began) / worked; part != partOf-1 && part != partOf {
		t.Errorf("it works for one part in %d", part)
	}
	now = now.Add(time.Hour)
	if pause := o.spend(now, maxCredit); pause != 0 {
		t.Errorf("an hour later it pauses for %v", pause)
	}
	if pause := o.spend(now, minPause); pause == 0 {
		t.Error("an hour has given it more than there is")
	}
}
