// Package mcpconn carries whole MCP messages. A Conn is any way into or out of the gateway; Transport makes it one of
// go-sdk's. An Outbox keeps messages for a slow reader without delaying their writer.
//
// It never looks into a message, and opens nothing.
package mcpconn

import "context"

// A Conn carries whole JSON-RPC messages, one per call, as JSON text. Every way into and out of the gateway is one:
// stdio, WebSocket, a CDP binding, native messaging.
//
// Write may be called concurrently with Read and with itself, and may block until the other end takes the message. Read
// returns io.EOF when the other end has closed. Close makes both return, and may be called more than once. The receiver
// owns a message: the sender does not change it any more.
type Conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, message []byte) error
	Close() error
}
