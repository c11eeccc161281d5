package extension

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
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/pages/socket"
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

// A peer is the extension's side of a running host. Its daemon has real parts.
type peer struct {
	t       *testing.T
	in      *io.PipeWriter
	mu      sync.Mutex
	heard   []message
	changed chan struct{}
	ended   chan error
	g       *gateway.Gateway
	log     *testkit.Log
	frames  map[int64]chan []byte // of each document, for a test that plays its page
	addr    atomic.Value          // where the daemon is
}

func (p *peer) connect(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", p.addr.Load().(string))
}

// startPeer runs a host, with a daemon of these options.
func startPeer(t *testing.T, o gateway.Options) *peer {
	t.Helper()
	text := testkit.LogOf(t, "host and daemon")
	log := slog.New(slog.NewTextHandler(text, nil))
	o.Log = log
	o.ReadTimeout = testkit.Patience // 6 MiB take more than 30 s at a load of 60
	g := gateway.New(o)
	pages := socket.New(g, socket.Options{Log: log})
	server := httptest.NewServer(pages.Host())
	fromExtension, in := io.Pipe()
	out, toExtension := io.Pipe()
	p := &peer{t: t, in: in, changed: make(chan struct{}, 1), ended: make(chan error, 1), g: g, log: text,
		frames: map[int64]chan []byte{}}
	p.addr.Store(server.Listener.Addr().String())
	go func() {
		err := Serve(t.Context(), fromExtension, toExtension, Options{Connect: p.connect, Wait: there, Version: "7",
			Log: log})
		toExtension.Close()
		p.ended <- err
	}()
	go p.listen(out)
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

// listen receives the host's messages. Frames go to the goroutine that plays their page; await gets the others.
func (p *peer) listen(out io.Reader) {
	r := newReader(out)
	pieces := map[int64][]byte{}
	for {
		text, err := r.next()
		if err != nil {
			return
		}
		if len(text) > maxOut {
			p.t.Errorf("a message of %d bytes: the browser would end the host", len(text))
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			p.t.Errorf("%v in %.100s", err, text)
		}
		p.mu.Lock()
		page := p.frames[m.ID]
		if m.Type == "frame" && page != nil {
			pieces[m.ID] = append(pieces[m.ID], m.Text...)
			if !m.More {
				page <- pieces[m.ID]
				pieces[m.ID] = nil
			}
		} else {
			p.heard = append(p.heard, m)
		}
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// say sends bytes after their length.
func (p *peer) say(text string) {
	p.t.Helper()
	if _, err := p.in.Write(append(binary.NativeEndian.AppendUint32(nil, uint32(len(text))), text...)); err != nil {
		p.t.Fatal(err)
	}
}

// await receives messages until one fits, and returns it.
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
			heard := fmt.Sprintf("%.300v", p.heard)
			p.mu.Unlock()
			testkit.Unmet(p.t, what+"; heard "+heard)
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

const shop = "https://shop.example"

func (p *peer) open(id int64) {
	p.t.Helper()
	p.send(message{Type: "open", ID: id, Origin: shop})
}

// session waits for the next session with a document.
func (p *peer) session(id int64) int64 {
	p.t.Helper()
	return p.await("a session", func(m message) bool { return m.Type == "open" && m.ID == id }).Session
}

func (p *peer) frame(id, session int64, frame string) {
	p.t.Helper()
	p.send(message{Type: "frame", ID: id, Session: session, Text: frame})
}

// hello is the first frame of a document, as the extension's worker stamps it.
func hello(id int64) string {
	return fmt.Sprintf(
		`[["hello",1,"0",{"epoch":"e","tab":"tab-%05d","title":"A page","origin":"https://shop.example","url":"https://shop.example/cart"}]]`, id)
}

// serve plays a page in a document's next session, and returns when the gateway has the page.
func (p *peer) serve(id int64) (page *testkit.Page, session int64) {
	p.t.Helper()
	frames := make(chan []byte, 1000)
	p.mu.Lock()
	p.frames[id] = frames
	p.mu.Unlock()
	session = p.session(id)
	p.frame(id, session, hello(id))
	page = testkit.NewPage(p.t, map[string]string{shop + "/cart": "full"})
	page.Resume(func(frame []byte) { p.frame(id, session, string(frame)) })
	go func() {
		for {
			select {
			case frame := <-frames:
				page.Hear(frame)
			case <-p.t.Context().Done():
				return
			}
		}
	}()
	testkit.Eventually(p.t, "the page is attached", func() bool {
		for _, page := range p.pages() {
			if page.Origin == shop && page.Resources == 1 && !page.Absent {
				return true
			}
		}
		return false
	})
	return page, session
}

func (p *peer) pages() []gateway.PageState { return p.g.Snapshot().Pages }

func TestADocumentIsThePageThatTheBrowserSays(t *testing.T) {
	p := startPeer(t, gateway.Options{Grace: time.Hour}) // an awaited page does not go
	p.open(1)
	page, session := p.serve(1)
	if got := p.pages()[0]; got.Origin != shop || got.Transport != "extension" || got.Title != "A page" ||
		got.URL != "https://shop.example/cart" {
		t.Errorf("the page is %+v", got)
	}
	p.frame(1, session, `[["note",{"title":"Another"}]]`)
	testkit.Eventually(t, "its title changes", func() bool { return p.pages()[0].Title == "Another" })
	agent := testkit.Connect(t, agentOf(t, p.g), testkit.Legacy)
	if got := agent.Text(shop + "/cart"); got != "full" {
		t.Errorf("it reads as %q", got)
	}
	agent.Watch(shop + "/cart")
	page.Set(shop+"/cart", "empty")
	agent.Told(shop + "/cart")
	p.frame(1, session, `[["bye",true]]`)
	p.send(message{Type: "close", ID: 1})
	testkit.Eventually(t, "what is withdrawn is not waited for", func() bool { return len(p.pages()) == 0 })
	if p.mustNotHear("refused") {
		t.Error("something was refused")
	}
}

// The gateway waits longer for a page whose worker the browser has ended than for one that has gone.
func TestTheEndOfAPageIsNotThatOfTheWorker(t *testing.T) {
	for why, end := range map[string]func(*peer){
		"its connection ended": func(p *peer) {
			p.send(message{Type: "close", ID: 1})
		},
		"its extension's connection ended": func(p *peer) { p.in.Close() },
	} {
		p := startPeer(t, gateway.Options{})
		p.open(1)
		p.serve(1)
		end(p)
		testkit.Eventually(t, "the page has gone because "+why, func() bool {
			return strings.Contains(p.log.String(), `reason="`+why+`"`)
		})
	}
}

func agentOf(t *testing.T, g *gateway.Gateway) mcp.Transport {
	t.Helper()
	a, err := g.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Transport(a)
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

// A message of any length arrives whole, in pieces that the browser accepts: quotes, line ends, control characters and
// characters of four bytes are the longest in JSON.
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
			if err := w.frame(3, []byte(long)); err != nil {
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
	count := 0
	for _, c := range []struct{ text, why string }{
		{"", "no message of the extension"},
		{"{", "no message of the extension"},
		{"[]", "no message of the extension"},
		{"\x00\xff", "no message of the extension"},
		{`{"type":"frame","id":"1"}`, "no message of the extension"},
		{`{}`, "an unknown type"},
		{`{"type":"exec","id":1}`, "an unknown type"},
		{`{"type":"exec"}`, "an unknown type"},
		{`{"type":"frame","id":9,"text":"x"}`, "the document is not open"},
		{`{"type":"close","id":9}`, "the document is not open"},
		{`{"type":"note","id":1}`, "an unknown type"},
		{`{"type":"open","id":1,"origin":"https://shop.example"}`, "is open already"},
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
		if got := p.await("a refusal", func(m message) bool { return m.Type == "refused" }); !strings.Contains(
			got.Reason, c.why) || got.Count != count {
			t.Errorf("%.60q: refused as %q, number %d; want %q, %d", c.text, got.Reason, got.Count, c.why, count)
		}
	}
	if got := p.pages(); len(got) != 1 || got[0].Absent {
		t.Errorf("the other document is %+v", got)
	}
}

// The extension's late messages of an ended session reach no other session.
func TestMessagesOfASessionThatIsOverAreDropped(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	p.open(1)
	_, session := p.serve(1)
	p.frame(1, session-1, "no frame at all")
	p.frame(1, session+1, "nor this")
	p.frame(1, session, `[["note",{"title":"Alive"}]]`)
	testkit.Eventually(t, "the session goes on", func() bool {
		return len(p.pages()) == 1 && p.pages()[0].Title == "Alive"
	})
}

// The extension learns which pieces the daemon has accepted, if it asks for that: it holds the rest back.
func TestFramesInPieces(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	p.open(1)
	page, session := p.serve(1)
	long := strings.Repeat("é𝄞", 1<<20) // 6 MiB
	page.Contents(func(string) string { return "" })
	agent := testkit.Connect(t, agentOf(t, p.g), testkit.Legacy)
	asked := make(chan string, 1)
	page.OnRead = func(uri string) { asked <- uri }
	got := make(chan string, 1)
	go func() { got <- agent.Text(shop + "/cart") }()
	testkit.Receive(t, "the page is asked", asked)
	frame := `=1 0 [{"uri":"` + shop + `/cart","text":"` + long + `"}]`
	const size = 1 << 20
	for ack := int64(1); frame != ""; ack++ {
		n := min(len(frame), size)
		for n < len(frame) && !utf8.RuneStart(frame[n]) {
			n--
		}
		p.send(message{Type: "frame", ID: 1, Session: session, Text: frame[:n], More: n < len(frame), Ack: ack})
		frame = frame[n:]
		p.await("it is taken", func(m message) bool {
			return m.Type == "taken" && m.ID == 1 && m.Session == session && m.Ack == ack
		})
	}
	if testkit.Receive(t, "it is read", got) != long {
		t.Error("it reads as something else")
	}
}

// The queue bounds a document's frames; the daemon limits a single frame. Only the document above a bound ends.
func TestWhoSaysTooMuchEndsAlone(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	p.open(1)
	honest, _ := p.serve(1)
	agent := testkit.Connect(t, agentOf(t, p.g), testkit.Legacy)
	unharmed := func() {
		t.Helper()
		if got := agent.Text(shop + "/cart"); got != "full" {
			t.Errorf("the other page reads as %q", got)
		}
		if honest.Refusal() != "" {
			t.Errorf("the other page was refused: %s", honest.Refusal())
		}
	}
	p.open(2)
	session := p.session(2)
	for name, say := range map[string]func(id, session int64){
		"a large hello": func(id, session int64) {
			p.frame(id, session, hello(id)[:3]+strings.Repeat(" ", 64<<10)+hello(id)[3:])
		},
		"no hello": func(id, session int64) { p.frame(id, session, `[["touch","`+shop+`/cart",1]]`) },
		"no frame": func(id, session int64) { p.frame(id, session, `hello`) },
		"another's origin": func(id, session int64) {
			p.frame(id, session, strings.ReplaceAll(hello(id), "https:", "file:"))
		},
		"an old note": func(id,
			session int64) {
			p.frame(id, session, `{"type":"pagewire:page","tab":"tab-00002"}`)
		},
	} {
		say(2, session)
		got := p.await(name+" ends the session", func(m message) bool { return m.Type == "close" && m.ID == 2 })
		if got.Reason == "" {
			t.Errorf("%s: no reason", name)
		}
		unharmed()
		// The daemon's refusal counts for refusedPause; another document begins at once.
		p.send(message{Type: "close", ID: 2})
		p.open(2)
		session = p.session(2)
	}
	p.frame(2, session, hello(2))
	p.frame(2, session, hello(2))
	p.await("a second hello ends the session", func(m message) bool { return m.Type == "close" && m.ID == 2 })
	unharmed()
	session = p.session(2)
	p.frame(2, session, hello(2))
	piece := strings.Repeat("x", 4<<20)
	for range 5 {
		p.send(message{Type: "frame", ID: 2, Session: session, Text: piece, More: true, Ack: 1})
		if m := p.await("a piece is taken, or the session ends",
			func(m message) bool { return m.ID == 2 && m.Type != "frame" }); m.Type == "close" {
			break
		}
	}
	unharmed()
}

// The bytes that the daemon does not accept are bounded for a document. A document above the bound ends, even if the
// extension ignores the refusals.
func TestBytesThatWaitForTheDaemon(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	p.hang()
	p.open(1)
	piece := strings.Repeat("x", 1<<20)
	var session int64
	var got message
	// A busy machine may end a session before, as its daemon has not answered a ping.
	for got.Type != "refused" {
		session = p.session(1)
		for range 2 * maxQueued / len(piece) {
			p.send(message{Type: "frame", ID: 1, Session: session, Text: piece, More: true})
		}
		got = p.await("it is closed", func(m message) bool { return m.Type == "refused" || m.Type == "close" })
	}
	if got.ID != 1 || !strings.Contains(got.Reason, "faster than the daemon takes them") {
		t.Errorf("refused: %+v", got)
	}
	p.frame(1, session, "x")
	if got := p.await("it is not open",
		func(m message) bool { return m.Type == "refused" }); got.Reason != "the document is not open" {
		t.Errorf("refused: %+v", got)
	}
}

func TestTooManyDocumentsOfAnOriginAreRefused(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	for id := int64(1); id <= maxPerOrigin; id++ {
		p.open(id)
	}
	p.open(maxPerOrigin + 1)
	if got := p.await("a refusal", func(m message) bool { return m.Type == "refused" }); !strings.Contains(got.Reason,
		"256 documents of https://shop.example") {
		t.Errorf("refused as %q", got.Reason)
	}
}

func TestADocumentThatIsRefusedLearnsWhy(t *testing.T) {
	p := startPeer(t, gateway.Options{Deny: []string{"https://shop.example"}})
	p.open(1)
	p.frame(1, p.session(1), hello(1))
	got := p.await("the end of the session", func(m message) bool {
		return m.Type == "close" && m.ID == 1 && m.Reason != ""
	})
	if !strings.Contains(got.Reason, "not served") {
		t.Errorf("the reason is %q", got.Reason)
	}
	if len(p.pages()) != 0 {
		t.Errorf("pages: %+v", p.pages())
	}
}

// The extension says which tab is in front, over a connection that no page has.
func TestTabInFront(t *testing.T) {
	p := startPeer(t, gateway.Options{})
	port, err := p.g.ConnectWith(gateway.AgentOptions{Transport: "test", Front: true, Deny: []string{"https://denied.example"}})
	if err != nil {
		t.Fatal(err)
	}
	a := testkit.Connect(t, testkit.Transport(port), testkit.Legacy)
	a.Watch(frontOrigin)
	shows := func(want string) {
		t.Helper()
		for a.Text(frontOrigin) != want {
			testkit.Receive(t, want+" is in front, and not "+a.Text(frontOrigin), a.Updates)
		}
	}
	p.open(1)
	_, session := p.serve(1)
	const good = `{"focused":true,"tab":"tab-00001","window":"window-1","origin":"https://shop.example","title":"A","url":"https://shop.example/a?b"}`
	const nothing = `{"origin":null}`
	shown := `{"tab":1,"where":"tab 1 in window 1 of Firefox, profile My Work","title":"A","url":"https://shop.example/a?b",` +
		`"origin":"https://shop.example","resources":["https://shop.example/cart"]}`
	last := int64(1)
	begin := func() (report func(string)) {
		t.Helper()
		last++
		id := last
		p.send(message{Type: "open", ID: id, Origin: frontOrigin})
		session := p.session(id)
		p.frame(id, session, `[["hello",1,"0",{"epoch":"e","tab":"tab-00000","origin":"pagewire://front","browser":"Firefox/140.0","profile":"My  Work"}]]`)
		p.frame(id, session, good)
		shows(shown)
		return func(frame string) { p.frame(id, session, frame) }
	}
	report := begin()
	report(`{"focused":false,"tab":"tab-00002","origin":"https://bank.example","title":"Balance"}`)
	shows(`{"origin":"https://bank.example"}`)
	report(good)
	shows(shown)
	report(strings.ReplaceAll(good, "shop", "denied"))
	shows(`{"origin":"https://denied.example"}`)
	for _, other := range []string{`"title":"Settings"`, `"origin":"http://a{b.example","title":"A","url":"http://a{b.example/"`} {
		report(`{"tab":"tab-00002","window":"window-1",` + other + `}`)
		shows(nothing)
		report(good)
		shows(shown)
	}

	// A page can say the same only in its own link, which has no such frame.
	forged := strings.ReplaceAll(good, "shop", "bank")
	p.frame(1, session, forged)
	p.await("it is refused", func(m message) bool { return m.Type == "close" && m.ID == 1 })
	shown = strings.Replace(shown, `"https://shop.example/cart"`, "", 1)
	shows(shown)
	p.send(message{Type: "close", ID: 2})
	shows(nothing)

	for frame, why := range map[string]string{
		`{}`: "names its tab", "null": "names its tab", "[]": "names its tab", "x": "names its tab", "=1 1 []": "names its tab",
		hello(9):                                                             "names its tab",
		`{"tab":"tab-00001","title":5}`:                                      "names its tab",
		`{"tab":"tab-00001","focused":1}`:                                    "names its tab",
		`{"tab":"tab 1","origin":"https://shop.example"}`:                    "names its tab",
		`{"tab":"tab-00001","window":"1"}`:                                   "names its tab",
		`{"tab":"tab-00001","origin":"null"}`:                                "an origin of no web page",
		`{"tab":"tab-00001","origin":"pagewire://front"}`:                    "an origin of no web page",
		strings.Replace(good, `"https://shop.example"`, `""`, 1):             "an URL of another origin",
		forged[:len(forged)-1] + `,"url":"https://shop.example/"}`:           "an URL of another origin",
		strings.Replace(good, `"A"`, `"`+strings.Repeat("A", 64<<10)+`"`, 1): "65536 at most",
	} {
		report := begin()
		report(frame)
		got := p.await("the end of the session", func(m message) bool { return m.Type == "close" && m.ID == last })
		if !strings.Contains(got.Reason, why) {
			t.Errorf("%.70s is refused with %q, want %q", frame, got.Reason, why)
		}
		shows(nothing)
		p.send(message{Type: "close", ID: last})
	}
}

// While no daemon runs, documents wait for Options.Wait, and do not connect.
func TestDocumentsWaitForADaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits, connects atomic.Int32
		runs := make(chan struct{})
		fromExtension, in := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- Serve(t.Context(), fromExtension, io.Discard, Options{
				Wait: func(context.Context) error {
					waits.Add(1)
					<-runs
					return nil
				},
				Connect: func(context.Context) (net.Conn, error) {
					connects.Add(1)
					return nil, errors.New("none")
				},
			})
		}()
		p := &peer{t: t, in: in}
		p.open(1)
		p.open(2)
		time.Sleep(time.Hour)
		if waits.Load() != 1 || connects.Load() != 0 {
			t.Errorf("in an hour they have waited %d times, and have connected %d times", waits.Load(), connects.Load())
		}
		close(runs)
		synctest.Wait()
		if connects.Load() != 2 {
			t.Errorf("when a daemon runs they have connected %d times", connects.Load())
		}
		in.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// hang replaces p's daemon by one that accepts connections, and then neither sends nor reads anything, like a stopped
// process.
func (p *peer) hang() {
	p.t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.addr.Store(silent.Addr().String())
	p.t.Cleanup(func() { silent.Close() })
	go func() {
		for {
			hung, err := silent.Accept()
			if err != nil {
				return
			}
			defer hung.Close()
			r, err := http.ReadRequest(bufio.NewReader(hung))
			if err != nil {
				continue // the host has given up
			}
			sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
			fmt.Fprintf(hung, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "+
				"Upgrade\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
				base64.StdEncoding.EncodeToString(sum[:]), r.Header.Get("Sec-WebSocket-Protocol"))
		}
	}()
}

func TestAnInputThatEndsWithinAMessageIsAnError(t *testing.T) {
	for _, in := range []string{"\x05", "\x05\x00\x00\x00abc", "\xff\xff\xff\xffabc"} {
		err := Serve(t.Context(), strings.NewReader(in), io.Discard, Options{Connect: nowhere, Wait: there})
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) || err == nil {
			t.Errorf("%q: %v", in, err)
		}
	}
	if err := Serve(t.Context(), strings.NewReader(""), io.Discard, Options{Connect: nowhere, Wait: there}); err != nil {
		t.Errorf("no input: %v", err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, _ := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, in, io.Discard, Options{Connect: nowhere, Wait: there}) }()
	cancel()
	if err := testkit.Receive(t, "it ends", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	in.Close()
}

func nowhere(context.Context) (net.Conn, error) { return nil, errors.New("no daemon") }

func there(context.Context) error { return nil }

// The browser's end of the pipe may break off anywhere, and claim any length.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, '{', '}', 255, 255, 255, 255})
	f.Add([]byte{0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, text []byte) {
		in := newReader(bytes.NewReader(text))
		for read := 0; ; {
			message, err := in.next()
			if err != nil {
				break
			}
			if read += 4 + len(message); read > len(text) || !bytes.Equal(text[read-len(message):read], message) {
				t.Fatalf("%q has the message %q before %d", text, message, read)
			}
		}
	})
}
