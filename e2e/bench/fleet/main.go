// Command fleet measures nodes of a fleet (make bench FLEET=1): what an idle page costs beside a bare WebSocket, what a
// change and a read take across nodes beside bare NATS, and how soon all agents hold the last state when a node with
// many pages has been killed. Pages are raw WebSockets, agents raw HTTP, nodes
// processes of bin/pagewire-node. Nothing leaves loopback.
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
	var err error
	switch {
	case *client != "":
		err = idleClients(ctx, *client, *pages)
	case *bare != "":
		err = bareServer(ctx, *bare)
	default:
		err = measure(ctx, *program, *only, *pages)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// measure prints all rows, or one.
func measure(ctx context.Context, program, only string, pages int) error {
	for _, row := range []struct {
		name string
		run  func() error
	}{
		{"memory", func() error { return memory(ctx, pages) }},
		{"change", func() error { return changes(ctx, program) }},
		{"read", func() error { return reads(ctx, program) }},
		{"kill", func() error { return recovery(ctx, program, pages) }},
		{"webhook", func() error { return webhooks(ctx, program) }},
		{"subscriptions", func() error { return subscriptions(ctx, program) }},
	} {
		if only != "" && only != row.name {
			continue
		}
		if err := row.run(); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	return keep(only)
}

// quantile is that of durations, which it sorts.
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

// row prints one row, and keeps it.
func row(what, is, beside, ratio string) {
	fmt.Printf("%-46s %-22s %-30s %s\n", what, is, beside, ratio)
	report.Rows = append(report.Rows, figure.Row{Name: what, Figure: is, Beside: beside, Ratio: ratio})
}

// ratios writes a row for the median, and one for the 99th percentile, of our times beside those of the bare way.
func ratios(what string, ours []time.Duration, way string, bare []time.Duration) {
	for _, q := range []struct {
		name string
		of   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		x, y := quantile(ours, q.of), quantile(bare, q.of)
		row(what+", "+q.name, ms(x), way+" "+ms(y), fmt.Sprintf("%.2fx", float64(x)/float64(y)))
	}
}

// keep writes the report, if it is of all rows.
func keep(only string) error {
	if only != "" {
		return nil
	}
	return figure.Keep(figure.Docs, "fleet", report)
}
