//go:build !js

package wsconn

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// pair connects two ends.
func pair(t *testing.T) (client, server *Conn) {
	t.Helper()
	accepted := make(chan *Conn, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, Options{MaxMessage: 8 << 20})
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
		<-c.Closed()
	}))
	t.Cleanup(s.Close)
	over, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client, _, err = Client(t.Context(), over, "/", nil, Options{MaxMessage: 8 << 20})
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
		}{{"alone", true}, {"", false}, {long, false}, {long[:3], false}, {"", true}, {"after", true}, {"a", false}, {"b", true}} {
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

// Who ends within a message has not sent it.
func TestAMessageWithoutItsLastPieceIsNone(t *testing.T) {
	client, server := pair(t)
	if err := client.WritePiece(t.Context(), []byte("half"), false); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if got, err := server.Read(context.Background()); err == nil {
		t.Errorf("got %q", got)
	}
	testkit.Eventually(t, "a further piece fails", func() bool { return client.WritePiece(t.Context(), []byte("x"), true) != nil })
}
