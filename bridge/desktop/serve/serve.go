package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
)

// Agent runs `pagewire serve` on standard input and output: a pipe to the daemon. It returns nil
// when the agent ends its input, when the process that started this one has gone, or when ctx ends.
func Agent(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx, stop := agents.Orphaned(ctx)
	defer stop()
	defer daemon.Clear(o.Hub) // no later agent may come
	var alone atomic.Pointer[process]
	end := func() {
		if p := alone.Swap(nil); p != nil {
			p.close()
		}
	}
	defer end()
	return pipe(ctx, o, daemon.PipeOptions{
		Dial: daemon.Dialer{Hub: o.Hub, Start: o.Start}.Dial,
		Alone: func(h daemon.Hello, reason error) *daemon.Conn {
			o.Log.Warn("this agent is served alone, until that works", "reason", reason)
			p := newProcess(o, secretsOf(&o))
			p.g.Notice("alone", "Agents do not share their pages: "+reason.Error()+".")
			alone.Store(p)
			return daemon.Alone(ctx, p.options(nil), h)
		},
		AloneEnded: end,
	})
}

func hello(o Options) daemon.Hello {
	return daemon.Hello{Version: o.Version, As: daemon.AsAgent, PID: os.Getpid(), Flags: o.Flags,
		Launch: o.Launch}
}

// pipe carries the agent's messages.
func pipe(ctx context.Context, o Options, with daemon.PipeOptions) error {
	with.In, with.Out, with.Hello, with.Log = o.In, o.Out, hello(o), o.Log
	with.Probe = daemon.Dialer{Hub: o.Hub}.Dial
	with.Notice = func(sentence string) {
		if sentence == "" && o.Flags.Chrome != "" {
			sentence = "The browser at " + o.Flags.Chrome + " (--chrome) answers now."
		}
		if sentence != "" {
			o.Log.Warn(sentence)
		}
	}
	err := daemon.Pipe(ctx, with)
	if errors.Is(err, agents.ErrOrphaned) {
		return nil
	}
	return err
}

// Daemon runs the daemon that an agent's pipe starts. It ends after the last agent. It calls
// started when it listens.
func Daemon(ctx context.Context, o Options, started func()) error {
	if err := o.check(); err != nil {
		return err
	}
	p := newProcess(o, secretsOf(&o))
	defer p.launcher.close() // nobody waits for a daemon, and on a busy machine a profile stays for seconds
	defer p.close()
	return daemon.Run(ctx, p.options(started))
}

// Foreground runs `pagewire serve --http`: it is the daemon until ctx ends or, with Stdio, until
// its agent leaves.
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
	if !o.Stdio {
		defer p.launcher.close() // see Daemon
	}
	defer p.close()
	if !o.Stdio {
		if err := p.browse(); err != nil { // before the first agent on HTTP comes
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if outside != nil {
		p.all.Go(func() {
			if err := outside.serve(p.ctx, p.handlers.handler(outside.public), o.Log); err != nil {
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
		cancel(p.agent(ctx))
	case <-ctx.Done():
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// agent serves the agent on standard input until it leaves or ctx ends, and returns
// context.Canceled or an error. Without Stdio it returns nil when ctx ends.
func (p *process) agent(ctx context.Context) error {
	if !p.o.Stdio {
		<-ctx.Done()
		return nil
	}
	if err := pipe(ctx, p.o, daemon.PipeOptions{
		Dial: daemon.Dialer{Hub: p.o.Hub}.Dial,
		Alone: func(h daemon.Hello, _ error) *daemon.Conn {
			return daemon.Alone(ctx, p.options(nil), h)
		},
	}); err != nil {
		return err
	}
	return context.Canceled // the agent has left
}

// browse gives HTTP agents the browsers of the flags, for as long as this process runs.
func (p *process) browse() error {
	p.nameProfile(p.o.Flags)
	var launched, attached error
	if p.o.Launch != nil {
		_, launched = p.launcher.want(*p.o.Launch)
	}
	if p.o.Flags.Chrome != "" {
		_, attached = p.attached.want(p.o.Flags.Chrome, p.o.Flags.Inject)
	}
	return cmp.Or(launched, attached)
}
