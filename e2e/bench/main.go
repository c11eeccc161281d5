// Command bench measures Pagewire beside what others made for the same purpose, in one run: every round measures every
// contender once, in an order that turns, so that what else the machine does hits all alike. Of the figures, read the
// ratios.
//
// It needs dist/ (make build), the packages of package.json, which are the others as npm has them, and a browser. Run
// it from the top of the repository: go run ./e2e/bench, or make bench. What is measured is in tables, one file each;
// to add a row is to add an element.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
)

// A row compares contenders in one quantity, of which less is better.
type row struct {
	name string
	unit string
	goal float64 // of the first contender; 0: none
	// contenders has Pagewire first.
	contenders []contender
}

type contender struct {
	name    string
	measure func(ctx context.Context) (float64, error)
}

// limit is how long one measurement may take.
const limit = 30 * time.Second

func main() {
	rounds := flag.Int("rounds", 9, "measure each contender this many times")
	only := flag.String("row", "", "measure only rows whose name matches this `regexp`")
	flag.Parse()
	if err := run(*rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rounds int, only string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-row: %w", err)
	}
	ctx, close, err := browser.Launch(context.Background(), browser.Options{})
	if err != nil {
		return err
	}
	defer close()
	start, err := startRows()
	if err != nil {
		return err
	}
	rows := slices.Concat(start)

	fmt.Printf("medians of %d rounds (least to most); goals are Pagewire's\n\n", rounds)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\twho\tmedian\t\tratio\tgoal")
	for _, r := range rows {
		if !match.MatchString(r.name) {
			continue
		}
		if err := r.run(ctx, rounds, table); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return table.Flush()
}

// run measures a row and writes its lines.
func (r row) run(ctx context.Context, rounds int, table *tabwriter.Writer) error {
	measured := make([][]float64, len(r.contenders))
	for round := -1; round < rounds; round++ { // the first warms up the machine, the browser and this program
		for i := range r.contenders {
			i = (i + round + 1) % len(r.contenders)
			limited, cancel := context.WithTimeout(ctx, limit)
			value, err := r.contenders[i].measure(limited)
			cancel()
			if err != nil {
				return fmt.Errorf("%s: %w", r.contenders[i].name, err)
			}
			if round >= 0 {
				measured[i] = append(measured[i], value)
			}
		}
	}
	for i, c := range r.contenders {
		slices.Sort(measured[i])
		name, ratio, goal := "", "1", ""
		if i > 0 {
			ratio = fmt.Sprintf("%.2f", median(measured[i])/median(measured[0]))
		} else {
			name = r.name
			if r.goal > 0 {
				goal = fmt.Sprintf("%g %s", r.goal, r.unit)
				if median(measured[0]) > r.goal {
					goal += ", missed"
				}
			}
		}
		low, high := measured[i][0], measured[i][len(measured[i])-1]
		fmt.Fprintf(table, "%s\t%s\t%s %s\t(%s to %s)\t%s\t%s\n", name, c.name, figure(median(measured[i])), r.unit, figure(low), figure(high), ratio, goal)
	}
	return nil
}

// median of what is sorted.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// figure has three digits that count.
func figure(v float64) string {
	digits := 2
	if v != 0 {
		digits = max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	return fmt.Sprintf("%.*f", min(digits, 3), v)
}
