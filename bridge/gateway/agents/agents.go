package agents

import (
	"bytes"
	"time"
)

const (
	// WriteTimeout is how long a client may accept no data before its stream is cut.
	WriteTimeout = 30 * time.Second
	// BodyTimeout is how long a client may take to send the body of a request.
	BodyTimeout = 30 * time.Second
	// beginning is how many bytes of a message that is too large are kept, to look for its id.
	beginning = 512
)

// oneLine returns a message without line ends, which frame messages in stdio and in event streams. JSON has them only
// between its tokens. But a page's answer is passed on as the page wrote it, and must not begin a line of its own.
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
