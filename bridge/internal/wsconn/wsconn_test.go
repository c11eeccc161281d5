package wsconn

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/testkit"
)

func pair(t *testing.T) (client, server *Conn) { return pairOf(t, Options{MaxMessage: 8 << 20}) }

// pairOf connects two ends. The server's end has the options.
func pairOf(t *testing.T, o Options) (client, server *Conn) {
	t.Helper()
	accepted := make(chan *Conn, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, o)
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
		<-c.Closed()
	}))
	t.Cleanup(s.Close)
	over := testkit.Must(net.Dial("tcp", s.Listener.Addr().String()))(t)
	client, _, err := Client(t.Context(), over, "/", nil, Options{MaxMessage: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	server = testkit.Receive(t, "the other end", accepted)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestPiecesAreOneMessage(t *testing.T) {
	client, server := pair(t)
	long := strings.Repeat("é𝄞", 100_000)
	sent := make(chan error, 1)
	go func() {
		for _, piece := range []struct {
			text string
			last bool
		}{{"alone", true}, {"", false}, {long, false}, {long[:3], false}, {"", true}, {"after", true}, {"a", false},
			{"b", true}} {
			if err := client.WritePiece(t.Context(), []byte(piece.text), piece.last); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for _, want := range []string{"alone", long + long[:3], "after", "ab"} {
		got, err := server.Read(t.Context())
		if err != nil || string(got) != want {
			t.Fatalf("got %.20q of %d bytes, %v; want %.20q of %d", got, len(got), err, want, len(want))
		}
	}
	if err := testkit.Receive(t, "all is sent", sent); err != nil {
		t.Error(err)
	}
}

// A peer that ends within a message has not sent that message.
func TestAMessageWithoutItsLastPieceIsNone(t *testing.T) {
	client, server := pair(t)
	testkit.OK(t, client.WritePiece(t.Context(), []byte("half"), false))
	client.Close()
	if got, err := server.Read(context.Background()); err == nil {
		t.Errorf("got %q", got)
	}
	testkit.Eventually(t, "a further piece fails", func() bool {
		return client.WritePiece(t.Context(), []byte("x"), true) != nil
	})
}

// A Room bounds the sum of unfinished messages. Above it the one that has held its bytes longest ends.
func TestRoomIsNotHeldByTheUnfinished(t *testing.T) {
	room := NewRoom(1 << 20)
	ends := make(chan error, 10)
	open := func() (client *Conn, got <-chan []byte) {
		texts := make(chan []byte, 1)
		client, server := pairOf(t, Options{MaxMessage: 1 << 20, Room: room})
		go func() {
			for {
				text, err := server.Read(context.Background())
				if err != nil {
					ends <- err
					return
				}
				texts <- text
			}
		}()
		return client, texts
	}
	held := func() int {
		room.mu.Lock()
		defer room.mu.Unlock()
		return 1<<20 - room.left
	}
	stalls, _ := open()
	testkit.OK(t, stalls.WritePiece(t.Context(), []byte(strings.Repeat("x", 400<<10)), false))
	testkit.Eventually(t, "it holds room", func() bool { return held() == 512<<10 })
	honest, got := open()
	for range 3 {
		testkit.OK(t, honest.Write(t.Context(), []byte(strings.Repeat("y", 600<<10))))
		if text := testkit.Receive(t, "the other's message", got); len(text) != 600<<10 {
			t.Errorf("it has %d bytes", len(text))
		}
	}
	if err := testkit.Receive(t, "who stalls ends", ends); err != ErrNoRoom {
		t.Errorf("it ends with %v", err)
	}
	honest.Close()
	testkit.Receive(t, "the other ends", ends)
	if n := held(); n != 0 {
		t.Errorf("%d bytes are held for nobody", n)
	}
}

// A peer with unread messages cannot answer a ping. A peer that is read and does not answer is gone.
func TestOnlyAPeerThatIsReadMustAnswerAPing(t *testing.T) {
	client, server := pair(t)
	go client.Read(t.Context()) // Read answers pings
	server.check(time.Second)
	select {
	case <-server.Closed():
		t.Fatal("it is given up though nobody has read it")
	default:
	}
	testkit.OK(t, client.Write(t.Context(), []byte("still here")))
	if text, err := server.Read(t.Context()); err != nil || string(text) != "still here" {
		t.Fatalf("%q, %v", text, err)
	}

	silent, server := pair(t)
	go server.Read(t.Context())
	testkit.Eventually(t, "it is read", func() bool { return server.reads.Load()%2 == 1 })
	server.check(time.Second)
	select {
	case <-server.Closed():
	default:
		t.Error("one that does not answer is not given up")
	}
	silent.Close()
}

// Little is read from a peer that never stops after its connection is given up. Its connection is held until Close.
func TestPeerThatNeverStopsIsNotReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go func() {
			for piece := make([]byte, 64<<10); ; {
				if _, err := theirs.Write(piece); err != nil {
					return
				}
			}
		}()
		c := newIgnoring(ours)
		defer c.Close()
		buf := make([]byte, 64<<10)
		for range 20 {
			if _, err := c.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
		c.ignored.Store(true)
		n := 0
		for n+len(buf) <= maxIgnored {
			m, err := c.Read(buf)
			if n += m; err != nil {
				t.Fatal(err)
			}
		}
		over := make(chan error, 1)
		go func() {
			_, err := c.Read(buf)
			over <- err
		}()
		synctest.Wait()
		select {
		case err := <-over:
			t.Errorf("more is read, and gives %v", err)
		default:
		}
		c.Close()
		if err := testkit.Receive(t, "the read ends with the connection", over); err == nil {
			t.Error("it gives something")
		}
	})
}

// Both the peer and the reader learn the limit.
func TestMessageThatIsTooLong(t *testing.T) {
	client, server := pair(t)
	go client.Write(t.Context(), make([]byte, 8<<20))
	if text, err := server.Read(t.Context()); err != nil || len(text) != 8<<20 {
		t.Fatalf("as large as it may be: %d bytes, %v", len(text), err)
	}
	server.Limit(1000, "")
	go client.Write(t.Context(), make([]byte, 1001))
	const why = "a message is too long; the limit is 1000 bytes"
	if _, err := server.Read(t.Context()); !errors.Is(err, ErrTooLong) || err.Error() != why {
		t.Errorf("the reader is told %v", err)
	}
	if _, err := client.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig ||
		!strings.Contains(err.Error(), why) {
		t.Errorf("the peer is told %v", err)
	}
}

// A peer with many unfinished messages loses one of its own, and not a message of another peer.
func TestRoomIsTakenFromWhoHoldsMost(t *testing.T) {
	room := NewRoom(1000 << 10)
	hold := func(whose string, bytes int) *holder {
		c := &Conn{opt: Options{Whose: whose}}
		testkit.OK(t, room.reserve(c, bytes))
		return room.find(c)
	}
	honest, evil := hold("honest", 400<<10), hold("evil", 200<<10)
	second, other := hold("evil", 300<<10), hold("other", 65<<10)
	if last := room.last(other); last != evil {
		t.Errorf("it is %+v that ends for another", last)
	}
	if last := room.last(second); last != honest {
		t.Errorf("it is %+v that ends for one of two", last)
	}
	evil.ended = true
	if last := room.last(other); last != honest {
		t.Errorf("it is %+v that ends beside one that has", last)
	}
}

// Above the bound, the connection with the most queued bytes ends, of the owner with the most queued bytes.
func TestBacklogEndsWhoLeavesMost(t *testing.T) {
	b := quota.NewBacklog(24<<20, func(c *Conn) { c.CloseWith(0, "") })
	conn := func(whose string, message int) *Conn {
		_, c := pairOf(t, Options{MaxMessage: 8 << 20, Backlog: b, Whose: whose}) // its peer reads nothing
		c.Send(make([]byte, message))
		return c
	}
	honest, evil, worse := conn("honest", 9<<20), conn("evil", 7<<20), conn("evil", 8<<20)
	if got := b.Held(); got != 24<<20 {
		t.Fatalf("%d bytes are counted", got)
	}
	honest.Send([]byte("one more"))
	testkit.Ends(t, "the one ends", worse.Closed())
	testkit.Eventually(t, "what waited for it is given back", func() bool { return b.Held() == 16<<20+len("one more") })
	for _, c := range []*Conn{honest, evil} {
		select {
		case <-c.Closed():
			t.Error("another one has ended")
		default:
		}
		c.CloseWith(0, "")
	}
	testkit.Eventually(t, "nothing is counted any more", func() bool { return b.Held() == 0 })
}
