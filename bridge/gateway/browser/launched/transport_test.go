//go:build !js && linux

package launched

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A peer is a browser's end of the pipe.
type peer struct {
	t        *testing.T
	commands *bufio.Reader
	answers  *os.File
}

func newPeer(t *testing.T) (*Browser, *peer) {
	t.Helper()
	commands, to, from, answers := pipes(t)
	return newBrowser(to, from), &peer{t, bufio.NewReader(commands), answers}
}

// hears returns what comes before the next NUL.
func (p *peer) hears() string {
	p.t.Helper()
	text, err := p.commands.ReadString(0)
	if err != nil {
		p.t.Error(err)
	}
	return strings.TrimSuffix(text, "\x00")
}

func (p *peer) says(text string) { io.WriteString(p.answers, text) }

// accepts answers what Dial asks. Before that, it says what a dead client has left to be said.
func (p *peer) accepts(left, answer string) {
	p.hears()
	p.says(left)
	var c struct{ ID int64 }
	if err := json.Unmarshal([]byte(p.hears()), &c); err != nil {
		p.t.Error(err)
	}
	p.says(fmt.Sprintf(answer, c.ID) + "\x00")
}

const accepted = `{"id":%d,"result":{}}`

func (b *Browser) dialed(t *testing.T) *Conn {
	t.Helper()
	c, err := b.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read1(t *testing.T, c *Conn, n int64) string {
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

// A client reads message by message, as much of each as it likes.
func TestConn(t *testing.T) {
	b, p := newPeer(t)
	go p.accepts("", accepted)
	c := b.dialed(t)
	long := strings.Repeat("x", 3*readSize)
	go func() {
		p.says("first\x00sec")
		p.says("ond\x00\x00" + long + "\x00" + long + "\x00last\x00half")
		p.answers.Close()
	}()
	for _, want := range []string{"first", "second", "", long, long[:7], "last"} {
		most := int64(1 << 20)
		if len(want) == 7 {
			most = 7 // and leaves the rest
		}
		if got := read1(t, c, most); got != want {
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
	testkit.Ends(t, "the browser's end is known", b.Done())
	if err := c.Write([]byte("{\x00}")); err == nil {
		t.Error("a NUL is sent")
	}
	if _, err := b.Dial(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("dialed once more: %v", err)
	}
}

// A successor begins in the middle of whatever there is, and has the pipe for itself.
func TestDialBeginsAnew(t *testing.T) {
	b, p := newPeer(t)
	go p.accepts("", accepted)
	first := b.dialed(t)
	waits := make(chan error)
	go func() {
		_, err := first.Next()
		waits <- err
	}()
	go func() {
		p.accepts(`d of a message","id":1}`+"\x00"+`{"id":7,"result":{}}`+"\x00"+`{"method":"Runtime.bindingCalled"}`+"\x00",
			accepted)
		p.says("ours\x00")
	}()
	second := b.dialed(t)
	if err := testkit.Receive(t, "who read before is told", waits); err == nil {
		t.Error("the first one reads on")
	}
	first.Close() // late
	if got := read1(t, second, 100); got != "ours" {
		t.Errorf("the second one reads %q", got)
	}
	if err := first.Write([]byte("{}")); err == nil {
		t.Error("the first one writes on")
	}
	if err := second.Write([]byte("{}")); err != nil {
		t.Error(err)
	}
	if got := p.hears(); got != "{}" {
		t.Errorf("the second one says %q", got)
	}
}

// A browser that answers nothing, refuses what begins, or only repeats what it hears.
func TestDialFails(t *testing.T) {
	t.Run("no answer", func(t *testing.T) {
		b, p := newPeer(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			p.hears()
			p.hears()
			cancel()
		}()
		if _, err := b.Dial(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for name, answer := range map[string]string{
		"refused":  `{"id":%d,"error":{"code":-32601,"message":"no such method"}}`,
		"repeated": `{"id":%d,"method":"Target.setAutoAttach"}`,
	} {
		t.Run(name, func(t *testing.T) {
			b, p := newPeer(t)
			go p.accepts("", answer)
			if _, err := b.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "refuses Target.setAutoAttach") {
				t.Error(err)
			}
		})
	}
}
