//go:build !js

package keeper

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A client reads message by message, as much of each as it likes, what came with the welcome included.
func TestConn(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	long := strings.Repeat("x", 3*readSize)
	go func() {
		io.WriteString(theirs, "{}\x00first\x00sec")
		io.WriteString(theirs, "ond\x00\x00"+long+"\x00"+long+"\x00last\x00half")
		theirs.Close()
	}()
	said := newFrames(ours, maxFirst)
	if frame, err := said.next(); err != nil || string(frame) != "{}\x00" {
		t.Fatal(string(frame), err)
	}
	c := newConn(ours, said)
	read := func(n int64) string {
		t.Helper()
		from, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(io.LimitReader(from, n))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, want := range []string{"first", "second", "", long, long[:7], "last"} {
		most := int64(1 << 20)
		if len(want) == 7 {
			most = 7 // and leaves the rest
		}
		if got := read(most); got != want {
			t.Errorf("it reads %.20q of %d bytes, want %.20q of %d", got, len(got), want, len(want))
		}
	}
	from, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(from); err != io.ErrUnexpectedEOF {
		t.Errorf("half a message is %q, %v", text, err)
	}
	if _, err := c.Next(); err == nil {
		t.Error("there is more behind the end")
	}
	heard, says := net.Pipe()
	got := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(heard)
		got <- string(text)
	}()
	c = newConn(says, newFrames(says, maxFirst))
	if err := c.Write([]byte("{}")); err != nil {
		t.Error(err)
	}
	if err := c.Write([]byte("{\x00}")); err == nil {
		t.Error("a NUL is sent")
	}
	c.Close()
	if text := testkit.Receive(t, "what was sent", got); text != "{}\x00" {
		t.Errorf("it sends %q", text)
	}
}
