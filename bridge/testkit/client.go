package testkit

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// TakesLittle is a client whose connections have small buffers in the kernel: a server soon notices that it reads
// nothing.
func TakesLittle(t testing.TB) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
