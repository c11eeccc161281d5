// Command fleet measures nodes of a fleet (make bench FLEET=1). It compares the memory of an idle page with that of a
// bare WebSocket, and changes and reads across nodes with bare NATS. It measures how soon all agents hold the last
// state after a node with many pages was killed. Pages are raw WebSockets, agents raw HTTP, nodes processes of
// bin/pagewire-node. All is on loopback.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/pagewire/pagewire/e2e/bench/figure"
)

func main() {
	program := flag.String("node", "bin/pagewire-node", "the node's binary, which make build wrote")
	only := flag.String("only", "", "one row: memory, change, read, kill, webhook, subscriptions")
	pages := flag.Int("pages", 5000, "idle pages, and those of the node that is killed")
	client := flag.String("idle", "", "(of this program to itself) connect idle pages to this URL")
	bare := flag.String("bare", "", "(the same) be a bare server of NATS beside another one, or alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := attempt(func() {
		switch {
		case *client != "":
			idleClients(ctx, *client, *pages)
		case *bare != "":
			bareServer(ctx, *bare)
		default:
			measure(ctx, *program, *only, *pages)
		}
	}); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// A failure is the panic of check and must. attempt returns it as an error.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func attempt(do func()) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		default:
			panic(f)
		}
	}()
	do()
	return nil
}

// measure prints all rows, or the row named by only.
func measure(ctx context.Context, program, only string, pages int) {
	for _, row := range []struct {
		name string
		run  func()
	}{
		{"memory", func() { memory(ctx, pages) }},
		{"change", func() { changes(ctx, program) }},
		{"read", func() { reads(ctx, program) }},
		{"kill", func() { recovery(ctx, program, pages) }},
		{"webhook", func() { webhooks(ctx, program) }},
		{"subscriptions", func() { subscriptions(ctx, program) }},
	} {
		if only != "" && only != row.name {
			continue
		}
		if err := attempt(row.run); err != nil {
			check(fmt.Errorf("%s: %w", row.name, err))
		}
	}
	if only == "" {
		check(figure.Keep(figure.Docs, "fleet", report))
	}
}

// quantile returns a quantile of durations, and sorts them.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(len(list)-1, int(float64(len(list))*q))]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

var report = figure.Run{Command: "make bench FLEET=1", Began: time.Now(), Machine: figure.Machine(),
	Commit: figure.Commit()}

// row prints a row, and adds it to the report.
func row(what, is, beside, ratio string) {
	fmt.Printf("%-46s %-22s %-30s %s\n", what, is, beside, ratio)
	report.Rows = append(report.Rows, figure.Row{Name: what, Figure: is, Beside: beside, Ratio: ratio})
}

// ratios writes rows for the median and the 99th percentile of Pagewire's times and of the bare way's.
func ratios(what string, ours []time.Duration, way string, bare []time.Duration) {
	for _, q := range []struct {
		name string
		of   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		x, y := quantile(ours, q.of), quantile(bare, q.of)
		row(what+", "+q.name, ms(x), way+" "+ms(y), fmt.Sprintf("%.2fx", float64(x)/float64(y)))
	}
}
