package agents

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
)

// settleTime is how long Lines waits for the last answers when the input has ended.
const settleTime = 700 * time.Millisecond

// ErrNotRead is the error of Lines if its agent asks and does not read the answers.
var ErrNotRead = errors.New("the agent does not read what it asks for")

// Lines serves an agent whose session has begun, and ends the session. in and out carry JSON-RPC messages, one per line
// (the stdio transport of either era). A line may end in CR LF; blank lines are skipped. An invalid line, or one above
// most bytes, is answered with an error. A long line is not held in memory.
//
// It returns nil at the end of in, after at most 700 ms for the answers to earlier requests, and nil when the gateway
// closes. It returns the error of in or out, ErrNotRead when 64 MiB wait to be read, and the context's error when that
// ends, after it has ended the agent's requests and listens in order. It returns within a second, but cannot end a Read
// of in or a Write to out that is under way: those end when their owner closes them.
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
		return s.end()
	case <-ctx.Done():
		agent.Dismiss()
		s.wait(nil)
		return context.Cause(ctx)
	case err = <-read:
	}
	if errors.Is(err, io.ErrClosedPipe) { // from the session, not from in
		s.wait(nil)
		return s.end()
	}
	s.wait(agent.Settled)
	return err
}

// readLines hands over each line of in. It returns nil at the end of in, and io.ErrClosedPipe when the session has
// ended.
func readLines(agent *gateway.Agent, in io.Reader, most int) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, over, err := readLine(lines, most)
		line = bytes.TrimRight(line, "\r\n")
		switch blank := len(bytes.TrimSpace(line)) == 0; {
		case over:
			if agent.Oversize(line) != nil {
				return io.ErrClosedPipe
			}
		case blank:
		case agent.Write(context.Background(), line) != nil:
			return io.ErrClosedPipe
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readLine returns the next line with its end. If the line has more than most bytes, it returns the beginning, and over
// is true. The last line may come with io.EOF.
func readLine(r *bufio.Reader, most int) (line []byte, over bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case over:
		case len(line)+len(part) > most+len("\r\n"):
			line = append(line, part...)
			line, over = bytes.Clone(line[:min(beginning, len(line))]), true // the rest can go
		default:
			line = append(line, part...)
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
	done  chan struct{} // closed when it writes no more
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
		if s.err = w.Flush(); s.err != nil { // it has the error of each of the three
			return
		}
		select {
		case s.wrote <- struct{}{}:
		default:
		}
	}
}

// wait waits until all is written and settled reports true, or settleTime is over.
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

// end is the reason for an end of the session that the agent did not cause.
func (s *lineWriter) end() error {
	select {
	case <-s.done:
		return s.err // if out has not failed, the gateway has closed
	default: // a write to out hangs
		return ErrNotRead
	}
}
