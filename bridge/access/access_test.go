package access

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/internal/peer"
	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main()
	os.Exit(m.Run())
}

// needsLinux skips a test that needs the user of a connection, which other systems do not report.
func needsLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells whose process a connection is")
	}
}

const (
	token     = "0123456789abcdef0123456789abcdef0123456789a"
	extension = "chrome-extension://abcdefghijklmnopabcdefghijklmnop"
	contents  = "what only its user may see"
)

// A door is a port with a Guard and the paths of a gateway's port.
type door struct {
	*httptest.Server
	t     *testing.T
	guard *Guard
	log   *testkit.Log
}

// paths has at least one path for each of Guard's handlers.
var paths = []string{"/mcp", "/metrics", "/page", FeedPath, "/healthz", "/", SessionPath}

func open(t *testing.T, o Options) *door {
	t.Helper()
	d := build(t, o)
	d.Start()
	return d
}

// build is open for a door that does not accept connections yet.
func build(t *testing.T, o Options) *door {
	t.Helper()
	d := &door{t: t, log: testkit.LogOf(t, "the guard")}
	o.Log = slog.New(slog.NewTextHandler(d.log, nil))
	d.guard = New(o)
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, text) })
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", d.guard.Agents(says(contents)))
	mux.Handle("/metrics", d.guard.Agents(says(contents)))
	mux.Handle("/page", d.guard.Pages(says(contents)))
	mux.Handle(FeedPath, d.guard.Feed(says("the feed")))
	mux.Handle(SessionPath, d.guard.Sessions())
	mux.Handle("/", d.guard.Anybody(says("ok")))
	d.Server = httptest.NewUnstartedServer(mux)
	d.Config.ConnContext = peer.ConnContext
	t.Cleanup(d.Close)
	return d
}

