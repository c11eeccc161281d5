//go:build !js

package native

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/socket"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// The id follows from the key by which the browser knows the extension: the first half of its SHA-256, in letters.
func TestExtensionIDIsThatOfTheManifest(t *testing.T) {
	text, err := os.ReadFile("../../../js/extension/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Key string }
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(manifest.Key)
	if err != nil || len(key) == 0 {
		t.Fatalf("the key %q: %v", manifest.Key, err)
	}
	sum := sha256.Sum256(key)
	var id strings.Builder
	for _, b := range sum[:16] {
		id.WriteByte('a' + b>>4)
		id.WriteByte('a' + b&15)
	}
	if id.String() != ExtensionID {
		t.Errorf("the manifest's key makes the id %s, and ExtensionID is %s", id.String(), ExtensionID)
	}
}

// A peer is the extension's side of a host that runs, with a hub of real parts.
type peer struct {
	t       *testing.T
	in      *io.PipeWriter
	mu      sync.Mutex
	heard   []message
	changed chan struct{}
	ended   chan error
	g       *gateway.Gateway

	// Where the hub is, and its generation.
	addr       atomic.Value
	generation atomic.Uint64
	hubs       chan uint64
}

func (p *peer) connect(ctx context.Context) (net.Conn, uint64, error) {
	generation := p.generation.Load()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.addr.Load().(string))
	return c, generation, err
}

// startPeer runs a host, with a hub of these options.
func startPeer(t *testing.T, o gateway.Options) *peer {
	t.Helper()
	log := slog.New(slog.NewTextHandler(testkit.LogOf(t, "host and hub"), nil))
	g := gateway.New(o)
	pages := socket.New(g, socket.Options{Log: log})
	server := httptest.NewServer(pages.Host())
	fromExtension, in := io.Pipe()
	out, toExtension := io.Pipe()
	p := &peer{t: t, in: in, changed: make(chan struct{}, 1), ended: make(chan error, 1), g: g, hubs: make(chan uint64)}
	p.addr.Store(server.Listener.Addr().String())
	p.generation.Store(1)
	go func() {
		err := Serve(t.Context(), fromExtension, toExtension, Options{Connect: p.connect, Hubs: p.hubs, Version: "7", Log: log})
		toExtension.Close()
		p.ended <- err
	}()
	go func() {
		r := newReader(out)
		for {
			text, err := r.next()
			if err != nil {
				return
			}
			if len(text) > maxOut {
				t.Errorf("a message of %d bytes: the browser would end the host", len(text))
			}
			var m message
			if err := json.Unmarshal(text, &m); err != nil {
				t.Errorf("%v in %.100s", err, text)
			}
			p.mu.Lock()
			p.heard = append(p.heard, m)
			p.mu.Unlock()
			select {
			case p.changed <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		testkit.Ends(t, "the host ends with its input", p.ended)
		pages.Close()
		server.Close()
		g.Close()
	})
	p.await("hello", func(m message) bool { return m.Type == "hello" && m.Version == "7" })
	return p
}

// say sends bytes under their length.
func (p *peer) say(text string) {
	p.t.Helper()
	if _, err := p.in.Write(append(binary.NativeEndian.AppendUint32(nil, uint32(len(text))), text...)); err != nil {
		p.t.Fatal(err)
	}
}

// await takes messages until one fits, and returns it.
func (p *peer) await(what string, fits func(message) bool) message {
	p.t.Helper()
	end := time.After(testkit.Patience)
	for {
		p.mu.Lock()
		for i, m := range p.heard {
			if fits(m) {
				p.heard = p.heard[i+1:]
				p.mu.Unlock()
				return m
			}
		}
		p.mu.Unlock()
		select {
		case <-p.changed:
		case <-end:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("never: %s; heard %.300v", what, p.heard)
		}
	}
}

// text takes the pieces of the next message for a document.
func (p *peer) text(id int64) string {
	p.t.Helper()
	var whole strings.Builder
	for {
		m := p.await("a message", func(m message) bool { return m.Type == "message" && m.ID == id })
		whole.WriteString(m.Text)
		if !m.More {
			return whole.String()
		}
	}
}

func (p *peer) send(m message) {
	p.t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		p.t.Fatal(err)
	}
	p.say(string(text))
}

func (p *peer) open(id int64) {
	p.t.Helper()
	title := "A page"
	p.send(message{Type: "open", ID: id, Tab: "tab-00001", Title: &title, Origin: "https://shop.example", URL: "https://shop.example/cart"})
}

