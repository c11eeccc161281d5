package serve

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main()
	if len(os.Args) > 1 && (os.Args[1] == roleAgent || os.Args[1] == roleDaemon) {
		if err := play(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The test's binary runs again in these roles. More arguments: a version, a hub and, for an agent, daemon.Flags.
const roleAgent, roleDaemon = "agent", "daemon"

// The files of the daemons in the home directory: a line with the pid of each, and their log.
const daemonsFile, daemonLog = "daemons", "daemon.log"

func play(role string, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o := Options{Version: args[0], Hub: args[1], In: os.Stdin, Out: os.Stdout, Stdio: true,
		Start: append([]string{os.Args[0], roleDaemon}, args[:2]...)}
	if role == roleAgent {
		if len(args) > 2 {
			if err := json.Unmarshal([]byte(args[2]), &o.Flags); err != nil {
				return err
			}
		}
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		return Agent(ctx, o)
	}
	daemon.Umask()
	home := os.Getenv("HOME")
	log, err := daemon.OpenLog(filepath.Join(home, daemonLog))
	if err != nil {
		return err
	}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	noted, err := os.OpenFile(filepath.Join(home, daemonsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return Daemon(ctx, o, func() {
		fmt.Fprintln(noted, os.Getpid())
		daemon.SayStarted(os.Stdout)
	})
}

const (
	token = "0123456789abcdef0123456789abcdef0123456789a"
	ping  = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// certify writes a certificate for box.lan and its key, and returns their files.
func certify(t *testing.T, dir, organization string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{organization}},
		DNSNames:  []string{"box.lan"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// publish serves an --http port.
func publish(t *testing.T, o Options) *port {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	p, err := openPort(o)
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Options{AllowPages: o.Flags.AllowOrigins})
	f := newHandlers(g, o, token, func() (string, error) { return "", errors.New("none") })
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- p.serve(ctx, f.handler(p.public), o.Log) }()
	t.Cleanup(func() {
		cancel()
		if err := testkit.Receive(t, "the port is closed", over); err != nil {
			t.Error(err)
		}
		g.Close()
	})
	return p
}

// ask sends a ping to a port with a host name. It returns the answer, and the organization of the certificate.
func ask(t *testing.T, p *port, host, origin, presented string) (status int, body, organization string) {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // tests check the organization
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(p.Addr().String())
			return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+port)
		},
	}
	scheme, _, _ := strings.Cut(p.url(), ":")
	r, err := http.NewRequestWithContext(t.Context(), "POST", scheme+"://"+host+"/mcp", strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover",
		"Authorization": "Bearer " + presented, "Origin": origin,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.TLS != nil {
		organization = answer.TLS.PeerCertificates[0].Subject.Organization[0]
	}
	return answer.StatusCode, string(text), organization
}

// A port for other machines needs an allowed host name, TLS and the token. A renewed certificate is served at once.
func TestAnotherMachineOnPurpose(t *testing.T) {
	dir := t.TempDir()
	cert, key := certify(t, dir, "first")
	p := publish(t, Options{HTTP: "0.0.0.0:0", AllowHosts: []string{"box.lan"},
		Flags: daemon.Flags{AllowOrigins: []string{"https://app.example"}}, TLSCert: cert, TLSKey: key, NoToken: true})
	for _, c := range []struct {
		host, origin, token string
		status              int
		says                string
	}{
		{"box.lan:7444", "", token, 200, ""},
		{"box.lan:7444", "https://app.example", token, 200, ""},
		{"box.lan:7444", "", "wrong", 401, "Send the token"},
		{"box.lan:7444", "", "", 401, "Send the token"}, // --no-token is for loopback
		{"box.lan:7444", "https://evil.example", token, 403, "--allow-origin"},
		{"box.lan:7444", "https://evil.example", "", 403, "--allow-origin"}, // Origin before token
		{"evil.example", "https://evil.example", "", 403, "--allow-host"},   // Host before Origin
		{"192.168.1.5:7444", "", token, 403, "--allow-host"},
		{"0.0.0.0:7444", "", token, 200, ""}, // the host of --http
	} {
		status, body, _ := ask(t, p, c.host, c.origin, c.token)
		if status != c.status || !strings.Contains(body, c.says) || status != 200 &&
			strings.Contains(strings.ToLower(body), "pagewire") {
			t.Errorf("%+v: HTTP %d: %s", c, status, body)
		}
	}
	for _, path := range []string{"/", "/feed", "/metrics", "/page", "/healthz"} {
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		r, err := (&http.Client{Transport: transport}).Get("https://" + strings.Replace(p.Addr().String(), "0.0.0.0",
			"127.0.0.1", 1) + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != 404 {
			t.Errorf("%s is there for other machines: %s", path, r.Status)
		}
	}
	if _, _, by := ask(t, p, "box.lan", "", token); by != "first" {
		t.Errorf("it is signed by %s", by)
	}
	if err := os.WriteFile(cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, by := ask(t, p, "box.lan", "", token); by != "first" {
		t.Errorf("while it is replaced it is signed by %s", by)
	}
	certify(t, dir, "second")
	later := time.Now().Add(time.Second)
	if err := errors.Join(os.Chtimes(cert, later, later), os.Chtimes(key, later, later)); err != nil {
		t.Fatal(err)
	}
	if _, _, by := ask(t, p, "box.lan", "", token); by != "second" {
		t.Errorf("when it is renewed it is signed by %s", by)
	}
}

// Without TLS a port that other machines reach needs InsecureHTTP.
func TestPublicPortWithoutTLS(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		if _, err := openPort(Options{HTTP: addr}); !errors.Is(err, ErrUsage) ||
			!strings.Contains(err.Error(), "--insecure-http") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	p := publish(t, Options{HTTP: "0.0.0.0:0", InsecureHTTP: true, AllowHosts: []string{"box.lan"}})
	if status, body, _ := ask(t, p, "box.lan:1", "", token); status != 200 {
		t.Errorf("HTTP %d: %s", status, body)
	}
	if status, body, _ := ask(t, p, "box.lan:1", "", ""); status != 401 {
		t.Errorf("without the token: HTTP %d: %s", status, body)
	}
	if _, err := openPort(Options{HTTP: "127.0.0.1:0", TLSCert: "none", TLSKey: "none"}); err == nil ||
		!strings.Contains(err.Error(), "--tls-cert and --tls-key: ") {
		t.Errorf("a certificate that is not there: %v", err)
	}
}

// On loopback agents need the token too, without --no-token.
func TestLoopbackPort(t *testing.T) {
	p := publish(t, Options{HTTP: "127.0.0.1:0"})
	if status, body, _ := ask(t, p, "localhost", "", ""); status != 401 {
		t.Errorf("without the token: HTTP %d: %s", status, body)
	}
	if status, body, _ := ask(t, p, "localhost", "", token); status != 200 {
		t.Errorf("with it: HTTP %d: %s", status, body)
	}
}

// A client that is slow with a header or a body delays no other. Without a full header its connection is dropped.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	p := publish(t, Options{HTTP: "127.0.0.1:0"})
	const half = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
		token + "\r\n"
	ended := make(chan error, 100)
	for _, text := range []string{half[:30], half, ""} {
		for range 20 {
			c, err := net.Dial("tcp", p.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			io.WriteString(c, text)
			go func() {
				_, err := io.Copy(io.Discard, c)
				ended <- err
			}()
		}
	}
	for range 20 {
		c, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, half+"Content-Length: 1000\r\n\r\n{")
	}
	if status, body, _ := ask(t, p, "localhost", "", token); status != 200 {
		t.Errorf("beside them: HTTP %d: %s", status, body)
	}
	for range 60 {
		testkit.Receive(t, "the server gives up who does not end a header", ended)
	}
}

// Connections without a request are bounded: new ones, ones that have begun a header, and ones between two requests. A
// request under way, and a WebSocket, count for nothing, and new clients are served.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	asked, answer := make(chan bool, 2), make(chan bool)
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			asked <- true
			<-answer
		case "/hijack":
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			asked <- true
			<-answer
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			c.Close()
		}
	}), slog.New(slog.DiscardHandler))
	server.ReadHeaderTimeout, server.IdleTimeout = 0, 0 // nothing else closes a connection
	go server.Serve(l)
	defer server.Close()
	open := func(text string) net.Conn {
		c := testkit.Must(net.Dial("tcp", l.Addr().String()))(t)
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, text)
		return c
	}
	const head = " HTTP/1.1\r\nHost: localhost\r\n\r\n"
	busy := []net.Conn{open("GET /slow" + head), open("GET /hijack" + head)}
	for range busy {
		testkit.Receive(t, "a request is under way", asked)
	}
	const each = maxIdle
	ended := make(chan error, 3*each)
	for _, text := range []string{"", "GET / HTTP", "GET /" + head} {
		for range each {
			c := open(text)
			go func() {
				_, err := io.Copy(io.Discard, c)
				ended <- err
			}()
		}
	}
	for range 2 * each {
		testkit.Receive(t, "an idle connection is closed", ended)
	}
	answered := func(c net.Conn) {
		t.Helper()
		if r, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("it is answered %v, %v", r, err)
		}
	}
	answered(open("GET /" + head))
	close(answer)
	for _, c := range busy {
		answered(c)
	}
}

