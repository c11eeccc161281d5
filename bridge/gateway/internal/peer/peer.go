//go:build !js

// Package peer says whose process is at the other end of a TCP connection within this machine, by the kernel's word.
//
// Loopback is every user's: a port on 127.0.0.1 is reached by all who have an account on the machine. What tells them
// apart is the connection's own entry in the kernel's tables, seen from the other end, which carries a user id.
//
// What is checked, by system:
//
//   - Linux: the entry of the connection, by its two addresses and ports, in the state ESTABLISHED and with an inode,
//     while our end is ESTABLISHED too. The kernel is asked directly (sock_diag, which needs no privilege and takes 5 µs
//     whatever the number of connections).
//   - macOS, Windows, all others, and a sandbox that forbids sock_diag: nothing. The answer is Unknown, and something
//     else has to decide.
//
// The package never answers Same on a guess: what cannot be seen, or may have changed meanwhile, is Gone. It looks at
// no process, reads no name, and closes nothing.
package peer

import (
	"context"
	"net"
	"net/netip"
)

// Who is a user, as seen from this process.
type Who uint8

const (
	// Unknown is anybody, where the kernel does not tell.
	Unknown Who = iota
	// Gone is who has closed, or half closed, the connection, or is on another machine: no process here holds its end.
	Gone
	// Root may be in the way for anybody: the proxies of Docker and WSL are root's. To a process of root's, root is
	// Same.
	Root
	// Same is the user as whom this process runs.
	Same
	// Other is another user of this machine.
	Other
)

func (w Who) String() string {
	return [...]string{"unknown", "gone", "root", "this user", "another user"}[w]
}

// Of says who is at the other end of a TCP connection. It is for the end that has accepted: one that was dialled may
// not have been accepted yet, and is nobody's until then. Ask when the connection begins: who has sent and closed is
// Gone.
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
	// While our end is established nobody else can have their address and port towards us. When it is not, the entry
	// that was found may be a later connection's, by somebody else.
	if (who == Same || who == Root) && !established(tcp) {
		return Gone
	}
	return who
}

// OfListener says whose process listens where a connection to an address of this machine would end; Gone if none does.
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

// ConnContext is http.Server's: it asks once for each connection, for Who to give to each of its requests.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, Of(c))
}

// From gives what ConnContext has found out, and Unknown where it was not asked.
func From(ctx context.Context) Who {
	who, _ := ctx.Value(key{}).(Who)
	return who
}

// With is ctx for requests of somebody who is known otherwise, as by a test.
func With(ctx context.Context, who Who) context.Context { return context.WithValue(ctx, key{}, who) }
