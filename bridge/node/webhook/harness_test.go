package webhook

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/pagewire/pagewire/bridge/testkit"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// names serves addresses of names by DNS, on loopback. Each query for a name gets its next answer; the last stays.
func names(t *testing.T, table map[string][]string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		asked := map[string]int{}
		for buffer := make([]byte, 2048); ; {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			lists := table[strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))]
			if lists == nil {
				m.RCode = dnsmessage.RCodeNameError
			} else {
				list := lists[min(asked[q.Name.String()+q.Type.String()], len(lists)-1)]
				asked[q.Name.String()+q.Type.String()]++
				for text := range strings.FieldsSeq(list) {
					a := netip.MustParseAddr(text)
					head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
					if a.Is4() && q.Type == dnsmessage.TypeA {
						m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
					} else if a.Is6() && q.Type == dnsmessage.TypeAAAA {
						m.Answers = append(m.Answers,
							dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
					}
				}
			}
			if text, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(text, from) // the client asks again
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// A posted is a request to an endpoint.
type posted struct {
	path   string
	header http.Header
	body   []byte
	at     time.Time
}

// member returns a text member of the body.
func (p *posted) member(name string) string {
	var members map[string]any
	_ = json.Unmarshal(p.body, &members)
	text, _ := members[name].(string)
	return text
}

// An endpoint takes webhooks, and answers challenges.
type endpoint struct {
	*httptest.Server
	t     *testing.T
	roots *x509.CertPool

	mu     sync.Mutex
	all    []posted // without challenges
	asked  int      // challenges
	answer func(w http.ResponseWriter, r *http.Request, p *posted) (done bool)
}

func listen(t *testing.T) *endpoint {
	t.Helper()
	own := testkit.Authority(t, "hook.test", "*.hook.test")
	e := &endpoint{t: t, roots: own.RootCAs}
	e.Server = httptest.NewUnstartedServer(e)
	e.TLS = own
	e.Config.ErrorLog = log.New(io.Discard, "", 0)
	e.StartTLS()
	t.Cleanup(e.Close)
	return e
}

// answers sets the function that answers.
func (e *endpoint) answers(f func(w http.ResponseWriter, r *http.Request, p *posted) (done bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f
}

// status makes the endpoint answer with a status.
func (e *endpoint) status(status int) {
	e.answers(func(w http.ResponseWriter, _ *http.Request, _ *posted) bool { w.WriteHeader(status); return true })
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p := posted{r.URL.Path, r.Header, body, time.Now()}
	e.mu.Lock()
	f := e.answer
	if p.member("type") == "verification" {
		e.asked++
	} else {
		e.all = append(e.all, p)
	}
	e.mu.Unlock()
	if f != nil && f(w, r, &p) {
		return
	}
	if p.member("type") == "verification" {
		_, _ = io.WriteString(w, `{"challenge":"`+p.member("challenge")+`"}`)
	}
}

// had returns the requests so far, without challenges.
func (e *endpoint) had() []posted {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]posted(nil), e.all...)
}

func (e *endpoint) challenges() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// client returns a Client for the endpoint.
func (e *endpoint) client(change ...func(*ClientOptions)) *Client {
	o := ClientOptions{Allow: loopback, Roots: e.roots}
	for _, f := range change {
		f(&o)
	}
	return NewClient(o)
}
