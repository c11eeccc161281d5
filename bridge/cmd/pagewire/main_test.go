package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/desktop/serve"
)

// run executes one command line as a shell would.
func run(args ...string) (status int, stdout, stderr string) {
	var out, err strings.Builder
	status = pagewire(context.Background(), args, strings.NewReader(""), &out, &err)
	return status, out.String(), err.String()
}

func TestHelpEndsInAnExample(t *testing.T) {
	for _, args := range [][]string{
		{}, {"serve"}, {"ls"}, {"read"}, {"watch"}, {"tools"}, {"call"}, {"changes"}, {"pick"}, {"inspect"}, {"setup"}, {"config"}, {"doctor"},
		{"extension"}, {"extension", "install"}, {"extension", "uninstall"}, {"native-host"}, {"version"}, {"setup"},
		{"assets"}, {"assets", "list"}, {"assets", "write"},
	} {
		status, out, errs := run(append(args, "--help")...)
		if status != exitDone || errs != "" {
			t.Errorf("%v --help: status %d, stderr %q", args, status, errs)
		}
		_, example, ok := strings.Cut(out, "\nExample:\n")
		if !ok || !strings.HasPrefix(example, "  pagewire ") || strings.Contains(example, "\n\n") {
			t.Errorf("%v --help does not end in an example:\n%s", args, out)
		}
		for line := range strings.Lines(out) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > helpWidth {
				t.Errorf("%v --help has a line of %d columns: %s", args, n, line)
			}
		}
	}
}

func TestACommandOfCommandsAloneIsItsHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"assets"}} {
		_, help, _ := run(append(args, "--help")...)
		if status, out, errs := run(args...); status != exitDone || out != help || errs != "" {
			t.Errorf("%v: status %d, stderr %q, and not its help:\n%s", args, status, errs, out)
		}
	}
}

func TestHelpOfACommand(t *testing.T) {
	for asked, args := range map[string][]string{"help": {"--help"}, "help config": {"config", "--help"},
		"help assets write": {"assets", "write", "--help"}} {
		_, want, _ := run(args...)
		if status, out, errs := run(strings.Fields(asked)...); status != exitDone || out != want || errs != "" {
			t.Errorf("%s: status %d, stderr %q, and not the help of %v:\n%s", asked, status, errs, args, out)
		}
	}
}

// Every command that a person can type is in one of the groups.
func TestHelpHasEachCommand(t *testing.T) {
	_, out, _ := run("--help")
	for _, cmd := range commands().Commands() {
		if !cmd.Hidden && cmd.GroupID == "" {
			t.Errorf("%s is in no group, and so not in the help", cmd.Name())
		}
	}
	for _, want := range []string{"\nSet up:\n  config ", "\nEnvironment:\n  XDG_CONFIG_HOME ", "\nManual: https://"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{"ser": "serve", "config qw": "qwen-code"} {
		words := strings.Fields(line)
		if status, out, _ := run(append([]string{"__completeNoDesc"}, words...)...); status != exitDone ||
			!strings.HasPrefix(out, want+"\n") {
			t.Errorf("%s: status %d, completed to %q, want %s", line, status, out, want)
		}
	}
	if status, out, errs := run("completion", "bash"); status != exitDone || !strings.Contains(out, "__start_pagewire") {
		t.Errorf("completion bash: status %d, %q, stderr %q", status, out, errs)
	}
}

func TestVersionSaysWhatABugReportNeeds(t *testing.T) {
	for _, args := range []string{"version", "--version", "-v"} {
		status, out, errs := run(args)
		if status != exitDone || errs != "" {
			t.Fatalf("%s: status %d, stderr %q", args, status, errs)
		}
		for _, line := range []string{"pagewire ", "\ncommit    ", "\ntoolchain go", "\ncore      "} {
			if !strings.Contains(out, line) {
				t.Errorf("%s: no %q in\n%s", args, line, out)
			}
		}
	}
	var is struct{ Version, Commit, Toolchain, Core string }
	_, out, _ := run("version", "--json")
	if err := json.Unmarshal([]byte(out), &is); err != nil || is.Version == "" || is.Commit == "" || is.Core == "" ||
		!strings.HasPrefix(is.Toolchain, "go") {
		t.Errorf("version --json is %s (%v)", out, err)
	}
}

// The value comes from `openssl dgst -sha384 -binary | base64`, and browsers compare the same.
func TestIntegrityIsWhatBrowsersCompute(t *testing.T) {
	const want = "sha384-ywB1P0WjXou1oD1pmsZQBycsMqsO3tFjGotgWkP/W+2AhgcroefMI1i67KE0yCWn"
	if got := integrity([]byte("abc")); got != want {
		t.Errorf("integrity of abc = %s, want %s", got, want)
	}
}

// captured runs serve with functions that only take its options. as is "agent" or "foreground", or "" if neither ran.
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

// replaceServe makes serve run other functions until the test ends.
func replaceServe(t *testing.T, agent, foreground func(context.Context, serve.Options) error) {
	realAgent, realForeground := serveAgent, serveForeground
	t.Cleanup(func() { serveAgent, serveForeground = realAgent, realForeground })
	serveAgent, serveForeground = agent, foreground
}

func TestServeLogsToStandardError(t *testing.T) {
	for args, want := range map[string][2]string{
		"":                                   {``, `coarse`}, // some programs show a server's log to their users
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
