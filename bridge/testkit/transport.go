package testkit

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Transport makes a connection of the gateway (mcpconn.Conn) a transport for a client or a server
// of go-sdk.
func Transport(conn conn) mcp.Transport { return transport{conn} }

type conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, message []byte) error
	Close() error
}

type transport struct{ conn conn }

func (t transport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

func (t transport) SessionID() string { return "" }

func (t transport) Read(ctx context.Context) (jsonrpc.Message, error) {
	text, err := t.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	return jsonrpc.DecodeMessage(text)
}

func (t transport) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return t.conn.Write(ctx, text)
}

func (t transport) Close() error { return t.conn.Close() }
