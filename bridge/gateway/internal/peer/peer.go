// Package peer asks the kernel for the user at the other end of a TCP connection within this machine.
//
// Loopback is open to every user: all who have an account on the machine can connect to a port on 127.0.0.1. The
// connection's own entry in the kernel's tables, seen from the other end, has a user id, which tells them apart.
//
// By system:
//
//   - Linux: the entry of the connection, by its two addresses and ports, in the state ESTABLISHED and with an inode, while
//     our end is ESTABLISHED too. The kernel is asked directly (sock_diag, which needs no privilege and takes 5 µs whatever
//     the number of connections).
//   - macOS, Windows, all others, and a sandbox that forbids sock_diag: nothing. The answer is Unknown, and the caller
//     needs another check.
//
// The package never guesses Same: of an entry that cannot be seen, or may have changed, the answer is Gone.
package peer

import (
	"context"
	"net"
	"net/netip"
)

// Who is a user in relation to this process.
type Who uint8

const (
	// Unknown means that the kernel does not tell.
	Unknown Who = iota
	// Gone means that no process here has the other end: it has closed, or half closed, or is on another machine.
	Gone
	// Root may be a proxy of any user: those of Docker and WSL are root's. To a process of root's, root is Same.
	Root
	// Same is this process's user.
	Same
	// Other is another user of this machine.
	Other
)

func (w Who) String() string {
	return [...]string{"unknown", "gone", "root", "this user", "another user"}[w]
}

// Of returns the user at the other end of a TCP connection. Only the accepting end may ask: one that was dialled may
// belong to no process yet. Ask when it begins: a client that has sent and closed is Gone.
func Of(c net.Conn) Who {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = wrapped.NetConn()
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return Unknown
	}
	ours, theirs := addrPort(c.LocalAddr()), addrPort(c.RemoteAddr())
	if !ours.IsValid() || !theirs.IsValid() {
		return Unknown
	}
	who := connection(theirs, ours)
	// While our end is established the entry is the peer's. Otherwise it may be a later connection's.
	if (who == Same || who == Root) && !established(tcp) {
		return Gone
	}
	return who
}

// OfListener returns the user of the process that listens at an address of this machine; Gone if none does.
func OfListener(addr netip.AddrPort) Who {
	return listener(netip.AddrPortFrom(addr.Addr().Unmap().WithZone(""), addr.Port()))
}

func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

type key struct{}

// ConnContext is for an http.Server: it asks once for each connection. From gives the answer to each of its requests.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, Of(c))
}

// From returns ConnContext's answer; Unknown without one.
func From(ctx context.Context) Who {
	who, _ := ctx.Value(key{}).(Who)
	return who
}

// With is ctx for requests of a known user, as in a test.
func With(ctx context.Context, who Who) context.Context { return context.WithValue(ctx, key{}, who) }
