package peer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main()
	os.Exit(m.Run())
}

// listen listens at an address, and ends with the test.
func listen(t testing.TB, network, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func accept(t testing.TB, l net.Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func dial(t testing.TB, network, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// procOf is Of by the tables in /proc, for kernels that are not to be asked.
func procOf(c net.Conn) Who {
	theirs, ours := addrPort(c.RemoteAddr()), addrPort(c.LocalAddr())
	s, err := scan(theirs.Addr(), func(s socket) bool {
		return s.state == stateEstablished && s.local == theirs && s.remote == ours
	})
	return found(s, err, true)
}

// Each family of addresses, and the mix of both: a client of IPv6 that connects with an address of IPv4 is in tcp6.
var families = []struct{ listenAt, dialAt, network string }{
	{"127.0.0.1:0", "127.0.0.1", "tcp4"},
	{"[::1]:0", "[::1]", "tcp6"},
	{"[::]:0", "127.0.0.1", "tcp"},
	{"[::]:0", "[::ffff:127.0.0.1]", "tcp"},
	{"127.0.0.1:0", "[::ffff:127.0.0.1]", "tcp"},
	{"[::]:0", "127.9.8.7", "tcp"},
}

func TestThisUser(t *testing.T) {
	for _, f := range families {
		l := listen(t, "tcp", f.listenAt)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		dial(t, f.network, f.dialAt+":"+port)
		c := accept(t, l)
		if got := Of(c); got != Same {
			t.Errorf("%s to %s: %v", f.dialAt, f.listenAt, got)
		}
		if got := procOf(c); got != Same {
			t.Errorf("%s to %s, by /proc: %v", f.dialAt, f.listenAt, got)
		}
	}
}

func TestAnotherUser(t *testing.T) {
	for _, f := range families {
		l := listen(t, "tcp", f.listenAt)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		other := testkit.OtherUser(t, testkit.Dial, f.dialAt+":"+port)
		in, err := other.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		c := accept(t, l)
		if got := Of(c); got != Other {
			t.Errorf("%s to %s: %v", f.dialAt, f.listenAt, got)
		}
		if got := procOf(c); got != Other {
			t.Errorf("%s to %s, by /proc: %v", f.dialAt, f.listenAt, got)
		}
		c.Close()
		in.Close()
		other.Wait()
	}
}

// Who sends and closes is gone when it is looked for. What it has sent can still be read, and must not count as this
// user's.
func TestWhoHasClosed(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"closed":      func(c net.Conn) { c.Close() },
		"half closed": func(c net.Conn) { c.(*net.TCPConn).CloseWrite() },
		"reset": func(c net.Conn) {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, "tcp", "127.0.0.1:0")
			d := dial(t, "tcp", l.Addr().String())
			if _, err := io.WriteString(d, "GET / HTTP/1.1\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			end(d)
			c := accept(t, l)
			if got := Of(c); got != Gone {
				t.Errorf("it is %v", got)
			}
		})
	}
}

// again connects to a listener, sends, resets, and connects from the same port. It returns nil where another program
// has taken that port in between.
func again(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	first := dial(t, "tcp", l.Addr().String())
	io.WriteString(first, "GET / HTTP/1.1\r\n\r\n")
	first.(*net.TCPConn).SetLinger(0)
	first.Close()
	second, err := (&net.Dialer{LocalAddr: first.LocalAddr()}).Dial("tcp", l.Addr().String())
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return second
}

// Who resets a connection frees its port, and whoever takes that next has the same entry: it is not who had sent.
func TestReusedPort(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	second := again(t, l)
	for ; second == nil; second = again(t, l) { // another program was faster
		accept(t, l).Close()
	}
	defer second.Close()
	c := accept(t, l) // the first: it waits with what it has sent
	if text, _ := bufio.NewReader(c).ReadString('\n'); text == "" {
		t.Log("this kernel drops what a connection that is reset has sent")
	}
	if s, err := diag(addrPort(c.RemoteAddr()), addrPort(c.LocalAddr())); err != nil || owner(s) != Same {
		t.Fatalf("the second has no such entry: %+v, %v", s, err)
	}
	if got := Of(c); got != Gone {
		t.Errorf("the first is %v", got)
	}
	if got := Of(accept(t, l)); got != Same {
		t.Errorf("the second is %v", got)
	}
}

func TestNoTCP(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if got := Of(a); got != Unknown {
		t.Errorf("a pipe is %v", got)
	}
}

func TestListeners(t *testing.T) {
	ours := listen(t, "tcp", "127.0.0.1:0")
	wide := listen(t, "tcp", "[::]:0")
	free := listen(t, "tcp", "127.0.0.1:0")
	free.Close()
	at := func(l net.Listener) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), addrPort(l.Addr()).Port())
	}
	for what, c := range map[string]struct {
		at   netip.AddrPort
		want Who
	}{
		"ours":                {at(ours), Same},
		"at every address":    {at(wide), Same},
		"at ::1":              {netip.AddrPortFrom(netip.IPv6Loopback(), addrPort(wide.Addr()).Port()), Same},
		"nobody":              {at(free), Gone},
		"at another address":  {netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), at(ours).Port()), Gone},
		"a mapped address":    {netip.AddrPortFrom(netip.MustParseAddr("::ffff:127.0.0.1"), at(ours).Port()), Same},
		"no address, no port": {netip.AddrPort{}, Gone},
	} {
		if got := OfListener(c.at); got != c.want {
			t.Errorf("%s, %v: %v, want %v", what, c.at, got, c.want)
		}
		if !c.at.IsValid() {
			continue
		}
		addr := netip.AddrPortFrom(c.at.Addr().Unmap(), c.at.Port())
		s, err := scan(addr.Addr(), func(s socket) bool { return listensAt(s, addr) })
		if got := found(s, err, true); got != c.want {
			t.Errorf("%s, %v, by /proc: %v, want %v", what, c.at, got, c.want)
		}
	}
}

