//go:build !js

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

// settleTime is how long Lines waits, when nothing more comes in, for the answers to what came before.
const settleTime = 700 * time.Millisecond

// ErrNotRead is what Lines returns when its agent asks and does not read the answers.
var ErrNotRead = errors.New("the agent does not read what it asks for")

// Lines serves an agent whose session has begun, and ends here: in and out carry JSON-RPC messages of at most so many
// bytes, one per line (the stdio transport of either era). Lines may end in CR LF, and blank ones are skipped; a line
// that is no message is answered with an error, and one that is too long too, without being held in memory.
//
// It returns nil at the end of in, having given the answers to all that came before up to 700 ms, nil when the gateway
// closes, the error of in or out, ErrNotRead when 64 MiB wait for an agent that does not read, and the context's error
// when that ends: the agent's requests and listens have then been ended in order. It never takes longer than a second
// to return, but cannot end a Read of in or a Write to out that is under way: those end when their owner closes them.
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
	if errors.Is(err, io.ErrClosedPipe) { // not in: the session
		s.wait(nil)
		return s.end()
	}
	s.wait(agent.Settled)
	return err
}

// readLines hands over each line of in, until that or the session ends. It returns nil at the end of in, and
// io.ErrClosedPipe when the session has ended.
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

// readLine returns the next line with its end. Of a line of more than most bytes it returns the beginning, and over.
// The last line may come with io.EOF.
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

// A lineWriter writes what an agent is sent, one message per line.
type lineWriter struct {
	agent *gateway.Agent
	wrote chan struct{} // signals that a message has been written
	done  chan struct{} // closed when nothing more is written
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

// wait waits until all is written, or settled says that there is no more to come, or settleTime is over.
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
	// What has been read last may still be on its way to out.
	s.agent.Close()
	select {
	case <-s.done:
	case <-over.C:
	}
}

// end says why the session has ended without its agent's doing.
func (s *lineWriter) end() error {
	select {
	case <-s.done:
		return s.err // if out has not failed the gateway has closed
	default: // it hangs in out
		return ErrNotRead
	}
}
