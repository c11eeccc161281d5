package access

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/internal/proof"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// texts makes a WebSocket a proof.Messages.
type texts struct{ *websocket.Conn }

func (c texts) Read(ctx context.Context) ([]byte, error) {
	_, text, err := c.Conn.Read(ctx)
	return text, err
}

func (c texts) Write(ctx context.Context, text []byte) error {
	return c.Conn.Write(ctx, websocket.MessageText, text)
}

// openFeeds returns a door whose feed sends "admitted" to the clients that it admits.
func openFeeds(t *testing.T, o Options) *door {
	d := build(t, o)
	behind := d.Config.Handler
	mux := http.NewServeMux()
	mux.Handle("/", behind)
	mux.Handle(FeedPath, d.guard.Feed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		if err := d.guard.AdmitFeed(r.Context(), r, texts{ws}); err != nil {
			ws.Close(websocket.StatusPolicyViolation, err.Error())
			return
		}
		ws.Write(r.Context(), websocket.MessageText, []byte("admitted"))
	})))
	d.Config.Handler = mux
	d.Start()
	return d
}

// feed opens the feed, calls introduce, and returns the answer.
func (d *door) feed(header http.Header, introduce func(texts) error) (string, error) {
	d.t.Helper()
	ws, _, err := websocket.Dial(d.t.Context(), d.URL+FeedPath, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		return "", err
	}
	defer ws.CloseNow()
	if err := introduce(texts{ws}); err != nil {
		return "", err
	}
	text, err := texts{ws}.Read(d.t.Context())
	return string(text), err
}

func says(text string) func(texts) error {
	return func(c texts) error { return c.Write(context.Background(), []byte(text)) }
}

// tickets serves tickets at another server, in place of the daemon's socket. ask asks there as `pagewire inspect` does.
func (d *door) tickets() (ask func() (*Ticket, error), from string) {
	socket := httptest.NewServer(d.guard.Tickets())
	d.t.Cleanup(socket.Close)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", socket.Listener.Addr().String())
		},
	}}
	return func() (*Ticket, error) { return Ask(d.t.Context(), client, d.Listener.Addr().String()) }, socket.URL
}

// exchange returns the session for a ticket, and the HTTP status.
func (d *door) exchange(ticket string) (session string, status int) {
	d.t.Helper()
	r, err := http.Post(d.URL+SessionPath, "application/json", strings.NewReader(`{"ticket":"`+ticket+`"}`))
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Body.Close()
	var out struct{ Session string }
	json.NewDecoder(r.Body).Decode(&out)
	return out.Session, r.StatusCode
}

func TestTicket(t *testing.T) {
	d := openFeeds(t, Options{Token: token})
	addr := d.Listener.Addr().String()
	get, _ := d.tickets()
	ask, err := get()
	if err != nil {
		t.Fatal(err)
	}
	defer ask.Close()
	at, ticket, ok := strings.Cut(ask.URL, "/#ticket=")
	if !ok || at != "http://"+addr || len(ticket) < 20 {
		t.Fatalf("the browser is to open %s", ask.URL)
	}
	session, status := d.exchange(ticket)
	if status != 200 || session == "" {
		t.Fatalf("the ticket gives %q, HTTP %d", session, status)
	}
	if err := ask.Opened(); err != nil {
		t.Errorf("who asked for it is told %v", err)
	}
	for range 2 { // a page may be loaded again
		if got, err := d.feed(nil, says(`{"session":"`+session+`"}`)); got != "admitted" {
			t.Errorf("with the session: %q, %v", got, err)
		}
	}
	if again, status := d.exchange(ticket); again != "" || status != 403 {
		t.Errorf("used again the ticket gives %q, HTTP %d", again, status)
	}
	// The next daemon has the same token, and nothing else of this one.
	next := openFeeds(t, Options{Token: token})
	if got, err := next.feed(nil, says(`{"session":"`+session+`"}`)); err == nil {
		t.Errorf("at another port the session gives %q", got)
	}
	if !proof.Verify(token, sessionUse, addr, session, time.Now()) {
		t.Error("at the same port the session is good for nothing")
	}
}

