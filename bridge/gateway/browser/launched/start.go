// Package launched starts the browser that `serve --launch` asks for, and lets all agents of a user share it.
//
// A browser that listens on a TCP port is open to every user of the machine. This one takes its commands on a pipe, and
// ends when the last writing end of that pipe is closed. The agent's process that starts the browser sends the two ends
// of the pipe to the daemon, which speaks with the browser. The daemon sends copies of them to the process of each
// other agent that asked for the browser. These processes are the holders. A holder only keeps its copies. So the
// browser and its tabs outlive the daemon, the next daemon gets the ends from a holder, and the browser ends with the
// last one.
//
// The kernel carries the ends between the processes (SCM_RIGHTS). No process opens, runs or removes anything that
// another one names. Sockets of Windows carry no handles, so nothing is launched there.
//
//   - start.go starts a browser in a profile of its own (profile.go), and cleans up after it
//   - pipe.go speaks with a browser; pipe_unix.go keeps ends of its pipe and sends them to other processes
//   - holder.go is an agent's process, server.go the daemon
package launched

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
)

// Options configure a browser's start.
type Options struct {
	// Window shows a window; otherwise the browser is headless.
	Window bool
	// Open are the URLs of the first tabs; none means about:blank.
	Open []string
	// Flags are added to ours.
	Flags []string
	// DebugPort is a TCP port on which the browser also listens, for every process of the machine. "0" is any, "" none.
	DebugPort string
	// Inject gives a page layer to pages that have none.
	Inject bool
	// Log receives the log. Default none.
	Log *slog.Logger
}

const (
	// startTime is how long a browser may take until it answers: usually 0.3 s, and seconds at an update's first start.
	startTime = 30 * time.Second
	// listenTime is how long an answering browser may take to listen on its DebugPort.
	listenTime = 5 * time.Second
	// closeTime is how long a browser may take to close; it takes 0.1 s. Its parent kills it after killTime.
	closeTime, killTime = 2 * time.Second, 800 * time.Millisecond
	// maxTemp is the longest path of the directory for temporary files: Chromium's socket has 46 more bytes, of 103.
	maxTemp = 103 - 46
)

// errNone is the error of Start on Windows.
var errNone = errors.New("this system hands no browser from one process to another: start one with " +
	"--remote-debugging-port=9222 --user-data-dir=DIR, and use --chrome")

// A Started browser is a child of this process.
type Started struct {
	// URL is its debugging address, if Options have a DebugPort.
	URL string
	// Pipe has our ends of its pipe.
	Pipe *Pipe

	process *os.Process
	said    output
	crashed bool            // set before exited ends
	exited  context.Context // ends with the browser's process
	clean   chan struct{}
}

// Start starts a browser with WebMCP enabled, in the environment of this process, and returns when it is usable. ctx
// bounds the start alone. The browser ends when the last copy of its pipe is closed.
func Start(ctx context.Context, o Options) (*Started, error) {
	if runtime.GOOS == "windows" {
		return nil, errNone
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	profile, err := newProfile()
	if err != nil {
		return nil, err
	}
	go logLeft(o.Log, func() error { _, err := sweep(); return err }) // the profiles of killed processes
	s := &Started{said: output{url: make(chan string, 1)}, clean: make(chan struct{})}
	var exited context.CancelFunc
	s.exited, exited = context.WithCancel(context.Background())
	cmd, err := s.run(o, profile)
	if err != nil {
		exited()
		profile.remove()
		return nil, fmt.Errorf("start a browser: %w", err)
	}
	go func() {
		defer close(s.clean)
		s.crashed = crashed(cmd.Wait())
		exited()
		reap(s.process.Pid)
		logLeft(o.Log, profile.remove)
	}()
	if err := s.prepare(ctx, o); err != nil {
		s.process.Kill()
		s.Close()
		return nil, err
	}
	return s, nil
}

// logLeft logs the reason why a profile cannot be removed.
func logLeft(log *slog.Logger, remove func() error) {
	if err := remove(); err != nil {
		log.Warn("after a launched browser", "error", err)
	}
}

// run runs the browser's program.
func (s *Started) run(o Options, profile *profile) (*exec.Cmd, error) {
	args := append([]string{"--enable-features=WebMCP"}, o.Flags...)
	args = append(args, "--user-data-dir="+profile.path, "--remote-debugging-pipe")
	if o.DebugPort != "" {
		args = append(args, "--remote-debugging-port="+o.DebugPort)
	}
	first := "about:blank"
	if len(o.Open) > 0 {
		first = o.Open[0]
	}
	cmd, err := browser.Command(o.Window, args, first)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = &s.said
	cmd.WaitDelay = killTime // its child processes hold its standard error too
	// The files that a killed browser leaves there are removed with its profile.
	if temp := filepath.Join(profile.path, "tmp"); len(temp) <= maxTemp {
		if err := os.Mkdir(temp, 0o700); err != nil {
			return nil, err
		}
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	}
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
	kept, err := duplicate(to, from)
	if err != nil {
		return nil, err
	}
	s.Pipe = newPipe(kept)
	give(cmd, commands, answers, profile.mark)
	adopt()
	if err := cmd.Start(); err != nil {
		kept.close()
		return nil, err
	}
	s.process = cmd.Process
	return cmd, nil
}

// prepare waits until the browser answers, opens tabs, and finds out its debugging address.
func (s *Started) prepare(ctx context.Context, o Options) error {
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	conn, err := s.Pipe.Dial(limited)
	if err != nil {
		return fmt.Errorf("the browser has ended, or not answered within %v: %w: %s", startTime, err, &s.said)
	}
	defer conn.Close()
	defer context.AfterFunc(limited, func() { conn.Close() })()
	for i, url := range o.Open {
		if i == 0 {
			continue // it is on the command line, where a headless browser takes only one
		}
		params, err := json.Marshal(map[string]string{"url": url})
		if err == nil {
			err = conn.call("Target.createTarget", string(params))
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", url, err)
		}
	}
	if o.DebugPort == "" {
		return nil
	}
	select {
	case s.URL = <-s.said.url:
		return nil
	case <-time.After(listenTime):
		return fmt.Errorf("the browser does not listen on port %s: %s", o.DebugPort, &s.said)
	}
}

// Close closes our ends of the pipe, kills a browser that stays, and returns when nothing is left of the browser.
func (s *Started) Close() {
	s.Pipe.ends.close()
	select {
	case <-s.exited.Done():
	case <-time.After(killTime):
		s.process.Kill()
	}
	<-s.clean
}

// Kill kills the browser's process.
func (s *Started) Kill() { s.process.Kill() }

func (s *Started) ended() bool { return s.exited.Err() != nil }

// maxSaid is how many bytes of a browser's standard error are kept: it begins with the reason of a failed start.
const maxSaid = 4 << 10

var listening = regexp.MustCompile(`(?m)^DevTools listening on (\S+)$`)

// An output is a browser's standard error.
type output struct {
	url chan string // receives the debugging address

	mu   sync.Mutex
	text []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	said := p
	if len(o.text) < maxSaid {
		o.text = append(o.text, p...)
		said = o.text
	}
	if found := listening.FindSubmatch(said); found != nil {
		select {
		case o.url <- string(found[1]):
		default:
		}
	}
	return len(p), nil
}

// String is the output on one line, without control characters.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(strings.FieldsFunc(string(o.text), func(r rune) bool { return unicode.IsControl(r) || r == ' ' }), " ")
}
