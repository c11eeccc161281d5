package main

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/agents"
	"github.com/pagewire/pagewire/bridge/gateway/browser/launched"
	"github.com/pagewire/pagewire/bridge/gateway/daemon"
	"github.com/pagewire/pagewire/bridge/gateway/serve"
)

// captured runs serve with what only takes its options. as is "agent" or "foreground", or "" where nothing ran.
func captured(t *testing.T, result error, args ...string) (o serve.Options, as string, status int, stderr string) {
	t.Helper()
	taking := func(name string) func(context.Context, serve.Options) error {
		return func(_ context.Context, got serve.Options) error {
			o, as = got, name
			got.Log.Debug("fine")
			got.Log.Info("coarse", "x", 1)
			return result
		}
	}
	replaceServe(t, taking("agent"), taking("foreground"))
	status, stdout, stderr := run(append([]string{"serve"}, args...)...)
	if stdout != "" {
		t.Errorf("%v: stdout is the agent's, and has %q", args, stdout)
	}
	return o, as, status, stderr
}

// replaceServe has serve run something else, until the test ends.
func replaceServe(t *testing.T, agent, foreground func(context.Context, serve.Options) error) {
	realAgent, realForeground := serveAgent, serveForeground
	t.Cleanup(func() { serveAgent, serveForeground = realAgent, realForeground })
	serveAgent, serveForeground = agent, foreground
}

func TestServeFlagsReachTheProcess(t *testing.T) {
	web := []string{"https://*.example.com", "http://localhost:3000/"}
	for _, c := range []struct {
		args, as string
		want     serve.Options
	}{
		{"", "agent", serve.Options{Stdio: true}},
		{"--http 127.0.0.1:8000", "foreground", serve.Options{HTTP: "127.0.0.1:8000"}},
		{"--http localhost:8000 --stdio", "foreground", serve.Options{HTTP: "localhost:8000", Stdio: true}},
		{"--http :8000 --token-file t", "foreground", serve.Options{HTTP: ":8000", TokenFile: "t"}},
		{"--http 127.0.0.1:8000 --no-token --max-listens 9", "foreground", serve.Options{HTTP: "127.0.0.1:8000",
			NoToken: true, Shares: agents.Shares{Listens: 9}}},
		{"--http 0.0.0.0:7444 --allow-host box.lan --allow-host 192.168.1.5 --allow-host [fd00::1] --tls-cert c " +
			"--tls-key k", "foreground", serve.Options{
			HTTP: "0.0.0.0:7444", AllowHosts: []string{"box.lan", "192.168.1.5", "[fd00::1]"}, TLSCert: "c",
			TLSKey: "k"}},
		{"--http :7444 --insecure-http", "foreground", serve.Options{HTTP: ":7444", InsecureHTTP: true}},
		{"--stdio=false --token-file t", "foreground", serve.Options{TokenFile: "t"}},
		{"--reminders off", "agent", serve.Options{Stdio: true, Flags: daemon.Flags{Reminders: "off"}}},
		{"--debugging-tools", "agent", serve.Options{Stdio: true, Flags: daemon.Flags{Reminders: "inline", DebuggingTools: true}}},
		{"--front", "agent", serve.Options{Stdio: true, Flags: daemon.Flags{Reminders: "inline", Front: true}}},
		{"--chrome auto --inject", "agent", serve.Options{Stdio: true, Flags: daemon.Flags{Chrome: "auto",
			Inject: true}}},
		{"--chrome ws://127.0.0.1:9222/devtools/browser/x", "agent", serve.Options{Stdio: true,
			Flags: daemon.Flags{Chrome: "ws://127.0.0.1:9222/devtools/browser/x"}}},
		{"--launch --headless --open https://a.example --open about:blank --browser-flag=--lang=de", "agent",
			serve.Options{Stdio: true, Launch: &launched.Options{Open: []string{"https://a.example", "about:blank"},
				Flags: []string{"--lang=de"}}}},
		{"--launch --inject --debug-port 0", "agent", serve.Options{Stdio: true, Launch: &launched.Options{Window: true,
			Inject: true, DebugPort: "0"}}},
		{"--launch --debug-port=09222", "agent", serve.Options{Stdio: true, Launch: &launched.Options{Window: true,
			DebugPort: "9222"}}},
		{"--allow-origin https://*.example.com --allow-origin http://localhost:3000/ --deny-origin " +
			"https://bank.example.com --only https://*.example.com", "agent", serve.Options{Stdio: true,
			Flags: daemon.Flags{AllowOrigins: web, DenyOrigins: []string{"https://bank.example.com"},
				OnlyOrigins: web[:1]}}},
		{"--launch --headless --name Work --only profile=Work --only https://*.example.com", "agent", serve.Options{
			Stdio: true, Launch: &launched.Options{},
			Flags: daemon.Flags{Name: "Work", OnlyOrigins: []string{"profile=Work", web[0]}}}},
		{"--any-scheme --hub [::1]:7000", "foreground", serve.Options{Stdio: true, AnyScheme: true, Hub: "[::1]:7000"}},
	} {
		got, as, status, stderr := captured(t, nil, strings.Fields(c.args)...)
		c.want.Hub = cmp.Or(c.want.Hub, serve.DefaultHub)
		c.want.Flags.Reminders = cmp.Or(c.want.Flags.Reminders, string(gateway.RemindersInline))
		s := agents.DefaultShares
		s.Listens = cmp.Or(c.want.Shares.Listens, s.Listens)
		c.want.Shares = s
		if as != c.as || status != exitDone || got.Log == nil || got.In == nil || got.Out == nil || got.Version == "" ||
			(as == "agent") != slices.Equal(got.Start[min(1, len(got.Start)):], []string{"daemon", "--hub", got.Hub}) {
			t.Errorf("%s: ran as %q, status %d, %+v, stderr %q", c.args, as, status, got, stderr)
		}
		got.Log, got.In, got.Out, got.Version, got.Start = nil, nil, nil, "", nil
		if got.Launch != nil {
			got.Launch.Log = nil
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.args, got, c.want)
		}
	}
}

