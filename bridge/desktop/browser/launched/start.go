// Package launched starts a browser of Pagewire's own, in a profile of its own, and speaks with it.
//
// A browser that listens on a TCP port is open to every user of the machine. This one takes its
// commands on a pipe, and ends when the pipe is closed: by Close, or by the kernel when this
// process ends. Nothing here passes the pipe to another process, keeps a browser for one, uses a
// person's profile, or removes what it has not made.
//
//   - start.go starts a browser and cleans up after it; profile.go is its directory
//   - pipe.go speaks with a browser, and holds no message as a whole
package launched

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/internal/retry"
)

// Options configure a browser's start.
type Options struct {
	// Window shows a window; otherwise the browser is headless.
	Window bool
	// Open are the URLs of the first tabs; none means about:blank.
	Open []string
	// Flags are added to ours.
	Flags []string
	// DebugPort is a TCP port on which the browser also listens, for every process of the machine.
	// "0" is any, "" none.
	DebugPort string
	// Log receives the log. Default none.
	Log *slog.Logger
}

const (
	// startTime is how long a browser may take until it answers, and again until it has opened each
	// address: usually 0.3 s, and seconds at an update's first start.
	startTime = 30 * time.Second
	// listenTime is how long an answering browser may take to listen on its DebugPort.
	listenTime = 5 * time.Second
	// killTime is how long a browser may take to end before it is killed. It takes 0.1 s.
	killTime = 800 * time.Millisecond
	// maxTemp is the longest path of the directory for temporary files: Chromium's socket has 46
	// more bytes, of 103.
	maxTemp = 103 - 46
)

// HasDisplay reports whether a browser can show a window, as far as this process's environment
// tells.
func HasDisplay() bool {
	return runtime.GOOS == "windows" || runtime.GOOS == "darwin" || os.Getenv("DISPLAY") != "" ||
		os.Getenv("WAYLAND_DISPLAY") != ""
}

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
	clean   chan struct{}   // closed when nothing is left of the browser
}

// Start starts a browser with WebMCP enabled, in the environment of this process, and returns when
// it is usable. ctx bounds the start alone. The browser ends by Close, or with this process.
func Start(ctx context.Context, o Options) (*Started, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	profile, err := newProfile()
	if err != nil {
		return nil, err
	}
	s := &Started{said: output{url: make(chan string, 1)}, clean: make(chan struct{})}
	var exited context.CancelFunc
	s.exited, exited = context.WithCancel(context.Background())
	go func() {
		// The browser of a killed process holds its profile until it has ended.
		for range retry.Attempts(s.exited, time.Second, time.Minute) {
			Sweep(o.Log)
		}
	}()
	started := make(chan error)
	go func() {
		defer close(s.clean)
		defer exited()
		runtime.LockOSThread() // see endWithUs
		cmd, err := s.run(o, profile)
		if started <- err; err == nil {
			s.crashed = crashed(cmd.Wait())
			exited()
			reap(s.process.Pid)
		}
		if err := profile.remove(); err != nil {
			o.Log.Warn("after a launched browser", "error", err)
		}
	}()
	if err := <-started; err != nil {
		<-s.clean
		return nil, fmt.Errorf("start a browser: %w", err)
	}
	if err := s.prepare(ctx, o); err != nil {
		s.process.Kill()
		s.Close()
		return nil, err
	}
	return s, nil
}

// closing are the signals by which the system closes a browser.
var closing = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}

// crashed reports whether a browser's exit is a crash, and not a close by a person or the system.
func crashed(err error) bool {
	exit := new(exec.ExitError)
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return !ok || !slices.Contains(closing, status.Signal())
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
	s.Pipe = newPipe(to, from)
	give(cmd, commands, answers, profile.mark)
	adopt()
	if err := cmd.Start(); err != nil {
		s.Pipe.close()
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
		return fmt.Errorf("the browser has ended, or not answered within %v: %w: %s", startTime,
			err, &s.said)
	}
	defer conn.Close()
	for i, url := range o.Open {
		if i == 0 {
			continue // it is on the command line, where a headless browser takes only one
		}
		limited, cancel := context.WithTimeoutCause(ctx, startTime,
			fmt.Errorf("not within %v", startTime))
		err := conn.within(limited, func() error { return conn.call(openTab, opened(url)) })
		cancel()
		if err != nil {
			return fmt.Errorf("open address %d: %w", i+1, err)
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

// Close closes the pipe, kills a browser that stays, and returns when nothing is left of the
// browser.
func (s *Started) Close() {
	s.Pipe.close()
	select {
	case <-s.exited.Done():
	case <-time.After(killTime):
		s.process.Kill()
	}
	<-s.clean
}

// Kill kills the browser's process.
func (s *Started) Kill() { s.process.Kill() }

// Exited is closed when the browser's process has ended.
func (s *Started) Exited() <-chan struct{} { return s.exited.Done() }

// Ended reports whether the browser's process has ended, and Crashed whether it did so without
// being closed.
func (s *Started) Ended() bool   { return s.exited.Err() != nil }
func (s *Started) Crashed() bool { return s.Ended() && s.crashed }

// Open makes a browser that a Conn uses open a URL in a further tab.
func (s *Started) Open(url string) error { return s.Pipe.open(url) }

// maxSaid is how many bytes of a browser's standard error are kept: it begins with the reason of a
// failed start.
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
	return strings.Join(strings.FieldsFunc(string(o.text),
		func(r rune) bool { return unicode.IsControl(r) || r == ' ' }), " ")
}