// ask sends a request with headers, each "Name: value".
func (d *door) ask(method, path string, headers ...string) *http.Response {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.URL+path, strings.NewReader("{}"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Add(name, value); name == "Host" {
			r.Host = value
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const bearerToken = "Authorization: Bearer " + token

// A page whose own name resolves to this machine is refused on every path, with or without the token.
func TestHostHeader(t *testing.T) {
	d := open(t, Options{Token: token, Hosts: []string{"box.lan"}})
	for host, ok := range map[string]bool{
		"127.0.0.1:7433": true, "localhost:1": true, "localhost": true, "LOCALHOST:1": true, "[::1]:7433": true,
		"127.3.2.1:80": true, "box.lan": true, "BOX.lan:7433": true,
		"evil.example": false, "evil.example:7433": false, "127.0.0.1.evil.example": false,
		"localhost.evil.example": false, "192.168.1.4:7433": false,
		"localhost@evil.example": false, "box.lan.evil.example": false, "0.0.0.0:7433": false, "[::]:7433": false,
		"169.254.169.254": false, "x.box.lan": false, "localhost.": false,
	} {
		for _, path := range paths {
			r := d.ask("GET", path, "Host: "+host, bearerToken)
			if body := text(t, r); (r.StatusCode != 403) != ok || !ok && !strings.Contains(body, "--allow-host") {
				t.Errorf("%s at %s: HTTP %d: %s", path, host, r.StatusCode, body)
			}
		}
	}
}

// On every path a page is served only if its origin is the port's own or is allowed. Only an allowed origin gets CORS
// headers.
func TestOrigins(t *testing.T) {
	d := open(t, Options{Token: token, Origins: func() []string {
		return []string{"https://inspector.example", "https://*.allowed.example"}
	}})
	own := d.URL
	_, port, _ := strings.Cut(strings.TrimPrefix(own, "http://"), ":")
	for origin, ok := range map[string]bool{
		own: true, "https://inspector.example": true, "https://a.allowed.example": true,
		"https://inspector.example.evil.example": false, "http://inspector.example": false,
		"https://allowed.example": false, "null": false,
		"https://evil.example": false, "http://localhost:5173": false, "http://127.0.0.1:5173": false,
		"http://localhost:" + port:  false,
		"https://127.0.0.1:" + port: false, "http://127.0.0.1": false, "file://": false, "": false,
		"http://[::1]:" + port:                                false,
		"chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba": false, "moz-extension://x": false, own + "/": false,
		"garbage": false,
	} {
		for _, path := range paths {
			if path == "/page" {
				continue // package socket decides which pages may connect
			}
			r := d.ask("GET", path, "Origin: "+origin, bearerToken)
			body := text(t, r)
			if (r.StatusCode != 403) != ok {
				t.Errorf("%s for %q: HTTP %d: %s", path, origin, r.StatusCode, body)
			}
			want := ""
			if ok && origin != own {
				want = origin
			}
			if got := r.Header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("%s for %q: by CORS %q may read it", path, origin, got)
			}
		}
		preflight := d.ask("OPTIONS", "/mcp", "Origin: "+origin, "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: authorization,mcp-session-id")
		if want := ok && origin != own; (preflight.StatusCode == 204) != want || want &&
			(!strings.Contains(preflight.Header.Get("Access-Control-Allow-Headers"), "authorization") ||
				!strings.Contains(preflight.Header.Get("Access-Control-Allow-Methods"), "DELETE")) {
			t.Errorf("preflight for %q: HTTP %d %v", origin, preflight.StatusCode, preflight.Header)
		}
	}
	if r := d.ask("GET", "/mcp", "Origin: "+own, "Origin: https://evil.example", bearerToken); r.StatusCode != 403 {
		t.Errorf("two origins: HTTP %d", r.StatusCode)
	}
	for _, path := range []string{"/mcp", "/metrics", SessionPath, FeedPath} {
		if r := d.ask("POST", path, "Origin: "+extension, bearerToken); r.StatusCode != 403 {
			t.Errorf("the extension at %s: HTTP %d", path, r.StatusCode)
		}
	}
}

// On loopback the paths that show contents need the token too.
func TestToken(t *testing.T) {
	d := open(t, Options{Token: token})
	for _, path := range []string{"/mcp", "/metrics"} {
		for header, want := range map[string]int{
			bearerToken: 200, "Authorization: bearer " + token: 200, "Authorization: Bearer " + token[1:]: 401,
			"Authorization: Bearer":         401,
			"Authorization: Basic " + token: 401, "Cookie: pagewire_inspector=" + token: 401, "X-None: 1": 401,
		} {
			for _, method := range []string{"GET", "POST"} {
				r := d.ask(method, path+"?token="+token, header)
				body := text(t, r)
				if r.StatusCode != want || strings.Contains(body, contents) != (want == 200) {
					t.Errorf("%s %s with %s: HTTP %d: %s", method, path, header, r.StatusCode, body)
				}
				if want == 401 && (r.Header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(body, "pagewire") ||
					method == "POST" && !strings.HasPrefix(body, `{"error":{"code":-32600,`)) {
					t.Errorf("%s %s: it is refused with %v: %s", method, path, r.Header, body)
				}
			}
		}
	}
	for _, path := range []string{"/healthz", "/"} {
		if r := d.ask("GET", path); r.StatusCode != 200 {
			t.Errorf("%s: HTTP %d", path, r.StatusCode)
		}
	}
	if n := d.guard.Refused()["token"]; n != 2*2*5 {
		t.Errorf("%d are counted", n)
	}
	if n := d.log.Count("refused a request"); n != 1 || d.log.Has(token) {
		t.Errorf("%d lines are logged: %s", n, d.log)
	}
}

// If the token could not be read, no request has it, not even one with an empty token.
func TestNoTokenThere(t *testing.T) {
	d := open(t, Options{})
	for _, header := range []string{"Authorization: Bearer ", "Authorization: Bearer", "X-None: 1"} {
		if r := d.ask("GET", "/mcp", header); r.StatusCode != 401 || !strings.Contains(text(t, r), "see its log") {
			t.Errorf("%s: HTTP %d", header, r.StatusCode)
		}
	}
}

// NoToken is for processes on this machine that the kernel reports as this user's.
func TestWhoNeedsNoToken(t *testing.T) {
	for _, c := range []struct {
		who    peer.Who
		public bool
		want   int
	}{
		{peer.Same, false, 200}, {peer.Unknown, false, 401}, {peer.Gone, false, 401}, {peer.Root, false, 401},
		{peer.Other, false, 403},
		{peer.Same, true, 401}, {peer.Gone, true, 401}, {peer.Other, true, 403},
	} {
		g := New(Options{Token: token, NoToken: true, Public: c.public})
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "http://127.0.0.1/mcp", nil)
		g.Agents(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w,
			r.WithContext(peer.With(r.Context(), c.who)))
		if w.Code != c.want {
			t.Errorf("%v, public %v: HTTP %d, want %d", c.who, c.public, w.Code, c.want)
		}
	}
}

// Two options that are harmless alone: NoToken is for the user's programs, and Origins lets a page ask with the token. A
// browser is a process of this user, so its pages' requests need the token in spite of NoToken.
func TestPagesNeedTheToken(t *testing.T) {
	const site = "https://shop.example"
	for _, c := range []struct {
		what    string
		headers []string
		want    int
	}{
		{"a program", nil, 200},
		{"a program that names an origin of its own", []string{"Origin", "http://127.0.0.1"}, 200},
		{"the inspector", []string{"Origin", "http://127.0.0.1", "Sec-Fetch-Site", "same-origin"}, 200},
		{"an address that the user has typed", []string{"Sec-Fetch-Site", "none"}, 200},
		{"a script of the site", []string{"Origin", site}, 401},
		{"the same, spelled otherwise", []string{"Origin", "HTTPS://SHOP.EXAMPLE"}, 401},
		{"a script of a local page", []string{"Origin", "http://localhost:3000"}, 401},
		{"a page without CORS", []string{"Sec-Fetch-Site", "cross-site"}, 401},
		{"a page of another port, without CORS", []string{"Sec-Fetch-Site", "same-site"}, 401},
		{"a script of the site, with a wrong token", []string{"Origin", site, "Authorization", "Bearer x"}, 401},
		{"a script of the site, with the token", []string{"Origin", site, "Authorization", "Bearer " + token}, 200},
		{"a page of another site", []string{"Origin", "https://other.example"}, 403},
	} {
		g := New(Options{Token: token, NoToken: true, Origins: func() []string {
			return []string{site, "http://localhost:3000"}
		}})
		for path, wrap := range map[string]func(http.Handler) http.Handler{"/mcp": g.Agents, "/metrics": g.Agents,
			FeedPath: g.Feed} {
			if path == FeedPath && c.headers != nil && c.headers[0] == "Sec-Fetch-Site" {
				continue // a browser's upgrade has an Origin, and AdmitFeed asks for a session
			}
			for _, method := range []string{"GET", "POST", "DELETE"} {
				w, r := httptest.NewRecorder(), httptest.NewRequest(method, "http://127.0.0.1"+path, nil)
				for i := 0; i < len(c.headers); i += 2 {
					r.Header.Set(c.headers[i], c.headers[i+1])
				}
				wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w,
					r.WithContext(peer.With(r.Context(), peer.Same)))
				if w.Code != c.want {
					t.Errorf("%s: %s %s: HTTP %d, want %d", c.what, method, path, w.Code, c.want)
				}
			}
		}
	}
}

