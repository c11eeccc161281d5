package testkit

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// Patience bounds each wait of a test.
	Patience = 90 * time.Second
	// Moment is how long a test looks for an unwanted event: more than two intervals of an engine's
	// updates.
	Moment = 250 * time.Millisecond
)

// Must returns a value, or ends the test with its error: testkit.Must(os.Open(name))(t).
func Must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return value
	}
}

// OK ends the test if an error is not nil.
func OK(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until ok reports true. After Patience it fails the test, with the awaited
// condition and the state of the test's parts. ok is called on the test's goroutine, and may end
// the test.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(Patience); !ok(); time.Sleep(pause) {
		if time.Now().After(end) {
			Unmet(t, what)
		}
		pause = min(pause*2, 20*time.Millisecond)
	}
}

// Settles is Eventually for a function that returns the lack, "" if there is none. A failure shows
// the last lack.
func Settles(t testing.TB, what string, lacks func() string) {
	t.Helper()
	last := ""
	defer func() {
		if last != "" {
			t.Log(last)
		}
	}()
	Eventually(t, what, func() bool {
		last = lacks()
		return last == ""
	})
}

// Receive returns the next value of a channel, and fails the test if none comes or the channel is
// closed.
func Receive[T any](t testing.TB, what string, from <-chan T) (value T) {
	t.Helper()
	select {
	case value, ok := <-from:
		if !ok {
			t.Fatalf("%s: there is no more of it", what)
		}
		return value
	case <-time.After(Patience):
		Unmet(t, what)
		return value
	}
}

// Ends waits until a channel is closed, or has a value.
func Ends[T any](t testing.TB, what string, channel <-chan T) {
	t.Helper()
	select {
	case <-channel:
	case <-time.After(Patience):
		Unmet(t, what)
	}
}

// Addr returns a free loopback address, for a process that the test starts. Its port is below those
// that the system gives to connections and to listeners of port 0, so no other process takes it by
// chance. Addr does not listen on it: a process that starts at that moment would have a copy of the
// listener until it runs, and hold the port. Until the test ends, the port of UDP with the same
// number keeps other tests from the address, also those of other processes.
func Addr(t testing.TB) string {
	t.Helper()
	addr, kept := free()
	if kept == nil {
		t.Fatal("no free port between 12000 and 32000")
	}
	t.Cleanup(func() { kept.Close() })
	return addr
}

// free returns a free address, and what keeps it; nil if there is none.
func free() (addr string, kept net.PacketConn) {
	for range 100 {
		addr = fmt.Sprintf("127.0.0.1:%d", 12_000+rand.IntN(20_000))
		kept, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return addr, kept
		}
		c.Close()
		kept.Close()
	}
	return "", nil
}

// ShortDir returns an empty directory that is removed after the test. The processes with this HOME
// that a test leaves behind when it fails are ended: a passed test has waited for them. Its path is
// short, whatever the test's name: the path of a Unix socket in it may have at most 107 bytes.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pw-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			endProcesses(t, "HOME="+dir)
		}
		// Child processes that have not ended may still write.
		Eventually(t, dir+" is removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	return dir
}

// Home makes an empty directory the user's home and configuration directory while the test runs,
// and returns it. Its path is as short as ShortDir's.
func Home(t testing.TB) string {
	t.Helper()
	dir := ShortDir(t)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	return dir
}

// Endless reads as x after x.
type Endless struct{}

// Read fills p.
func (Endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// NoLeak fails a test that leaves goroutines behind. It must be called before the test starts any.
func NoLeak(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		Settles(t, "no goroutine is left", func() string {
			if runtime.NumGoroutine() <= before {
				return ""
			}
			return stacks()
		})
	})
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// A Log collects output. The zero value is empty. It may be written to and read concurrently.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// LogOf returns a Log whose end is printed, under a name, if the test fails.
func LogOf(t testing.TB, name string) *Log {
	l := &Log{}
	State(t, name+" said", l.String)
	return l
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Has reports whether a text was written.
func (l *Log) Has(text string) bool { return strings.Contains(l.String(), text) }

// Count returns how often a text was written.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Pipes starts a process whose standard input and output are the test's.
func Pipes(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}