// serve answers as a page's core does, for one session, until the page is attached.
func (p *peer) serve(id int64) (session int64) {
	p.t.Helper()
	session = p.await("a session", func(m message) bool { return m.Type == "open" && m.ID == id }).Session
	for {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal([]byte(p.text(id)), &request); err != nil {
			p.t.Fatal(err)
		}
		result := ""
		switch request.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true,"listChanged":true}},"serverInfo":{"name":"p","version":"1"}}`
		case "resources/list":
			result = `{"resources":[{"uri":"https://shop.example/cart","name":"cart"}]}`
		case "resources/templates/list":
			p.answer(id, session, request.ID, `{"resourceTemplates":[]}`)
			return session
		default:
			continue
		}
		p.answer(id, session, request.ID, result)
	}
}

func (p *peer) answer(id, session int64, request json.RawMessage, result string) {
	p.t.Helper()
	p.send(message{Type: "message", ID: id, Session: session, Text: `{"jsonrpc":"2.0","id":` + string(request) + `,"result":` + result + `}`})
}

func (p *peer) pages() []gateway.PageState { return p.g.Snapshot().Pages }

func TestADocumentIsThePageThatTheBrowserSays(t *testing.T) {
	p := startPeer(t, gateway.Options{Grace: time.Hour}) // who is waited for does not go
	p.open(1)
	p.serve(1)
	testkit.Eventually(t, "the page is attached", func() bool { return len(p.pages()) == 1 && p.pages()[0].Resources == 1 })
	if got := p.pages()[0]; got.Origin != "https://shop.example" || got.Road != "extension" || got.Title != "A page" || got.URL != "https://shop.example/cart" {
		t.Errorf("the page is %+v", got)
	}
	title := "Another"
	p.send(message{Type: "note", ID: 1, Title: &title})
	testkit.Eventually(t, "its title changes", func() bool { return p.pages()[0].Title == "Another" })
	p.send(message{Type: "close", ID: 1, Gone: true})
	testkit.Eventually(t, "what is withdrawn is not waited for", func() bool { return len(p.pages()) == 0 })
	if p.mustNotHear("refused") {
		t.Error("something was refused")
	}
}

func (p *peer) mustNotHear(kind string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.heard {
		if m.Type == kind {
			return true
		}
	}
	return false
}

// A message of any length arrives whole, in pieces that the browser takes: quotes, line ends, control characters and characters of
// four bytes are the longest in JSON.
func TestLongMessagesTravelInPieces(t *testing.T) {
	for name, long := range map[string]string{
		"control characters": strings.Repeat("\x01", 3<<20),
		"quotes":             strings.Repeat(`"`, 3<<20),
		"four bytes":         strings.Repeat("𝄞", 1<<20),
		"odd":                "a" + strings.Repeat("é<", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := writer{w: &out}
			if err := w.text(3, []byte(long)); err != nil {
				t.Fatal(err)
			}
			r := newReader(&out)
			var whole strings.Builder
			for more := true; more; {
				text, err := r.next()
				if err != nil {
					t.Fatal(err)
				}
				if len(text) > maxOut {
					t.Fatalf("a piece has %d bytes", len(text))
				}
				var m message
				if err := json.Unmarshal(text, &m); err != nil || m.ID != 3 {
					t.Fatalf("%v, id %d", err, m.ID)
				}
				whole.WriteString(m.Text)
				more = m.More
			}
			if whole.String() != long {
				t.Error("it is another text")
			}
		})
	}
}

func TestWhatMakesNoSenseIsRefusedAndNothingElseHappens(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	p.open(1)
	p.serve(1)
	testkit.Eventually(t, "the page is attached", func() bool { return len(p.pages()) == 1 })
	count := 0
	for _, c := range []struct{ text, why string }{
		{"", "no message of the extension"},
		{"{", "no message of the extension"},
		{"[]", "no message of the extension"},
		{"\x00\xff", "no message of the extension"},
		{`{"type":"message","id":"1"}`, "no message of the extension"},
		{`{}`, "an unknown type"},
		{`{"type":"exec","id":1}`, "an unknown type"},
		{`{"type":"exec"}`, "an unknown type"},
		{`{"type":"message","id":9,"text":"x"}`, "the document is not open"},
		{`{"type":"close","id":9}`, "the document is not open"},
		{`{"type":"note","id":9}`, "the document is not open"},
		{`{"type":"open","id":1,"tab":"tab-00001","origin":"https://shop.example"}`, "is open already"},
		{`{"type":"open","id":0,"origin":"https://shop.example"}`, "above 0"},
		{`{"type":"open","id":-1,"origin":"https://shop.example"}`, "above 0"},
		{`{"type":"open","id":2}`, "an origin of no web page"},
		{`{"type":"open","id":2,"origin":"null"}`, "an origin of no web page"},
		{`{"type":"open","id":2,"origin":"https://shop.example/"}`, "an origin of no web page"},
		{`{"type":"open","id":2,"origin":"chrome-extension://x"}`, "an origin of no web page"},
		{`{"type":"open","id":2,"origin":"https://user@shop.example"}`, "an origin of no web page"},
		{strings.Repeat("x", maxIn+1), "longer than 64 MiB"},
	} {
		p.say(c.text)
		count++
		if got := p.await("a refusal", func(m message) bool { return m.Type == "refused" }); !strings.Contains(got.Reason, c.why) || got.Count != count {
			t.Errorf("%.60q: refused as %q, number %d; want %q, %d", c.text, got.Reason, got.Count, c.why, count)
		}
	}
	if got := p.pages(); len(got) != 1 || got[0].Absent {
		t.Errorf("the other document is %+v", got)
	}
}

