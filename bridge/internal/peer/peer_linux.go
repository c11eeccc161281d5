package peer

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// States of a TCP socket, as the kernel numbers them.
const (
	stateEstablished = 1
	stateListen      = 10
)

// A socket is the kernel's entry of a socket.
type socket struct {
	local, remote netip.AddrPort
	state         uint8
	uid, inode    uint32
}

// connection returns the user of the socket at local that is connected to remote.
func connection(local, remote netip.AddrPort) Who {
	s, err := diag(local, remote)
	// If there is no such connection, the kernel answers with a listener at local: a client's port
	// may have one too.
	return found(s, err, s.state == stateEstablished && s.local == local && s.remote == remote)
}

func listener(addr netip.AddrPort) Who {
	s, err := diag(addr, netip.AddrPortFrom(unspecified(addr.Addr()), 0))
	return found(s, err, s.state == stateListen && s.local.Port() == addr.Port() &&
		(s.local.Addr() == addr.Addr() || s.local.Addr().IsUnspecified()))
}

// found returns the user of s, or Gone if s is not the right socket (it is false).
func found(s socket, err error, it bool) Who {
	switch {
	case errors.Is(err, errNoDiag):
		return Unknown
	case err != nil || !it:
		return Gone
	}
	return owner(s)
}

func unspecified(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// owner returns the user of a socket. A socket has no inode if no process has it open, or none has
// accepted it yet.
func owner(s socket) Who {
	own := uint32(os.Geteuid())
	switch {
	case s.inode == 0:
		return Gone
	case s.uid == own:
		return Same
	case s.uid == 0:
		return Root
	}
	return Other
}

// established reports whether our end of a connection is established.
func established(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		is = err == nil && info.State == stateEstablished
	})
	return err == nil && is
}

// errNoDiag means that the kernel could not be asked: sock_diag is missing or forbidden.
var errNoDiag = errors.New("no sock_diag")

// A request of sock_diag, and its answer: a netlink header, and inet_diag_req_v2 or inet_diag_msg
// (linux/inet_diag.h). Numbers are in the machine's byte order, ports and addresses in the
// network's.
const (
	headerBytes  = 16
	requestBytes = headerBytes + 8 + idBytes
	idBytes      = 48
	answerBytes  = headerBytes + 4 + idBytes + 20
)

// diag asks the kernel for one socket by its addresses. It fails with ENOENT if there is no such
// socket.
func diag(local, remote netip.AddrPort) (socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return socket{}, errNoDiag
	}
	defer unix.Close(fd)
	// The kernel answers before Sendto returns. The limit is for a sandbox that accepts the
	// question and never answers.
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000})
	if err := unix.Sendto(fd, question(local, remote), 0,
		&unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socket{}, errNoDiag
	}
	answer := make([]byte, 4096)
	n, from, err := unix.Recvfrom(fd, answer, 0)
	if kernel, ok := from.(*unix.SockaddrNetlink); err != nil || !ok || kernel.Pid != 0 {
		return socket{}, errNoDiag
	}
	return parseAnswer(answer[:n])
}

func question(local, remote netip.AddrPort) []byte {
	q := make([]byte, requestBytes)
	order := binary.NativeEndian
	order.PutUint32(q[0:], requestBytes)
	order.PutUint16(q[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(q[6:], unix.NLM_F_REQUEST)
	q[headerBytes] = unix.AF_INET6
	if local.Addr().Is4() {
		q[headerBytes] = unix.AF_INET // finds sockets of AF_INET6 at IPv4 addresses, too
	}
	q[headerBytes+1] = unix.IPPROTO_TCP
	order.PutUint32(q[headerBytes+4:], 1<<32-1) // any state
	id := q[headerBytes+8:]
	binary.BigEndian.PutUint16(id[0:], local.Port())
	binary.BigEndian.PutUint16(id[2:], remote.Port())
	copy(id[4:20], local.Addr().AsSlice())
	copy(id[20:36], remote.Addr().AsSlice())
	order.PutUint64(id[40:], 1<<64-1) // no cookie
	return q
}

func parseAnswer(a []byte) (socket, error) {
	order := binary.NativeEndian
	if len(a) < headerBytes+4 {
		return socket{}, errNoDiag
	}
	switch kind := order.Uint16(a[4:]); {
	case kind == unix.NLMSG_ERROR && int32(order.Uint32(a[headerBytes:])) == -int32(unix.ENOENT):
		return socket{}, unix.ENOENT // there is no such socket
	case kind != unix.SOCK_DIAG_BY_FAMILY || len(a) < answerBytes:
		return socket{}, errNoDiag
	}
	body := a[headerBytes:]
	id, rest := body[4:4+idBytes], body[4+idBytes:]
	address := func(b []byte) netip.Addr {
		if body[0] == unix.AF_INET {
			return netip.AddrFrom4([4]byte(b[:4]))
		}
		return netip.AddrFrom16([16]byte(b)).Unmap()
	}
	return socket{
		local:  netip.AddrPortFrom(address(id[4:20]), binary.BigEndian.Uint16(id[0:])),
		remote: netip.AddrPortFrom(address(id[20:36]), binary.BigEndian.Uint16(id[2:])),
		state:  body[1], uid: order.Uint32(rest[12:]), inode: order.Uint32(rest[16:]),
	}, nil
}
