//go:build !linux

package peer

import (
	"net"
	"net/netip"
)

func connection(netip.AddrPort, netip.AddrPort) Who { return Unknown }

func listener(netip.AddrPort) Who { return Unknown }

func established(*net.TCPConn) bool { return false }