// Another user of the machine gets only 403 on every path of the TCP ports, with and without the token.
func TestAnotherUserAtEachPath(t *testing.T) {
	p := publish(t, Options{HTTP: "127.0.0.1:0", NoToken: true})
	addr := p.Addr().String()
	attempts := 0
	for _, path := range []string{"/mcp", "/page", "/feed", "/metrics", "/", "/healthz", "/inspector/inspector.js", "/demo/",
		"/session", "/ticket", "/status", "/changes"} {
		for _, more := range []string{"", "Authorization: Bearer " + token + "\r\n",
			"Origin: http://localhost:3000\r\n"} {
			for _, method := range []string{"GET", "POST"} {
				attempts++
				other := testkit.OtherUser(t, testkit.Dial, addr)
				other.Stdin = strings.NewReader(method + " " + path + " HTTP/1.1\r\nHost: " + addr +
					"\r\nConnection: close\r\nContent-Length: 0\r\n" + more + "\r\n")
				out, err := other.Output()
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(string(out), "HTTP/1.1 403 ") || strings.Contains(strings.ToLower(string(out)),
					"pagewire") {
					t.Errorf("%s %s %q: %s", method, path, more, out)
				}
			}
		}
	}
	t.Logf("%d attempts of another user were refused", attempts)
}
