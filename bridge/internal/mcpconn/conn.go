// Package mcpconn carries whole MCP messages. A Conn is any connection of the gateway. An Outbox
// keeps messages for a slow reader, and does not delay their writer.
//
// The package never reads the content of a message, and opens no connection.
package mcpconn

import "context"

// A Conn carries whole JSON-RPC messages, one per call, as JSON text, over stdio, WebSocket, a CDP
// binding or native messaging.
//
// Write may be called concurrently with Read and with itself, and may block until the other end
// takes the message. Read returns io.EOF when the other end has closed. Close makes both return,
// and may be called more than once. The receiver owns a message: the sender must not change it
// after Write.
type Conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, message []byte) error
	Close() error
}
