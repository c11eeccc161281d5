package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// firefoxSettings are user preferences. Firefox has its own list for driven browsers, which would
// make the tested browser differ from the users'. That list is off, and these are the settings that
// a test needs.
var firefoxSettings = map[string]any{
	"remote.prefs.recommended": false,
	// Only loopback is reached: other requests go to a proxy that does not exist.
	"network.proxy.type":          1,
	"network.proxy.http":          "127.0.0.1",
	"network.proxy.http_port":     9,
	"network.proxy.ssl":           "127.0.0.1",
	"network.proxy.ssl_port":      9,
	"network.proxy.no_proxies_on": InsecureHost,
	"network.dns.localDomains":    InsecureHost,
	"network.trr.mode":            5,
	// And few requests are made.
	"app.normandy.enabled":                       false,
	"app.update.disabledForTesting":              true,
	"browser.aboutwelcome.enabled":               false,
	"browser.safebrowsing.malware.enabled":       false,
	"browser.safebrowsing.phishing.enabled":      false,
	"browser.search.update":                      false,
	"browser.shell.checkDefaultBrowser":          false,
	"browser.startup.homepage_override.mstone":   "ignore",
	"browser.startup.page":                       0,
	"datareporting.healthreport.uploadEnabled":   false,
	"datareporting.policy.dataSubmissionEnabled": false,
	"dom.push.connection.enabled":                false,
	"extensions.getAddons.cache.enabled":         false,
	"extensions.systemAddon.update.enabled":      false,
	"extensions.update.enabled":                  false,
	"network.captive-portal-service.enabled":     false,
	"network.connectivity-service.enabled":       false,
	"services.settings.server":                   "data:,#remote-settings-dummy/v1",
	"toolkit.telemetry.enabled":                  false,
	"toolkit.telemetry.server":                   "",
	"toolkit.telemetry.unified":                  false,
	// No prompt delays its end.
	"browser.sessionstore.resume_from_crash": false,
	"browser.tabs.warnOnClose":               false,
	"browser.warnOnQuit":                     false,
	"dom.disable_beforeunload":               true,
}

// A Firefox is a browser with its session.
type Firefox struct {
	*session
	cmd     *exec.Cmd
	profile string

	mu    sync.Mutex
	hears map[string]func(Message) // by browsing context
}

// FirefoxOptions are additions to the defaults of all tests.
type FirefoxOptions struct {
	Env      []string       // after the environment's, in which HOME is the profile
	Settings map[string]any // user preferences, after those of all
	Flags    []string
}

// LaunchFirefox starts a browser without a display.
func LaunchFirefox(ctx context.Context, o FirefoxOptions) (*Firefox, error) {
	path, err := exec.LookPath("firefox-esr")
	if err != nil {
		return nil, fmt.Errorf("%w: make engines installs it where apt-get can", err)
	}
	profile, err := os.MkdirTemp("", "pagewire-firefox-")
	if err != nil {
		return nil, err
	}
	f := &Firefox{profile: profile, hears: map[string]func(Message){}}
	if err := f.start(ctx, path, o); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Firefox) start(ctx context.Context, path string, o FirefoxOptions) error {
	var text strings.Builder
	for _, settings := range []map[string]any{firefoxSettings, o.Settings} {
		for name, value := range settings {
			quoted, _ := json.Marshal(value)
			fmt.Fprintf(&text, "user_pref(%q, %s);\n", name, quoted)
		}
	}
	if err := os.WriteFile(filepath.Join(f.profile, "user.js"), []byte(text.String()),
		0o600); err != nil {
		return err
	}
	cmd := testcmd.CommandContext(context.Background(), path,
		append(o.Flags, "--headless", "--no-remote", "--profile", f.profile,
			"--remote-debugging-port=0", "about:blank")...)
	cmd.Env = append(append(os.Environ(), "HOME="+f.profile, "MOZ_CRASHREPORTER_DISABLE=1"),
		o.Env...)
	says, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.cmd = cmd
	url, err := announced(says, "WebDriver BiDi listening on ")
	if err != nil {
		return err
	}
	if f.session, err = dial(ctx, url+"/session", f.dispatch); err != nil {
		return err
	}
	return f.call(ctx, "session.subscribe", params{"events": []string{"log.entryAdded"}}, nil)
}