func TestServeRefusesWhatContradictsItself(t *testing.T) {
	for args, want := range map[string]string{
		"--chrome auto --launch":                                 "--chrome and --launch are two browsers",
		"--headless":                                             "--headless is about the browser that --launch starts",
		"--open https://a.example":                               "--open is about the browser that --launch starts",
		"--browser-flag x":                                       "--browser-flag is about",
		"--debug-port 0":                                         "--debug-port is about the browser that --launch starts",
		"--launch --debug-port=":                                 `--debug-port "": want a port`,
		"--launch --debug-port 99999":                            "want a port such as 9222, or 0",
		"--launch --debug-port -1":                               "want a port",
		"--launch --debug-port 9222,x":                           "want a port",
		"--inject":                                               "--inject needs a browser",
		"--name Work":                                            "--name needs a browser",
		"--launch --name=":                                       `--name "": want a profile's name`,
		"--launch --only profile=":                               `--only "": want a profile's name of 1 to 64 bytes`,
		"--only profile=" + strings.Repeat("n", 65):              "of 1 to 64 bytes",
		"--allow-origin profile=Work":                            "want an origin",
		"--launch --open a.example":                              `--open "a.example": want a URL with its scheme`,
		"--chrome 9222":                                          `--chrome "9222": want auto, or a URL`,
		"--chrome ftp://127.0.0.1":                               "want auto, or a URL",
		"--allow-origin example.com":                             `--allow-origin "example.com": want an origin`,
		"--allow-origin https://a.example/x":                     "want an origin",
		"--deny-origin https://a.*.example":                      `--deny-origin "https://a.*.example": want an origin`,
		"--node-tools":                                           "--node-tools is about a node: add --node",
		"--node wss://n.example --node-ticket-file t":            "--node sends no page without --node-origin",
		"--node wss://n.example --node-origin https://n.example": "add --node-ticket-command or --node-ticket-file",
		"--node wss://n.example --node-origin n.example --node-ticket-file t": `--node-origin "n.example": want an origin`,
		"--http 8000":              `--http "8000": want host and port`,
		"--http 127.0.0.1:":        "want host and port",
		"--http 127.0.0.1:99999":   "want host and port",
		"--http=":                  `--http "": want host and port`,
		"--hub 0.0.0.0:7433":       `--hub "0.0.0.0:7433": it must be an address of this machine`,
		"--hub 7433":               `--hub "7433": want host and port`,
		"--require-token":          "unknown flag: --require-token",
		"--http :1 --tls-cert c":   "--tls-cert and --tls-key go together",
		"--tls-cert c --tls-key k": "--tls-cert is about the address of --http",
		"--insecure-http":          "--insecure-http is about the address of --http",
		"--http :1 --insecure-http --tls-cert c --tls-key k": "--insecure-http and --tls-cert contradict",
		"--http :1 --allow-host box.lan:7444":                `--allow-host "box.lan:7444": want a name`,
		"--http :1 --allow-host http://box.lan":              "want a name or address without scheme and port",
		"--allow-host b":                                     "--allow-host is about agents on HTTP: add --http",
		"--http :1 --allow-host=":                            "want a name",
		"--http :1 --max-listens 0":                          "--max-listens 0: want a number above 0",
		"--http :1 --max-sessions -1":                        "--max-sessions -1: want",
		"--max-requests 9":                                   "--max-requests is about agents on HTTP: add --http",
		"--no-token":                                         "--no-token is about agents on HTTP: add --http",
		"--token-file t":                                     "--token-file is about agents on HTTP: add --http",
		"--log-level loud":                                   `--log-level "loud": want debug, info, warn or error`,
		"--log-level info+2":                                 "want debug",
		"--reminders loud":                                   `--reminders "loud": want off, names or inline`,
		"--log-format xml":                                   `--log-format "xml": want text or json`,
		"https://a.example":                                  `unexpected argument "https://a.example"`,
	} {
		_, as, status, stderr := captured(t, nil, strings.Fields(args)...)
		if as != "" || status != exitUsage || !strings.Contains(stderr, want) ||
			!strings.HasSuffix(stderr, "pagewire: see pagewire serve --help\n") {
			t.Errorf("%s: ran as %q, status %d, stderr %q; want %q", args, as, status, stderr, want)
		}
	}
}

