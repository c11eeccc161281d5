package main

import (
	"context"
	"errors"
	"strings"
	"testing"

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
