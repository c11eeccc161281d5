// Command bench measures Pagewire and other programs for the same purpose, in one run. Every round
// measures every contender once. The order of the contenders turns, so that other work of the
// machine affects all alike. The ratios count, not the single figures.
//
// It needs dist/ and bin/pagewire (make build), the npm packages of the others (package.json and
// e2e/peers) and a browser. Run it from the top of the repository: make bench, which is go run
// ./e2e/bench. It writes e2e/bench/bench.md and bench.json; a short run writes both to dist/bench.
//
// The measurements are in families: start.go and page.go in pages, gateway.go at the gateway,
// relay.go for a bare gateway, daemon.go for the daemon's end, renderers.go in the browser's
// processes, shown.go for any page; with -agents only those of models.go, with -stale only that of
// stale.go. To add a row, add an element. With -trace, trace.go follows single calls instead (make
// trace, into trace.md). Nothing here is a test: only work that is not done makes it fail, and no
// figure does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// offline limits a browser of the benchmark to this machine.
const offline = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"

func main() {
	if len(os.Args) == 3 && os.Args[1] == relayPipe {
		if err := pipeTo(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	rounds := flag.Int("rounds", 7, "measure each contender this many times")
	short := flag.Bool("short", false, "less of everything: two minutes in all")
	agents := flag.Bool("agents", false,
		"measure what a model pays for knowing what a page shows, and nothing else")
	old := flag.Bool("stale", false,
		"count what agents do on old state, and measure nothing else (stale/README.md)")
	traced := flag.Bool("trace", false,
		"trace where the time of a call goes, as root on Linux, and measure nothing else")
	soak := flag.Int("soak", 0,
		"watch ten tabs for so many minutes, print what that costs, and measure nothing else")
	only := flag.String("row", "", "measure only families whose name matches this `regexp`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, *soak, *short, *agents, *old, *traced, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds, soak int, short, agents, old, traced bool,
	only string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-row: %w", err)
	}
	if short {
		rounds = min(rounds, 2)
	}
	began := time.Now()
	b, err := newBench(short)
	if err != nil {
		return err
	}
	defer b.close()
	chromium, closeBrowser,
		err := browsertest.Launch(ctx, browsertest.Options{Flags: []string{offline}})
	if err != nil {
		return err
	}
	defer closeBrowser()
	b.chromium = chromium

	if traced {
		return b.trace(ctx)
	}
	if soak > 0 {
		return b.soak(ctx, soak)
	}
	part, how := "bench", fmt.Sprintf("; medians of %d rounds that take turns", rounds)
	if agents {
		part, how = "models", "; one round, of bytes that no machine changes"
	}
	if old {
		part, how = "stale", "; one round ([how](stale/README.md))"
	}
	report := figure.Run{Command: command(short, agents, old), Began: began,
		Machine: machine(chromium), Commit: figure.Commit(), How: how}
	var failed []error
	families := slices.Concat(b.sizes(), b.starts(), b.pages(), b.gateways(), b.shownPages(),
		[]family{b.daemons(), b.renderers()})
	if agents {
		families = b.models()
	}
	if old {
		families = b.stale()
	}
	for _, f := range families {
		if !match.MatchString(f.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(began).Seconds(), f.name)
		rows, err := f.measure(ctx, rounds)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", f.name, err))
		}
		report.Rows = append(report.Rows, rows...)
	}
	b.close()
	// A partial run does not replace a complete one.
	out := figure.Docs
	if short || only != "" {
		out = "dist/bench"
	}
	if part == "bench" {
		rows, core, err := weights()
		if err != nil {
			return err
		}
		sizes := figure.Run{Command: "make size", Began: began, Machine: "core compiled by " + core,
			Commit: report.Commit, Rows: rows}
		if err := figure.Keep(out, "size", sizes); err != nil {
			return err
		}
	}
	if err := figure.Keep(out, part, report); err != nil {
		return err
	}
	for _, row := range report.Rows {
		missed := ""
		if row.Missed {
			missed = ", missed"
		}
		fmt.Printf("%s: %s; beside %s; goal %s%s\n", row.Name, row.Figure, row.Beside, row.Goal,
			missed)
	}
	fmt.Printf("\n%s/bench.md has every contender.\n", out)
	return errors.Join(failed...)
}

// command returns the command line of such a run.
func command(short, agents, old bool) string {
	name := "make bench"
	if agents {
		name += " AGENTS=1"
	}
	if old {
		name += " STALE=1"
	}
	if short {
		name += " SHORT=1"
	}
	return name
}
