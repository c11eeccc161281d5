package peer

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main()
	os.Exit(m.Run())
}

// listen listens at an address until the test ends.
func listen(t testing.TB, network, addr string) net.Listener {
	t.Helper()
	l := testkit.Must(net.Listen(network, addr))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func accept(t testing.TB, l net.Listener) net.Conn {
	t.Helper()
	c := testkit.Must(l.Accept())(t)
	t.Cleanup(func() { c.Close() })
	return c
}

func dial(t testing.TB, network, addr string) net.Conn {
	t.Helper()
	c := testkit.Must(net.Dial(network, addr))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// Both families of addresses, and their mix: an IPv6 client that dials an IPv4 address is in tcp6.
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
	}
}

func TestAnotherUser(t *testing.T) {
	for _, f := range families {
		l := listen(t, "tcp", f.listenAt)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		other := testkit.OtherUser(t, testkit.Dial, f.dialAt+":"+port)
		in := testkit.Must(other.StdinPipe())(t)
		testkit.OK(t, other.Start())
		c := accept(t, l)
		if got := Of(c); got != Other {
			t.Errorf("%s to %s: %v", f.dialAt, f.listenAt, got)
		}
		c.Close()
		in.Close()
		other.Wait()
	}
}

// A client that sends and closes is Gone when Of looks for it. Its data must not count as this user's.
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

// again connects to a listener, sends, resets, and connects from the same port. It returns nil if another program has
// taken that port in between.
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

// A client that resets a connection frees its port. The port's next owner gets the same entry, and is not the sender.
func TestReusedPort(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	second := again(t, l)
	for ; second == nil; second = again(t, l) { // another program was faster
		accept(t, l).Close()
	}
	defer second.Close()
	c := accept(t, l) // the first connection: it still holds the sent data
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
	}
}

func TestListenerOfAnotherUser(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	addr := addrPort(l.Addr())
	l.Close()
	other := testkit.OtherUser(t, testkit.Squat, addr.String())
	in, _ := other.StdinPipe()
	out, _ := other.StdoutPipe()
	testkit.OK(t, other.Start())
	defer other.Wait()
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "listening\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	if got := OfListener(addr); got != Other {
		t.Errorf("it is %v", got)
	}
}

// Root may be a proxy of any user, and a socket without an inode has no owner.
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

// A short answer is an error.
func TestAnswers(t *testing.T) {
	for _, n := range []int{0, 1, headerBytes, headerBytes + 4, answerBytes - 1} {
		if s, err := parseAnswer(make([]byte, n)); err == nil {
			t.Errorf("%d bytes are taken for %+v", n, s)
		}
	}
}
