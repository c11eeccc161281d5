// Package peer asks the kernel for the user at the other end of a TCP connection within this
// machine.
//
// Every user of the machine can connect to a port on 127.0.0.1. In the kernel's tables each end of
// a connection has an entry with a user id; the entry of the other end tells users apart.
//
// By system:
//
//   - Linux: the entry with the connection's two addresses and ports counts if it is ESTABLISHED and has an inode,
//     while our end is ESTABLISHED too. sock_diag asks the kernel; it needs no privilege and takes 5 µs for any number
//     of connections.
//   - macOS, Windows, all others, and a sandbox that forbids sock_diag: the answer is Unknown, and the caller needs
//     another check.
//
// The package never guesses Same: if an entry cannot be seen, or may have changed, the answer is
// Gone.
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
	// Gone means that no process here has the other end: it has closed, or half closed, or is on
	// another machine.
	Gone
	// Root may be a proxy for any user: those of Docker and WSL run as root. To a process of
	// root's, root is Same.
	Root
	// Same is this process's user.
	Same
	// Other is another user of this machine.
	Other
)

func (w Who) String() string {
	return [...]string{"unknown", "gone", "root", "this user", "another user"}[w]
}

// Of returns the user at the other end of a TCP connection. Only the accepting end may ask: at a
// dialled connection, no process may have accepted the other end yet. Ask when it begins: a client
// that has sent and closed is Gone.
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
	// While our end is established the entry is the peer's. Otherwise it may be a later
	// connection's.
	if (who == Same || who == Root) && !established(tcp) {
		return Gone
	}
	return who
}

// OfListener returns the user of the process that listens at an address of this machine; Gone if
// none does.
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

// ConnContext is for an http.Server: it calls Of once for each connection. From returns the answer
// for each request.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, Of(c))
}

// From returns ConnContext's answer; Unknown without one.
func From(ctx context.Context) Who {
	who, _ := ctx.Value(key{}).(Who)
	return who
}

// With returns ctx for requests of a known user, for example in a test.
func With(ctx context.Context, who Who) context.Context {
	return context.WithValue(ctx, key{}, who)
}
