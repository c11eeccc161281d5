package webhook

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// The test vector of Standard Webhooks.
func TestSignatures(t *testing.T) {
	const text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secret, ok := ParseSecret(text)
	if !ok {
		t.Fatal("the secret is refused")
	}
	h := http.Header{}
	sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), []Secret{secret})
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := h.Get("webhook-signature"); got != want {
		t.Errorf("the signature is %q, want %q", got, want)
	}
	if h.Get("webhook-timestamp") != "1614265330" || h.Get("webhook-id") != "msg_p5jXN8AQM9LWM0D4loKWxJek" {
		t.Errorf("the headers are %v", h)
	}
	other := Secret(strings.Repeat("k", 24))
	sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), []Secret{other, secret})
	first, second, two := strings.Cut(h.Get("webhook-signature"), " ")
	if !two || second != want || first == want || !strings.HasPrefix(first, "v1,") {
		t.Errorf("with two secrets the signatures are %q", h.Get("webhook-signature"))
	}
	for _, bad := range []string{"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=",
		"whsec_" + strings.Repeat("AAAA", 22), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "whsec_!!!!9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		if _, ok := ParseSecret(bad); ok {
			t.Errorf("%q is taken for a secret", bad)
		}
	}
}

// Targets look public, or foreign to this network: in testdata/targets.txt each follows its verdict. The test connects
// to none of them.
func TestForgedTargets(t *testing.T) {
	lookup := names(t, map[string][]string{
		"public.test": {"1.1.1.1"}, "public6.test": {"2606:4700:4700::1111"},
		"loop.test": {"127.0.0.1"}, "loop6.test": {"::1"}, "ten.test": {"10.1.2.3"}, "metadata.test": {"169.254.169.254"},
		"mixed.test": {"1.1.1.1 10.0.0.1"}, "mixed6.test": {"1.1.1.1 fd00::1"}, "mapped.test": {"::ffff:10.0.0.1"},
		"nat64.test": {"64:ff9b::a00:1"},
	})
	c := NewClient(ClientOptions{Resolver: lookup})
	const ok, shape, address, unknown = "taken", "shape", "address", "unknown"
	verdict := func(target string) string {
		u, err := parseURL(target)
		if err != nil {
			return shape
		}
		switch err := c.Check(t.Context(), u); {
		case err == nil:
			return ok
		case errors.Is(err, errAddress):
			return address
		}
		return unknown
	}
	text, err := os.ReadFile("testdata/targets.txt")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{"https://public.test/" + strings.Repeat("x", maxURL): shape,
		"https://public.test/\x7f": shape, "": shape}
	for line := range strings.Lines(string(text)) {
		want, target, _ := strings.Cut(strings.TrimSpace(line), " ")
		targets[target] = want
	}
	for target, want := range targets {
		if got := verdict(target); got != want {
			t.Errorf("%.80s: %s, want %s", target, got, want)
		}
	}
	for at, network := range map[string]string{"127.0.0.1:443": "tcp4", "169.254.169.254:80": "tcp4", "[::1]:443": "tcp6",
		"[::ffff:10.0.0.1]:443": "tcp6", "[fe80::1%lo]:443": "tcp6", "[2606:4700::1111%lo]:443": "tcp6",
		"[64:ff9b::a00:1]:443": "tcp6", "nonsense": "tcp4", "1.1.1.1:443": "unix"} {
		if c.guard.Safe(network, at, nil) == nil {
			t.Errorf("a connection to %s would be made", at)
		}
	}
}

// However a host is written, limits have one name for it.
func TestHostHasOneName(t *testing.T) {
	for want, targets := range map[string]string{
		"shop.example":       "shop.example SHOP.Example:8443 shop.example. Shop.Example.:1 ｓｈｏｐ.example shop。example shop．EXAMPLE",
		"xn--bcher-kva.test": "bücher.test BÜCHER.test. xn--bcher-kva.test XN--BCHER-KVA.TEST b%C3%BCcher.test bu\u0308cher.test:443",
		"1.1.1.1":            "1.1.1.1 1.1.1.1:8443 [::ffff:1.1.1.1] [::ffff:101:101] １.1.1.1 [0:0:0:0:0:FFFF:0101:0101]:1",
		"2606:4700::1111":    "[2606:4700::1111] [2606:4700:0:0:0:0:0:1111]:443 [2606:4700:0000::1111] [2606:4700::1111]:8443",
		"a_b.test":           "a_b.test A_B.test. A_b.test:1",
	} {
		for target := range strings.FieldsSeq(targets) {
			if u, err := parseURL("https://" + target + "/hook"); err != nil || hostOf(u) != want {
				t.Errorf("%s: %v, %v, want %s", target, u, err, want)
			}
		}
	}
}

// A name that is public at the check, and loopback at the connection.
func TestAddressThatChanges(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	came := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			came <- conn
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := NewClient(ClientOptions{Resolver: names(t, map[string][]string{"rebind.test": {"1.1.1.1", "127.0.0.1"}})})
	target := "https://rebind.test:" + port + "/"
	u, err := parseURL(target)
	if err != nil || c.Check(t.Context(), u) != nil {
		t.Fatal("it is not public at first")
	}
	if _, _, failed := c.post(t.Context(), target, "sub_1", "1", nil, nil); failed != failedRefused {
		t.Errorf("the attempt is %q", failed)
	}
	if len(came) > 0 {
		t.Error("a connection was made")
	}
}