func TestServeLogsToStandardError(t *testing.T) {
	for args, want := range map[string][2]string{
		"":                                   {``, `coarse`}, // programs show their users what a server logs
		"--stdio --http 127.0.0.1:1":         {`msg=coarse x=1`, `msg=fine`},
		"--log-level info --log-format json": {`"msg":"coarse","x":1`, `"msg":"fine"`},
		"--log-level warn":                   {``, `coarse`},
		"--log-level debug":                  {`msg=fine`, `"msg"`},
	} {
		_, _, _, stderr := captured(t, nil, strings.Fields(args)...)
		if !strings.Contains(stderr, want[0]) || strings.Contains(stderr, want[1]) {
			t.Errorf("%s: stderr %q; want %q and no %q", args, stderr, want[0], want[1])
		}
	}
}

func TestServeFailsWithItsProcess(t *testing.T) {
	_, _, status, stderr := captured(t, errors.New("the port is taken"), "--log-level", "error")
	if status != exitFailed || stderr != "pagewire: the port is taken\n" {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	// An interrupt is no failure.
	replaceServe(t, func(ctx context.Context, _ serve.Options) error { return ctx.Err() }, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs strings.Builder
	if status := pagewire(ctx, []string{"serve"}, strings.NewReader(""), &out, &errs); status != exitDone ||
		errs.String() != "" {
		t.Errorf("asked to end: status %d, stderr %q", status, errs.String())
	}
}