// A ticket ends with the client that has asked for it. At most maxTickets are unused.
func TestTicketsThatAreGone(t *testing.T) {
	d := openFeeds(t, Options{Token: token})
	get, _ := d.tickets()
	ask, err := get()
	if err != nil {
		t.Fatal(err)
	}
	_, ticket, _ := strings.Cut(ask.URL, "=")
	ask.Close()
	testkit.Eventually(t, "the ticket goes with who asked", func() bool {
		d.guard.tickets.mu.Lock()
		defer d.guard.tickets.mu.Unlock()
		return len(d.guard.tickets.all) == 0
	})
	for _, wrong := range []string{ticket, "", "x", token} {
		if session, status := d.exchange(wrong); session != "" || status != 403 {
			t.Errorf("%q gives %q, HTTP %d", wrong, session, status)
		}
	}
	var all []*Ticket
	for range maxTickets {
		one, err := get()
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		all = append(all, one)
	}
	if one, err := get(); err == nil || !strings.Contains(err.Error(), "Too many tickets") {
		t.Errorf("one too many: %v, %v", one, err)
	}
	all[0].Close()
}

// Without a token no session can be signed, so no ticket is given. A ticket is given only by POST.
func TestTicketsOfWhoHasNoToken(t *testing.T) {
	get, _ := openFeeds(t, Options{}).tickets()
	if _, err := get(); err == nil || !strings.Contains(err.Error(), "see its log") {
		t.Errorf("without a token: %v", err)
	}
	_, url := openFeeds(t, Options{Token: token}).tickets()
	if r, err := http.Get(url); err != nil || r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("by GET: %v, %v", r, err)
	}
}

// The feed needs the token in the request, or a valid session.
func TestFeeds(t *testing.T) {
	d := openFeeds(t, Options{Token: token})
	addr := d.Listener.Addr().String()
	for name, c := range map[string]struct {
		header    http.Header
		introduce func(texts) error
		ok        bool
	}{
		"the token in the request": {http.Header{"Authorization": {"Bearer " + token}},
			func(texts) error { return nil }, true},
		"no session": {nil, says(`{"session":""}`), false},
		"another's session": {nil,
			says(`{"session":"` + proof.Sign("another secret", sessionUse, addr, time.Now().Add(time.Hour)) + `"}`),
			false},
		"one of another purpose": {nil,
			says(`{"session":"` + proof.Sign(token, "ticket", addr, time.Now().Add(time.Hour)) + `"}`), false},
		"one that is over": {nil,
			says(`{"session":"` + proof.Sign(token, sessionUse, addr, time.Now().Add(-time.Hour)) + `"}`), false},
		"the token as a session": {nil, says(`{"session":"` + token + `"}`), false},
		"a command":              {nil, says(`{"log":true}`), false},
		"garbage":                {nil, says("{"), false},
	} {
		got, err := d.feed(c.header, c.introduce)
		if (got == "admitted") != c.ok {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// With NoToken this user's programs need neither for the feed, and pages that may ask still need one.
func TestFeedWithoutToken(t *testing.T) {
	needsLinux(t)
	const site = "https://shop.example"
	d := openFeeds(t, Options{Token: token, NoToken: true, Origins: func() []string { return []string{site} }})
	if got, err := d.feed(http.Header{"Origin": {site}}, says(`{"session":""}`)); err == nil {
		t.Errorf("a page of %s without a session: %q", site, got)
	}
	if got, err := d.feed(nil, says(`{"session":""}`)); got != "admitted" {
		t.Errorf("%q, %v", got, err)
	}
}

// The extension's panel sees the feed after both ends have proved that they know its secret. A client with its Origin
// and no proof does not, nor does another extension.
func TestFeedOfTheExtension(t *testing.T) {
	const ours, secret = "chrome-extension://ours", "the extension's secret"
	d := openFeeds(t, Options{Token: token, Extension: ours, Secret: func() (string, error) { return secret, nil }})
	proves := func(secret string) func(texts) error {
		return func(c texts) error { return testkit.Prove(t.Context(), c, secret, d.Listener.Addr().String()) }
	}
	from := func(origin string) http.Header { return http.Header{"Origin": {origin}} }
	if got, err := d.feed(from(ours), proves(secret)); got != "admitted" {
		t.Errorf("with the secret: %q, %v", got, err)
	}
	for name, introduce := range map[string]func(texts) error{
		"a wrong secret": proves("another"), "no proof": says(`{"type":"pagewire:proof"}`), "no secret": says(`{}`)} {
		if got, err := d.feed(from(ours), introduce); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got, err := d.feed(from("chrome-extension://other"), proves(secret)); err == nil {
		t.Errorf("another extension: %q", got)
	}
	testkit.Settles(t, "three refusals are counted", func() string { // the guard may count after the client has gone
		if got := d.guard.Refused()["proof"]; got != 3 {
			return fmt.Sprint(got)
		}
		return ""
	})
}
