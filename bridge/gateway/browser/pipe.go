//go:build !js

package browser

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A Piped browser is one that StartPiped has started. It takes its commands on a pipe, whose ends nobody else has: JSON
// texts of the Chrome DevTools Protocol, each with a NUL byte behind it, in both directions. It ends when its pipe is
// closed, which a process that dies does, too.
type Piped struct {
	// To takes commands, From has answers and events.
	To, From *os.File

	said   *output
	pid    int
	exited chan struct{}
	failed bool // set before exited is closed
}

// maxTemp is how long the path of the directory for temporary files may be: a Chromium makes a directory there with a
// Unix socket, 46 bytes more, and is killed by a path of 104 (macOS). One that is killed leaves it behind: in its
// profile, that goes with it.
const maxTemp = 103 - 46

// StartPiped runs a browser with WebMCP on, in a session of its own. o.Profile must be a directory, which stays;
// of o.Open it opens the first. The browser's process has held, a file or nil, open for as long as it lives; on Windows
// it has not.
func StartPiped(o StartOptions, held *os.File) (*Piped, error) {
	cmd, err := commandLine(o, "--remote-debugging-pipe")
	if err != nil {
		return nil, err
	}
	if temp := filepath.Join(o.Profile, "tmp"); len(temp) <= maxTemp {
		if err := os.Mkdir(temp, 0o700); err != nil {
			return nil, fmt.Errorf("make a directory for the browser's temporary files: %w", err)
		}
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	}
	p := &Piped{exited: make(chan struct{})}
	commands, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer commands.Close()
	from, answers, err := os.Pipe()
	if err != nil {
		to.Close()
		return nil, err
	}
	defer answers.Close()
	p.To, p.From = to, from
	if p.said, err = follow(cmd); err == nil {
		if err = givePipe(cmd, [2]*os.File{commands, answers}, [2]*os.File{to, from}, held); err == nil {
			err = cmd.Start()
		}
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p.pid = cmd.Process.Pid
	go func() {
		p.said.read()
		p.failed = cmd.Wait() != nil
		close(p.exited)
	}()
	return p, nil
}

// Done is closed when the browser has ended.
func (p *Piped) Done() <-chan struct{} { return p.exited }

// Crashed reports whether the browser has ended otherwise than by being closed: it was killed, or it crashed.
func (p *Piped) Crashed() bool {
	select {
	case <-p.exited:
		return p.failed
	default:
		return false
	}
}

// Said is the begin of what the browser has said on standard error: why it does not start, if it does not.
func (p *Piped) Said() string { return p.said.String() }

// Listens has the browser's WebSocket once, when it listens on its DebugPort, and is closed if it ends before.
func (p *Piped) Listens() <-chan string { return p.said.url }

// Kill ends the processes of the browser, at once. Those of one that has ended are ending by themselves: their number
// may be somebody else's soon.
func (p *Piped) Kill() {
	select {
	case <-p.exited:
	default:
		kill(p.pid)
	}
}

// Close closes the pipe.
func (p *Piped) Close() error { return errors.Join(p.To.Close(), p.From.Close()) }
