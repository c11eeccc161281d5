//go:build linux

package launched

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
	kept := testkit.Must(duplicate(to, from))(t)
	t.Cleanup(func() { kept.close(); theirs.Close(); answers.Close() })
	return newPipe(kept), bufio.NewReader(theirs), answers
}

func connect(t *testing.T, p *Pipe) *Conn {
	t.Helper()
	return testkit.Must(p.Dial(t.Context()))(t)
}

// answer reads Dial's commands, and answers after left, the messages that a dead client has not read.
func answer(t *testing.T, commands *bufio.Reader, answers io.Writer, left, format string) {
	_, err := commands.ReadString(0)
	text, err2 := commands.ReadString(0)
	var c struct{ ID int64 }
	if err := errors.Join(err, err2, json.Unmarshal([]byte(strings.TrimSuffix(text, "\x00")), &c)); err != nil {
		t.Error(err)
	}
	fmt.Fprintf(answers, left+format+"\x00", c.ID)
}

// A client reads messages, in whole or in part, after the rest that an earlier client has left.
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
	testkit.Ends(t, "the browser's end is known", p.Done())
	if err := c.Write([]byte("{\x00}")); err == nil {
		t.Error("a NUL is sent")
	}
	if _, err := p.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "it has ended") {
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

// open counts the open descriptors of this process.
func open(t *testing.T) int {
	t.Helper()
	all := testkit.Must(os.ReadDir("/proc/self/fd"))(t)
	return len(all)
}

// Only two ends of pipes are accepted. Other descriptors are closed.
func TestWhatIsNoPipeIsRefused(t *testing.T) {
	p, _, _ := newPeer(t)
	to, from := p.ends[0], p.ends[1]
	opened := func(path string, flags int) int {
		fd := testkit.Must(unix.Open(path, flags|unix.O_CLOEXEC, 0o600))(t)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		notice notice
		fds    []int
		taken  bool
	}{
		"a pipe":             {holds | injects, []int{to, from}, true},
		"none":               {holds, nil, false},
		"one":                {holds, []int{to}, false},
		"three":              {holds, []int{to, from, from}, false},
		"seven":              {holds, []int{to, from, from, from, from, from, from}, false},
		"both to read":       {holds, []int{from, from}, false},
		"exchanged":          {holds, []int{from, to}, false},
		"a file":             {holds, []int{opened(filepath.Join(dir, "file"), unix.O_CREAT|unix.O_WRONLY), from}, false},
		"a directory":        {holds, []int{to, opened(dir, unix.O_RDONLY)}, false},
		"a device":           {holds, []int{opened("/dev/null", unix.O_WRONLY), opened("/dev/null", unix.O_RDONLY)}, false},
		"without being said": {wants, []int{to, from}, false},
		"nothing at all":     {0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := open(t)
			a, b, err := Sockets()
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := a.WriteMsgUnix([]byte{byte(c.notice)}, unix.UnixRights(c.fds...), nil); err != nil {
				t.Fatal(err)
			}
			n, e, err := receive(b)
			if (err == nil) != c.taken || c.taken && n != c.notice {
				t.Errorf("it takes %v, %v, %v", n, e, err)
			}
			if e != nil {
				if !e.same(p.ends) {
					t.Error("another pipe has come")
				}
				e.close()
			}
			a.Close()
			if _, _, err := receive(b); err == nil {
				t.Error("there is more behind the end")
			}
			b.Close()
			if after := open(t); after != before {
				t.Errorf("%d descriptors are open, and %d were before", after, before)
			}
		})
	}
}
