//go:build linux

package launched

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// newPeer returns a pipe, and the browser's ends of it.
func newPeer(t *testing.T) (p *Pipe, commands *bufio.Reader, answers *os.File) {
	t.Helper()
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p = newPipe(to, from)
	t.Cleanup(func() { p.close(); theirs.Close(); answers.Close() })
	return p, bufio.NewReader(theirs), answers
}

func connect(t *testing.T, p *Pipe) *Conn {
	t.Helper()
	return testkit.Must(p.Dial(t.Context()))(t)
}

// answer reads Dial's commands, and answers after left, the messages that an earlier Conn has not
// read.
func answer(t *testing.T, commands *bufio.Reader, answers io.Writer, left, format string) {
	_, err := commands.ReadString(0)
	text, err2 := commands.ReadString(0)
	var c struct{ ID int64 }
	if err := errors.Join(err, err2, json.Unmarshal([]byte(strings.TrimSuffix(text, "\x00")), &c)); err != nil {
		t.Error(err)
	}
	fmt.Fprintf(answers, left+format+"\x00", c.ID)
}

// A Conn reads messages, in whole or in part, after the rest that an earlier one has left.
func TestConn(t *testing.T) {
	p, commands, answers := newPeer(t)
	long := strings.Repeat("x", 3*readSize)
	go func() {
		answer(t, commands, answers, `d of a message","id":1}`+"\x00"+`{"id":7,"result":{}}`+"\x00", `{"id":%d,"result":{}}`)
		io.WriteString(answers, "first\x00sec")
		io.WriteString(answers, "ond\x00\x00"+long+"\x00"+long+"\x00last\x00half")
		answers.Close()
	}()
	c := connect(t, p)
	for _, want := range []string{"first", "second", "", long, long[:7], "last"} {
		most := int64(1 << 20)
		if len(want) == 7 {
			most = 7 // and leaves the rest
		}
		from := testkit.Must(c.Next())(t)
		if got, err := io.ReadAll(io.LimitReader(from, most)); err != nil || string(got) != want {
			t.Errorf("it reads %.20q of %d bytes, %v; want %.20q of %d", got, len(got), err, want, len(want))
		}
	}
	from := testkit.Must(c.Next())(t)
	if text, err := io.ReadAll(from); err != io.ErrUnexpectedEOF {
		t.Errorf("half a message is %q, %v", text, err)
	}
	if _, err := c.Next(); err == nil {
		t.Error("there is more behind the end")
	}
	if err := c.Write([]byte("{\x00}")); err == nil {
		t.Error("a NUL is sent")
	}
	c.Close()
	if _, err := p.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "reach the launched browser") {
		t.Errorf("dialed once more: %v", err)
	}
}

// The browser does not answer, or refuses Dial's command.
func TestDialFails(t *testing.T) {
	p, commands, answers := newPeer(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		answer(t, commands, io.Discard, "", "%d")
		cancel()
	}()
	if _, err := p.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go answer(t, commands, answers, "", `{"id":%d,"error":{"code":-32601,"message":"no such method"}}`)
	if _, err := p.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "refuses Target.setAutoAttach") {
		t.Error(err)
	}
}

// Each address has startTime of its own: a busy machine takes longer for all of them together.
func TestManyAddresses(t *testing.T) {
	for takes, want := range map[time.Duration]string{
		startTime - time.Second: "<nil>", startTime + time.Second: "open address 2: not within 30s"} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			s := &Started{Pipe: newPipe(ours, ours)}
			var browser sync.WaitGroup
			browser.Go(func() {
				commands := bufio.NewReader(theirs)
				answer(t, commands, theirs, "", `{"id":%d,"result":{}}`)
				for {
					text, err := commands.ReadString(0)
					var c struct{ ID int64 }
					if err != nil || json.Unmarshal([]byte(strings.TrimSuffix(text, "\x00")), &c) != nil {
						return
					}
					time.Sleep(takes)
					fmt.Fprintf(theirs, `{"id":%d,"result":{}}`+"\x00", c.ID)
				}
			})
			err := s.prepare(t.Context(), Options{Open: strings.Fields("a b c d")})
			if fmt.Sprint(err) != want {
				t.Errorf("if an address takes %v: %v", takes, err)
			}
			s.Pipe.close()
			browser.Wait()
		})
	}
}