// A page at one of the port's names may be of another port at another address of that name: without the token it gets
// what pages of other sites get. Programs are asked for no token by any name.
func TestPagesAtANameNeedTheToken(t *testing.T) {
	for host, want := range map[string]int{"localhost": 401, "LOCALHOST": 401, "box.lan": 401, "127.0.0.1": 200, "[::1]": 200,
		"127.1.2.3": 200} {
		g := New(Options{Token: token, NoToken: true, Hosts: []string{"box.lan"}})
		for _, headers := range []http.Header{{"Origin": {"http://" + host + ":7433"}}, {"Sec-Fetch-Site": {"same-origin"}}, {},
			{"Sec-Fetch-Site": {"none"}}} {
			w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "http://"+host+":7433/mcp", nil)
			r.Header = headers
			r = r.WithContext(peer.With(r.Context(), peer.Same))
			g.Agents(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
			expect := want
			if len(headers) == 0 || headers.Get("Sec-Fetch-Site") == "none" {
				expect = 200
			}
			if w.Code != expect || g.free(r) != (expect == 200) {
				t.Errorf("%s, %v: HTTP %d, want %d", host, headers, w.Code, expect)
			}
		}
	}
}

// A process of root, or of an unknown user, may be a page's browser. Another user's, or one that has gone, may not.
func TestWhoMayBeAPage(t *testing.T) {
	for who, want := range map[peer.Who]int{peer.Same: 200, peer.Unknown: 200, peer.Root: 200, peer.Gone: 403,
		peer.Other: 403} {
		for name, wrap := range map[string]func(*Guard, http.Handler) http.Handler{"page": (*Guard).Pages,
			"feed": (*Guard).Feed} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "http://127.0.0.1/x", nil)
			wrap(New(Options{}), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w,
				r.WithContext(peer.With(r.Context(), who)))
			if w.Code != want {
				t.Errorf("%s, %v: HTTP %d, want %d", name, who, w.Code, want)
			}
		}
	}
}

