package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// A family is work that every contender does in each round, and the rows of its figures.
type family struct {
	name       string
	rows       []row
	contenders []contender
	// warm adds a first round that does not count, for the work that a program or a machine does
	// only once.
	warm bool
	// rounds replaces the number of rounds if it is not 0.
	rounds int
	// limit is the maximum time of one measurement. Default 30 s.
	limit time.Duration
	// prepare prepares the parts that the rounds share.
	prepare func(context.Context)
}

// A row is one quantity. A lower value is better, unless the goal has least.
type row struct {
	key  string // in figures
	name string
	unit string
	goal goal
	// us is the contender to judge. The row has no others of ours. If the goal names a floor, the
	// row has only that beside us. Default: the first contender, beside all.
	us string
}

func (r row) has(name string, k kind) bool {
	switch {
	case r.us == "" || name == r.us:
		return true
	case r.goal.floor():
		return name == r.goal.of || name == r.goal.within
	}
	return k != ours
}

// A goal is a bound for Pagewire's value.
type goal struct {
	most float64 // 0: no goal, or a goal of zero with exact
	// of is the base of which most is a multiple: `best` (the best peer in the same run), or a
	// floor's name. With "" most is in the row's unit.
	of string
	// within is a floor: a bare program with the same processes. A value of at most 1.1 times that
	// floor's meets the goal too.
	within string
	// least makes most a minimum. exact allows a goal of zero.
	least, exact bool
}

const best = "best"

// A kind of contender. Ratios compare ours with peers; floors are lower bounds for all.
type kind string

const (
	ours  kind = "ours"
	peer  kind = "peer"
	floor kind = "floor"
)

// A contender without measure does not offer the family's work. A contender whose figures lack a
// row's key does not offer that row.
type contender struct {
	name    string
	kind    kind
	measure func(context.Context) (figures, error)
}

type figures map[string]float64

// An outcome is one contender's share of a family: its values by key, and what went wrong.
type outcome struct {
	contender
	values map[string][]float64
	lost   int // failed rounds
	err    error
}

// measure runs the rounds. A contender that fails twice is out, and the others go on. The error has
// the failures of ours.
func (f family) measure(ctx context.Context, rounds int) (rows []figure.Row, failed error) {
	rounds, f.limit = cmp.Or(f.rounds, rounds), cmp.Or(f.limit, 30*time.Second)
	if f.prepare != nil {
		f.prepare(ctx)
	}
	outcomes := make([]outcome, len(f.contenders))
	for i, c := range f.contenders {
		outcomes[i] = outcome{contender: c, values: map[string][]float64{}}
	}
	first := 0
	if f.warm {
		first = -1
	}
	for round := first; round < rounds; round++ {
		for n := range outcomes {
			r := &outcomes[(n+round+len(outcomes))%len(outcomes)]
			if r.measure == nil || r.lost > 1 {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, f.limit)
			got, err := r.measure(limited)
			cancel()
			if err != nil {
				fmt.Fprintf(os.Stderr, "        %s: %v\n", r.name, err)
				r.err = err
				r.lost++
				continue
			}
			for key, v := range got {
				if round >= 0 {
					r.values[key] = append(r.values[key], v)
				}
			}
		}
	}
	for _, r := range outcomes {
		if r.err != nil && r.kind == ours {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", r.name, r.err))
		}
	}
	for _, r := range f.rows {
		rows = append(rows, r.judge(outcomes))
	}
	return rows, failed
}

// judge compares ours, the first contender of the row, with the base of the goal: a floor, or the
// best peer.
func (r row) judge(outcomes []outcome) figure.Row {
	result := figure.Row{Name: r.name, Goal: r.goal.text(r.unit)}
	var us, base, least *float64
	var all []string
	for _, c := range outcomes {
		if !r.has(c.name, c.kind) {
			continue
		}
		values := slices.Sorted(slices.Values(c.values[r.key]))
		text, is := "does not offer", (*float64)(nil)
		switch n := len(values); {
		case n > 0:
			median := (values[(n-1)/2] + values[n/2]) / 2
			text, is = figure.Quantity(median, r.unit), &median
		case len(c.values) == 0 && c.err != nil:
			text = "failed"
		}
		if all == nil {
			result.Figure, us = text, is
		} else if is != nil && (c.name == r.goal.of || !r.goal.floor() && c.kind == peer &&
			(base == nil || *is < *base != r.goal.least)) {
			base, result.Beside = is, text+", "+c.name
		}
		if c.name == r.goal.within {
			least = is
		}
		if n := len(values); n > 0 && values[0] != values[n-1] {
			text += fmt.Sprintf(" (%s to %s)", figure.Number(values[0]), figure.Number(values[n-1]))
		}
		if c.lost > 0 && is != nil {
			text += fmt.Sprintf(", failed in %d rounds", c.lost)
		}
		all = append(all, c.name+": "+text)
	}
	result.All = strings.Join(all, "; ")
	if us == nil {
		return result
	}
	value := *us
	if base != nil && *us != 0 && *base != 0 {
		result.Ratio = figure.Ratio(*us / *base)
	}
	if r.goal.of != "" {
		if base == nil {
			return result
		}
		value = *us / *base
	}
	result.Missed = result.Goal != "" && (value > r.goal.most != r.goal.least) &&
		value != r.goal.most && (least == nil || *us > nearly**least)
	return result
}

// nearly is how many times its floor a value may have and meet its goal.
const nearly = 1.1

// floor reports whether the goal names a contender that the row is judged by, instead of the best
// peer.
func (g goal) floor() bool { return g.of != "" && g.of != best }

func (g goal) text(unit string) string {
	text := g.bound(unit)
	if g.within != "" {
		text += fmt.Sprintf(", or %g × %s", nearly, strings.TrimPrefix(g.within, "floor: "))
	}
	return text
}

func (g goal) bound(unit string) string {
	sign := "≤"
	if g.least {
		sign = "≥"
	}
	switch {
	case g.exact:
		return "0"
	case g.most == 0:
		return ""
	case g.of == "":
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", sign, figure.Number(g.most), unit))
	case g.of == best:
		return fmt.Sprintf("%s %g × best", sign, g.most)
	}
	if strings.HasPrefix(g.of, "floor") {
		return fmt.Sprintf("%s %g × floor", sign, g.most)
	}
	return fmt.Sprintf("%s %g × that", sign, g.most)
}

// quantile returns a quantile of a list, and sorts it.
func quantile(list []float64, q float64) float64 {
	slices.Sort(list)
	return list[min(len(list)-1, int(float64(len(list))*q))]
}
