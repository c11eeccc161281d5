package agents

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// settleTime bounds the time that Lines waits for the last answers after the end of the input.
const settleTime = 700 * time.Millisecond

// ErrNotRead is the error of Lines if its agent sends requests and does not read the answers.
var ErrNotRead = errors.New("the agent does not read what it asks for")

// Lines serves an agent whose session has begun, and ends the session. in and out carry JSON-RPC
// messages, one per line (the stdio transport of either era). A line may begin with a byte order
// mark, and end in CR LF; blank lines are skipped. An invalid line, or a line of more than most
// bytes, is answered with an error. The rest of such a long line is not held in memory.
//
// Lines returns nil when the gateway closes, or at the end of in, after at most 700 ms for the
// answers to earlier requests. It returns the error of in or out at once; ErrNotRead when 64 MiB
// wait to be read; ctx's cause when ctx ends, after an answer to the agent's requests and listens.
// It returns within a second. A Read of in or a Write to out that is under way then goes on until
// the owner of in or out closes it.
func Lines(ctx context.Context, agent *gateway.Agent, most int, in io.Reader, out io.Writer) error {
	defer agent.Close()
	var err error
	read := make(chan error, 1)
	go func() { read <- readLines(agent, in, most) }()
	s := &lineWriter{agent: agent, wrote: make(chan struct{}, 1), done: make(chan struct{})}
	go s.run(out)

	select {
	case <-s.done:
		return s.err
	case <-agent.Done():
		s.wait(nil)
		return s.endReason()
	case <-ctx.Done():
		agent.Dismiss()
		s.wait(nil)
		return context.Cause(ctx)
	case err = <-read:
	}
	if errors.Is(err, io.ErrClosedPipe) { // from the session, not from in
		s.wait(nil)
		return s.endReason()
	}
	if err == nil { // otherwise the agent is gone
		// Requests that wait for the first look at a browser are answered in time.
		defer time.AfterFunc(settleTime/2, agent.Proceed).Stop()
		s.wait(agent.Settled)
	}
	return err
}

// atOnce is how many messages are handed over together at most: meanwhile all others wait.
const atOnce = 16

// readLines hands the lines of in to the agent's session. It returns nil at the end of in, and
// io.ErrClosedPipe when the session has ended.
//
// Lines that have come together are handed over together. After this process has stood still they
// may be a call and its withdrawal, and a page that gets the call alone runs it.
func readLines(agent *gateway.Agent, in io.Reader, most int) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	var messages [][]byte
	for {
		line, over, err := readLine(lines, most)
		// Programs on Windows begin with a byte order mark. RFC 8259, section 8.1, allows it to be
		// ignored.
		line = bytes.TrimPrefix(bytes.TrimRight(line, "\r\n"), []byte("\ufeff"))
		if !over && len(bytes.TrimSpace(line)) > 0 {
			messages = append(messages, line)
		}
		if over || err != nil || len(messages) == atOnce || !hasLine(lines) {
			if agent.WriteAll(messages) != nil {
				return io.ErrClosedPipe
			}
			messages = nil
		}
		if over && agent.Oversize(line) != nil {
			return io.ErrClosedPipe
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// hasLine reports whether a whole line has been read ahead.
func hasLine(r *bufio.Reader) bool {
	ahead, _ := r.Peek(r.Buffered())
	return bytes.IndexByte(ahead, '\n') >= 0
}

// ends leaves out of a message what Agent.Oversize does not look at. It changes the message.
func ends(m []byte) []byte {
	if len(m) <= 2*bridge.PeekBytes {
		return m
	}
	return append(m[:bridge.PeekBytes], m[len(m)-bridge.PeekBytes:]...)
}

// readLine returns the next line with its line end. If the line has more than most bytes, it
// returns the beginning and the end, and over is true. The last line may come with io.EOF.
func readLine(r *bufio.Reader, most int) (line []byte, over bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if over = over || len(line) > most+len("\r\n"); over {
			line = bytes.Clone(ends(line)) // so that the rest is freed
		}
		if err != bufio.ErrBufferFull {
			return line, over, err
		}
	}
}

// A lineWriter writes the messages to an agent, one per line.
type lineWriter struct {
	agent *gateway.Agent
	wrote chan struct{} // signals that a message has been written
	done  chan struct{} // closed when run has ended
	err   error         // of out; set before done is closed
}

func (s *lineWriter) run(out io.Writer) {
	defer close(s.done)
	w := bufio.NewWriterSize(out, 64<<10)
	for {
		message, err := s.agent.Read(context.Background())
		if err != nil {
			return // the session has ended
		}
		w.Write(oneLine(message))
		w.WriteByte('\n')
		if s.err = w.Flush(); s.err != nil { // Flush also returns an error of the two writes
			return
		}
		select {
		case s.wrote <- struct{}{}:
		default:
		}
	}
}

// wait waits until settled (nil: never) reports true and the messages are written, at most
// settleTime.
func (s *lineWriter) wait(settled func() bool) {
	over := time.NewTimer(settleTime)
	defer over.Stop()
	for settled == nil || !settled() {
		select {
		case <-s.done:
			return
		case <-over.C:
			return
		case <-s.wrote:
		}
	}
	// The last message may still be on its way to out.
	s.agent.Close()
	select {
	case <-s.done:
	case <-over.C:
	}
}

// endReason is the error of Lines after the session has ended by itself.
func (s *lineWriter) endReason() error {
	select {
	case <-s.done:
		return s.err // if out has not failed, the gateway has closed
	default: // a write to out hangs
		return ErrNotRead
	}
}
