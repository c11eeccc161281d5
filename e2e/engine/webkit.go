package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// Recorder is a script that keeps a page's console messages, because WebKit's driver does not
// report them. It loses nothing in a page that runs it before all other scripts. In other pages it
// begins after their load.
const Recorder = `(() => {
	if (globalThis.recorded) return;
	Object.defineProperty(globalThis, "recorded", { value: [] });
	const keep = (uncaught, args) => { recorded[recorded.length] = { uncaught, text: args.map(String).join(" ") }; };
	for (const name of ["error", "warn"]) {
		const write = console[name];
		console[name] = (...args) => { keep(false, args); write.apply(console, args); };
	}
	const { setTimeout } = globalThis;
	// Later, when the page's own listeners have had their say.
	const uncaught = (event, cause) => setTimeout(() => { if (!event.defaultPrevented) keep(true, [cause]); });
	addEventListener("error", (event) => uncaught(event, event.error ?? event.message));
	addEventListener("unhandledrejection", (event) => uncaught(event, event.reason));
})();
`

// A webkit is a display for browsers. A session of WebKitGTK's own driver is one browser, which
// runs one script at a time, and the driver has one session. So each tab is a browser.
type webkit struct {
	driver, browser string // the paths of the programs
	display         string
	server          *exec.Cmd
	names           *httptest.Server // the proxy by which InsecureHost is loopback
}

// miniBrowser returns the path of WebKitGTK's own browser, or "".
func miniBrowser() string {
	found, _ := filepath.Glob("/usr/lib/*/webkit*gtk-*/MiniBrowser")
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

func launchWebkit() (*webkit, error) {
	driver, err := exec.LookPath("WebKitWebDriver")
	if err != nil {
		return nil, err
	}
	browser := miniBrowser()
	if browser == "" {
		return nil, errors.New("there is a WebKitWebDriver, and no MiniBrowser below /usr/lib")
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Host = "127.0.0.1:" + r.In.URL.Port() },
	}
	w := &webkit{driver: driver, browser: browser, names: httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			// The whole body, before any of it is passed on: otherwise an answer that begins early
			// may end in its middle.
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler) // the browser has closed the connection
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			proxy.ServeHTTP(w, r)
		}))}
	// The server chooses a free display, and writes its number.
	says, number, err := os.Pipe()
	if err != nil {
		w.names.Close()
		return nil, err
	}
	defer says.Close()
	w.server = testcmd.CommandContext(context.Background(), "Xvfb", "-displayfd", "3", "-screen",
		"0", "1280x1024x24", "-nolisten", "tcp")
	w.server.ExtraFiles = []*os.File{number}
	err = w.server.Start()
	number.Close()
	if err != nil {
		w.names.Close()
		return nil, err
	}
	if _, err := fmt.Fscan(says, &w.display); err != nil {
		w.Close()
		return nil, fmt.Errorf("no display: Xvfb did not say which it is: %w", err)
	}
	return w, nil
}

func (w *webkit) Close() {
	w.names.Close()
	w.server.Process.Kill()
	w.server.Wait()
}

// Open starts a browser. Once in 50 starts, on a busy machine, a driver waited for ever for its
// browser. Open tries three times.
func (w *webkit) Open(ctx context.Context, hear func(Message)) (Tab, error) {
	var errs []error
	for range 3 {
		t, err := w.open(ctx, hear)
		if err == nil {
			return t, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// starting is the maximum time of a browser's start.
const starting = 30 * time.Second

func (w *webkit) open(ctx context.Context, hear func(Message)) (*webkitTab, error) {
	ctx, end := context.WithTimeout(ctx, starting)
	defer end()
	home, err := os.MkdirTemp("", "pagewire-webkit-")
	if err != nil {
		return nil, err
	}
	t := &webkitTab{home: home, hear: hear}
	if err := t.start(ctx, w); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

type webkitTab struct {
	classic
	cmd  *exec.Cmd // nil after its end
	home string
	hear func(Message)
}

func (t *webkitTab) start(ctx context.Context, w *webkit) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	l.Close() // the driver accepts no port 0
	_, port, _ := strings.Cut(address, ":")
	t.server = "http://" + address
	t.cmd = testcmd.CommandContext(context.Background(), w.driver, "--port="+port)
	t.cmd.Env = append(os.Environ(), "DISPLAY=:"+w.display, "HOME="+t.home, "XDG_RUNTIME_DIR="+
		t.home,
		"XDG_CONFIG_HOME="+t.home, "XDG_CACHE_HOME="+t.home, "XDG_DATA_HOME="+t.home,
		"NO_AT_BRIDGE=1")
	// a group, to end it with all its children
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := t.cmd.Start(); err != nil {
		return err
	}
	for { // until the driver listens
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no driver: WebKitWebDriver does not listen at %s: %w", address, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	err = t.begin(ctx, params{"webkitgtk:browserOptions": params{"binary": w.browser,
		"args": []string{"--automation", "--enable-page-cache=true"}},
		"proxy": params{"proxyType": "manual",
			"httpProxy": strings.TrimPrefix(w.names.URL, "http://"),
			"noProxy":   []string{"127.0.0.1"}}})
	if err == nil {
		err = t.post(ctx, "/timeouts", params{"script": 600_000}, nil)
	}
	return err
}

func (t *webkitTab) Close() {
	if t.cmd != nil && t.cmd.Process != nil {
		syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL)
		t.cmd.Wait()
		t.cmd = nil
	}
	os.RemoveAll(t.home)
}

func (t *webkitTab) Navigate(ctx context.Context, url string) error {
	err := t.post(ctx, "/url", params{"url": url}, nil)
	if err == nil {
		err = t.post(ctx, "/execute/sync", params{"script": Recorder, "args": []any{}}, nil)
	}
	return err
}

func (t *webkitTab) Reload(ctx context.Context) error {
	return t.post(ctx, "/refresh", params{}, nil)
}

func (t *webkitTab) Back(ctx context.Context) error {
	return t.post(ctx, "/back", params{}, nil)
}

func (t *webkitTab) Evaluate(ctx context.Context, expression string) (string, error) {
	var got struct {
		Value, Error string
		Recorded     []Message
	}
	// As text, because some pages patch the functions of JSON. The last argument ends the script.
	var text string
	err := t.post(ctx, "/execute/async", params{"args": []any{}, "script": `
		const done = arguments[arguments.length - 1];
		const end = (value) => done(JSON.stringify({ ...value, recorded: globalThis.recorded?.splice(0) }));
		(async () => await (` + expression + `))()
			.then((value) => end({ value }), (e) => end({ error: String(e) }));`}, &text)
	if err == nil {
		err = json.Unmarshal([]byte(text), &got)
	}
	for _, m := range got.Recorded {
		t.hear(m)
	}
	if err == nil && got.Error != "" {
		err = fmt.Errorf("the page throws %s", got.Error)
	}
	return got.Value, err
}

func (t *webkitTab) Click(ctx context.Context, selector string) error {
	return clickOn(ctx, t, selector)
}

func (t *webkitTab) Type(ctx context.Context, selector, text string) error {
	return typeInto(ctx, t, selector, text)
}

func (t *webkitTab) act(ctx context.Context, sources []source) error {
	return t.post(ctx, "/actions", params{"actions": sources}, nil)
}

func (t *webkitTab) Hide(ctx context.Context) error {
	return t.request(ctx, http.MethodPost, "/window/minimize", []byte("{}"), nil)
}
