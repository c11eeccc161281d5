//go:build !js

package native

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
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
}

const shared = "0123456789abcdef0123456789abcdef0123456789a"

// startPeer runs a host. presented is the secret that it has.
func startPeer(t *testing.T, presented string) *peer {
	t.Helper()
	var log lockedLog
	g := gateway.New(gateway.Options{})
	pages := socket.New(g, socket.Options{Secret: func() (string, error) { return shared, nil }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	server := httptest.NewServer(pages)
	fromExtension, in := io.Pipe()
	out, toExtension := io.Pipe()
	p := &peer{t: t, in: in, changed: make(chan struct{}, 1), ended: make(chan error, 1), g: g}
	go func() {
		err := Serve(t.Context(), fromExtension, toExtension, Options{Addr: strings.TrimPrefix(server.URL, "http://"), Secret: presented, Version: "7", Log: slog.New(slog.NewTextHandler(&log, nil))})
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
		select {
		case <-p.ended:
		case <-time.After(testkit.Patience):
			t.Error("the host does not end with its input")
		}
		pages.Close()
		server.Close()
		g.Close()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	p.await("hello", func(m message) bool { return m.Type == "hello" && m.Version == "7" && m.Secret == presented })
	return p
}

type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
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
	p := startPeer(t, shared)
	p.open(1)
	p.serve(1)
	testkit.Eventually(t, "the page is attached", func() bool { return len(p.pages()) == 1 && p.pages()[0].Resources == 1 })
	if got := p.pages()[0]; got.Origin != "https://shop.example" || got.Road != "extension" || got.Title != "A page" || got.URL != "https://shop.example/cart" {
		t.Errorf("the page is %+v", got)
	}
	title := "Another"
	p.send(message{Type: "note", ID: 1, Title: &title})
	testkit.Eventually(t, "its title changes", func() bool { return p.pages()[0].Title == "Another" })
	// Withdrawn, it is not waited for: who is waited for is absent for a while.
	p.send(message{Type: "close", ID: 1, Gone: true})
	testkit.Eventually(t, "it is gone", func() bool {
		pages := p.pages()
		if len(pages) > 0 && pages[0].Absent {
			t.Fatal("what is withdrawn is waited for")
		}
		return len(pages) == 0
	})
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
	p := startPeer(t, shared)
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
	p := startPeer(t, shared)
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
	p := startPeer(t, shared)
	for id := int64(1); id <= maxPerOrigin; id++ {
		p.open(id)
	}
	p.open(maxPerOrigin + 1)
	if got := p.await("a refusal", func(m message) bool { return m.Type == "refused" }); !strings.Contains(got.Reason, "256 documents of https://shop.example") {
		t.Errorf("refused as %q", got.Reason)
	}
}

// Who listens at the port and does not know the secret learns nothing: not it, nor which pages there are.
func TestSquatterIsToldNothing(t *testing.T) {
	heard := make(chan string, 100)
	squatter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get("Authorization")
		c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: 1 << 20})
		if err != nil {
			return
		}
		defer c.Close()
		notes := c.Notes()
		for {
			text, err := notes.Read(r.Context())
			if err != nil {
				return
			}
			heard <- string(text)
			notes.Write(r.Context(), []byte(`{"type":"pagewire:proof","nonce":"`+strings.Repeat("a", 43)+`","proof":"`+strings.Repeat("a", 43)+`"}`))
		}
	}))
	t.Cleanup(squatter.Close)
	in, extension := io.Pipe()
	t.Cleanup(func() { extension.Close() })
	out, host := io.Pipe()
	go Serve(t.Context(), in, host, Options{Addr: strings.TrimPrefix(squatter.URL, "http://"), Secret: shared})
	open := `{"type":"open","id":1,"tab":"tab-00000001","origin":"https://bank.example","url":"https://bank.example/","title":"Balance"}`
	go extension.Write(append(binary.NativeEndian.AppendUint32(nil, uint32(len(open))), open...))
	r := newReader(out)
	for {
		text, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		if m.Type == "close" {
			if !strings.Contains(m.Reason, "does not prove that it is a pagewire serve of this user") {
				t.Errorf("the extension is told %q", m.Reason)
			}
			break
		}
	}
	if header, hello := <-heard, <-heard; header != "" || !strings.HasPrefix(hello, `{"type":"pagewire:hello","nonce":"`) || strings.Contains(hello, "bank") {
		t.Errorf("the squatter has heard %q and %q", header, hello)
	}
	if len(heard) > 0 {
		t.Errorf("the squatter has heard more: %q", <-heard)
	}
}

// The secret is in a file beside the token, made by install, and by a host that an older install has made known.
func TestSecret(t *testing.T) {
	token := filepath.Join(t.TempDir(), "pagewire", "token")
	if known, err := Secret(token); err == nil || !strings.Contains(err.Error(), "pagewire extension install") {
		t.Errorf("before there is one: %q, %v", known, err)
	}
	made, err := MakeSecret(token)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Secret(token); again != made || err != nil {
		t.Errorf("then it is %q, %v", again, err)
	}
	if info, err := os.Stat(filepath.Join(filepath.Dir(token), "extension")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file: %v, %v", info, err)
	}
}

// Without the extension's secret nobody is believed, and the extension learns why.
func TestAnotherSecretIsRefused(t *testing.T) {
	p := startPeer(t, "another")
	p.open(1)
	got := p.await("the end of the session", func(m message) bool { return m.Type == "close" && m.ID == 1 })
	if got.Reason == "" {
		t.Error("no reason was given")
	}
	if len(p.pages()) != 0 {
		t.Errorf("pages: %+v", p.pages())
	}
}

func TestAnInputThatEndsWithinAMessageIsAnError(t *testing.T) {
	for _, in := range []string{"\x05", "\x05\x00\x00\x00abc", "\xff\xff\xff\xffabc"} {
		err := Serve(t.Context(), strings.NewReader(in), io.Discard, Options{Addr: "127.0.0.1:1", Secret: shared})
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) || err == nil {
			t.Errorf("%q: %v", in, err)
		}
	}
	if err := Serve(t.Context(), strings.NewReader(""), io.Discard, Options{Addr: "127.0.0.1:1", Secret: shared}); err != nil {
		t.Errorf("no input: %v", err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, _ := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, in, io.Discard, Options{Addr: "127.0.0.1:1", Secret: shared}) }()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(testkit.Patience):
		t.Error("it does not end")
	}
	in.Close()
}
