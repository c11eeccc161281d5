//go:build !js

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/agents"
	"github.com/pagewire/pagewire/bridge/gateway/daemon"
)

// Agent is `pagewire serve` on standard input and output: a pipe to the daemon. It returns nil when the agent ends its
// input, when the process that started this one has gone, or ctx ends. A browser that it asked for is given up then.
func Agent(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx, stop := agents.Orphaned(ctx)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	return pipe(ctx, o, daemon.Dialer{Hub: o.Hub, Start: o.Start}, func(h daemon.Hello, reason error) *daemon.Conn {
		o.Log.Warn("this agent is served alone, until that works", "reason", reason)
		alone := newProcess(o, secretsOf(&o))
		alone.g.Notice("alone", "Agents do not share their pages: "+reason.Error()+".")
		d := alone.options(nil)
		serve := d.Serve
		all.Add(1)
		d.Serve = func(ctx context.Context, h daemon.Hello, in io.Reader, out io.Writer, work func(daemon.Session)) error {
			defer all.Done()
			defer alone.end() // the daemon to which the agent goes is to have the port
			return serve(ctx, h, in, out, work)
		}
		return daemon.Alone(ctx, d, h)
	})
}

// hello is what a daemon is told of the agent.
func hello(o Options) daemon.Hello {
	return daemon.Hello{Version: o.Version, As: daemon.AsAgent, PID: os.Getpid(), Flags: o.Flags}
}

// pipe carries the agent's messages, and holds its browser meanwhile.
func pipe(ctx context.Context, o Options, dialer daemon.Dialer, alone func(daemon.Hello, error) *daemon.Conn) error {
	defer hold(o)()
	err := daemon.Pipe(ctx, daemon.PipeOptions{In: o.In, Out: o.Out, Hello: hello(o), Dial: dialer.Dial,
		Probe: daemon.Dialer{Hub: o.Hub}.Dial, Alone: alone, Log: o.Log})
	if errors.Is(err, agents.ErrOrphaned) {
		return nil
	}
	return err
}

// comeBack is how long agents of the daemon before have to tell the numbers of the tabs before these come. They take
// some 20 ms.
const comeBack = 100 * time.Millisecond

// Daemon is the process that an agent's pipe starts. It ends with the last agent. started is called when it listens.
func Daemon(ctx context.Context, o Options, started func()) error {
	if err := o.check(); err != nil {
		return err
	}
	p := newProcess(o, secretsOf(&o))
	defer p.end()
	return daemon.Run(ctx, p.options(started))
}

// Foreground is `pagewire serve --http`: it takes the place of the daemon until ctx ends, or, with Stdio, its agent
// leaves.
func Foreground(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	known := secretsOf(&o)
	if known.missing != nil && !o.Stdio {
		return known.missing
	}
	var outside *port
	if o.HTTP != "" {
		var err error
		if outside, err = openPort(o); err != nil {
			return err
		}
		defer outside.Close()
	}
	release, err := daemon.Succeed(ctx, o.Hub, o.Version)
	if err != nil {
		return err
	}
	defer release()
	p := newProcess(o, known)
	defer p.end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if outside != nil {
		p.all.Go(func() {
			if err := outside.serve(p.ctx, p.front.handler(outside.public), o.Log); err != nil {
				cancel(fmt.Errorf("serve agents at %s: %w", o.HTTP, err))
			}
		})
		o.Log.Info("agents are served", "url", outside.url(), "token", outside.public || !o.NoToken)
	}
	started := make(chan struct{})
	d := p.options(func() {
		release()
		close(started)
	})
	d.Foreground = cmp.Or(o.HTTP, o.Hub)
	p.all.Go(func() { cancel(daemon.Run(ctx, d)) })
	select {
	case <-started:
		time.AfterFunc(comeBack, p.pages)
		p.agent(ctx, cancel)
		<-ctx.Done()
	case <-ctx.Done():
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, errLeft) {
		return err
	}
	return nil
}

// errLeft is that the agent on standard input has left.
var errLeft = errors.New("the agent has left")

// agent serves the agent that this process has besides those on HTTP, and what its flags ask for, until ctx ends.
func (p *process) agent(ctx context.Context, cancel context.CancelCauseFunc) {
	if p.o.Stdio {
		p.all.Go(func() {
			err := pipe(ctx, p.o, daemon.Dialer{Hub: p.o.Hub}, func(h daemon.Hello, _ error) *daemon.Conn {
				return daemon.Alone(ctx, p.options(nil), h)
			})
			if err == nil {
				err = errLeft
			}
			cancel(err)
		})
		return
	}
	leave := hold(p.o)
	context.AfterFunc(ctx, leave)
	if p.o.Flags.Chrome != "" {
		if _, err := p.attached.want(p.o.Flags.Chrome, p.o.Flags.Inject); err != nil {
			cancel(err)
		}
	}
}
