//go:build !js && linux

package launched

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// sockets are the two ends of a connection between processes.
func sockets(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		conn, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		conns[i] = conn.(*net.UnixConn)
		t.Cleanup(func() { conn.Close() })
	}
	return conns[0], conns[1]
}

// open is how many descriptors this process has.
func open(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func pipe(t *testing.T) (to, from *os.File) {
	t.Helper()
	_, to, from, _ = pipes(t)
	return to, from
}

// pipes are the two of a browser, with its own ends.
func pipes(t *testing.T) (commands, to, from, answers *os.File) {
	t.Helper()
	commands, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, answers, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{commands, to, from, answers} {
		t.Cleanup(func() { f.Close() })
	}
	return commands, to, from, answers
}

func TestEndsTravel(t *testing.T) {
	a, b := sockets(t)
	ours, err := keep(pipe(t))
	if err != nil {
		t.Fatal(err)
	}
	defer ours.close()
	sender, receiver := &channel{conn: a}, &channel{conn: b}
	// Notices before and behind are not mixed up with those that have ends.
	for _, n := range []notice{{}, {Browser: true, Inject: true}, {Start: true}, {Browser: true}} {
		var e *ends
		if n.Browser {
			e = ours
		}
		if err := sender.send(n, e); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []notice{{}, {Browser: true, Inject: true}, {Start: true}, {Browser: true}} {
		n, e, err := receiver.receive()
		if err != nil || n != want || (e != nil) != want.Browser {
			t.Fatalf("%+v, %v, %v, want %+v", n, e, err, want)
		}
		if e == nil {
			continue
		}
		if !e.same(ours) {
			t.Error("they are of another pipe")
		}
		for _, fd := range e {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("programs inherit %d: %v, %v", fd, flags, err)
			}
		}
		e.close()
	}
}

// Whatever comes in place of two ends of pipes is refused, and stays open nowhere.
func TestWhatIsNoPipeIsRefused(t *testing.T) {
	to, from := pipe(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	opened := func(path string, flags int) *os.File {
		f, err := os.OpenFile(path, flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	const whole = `{"browser":true}` + "\n"
	for name, c := range map[string]struct {
		text  string
		files []*os.File
	}{
		"none":                   {whole, nil},
		"one":                    {whole, []*os.File{to}},
		"three":                  {whole, []*os.File{to, from, from}},
		"seven":                  {whole, []*os.File{to, from, from, from, from, from, from}},
		"both to read":           {whole, []*os.File{from, from}},
		"exchanged":              {whole, []*os.File{from, to}},
		"a file":                 {whole, []*os.File{opened(file, os.O_CREATE|os.O_WRONLY), from}},
		"a directory":            {whole, []*os.File{to, opened(dir, os.O_RDONLY)}},
		"a device":               {whole, []*os.File{opened("/dev/null", os.O_WRONLY), opened("/dev/null", os.O_RDONLY)}},
		"without being said":     {"{}\n", []*os.File{to, from}},
		"text that is no JSON":   {"browser\n", []*os.File{to, from}},
		"text that does not end": {string(make([]byte, 2*maxNotice)), []*os.File{to, from}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := sockets(t)
			before := open(t)
			var fds []int
			for _, f := range c.files {
				raw, err := f.SyscallConn()
				if err != nil {
					t.Fatal(err)
				}
				raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
			}
			if _, _, err := a.WriteMsgUnix([]byte(c.text), unix.UnixRights(fds...), nil); err != nil {
				t.Fatal(err)
			}
			a.CloseWrite()
			if n, e, err := (&channel{conn: b}).receive(); err == nil {
				t.Errorf("it takes %+v, %v", n, e)
			}
			if after := open(t); after != before {
				t.Errorf("%d descriptors are open, and %d were before", after, before)
			}
		})
	}
}

// A connection whose other end goes in the middle of a notice ends, with what has come.
func TestHalfANotice(t *testing.T) {
	a, b := sockets(t)
	ours, err := keep(pipe(t))
	if err != nil {
		t.Fatal(err)
	}
	defer ours.close()
	before := open(t)
	if err := write(a, []byte(`{"browser":tr`), ours); err != nil {
		t.Fatal(err)
	}
	a.CloseWrite()
	if _, _, err := (&channel{conn: b}).receive(); err == nil {
		t.Error("half a notice is one")
	}
	if after := open(t); after != before {
		t.Errorf("%d descriptors are open, and %d were before", after, before)
	}
}