func TestListenerOfAnotherUser(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	addr := addrPort(l.Addr())
	l.Close()
	other := testkit.OtherUser(t, testkit.Squat, addr.String())
	in, _ := other.StdinPipe()
	out, _ := other.StdoutPipe()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "listening\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	if got := OfListener(addr); got != Other {
		t.Errorf("it is %v", got)
	}
}

// Root is in the way for anybody, and who has no inode is nobody.
func TestOwners(t *testing.T) {
	own := uint32(os.Geteuid())
	for _, c := range []struct {
		socket
		want Who
	}{
		{socket{uid: own, inode: 1}, Same},
		{socket{uid: own, inode: 0}, Gone},
		{socket{uid: own + 1, inode: 1}, Other},
		{socket{uid: own + 1, inode: 0}, Gone},
		{socket{uid: 0, inode: 0}, Gone},
	} {
		if got := owner(c.socket); got != c.want {
			t.Errorf("%+v is %v, want %v", c.socket, got, c.want)
		}
	}
	if own != 0 {
		if got := owner(socket{uid: 0, inode: 1}); got != Root {
			t.Errorf("root is %v", got)
		}
	}
}

// Rows as they come, and as they should not.
func TestRows(t *testing.T) {
	const good = "   1: 0100007F:1D09 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 " +
		"0000000000000000 20 4 30 10 -1"
	s, ok := parseRow(good)
	want := socket{netip.MustParseAddrPort("127.0.0.1:7433"), netip.MustParseAddrPort("127.0.0.1:50000"), 1, 1000, 4711}
	if !ok || s != want {
		t.Errorf("%+v, %v; want %+v", s, ok, want)
	}
	s, ok = parseRow(strings.Replace(good, "0100007F:1D09", "0000000000000000FFFF00000100007F:1D09", 1))
	if !ok || s.local != want.local {
		t.Errorf("a mapped address is %v, %v", s.local, ok)
	}
	for _, bad := range []string{"", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   " +
		"uid  timeout inode",
		strings.Repeat("x ", 20), strings.Replace(good, "7F:1D09", "7F1D09", 1),
		strings.Replace(good, "7F:1D09", "7F:1D0999", 1),
		strings.Replace(good, "0100007F:1D09", "007F:1D09", 1), strings.Replace(good, " 1000 ", " -1 ", 1),
		strings.Replace(good, " 4711 ", " 99999999999 ", 1), good[:90]} {
		if s, ok := parseRow(bad); ok {
			t.Errorf("%q is taken for %+v", bad, s)
		}
	}
	for _, table := range []string{strings.Repeat("x", 1<<20), "\x00\n" + good, strings.Repeat("\n", 1000)} {
		scanTable(strings.NewReader(table), func(s socket) bool { return s == want })
	}
}

// What the kernel should not answer is no answer.
func TestAnswers(t *testing.T) {
	for _, n := range []int{0, 1, headerBytes, headerBytes + 4, answerBytes - 1} {
		if s, err := parseAnswer(make([]byte, n)); err == nil {
			t.Errorf("%d bytes are taken for %+v", n, s)
		}
	}
}

// table has n rows, and the one that is looked for last.
func table(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%4d: 0100007F:%04X 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 "+
			"%d 1 0000000000000000 20 4 30 10 -1\n", i, i, i+1)
	}
	return b.String()
}

func BenchmarkOf(b *testing.B) {
	l := listen(b, "tcp", "127.0.0.1:0")
	dial(b, "tcp", l.Addr().String())
	c := accept(b, l)
	b.Run("sock_diag", func(b *testing.B) {
		for b.Loop() {
			if Of(c) != Same {
				b.Fatal("it is not known")
			}
		}
	})
	b.Run("proc", func(b *testing.B) {
		for b.Loop() {
			procOf(c)
		}
	})
}

func BenchmarkTable(b *testing.B) {
	text := table(10_000)
	b.Run("10000", func(b *testing.B) {
		for b.Loop() {
			scanTable(strings.NewReader(text), func(s socket) bool { return s.inode == 10_001 })
		}
	})
}

// With as many connections as a busy machine has.
func BenchmarkAmongThousands(b *testing.B) {
	l := listen(b, "tcp", "127.0.0.1:0")
	for range 5000 {
		dial(b, "tcp", l.Addr().String())
		accept(b, l)
	}
	dial(b, "tcp", l.Addr().String())
	c := accept(b, l)
	b.Run("sock_diag", func(b *testing.B) {
		for b.Loop() {
			Of(c)
		}
	})
	b.Run("proc", func(b *testing.B) {
		for b.Loop() {
			procOf(c)
		}
	})
}
