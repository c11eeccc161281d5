// Package testcmd starts the programs of tests. No test waits for one without end, and none
// outlives its test because of how the tests themselves were started. The policy tests refuse any
// other way to start one.
package testcmd

import (
	"context"
	"flag"
	"os/exec"
	"time"
)

const (
	// Delay bounds the wait for the output of a program that has ended: a child of it that it has
	// left behind may still hold its standard output. Wait then fails with exec.ErrWaitDelay.
	Delay = 20 * time.Second
)

// life bounds a program that nobody ends. It is less than the time after which go test ends
// everything, without a word about the test's own state. Subtests in parallel may wait for their
// turn longer than they take, beside 130 others.
func life() time.Duration {
	if timeout := flag.Lookup("test.timeout"); timeout != nil {
		if of, ok := timeout.Value.(flag.Getter).Get().(time.Duration); ok && of > 0 {
			return of / 5 * 4
		}
	}
	return 8 * time.Minute
}

// Command is exec.Command for a program that runs for at most four fifths of what go test's
// -timeout allows.
func Command(name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(life(), cancel)
	return CommandContext(ctx, name, args...)
}

// CommandContext is exec.CommandContext, for a program that runs for as long as ctx lasts.
func CommandContext(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = Delay
	detach(cmd)
	return cmd
}