// Tricks of an endpoint have no effect on its client, and each is reported as one of a few words.
func TestEndpoints(t *testing.T) {
	e := listen(t)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	lookup := func(o *ClientOptions) { o.Resolver = names(t, map[string][]string{"hook.test": {"127.0.0.1"}}) }
	slow := make(chan struct{})
	defer close(slow)
	e.answers(func(w http.ResponseWriter, r *http.Request, p *posted) bool {
		switch p.path {
		case "/redirect":
			http.Redirect(w, r, "/target", http.StatusTemporaryRedirect)
		case "/cookie":
			http.SetCookie(w, &http.Cookie{Name: "c", Value: "1"})
		case "/500", "/404":
			w.WriteHeader(map[string]int{"/500": 500, "/404": 404}[p.path])
		case "/slow":
			<-slow
		case "/endless":
			_, _ = io.Copy(w, testkit.Endless{})
		case "/header":
			w.Header().Set("X", strings.Repeat("x", 2*maxHeader))
		case "/gone":
			panic(http.ErrAbortHandler)
		}
		return true
	})
	host := strings.Replace(e.URL, "127.0.0.1", "hook.test", 1)
	quick := func(o *ClientOptions) { lookup(o); o.Timeout = 300 * time.Millisecond }
	for _, c := range []struct {
		url, want string
		client    *Client
	}{
		{host + "/", "", e.client(lookup)},
		{e.URL + "/", "", e.client()},
		{host + "/redirect", failed4xx, e.client(lookup)},
		{host + "/404", failed4xx, e.client(lookup)},
		{host + "/500", failed5xx, e.client(lookup)},
		{host + "/endless", "", e.client(lookup)},
		{host + "/header", failedRefused, e.client(lookup)},
		{host + "/gone", failedRefused, e.client(lookup)},
		{host + "/slow", failedTimeout, e.client(quick)},
		{e.URL + "/", failedTLS, NewClient(ClientOptions{Allow: loopback})},
		{strings.Replace(host, "hook.test", "other.test", 1), failedTLS, e.client(func(o *ClientOptions) {
			o.Resolver = names(t, map[string][]string{"other.test": {"127.0.0.1"}})
		})},
		{"https://" + testkit.Addr(t) + "/", failedRefused, e.client()},
		{e.URL + "/", failedRefused, e.client(func(o *ClientOptions) { o.Allow = nil })},
	} {
		if _, answer, failed := c.client.post(t.Context(), c.url, "sub_1", "1", []byte("{}"), nil); failed != c.want {
			t.Errorf("%s: %q, want %q", c.url, failed, c.want)
		} else if len(answer) > maxAnswer {
			t.Errorf("%s: %d bytes of its answer are read", c.url, len(answer))
		}
	}
	twice := e.client()
	for range 2 {
		twice.post(t.Context(), e.URL+"/cookie", "sub_1", "1", []byte("{}"), nil)
	}
	for _, p := range e.had() {
		if p.path == "/target" || p.header.Get("Cookie") != "" {
			t.Errorf("a request for %s with %v", p.path, p.header)
		}
	}
}

func TestVerification(t *testing.T) {
	e := listen(t)
	c := e.client()
	secret := Secret(strings.Repeat("k", 24))
	if failed := c.verify(t.Context(), e.URL+"/", "sub_1", secret); failed != "" {
		t.Errorf("the right answer is %q", failed)
	}
	e.answers(func(w http.ResponseWriter, _ *http.Request, p *posted) bool {
		_, _ = w.Write(append([]byte("\ufeff"), p.body...)) // as .NET writes by default
		return true
	})
	if failed := c.verify(t.Context(), e.URL+"/", "sub_1", secret); failed != "" {
		t.Errorf("the right answer after a byte order mark is %q", failed)
	}
	for answer, want := range map[string]string{`{"challenge":"x"}`: failedChallenge, "": failedChallenge,
		"302": failedChallenge, "404": failed4xx, "503": failed5xx} {
		e.answers(func(w http.ResponseWriter, r *http.Request, p *posted) bool {
			if status := map[string]int{"302": 302, "404": 404, "503": 503}[answer]; status != 0 {
				w.WriteHeader(status)
			}
			_, _ = io.WriteString(w, answer)
			return true
		})
		if failed := c.verify(t.Context(), e.URL+"/", "sub_1", secret); failed != want {
			t.Errorf("%q is %q, want %q", answer, failed, want)
		}
	}
}

// A URL or secret of a subscriber is refused, or can be read in only one way.
func FuzzTarget(f *testing.F) {
	for _, text := range []string{"https://a.example/hook?x=1", "https://[::1]:443", "https://a.example:80#x", "whsec_" +
		"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if u, err := parseURL(text); err == nil {
			again, err := parseURL(u.String())
			if err != nil || again.Scheme != "https" || again.Host != u.Host || again.Hostname() == "" || again.User != nil {
				t.Errorf("%q is %v, and then %v, %v", text, u, again, err)
			}
		}
		if s, ok := ParseSecret(text); ok && (len(s) < minSecret || len(s) > maxSecret) {
			t.Errorf("%q is a secret of %d bytes", text, len(s))
		}
	})
}
