//go:build !js

package keeper

import (
	"bytes"
	"context"
	"net"
	"sync"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/chromedp"
)

// A transport is a client's end: a chromedp.Transport.
type transport struct {
	conn net.Conn
	said *frames

	reader  bytes.Reader
	decoder jsonv2.Decoder

	writing sync.Mutex
	encoder jsonv2.Encoder
	buf     bytes.Buffer
}

func newTransport(conn net.Conn, said *frames) *transport {
	said.limit = maxFromBrowser
	return &transport{conn: conn, said: said}
}

// Read reads the next message. It may be called by one at a time.
func (t *transport) Read(_ context.Context, m *cdproto.Message) error {
	frame, err := t.said.next()
	if err != nil {
		return err
	}
	t.reader.Reset(frame[:len(frame)-1])
	t.decoder.Reset(&t.reader, chromedp.DefaultUnmarshalOptions)
	return jsonv2.UnmarshalDecode(&t.decoder, m, chromedp.DefaultUnmarshalOptions)
}

// Write writes a message.
func (t *transport) Write(_ context.Context, m *cdproto.Message) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	if t.buf.Reset(); t.buf.Cap() > retained {
		t.buf = bytes.Buffer{}
	}
	t.encoder.Reset(&t.buf, chromedp.DefaultMarshalOptions)
	if err := jsonv2.MarshalEncode(&t.encoder, m, chromedp.DefaultMarshalOptions); err != nil {
		return err
	}
	text := t.buf.Bytes()
	text[len(text)-1] = 0 // the encoder ends a text with a newline
	_, err := t.conn.Write(text)
	return err
}

func (t *transport) Close() error { return t.conn.Close() }
