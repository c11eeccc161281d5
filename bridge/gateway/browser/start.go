//go:build !js

package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/chromedp/remote"
)

// StartOptions say how Start runs a browser.
type StartOptions struct {
	Options
	// Open are the URLs of the first tabs; none means about:blank.
	Open []string
	// DebugPort is the TCP port on loopback where every process of the machine, whoever's it is, can control the
	// browser. "0" is one that the system chooses; the file DevToolsActivePort in the profile has it then. "" means "0"
	// for Start, and none for StartPiped.
	DebugPort string
	// Profile is the directory of the browser's profile, which is made where it is missing, and stays. "" means an
	// empty one that goes with the browser. A browser that runs on that directory already is an error.
	Profile string
}

// A Browser is one that Start has started. It listens on a WebSocket, on a loopback port that the system chose, so that
// another process than this one can take its pages over.
type Browser struct {
	// URL is the browser's WebSocket, ws://127.0.0.1:PORT/devtools/browser/ID. Whoever knows it controls the browser.
	URL string
	// Process is the browser's own; its renderers are children of it.
	Process *os.Process

	exited  chan struct{}
	failed  bool   // set before exited is closed
	profile string // to be removed
	once    sync.Once
}

// startTimeout is how long a browser may take until it listens. Ours takes 0.3 s, an update's first start several.
const startTimeout = 30 * time.Second

// Start runs a browser with WebMCP on. It outlives a process that ends without Close: who takes over finds it at its
// URL. ctx bounds the start alone.
func Start(ctx context.Context, o StartOptions) (*Browser, error) {
	b := &Browser{exited: make(chan struct{})}
	if o.Profile == "" {
		var err error
		if o.Profile, err = os.MkdirTemp("", "pagewire-browser-"); err != nil {
			return nil, fmt.Errorf("make a profile for the browser: %w", err)
		}
		b.profile = o.Profile
	}
	if o.DebugPort == "" {
		o.DebugPort = "0"
	}
	cmd, err := commandLine(o)
	if err != nil {
		b.removeProfile()
		return nil, err
	}
	said, err := follow(cmd)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.removeProfile()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	b.Process = cmd.Process
	go func() {
		said.read()
		b.failed = cmd.Wait() != nil
		close(b.exited)
	}()
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case url, ok := <-said.url:
		if ok {
			b.URL = url
			if err = b.open(limited, o.Open); err == nil {
				return b, nil
			}
			break
		}
		err = fmt.Errorf("start %s: it ended before it listened (does another one run on %s?): %s", cmd.Path, o.Profile,
			said)
	case <-limited.Done():
		err = fmt.Errorf("start %s: it does not listen: %w", cmd.Path, context.Cause(limited))
	}
	b.Close()
	return nil, err
}

// commandLine is what runs a browser; control are the flags by which it is reached.
func commandLine(o StartOptions, control ...string) (*exec.Cmd, error) {
	path := o.Path
	if path == "" {
		var err error
		if path, err = Find(); err != nil {
			return nil, err
		}
	}
	args := merge(append(flags(o.Window, os.Geteuid() == 0), "--enable-features=WebMCP"), o.Flags)
	args = append(args, "--user-data-dir="+o.Profile)
	args = append(args, control...)
	if o.DebugPort != "" {
		args = append(args, "--remote-debugging-port="+o.DebugPort)
	}
	first := "about:blank"
	if len(o.Open) > 0 {
		first = o.Open[0]
	}
	return exec.Command(path, append(args, first)...), nil
}

// maxSaid is how much is kept of what a browser says before it listens: why it does not start is at the begin.
const maxSaid = 1 << 10

// An output is what a browser says on its standard error.
type output struct {
	from io.Reader
	url  chan string // has where it listens, once it has said that; closed when it ends before

	mu   sync.Mutex
	text strings.Builder
}

func follow(cmd *exec.Cmd) (*output, error) {
	from, err := cmd.StderrPipe()
	return &output{from: from, url: make(chan string, 1)}, err
}