// announced reads a process' output up to the address after `before`, and drops the rest.
func announced(says io.Reader, before string) (string, error) {
	var all strings.Builder
	lines := bufio.NewScanner(says)
	for lines.Scan() {
		if _, where, found := strings.Cut(lines.Text(), before); found {
			go io.Copy(io.Discard, says)
			return where, nil
		}
		fmt.Fprintln(&all, lines.Text())
	}
	return "", fmt.Errorf("the browser did not say where it listens, but: %s", all.String())
}

// dispatch hands a page's message to the tab that shows the page.
func (f *Firefox) dispatch(method string, text json.RawMessage) {
	var entry struct {
		Type, Level, Method, Text string
		Source                    struct{ Context string }
		StackTrace                json.RawMessage
	}
	if method != "log.entryAdded" || json.Unmarshal(text, &entry) != nil {
		return
	}
	// Messages about the page, such as a block by its CSP, have the same type and are no
	// exceptions.
	uncaught := entry.Type == "javascript" && entry.Level == "error" && entry.StackTrace != nil
	if !uncaught && entry.Method != "error" && entry.Method != "warn" {
		return
	}
	f.mu.Lock()
	hear := f.hears[entry.Source.Context]
	f.mu.Unlock()
	if hear != nil {
		hear(Message{uncaught, entry.Text})
	}
}

func (f *Firefox) Open(ctx context.Context, hear func(Message)) (Tab, error) {
	// A window, since only the first of a window's tabs is visible.
	t := &firefoxTab{Firefox: f}
	var made struct{ Context string }
	if err := f.call(ctx, "browsingContext.create", params{"type": "window"}, &made); err != nil {
		return nil, err
	}
	t.id = made.Context
	f.mu.Lock()
	f.hears[t.id] = hear
	f.mu.Unlock()
	return t, nil
}

// Install installs an unpacked extension until the browser ends.
func (f *Firefox) Install(ctx context.Context, dir string) error {
	return f.call(ctx, "webExtension.install",
		params{"extensionData": params{"type": "path", "path": dir}}, nil)
}

func (f *Firefox) Close() {
	if f.session != nil {
		f.conn.CloseNow()
	}
	if f.cmd != nil {
		f.cmd.Process.Kill()
		f.cmd.Wait()
	}
	os.RemoveAll(f.profile)
}

type firefoxTab struct {
	*Firefox
	id string
}

func (t *firefoxTab) Navigate(ctx context.Context, url string) error {
	return t.call(ctx, "browsingContext.navigate",
		params{"context": t.id, "url": url, "wait": "complete"}, nil)
}

func (t *firefoxTab) Reload(ctx context.Context) error {
	return t.call(ctx, "browsingContext.reload", params{"context": t.id, "wait": "complete"}, nil)
}

func (t *firefoxTab) Back(ctx context.Context) error {
	return t.call(ctx, "browsingContext.traverseHistory", params{"context": t.id, "delta": -1}, nil)
}

func (t *firefoxTab) Evaluate(ctx context.Context, expression string) (string, error) {
	var got struct {
		Type             string
		Result           struct{ Value string }
		ExceptionDetails struct{ Text string }
	}
	err := t.call(ctx, "script.evaluate",
		params{"expression": expression, "target": params{"context": t.id},
			"awaitPromise": true}, &got)
	if err == nil && got.Type == "exception" {
		err = fmt.Errorf("the page throws %s", got.ExceptionDetails.Text)
	}
	return got.Result.Value, err
}

func (t *firefoxTab) Click(ctx context.Context, selector string) error {
	return clickOn(ctx, t, selector)
}

func (t *firefoxTab) Type(ctx context.Context, selector, text string) error {
	return typeInto(ctx, t, selector, text)
}

func (t *firefoxTab) act(ctx context.Context, sources []source) error {
	return t.call(ctx, "input.performActions", params{"context": t.id, "actions": sources}, nil)
}

func (t *firefoxTab) Hide(ctx context.Context) error {
	return t.call(ctx, "browsingContext.create", params{"type": "tab", "referenceContext": t.id},
		nil)
}

func (t *firefoxTab) Close() {
	ctx, end := context.WithTimeout(context.Background(), closing)
	defer end()
	_ = t.call(ctx, "browsingContext.close", params{"context": t.id}, nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.hears, t.id)
}
