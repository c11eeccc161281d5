package agents

import (
	"bytes"
	"time"
)

const (
	// WriteTimeout is the time after which a stream is cut if its client accepts no data.
	WriteTimeout = 30 * time.Second
	// BodyTimeout bounds the time in which a client sends the body of a request.
	BodyTimeout = 30 * time.Second
	// beginning is the number of bytes that are kept of a message above the limit, to look for its id.
	beginning = 512
)

// oneLine returns a message with spaces for its line ends, which frame messages in stdio and in event streams. JSON
// allows line ends between tokens. A page's answer is passed on as the page wrote it, and must not begin a new line.
func oneLine(message []byte) []byte {
	if bytes.IndexByte(message, '\n') < 0 && bytes.IndexByte(message, '\r') < 0 {
		return message
	}
	clean := bytes.Clone(message)
	for i, c := range clean {
		if c == '\n' || c == '\r' {
			clean[i] = ' '
		}
	}
	return clean
}