// read returns when the browser has ended.
func (o *output) read() {
	lines := bufio.NewReader(o.from)
	for {
		line, err := lines.ReadString('\n')
		if url, ok := strings.CutPrefix(line, "DevTools listening on "); ok {
			o.url <- strings.TrimSpace(url)
			break
		}
		o.mu.Lock()
		if o.text.Len() < maxSaid {
			o.text.WriteString(line)
		}
		o.mu.Unlock()
		if err != nil {
			close(o.url)
			return
		}
	}
	io.Copy(io.Discard, lines) // a full pipe would stop the browser
}

// String is what it has said until it listened, on one line and without control characters.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(
		strings.FieldsFunc(o.text.String(), func(r rune) bool { return unicode.IsControl(r) || r == ' ' }), " ")
}

// merge puts further flags behind ours. One that names a flag of ours replaces it, but lists of features are joined:
// the browser reads the last one only.
func merge(ours, further []string) []string {
	name := func(flag string) string {
		name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		return name
	}
	var all []string
	for _, flag := range ours {
		replaced := false
		for i, f := range further {
			if name(f) != name(flag) {
				continue
			}
			replaced = true
			if _, features, ok := strings.Cut(flag, "="); ok && name(flag) == "enable-features" {
				further = append(append(further[:i:i], f+","+features), further[i+1:]...)
			}
			break
		}
		if !replaced {
			all = append(all, flag)
		}
	}
	for _, f := range further {
		all = append(all, "--"+strings.TrimLeft(f, "-"))
	}
	return all
}

// Done is closed when the browser has ended.
func (b *Browser) Done() <-chan struct{} { return b.exited }

// Crashed reports whether the browser has ended otherwise than by being closed: it was killed, or it crashed.
func (b *Browser) Crashed() bool {
	select {
	case <-b.exited:
		return b.failed
	default:
		return false
	}
}

// Close asks the browser to end, kills it where it does not within 5 s, and removes the profile if it was made for it.
// It may be called more than once.
func (b *Browser) Close() {
	b.once.Do(func() {
		if b.URL == "" || Quit(b.URL) != nil || !b.ended(closeTimeout) {
			b.Process.Kill()
		}
		<-b.exited
		b.removeProfile()
	})
}

func (b *Browser) ended(within time.Duration) bool {
	select {
	case <-b.exited:
		return true
	case <-time.After(within):
		return false
	}
}

// open opens all tabs but the first: on its command line a browser without a window takes one.
func (b *Browser) open(ctx context.Context, urls []string) error {
	for i, url := range urls {
		if i == 0 {
			continue
		}
		params, err := json.Marshal(map[string]string{"url": url})
		if err == nil {
			err = command(ctx, b.URL, "Target.createTarget", params)
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", url, err)
		}
	}
	return nil
}

// Quit asks the browser at a WebSocket URL to end, in the way that saves what is to be saved, on every system. It
// returns when the browser has heard; ending takes it 0.1 s. The error is that it cannot be reached, or does not answer
// within 5 s.
func Quit(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := command(ctx, url, "Browser.close", nil)
	if errors.Is(err, errLost) {
		return nil // it has heard
	}
	return err
}

var errLost = errors.New("the browser ended the connection")

// command runs a command of the browser at a WebSocket URL, on a connection of its own.
func command(ctx context.Context, url, method string, params []byte) error {
	conn, err := remote.DialContext(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Write(ctx, &cdproto.Message{ID: 1, Method: cdproto.MethodType(method), Params: params}); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() {
		m := new(cdproto.Message)
		switch err := conn.Read(ctx, m); {
		case err != nil:
			answered <- errLost
		case m.Error != nil:
			answered <- m.Error
		default:
			answered <- nil
		}
	}()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s is not answered: %w", method, ctx.Err())
	}
}

// removeProfile tries for a second: the last child processes may still write to it.
func (b *Browser) removeProfile() {
	if b.profile == "" {
		return
	}
	for end := time.Now().Add(time.Second); os.RemoveAll(b.profile) != nil && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}