// What the extension still says of a session that is over reaches no other one.
func TestMessagesOfASessionThatIsOverAreDropped(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	p.open(1)
	session := p.serve(1)
	testkit.Eventually(t, "the page is attached", func() bool { return len(p.pages()) == 1 })
	p.send(message{Type: "message", ID: 1, Session: session - 1, Text: "no JSON at all"})
	p.send(message{Type: "message", ID: 1, Session: session + 1, Text: "nor this"})
	title := "Alive"
	p.send(message{Type: "note", ID: 1, Title: &title})
	testkit.Eventually(t, "the session goes on", func() bool { return len(p.pages()) == 1 && p.pages()[0].Title == "Alive" })
}

func TestTooManyDocumentsOfAnOriginAreRefused(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	for id := int64(1); id <= maxPerOrigin; id++ {
		p.open(id)
	}
	p.open(maxPerOrigin + 1)
	if got := p.await("a refusal", func(m message) bool { return m.Type == "refused" }); !strings.Contains(got.Reason, "256 documents of https://shop.example") {
		t.Errorf("refused as %q", got.Reason)
	}
}

// Whom the hub does not serve learns why.
func TestADocumentThatIsRefusedLearnsWhy(t *testing.T) {
	p := startPeer(t, gateway.Options{Deny: []string{"https://shop.example"}})
	p.open(1)
	got := p.await("the end of the session", func(m message) bool { return m.Type == "close" && m.ID == 1 && m.Reason != "" })
	if !strings.Contains(got.Reason, "not served") {
		t.Errorf("the reason is %q", got.Reason)
	}
	if len(p.pages()) != 0 {
		t.Errorf("pages: %+v", p.pages())
	}
}

// A hub that hangs keeps its connections. When another one is in its place the documents go there.
func TestADocumentLeavesAHubThatHangs(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	// It is silent: it takes connections, and nothing else.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	next := p.addr.Swap(silent.Addr().String())
	p.open(1)
	hung, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	// As a hub that is stopped later: it has agreed, and then says nothing more.
	r, err := http.ReadRequest(bufio.NewReader(hung))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(hung, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]), r.Header.Get("Sec-WebSocket-Protocol"))
	p.await("a session with it", func(m message) bool { return m.Type == "open" && m.ID == 1 })
	p.addr.Store(next)
	p.generation.Store(2)
	p.hubs <- 2
	p.await("its end", func(m message) bool { return m.Type == "close" && m.ID == 1 })
	p.serve(1)
	testkit.Eventually(t, "the page is at the next hub", func() bool { return len(p.pages()) == 1 && p.pages()[0].Resources == 1 })
	// What says the same again ends nothing.
	p.hubs <- 2
	title := "Still there"
	p.send(message{Type: "note", ID: 1, Title: &title})
	testkit.Eventually(t, "the session goes on", func() bool { return len(p.pages()) == 1 && p.pages()[0].Title == "Still there" })
}

func TestAnInputThatEndsWithinAMessageIsAnError(t *testing.T) {
	for _, in := range []string{"\x05", "\x05\x00\x00\x00abc", "\xff\xff\xff\xffabc"} {
		err := Serve(t.Context(), strings.NewReader(in), io.Discard, Options{Connect: nowhere})
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) || err == nil {
			t.Errorf("%q: %v", in, err)
		}
	}
	if err := Serve(t.Context(), strings.NewReader(""), io.Discard, Options{Connect: nowhere}); err != nil {
		t.Errorf("no input: %v", err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, _ := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, in, io.Discard, Options{Connect: nowhere}) }()
	cancel()
	if err := testkit.Receive(t, "it ends", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	in.Close()
}

func nowhere(context.Context) (net.Conn, uint64, error) { return nil, 0, errors.New("no hub") }
