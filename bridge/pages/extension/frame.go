package extension

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

const (
	// maxIn bounds a message of the extension, in bytes: the browser accepts no larger one from it.
	maxIn = 64 << 20
	// maxOut is the largest message that the browser accepts from us: a larger one makes it end the
	// process.
	maxOut = 1 << 20
	// maxPiece bounds the text of one message to the extension, in bytes, so that it always fits
	// into maxOut: a character may take six bytes in JSON.
	maxPiece = (maxOut - 256) / 6
)

type message struct {
	Type    string `json:"type"`
	ID      int64  `json:"id,omitempty"`
	Session int64  `json:"session,omitempty"`
	Text    string `json:"text,omitempty"`
	More    bool   `json:"more,omitempty"`
	Ack     int64  `json:"ack,omitempty"`
	Origin  string `json:"origin,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Version string `json:"version,omitempty"`
	Secret  string `json:"secret,omitempty"`
	Count   int    `json:"count,omitempty"`
}

// errTooLong is a message that is longer than maxIn. It has been skipped.
var errTooLong = errors.New("longer than 64 MiB")

// A reader reads the browser's messages: 32 bits of length, in the machine's byte order, and as
// many bytes of JSON.
type reader struct{ r *bufio.Reader }

func newReader(r io.Reader) *reader { return &reader{bufio.NewReaderSize(r, 64<<10)} }

// next returns the next message. io.EOF is the end between two messages; errTooLong a message that
// has been skipped, after which there may be others.
func (r *reader) next() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("a message ends within its length: %w", err)
		}
		return nil, err
	}
	n := int64(binary.NativeEndian.Uint32(head[:]))
	if n > maxIn {
		if _, err := io.CopyN(io.Discard, r.r, n); err != nil {
			return nil, fmt.Errorf("a message of %d bytes: %w", n, err)
		}
		return nil, errTooLong
	}
	// The length is only a claim. Memory is allocated as bytes arrive.
	text := make([]byte, 0, min(n, 64<<10))
	for int64(len(text)) < n {
		if len(text) == cap(text) {
			text = append(make([]byte, 0, min(n, 2*int64(cap(text)))), text...)
		}
		got, err := r.r.Read(text[len(text):cap(text)])
		text = text[:len(text)+got]
		if err != nil && int64(len(text)) < n {
			return nil, fmt.Errorf("a message of %d bytes ends after %d: %w", n, len(text),
				io.ErrUnexpectedEOF)
		}
	}
	return text, nil
}

// A writer writes messages to the browser. Its methods may be called at the same time.
type writer struct {
	mu sync.Mutex
	w  io.Writer
}

// write sends one message of at most maxOut bytes: only frame cuts texts.
func (w *writer) write(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(text) > maxOut {
		return fmt.Errorf("a message of %d bytes: the browser takes %d", len(text), maxOut)
	}
	framed := binary.NativeEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text)))
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(append(framed, text...))
	return err
}

// frame sends a frame for a document, in pieces if it is long. Other documents' frames may come in
// between.
func (w *writer) frame(id int64, text []byte) error {
	for len(text) > maxPiece {
		n := maxPiece
		for n > maxPiece-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		if err := w.write(message{Type: "frame", ID: id, Text: string(text[:n]),
			More: true}); err != nil {
			return err
		}
		text = text[n:]
	}
	return w.write(message{Type: "frame", ID: id, Text: string(text)})
}