// request returns a request of a program, which may know the token, or forge the headers of a browser or the extension.
func request(path, addr string, headers ...string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", path, addr,
		strings.Join(append(headers, ""), "\r\n"))
}

var upgrade = []string{"Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
	"Sec-WebSocket-Protocol: pagewire.v1"}

// Another user of the machine gets only 403 on every path, also with the token, and does not learn what server this is.
func TestAnotherUser(t *testing.T) {
	needsLinux(t)
	d := open(t, Options{Token: token, NoToken: true})
	addr := d.Listener.Addr().String()
	attempts := 0
	for _, path := range paths {
		for _, headers := range [][]string{nil, {bearerToken}, {"Origin: http://localhost:3000"}, {"Origin: " + d.URL},
			{"Origin: " + extension}, upgrade} {
			attempts++
			other := testkit.OtherUser(t, testkit.Dial, addr)
			other.Stdin = strings.NewReader(request(path, addr, headers...))
			out, err := other.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			status, _, _ := strings.Cut(string(out), "\r\n")
			if !strings.HasPrefix(status, "HTTP/1.1 403") || strings.Contains(string(out), contents) ||
				strings.Contains(strings.ToLower(string(out)), "pagewire") {
				t.Errorf("%s with %q: %s", path, headers, out)
			}
		}
	}
	if n := d.guard.Refused()["user"] + d.guard.Refused()["origin"]; n != int64(attempts) {
		t.Errorf("%d of %d attempts are counted", n, attempts)
	}
	t.Logf("%d attempts of another user were refused", attempts)
	if r := d.ask("GET", "/mcp"); r.StatusCode != 200 {
		t.Errorf("this user: HTTP %d", r.StatusCode)
	}
}

// A client that has sent its request, and half closed the connection before it is accepted, can still read the answer.
// The kernel does not report its user, so it is refused.
func TestWhoHasClosed(t *testing.T) {
	needsLinux(t)
	d := build(t, Options{Token: token, NoToken: true})
	answers := map[string]*bufio.Reader{}
	for _, path := range []string{"/mcp", "/metrics", "/page", FeedPath} {
		c, err := net.Dial("tcp", d.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, request(path, d.Listener.Addr().String(), "Origin: "+d.URL))
		c.(*net.TCPConn).CloseWrite()
		answers[path] = bufio.NewReader(c)
	}
	d.Start()
	for path, in := range answers {
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body := text(t, answer); answer.StatusCode < 400 || strings.Contains(body, contents) {
			t.Errorf("%s: HTTP %d: %s", path, answer.StatusCode, body)
		}
	}
}
