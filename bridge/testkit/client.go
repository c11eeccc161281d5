package testkit

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// TakesLittle returns a client whose connections have read buffers of 4 KiB in the kernel: a server
// soon notices if it reads nothing.
func TakesLittle(t testing.TB) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, network,
		addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
