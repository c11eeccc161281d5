package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// A family is work that every contender does in each round, and the rows that come of it.
type family struct {
	name       string
	rows       []row
	contenders []contender
	// warm has a round that does not count: for what a program or a machine does only once.
	warm bool
	// rounds replaces the number of rounds, where one suffices.
	rounds int
	// limit is how long one measurement may take. Default 30 s.
	limit time.Duration
	// prepare makes ready what the rounds share.
	prepare func(context.Context)
}

// A row is one quantity. Less is better, unless the goal says at least.
type row struct {
	key  string // of figures
	name string
	unit string
	goal goal
	// us is the contender that is judged: the row then has no other of ours, and beside a floor no other. Default
	// the first.
	us string
}

func (r row) has(name string, k kind) bool {
	switch {
	case r.us == "" || name == r.us:
		return true
	case r.goal.of != "" && r.goal.of != best:
		return name == r.goal.of
	}
	return k != ours
}

// A goal is Pagewire's.
type goal struct {
	most float64 // 0: none, or, with exact, nothing at all
	// of is what most is a multiple of: best, the best peer in the same run, or a floor's name. "": most is in the
	// row's unit.
	of string
	// least makes most the least. exact has a goal of zero.
	least, exact bool
}

const best = "best"

// A kind of contender. Ratios are ours to those of peers; floors are lower bounds for all.
type kind string

const (
	ours  kind = "ours"
	peer  kind = "peer"
	floor kind = "floor"
)

// A contender without measure does not offer what the family is about. One whose figures lack a row's key does not
// offer that.
type contender struct {
	name    string
	kind    kind
	measure func(context.Context) (figures, error)
}

type figures map[string]float64

// A Result is a row with what was measured. Contenders are in the order of the family, ours first.
type Result struct {
	Name string
	Unit string
	Who  []Measured
	Goal string
	// Ratio of ours to Of: the best peer, or the base of the goal. 0 without one.
	Ratio float64
	Of    string
	Met   *bool
}

// Measured is what one contender did. Median, Least and Most are of the rounds.
type Measured struct {
	Name   string
	Kind   kind
	Rounds []float64
	Median float64
	Least  float64
	Most   float64
	Absent bool   // it does not offer this
	Failed string // in all rounds
	Lost   int    // rounds in which it failed
}

// measure runs the rounds. A contender that fails twice is out, and the others go on; the error is that ours has
// failed.
func (f family) measure(ctx context.Context, rounds int) ([]Result, error) {
	if f.rounds > 0 {
		rounds = f.rounds
	}
	if f.limit == 0 {
		f.limit = 30 * time.Second
	}
	if f.prepare != nil {
		f.prepare(ctx)
	}
	all := make([]map[string][]float64, len(f.contenders))
	failed := make([]error, len(f.contenders))
	lost := make([]int, len(f.contenders))
	first := 0
	if f.warm {
		first = -1
	}
	for round := first; round < rounds; round++ {
		for n := range f.contenders {
			i := (n + round + len(f.contenders)) % len(f.contenders)
			c := f.contenders[i]
			if c.measure == nil || lost[i] > 1 {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, f.limit)
			got, err := c.measure(limited)
			cancel()
			if err != nil {
				fmt.Fprintf(os.Stderr, "        %s: %v\n", c.name, err)
				failed[i] = err
				lost[i]++
				continue
			}
			if round < 0 {
				continue
			}
			if all[i] == nil {
				all[i] = map[string][]float64{}
			}
			for key, v := range got {
				all[i][key] = append(all[i][key], v)
			}
		}
	}
	var results []Result
	var errs []error
	for i, c := range f.contenders {
		if failed[i] != nil && c.kind == ours {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, failed[i]))
		}
	}
	for _, r := range f.rows {
		result := Result{Name: r.name, Unit: r.unit}
		for i, c := range f.contenders {
			if !r.has(c.name, c.kind) {
				continue
			}
			m := Measured{Name: c.name, Kind: c.kind}
			m.Lost = lost[i]
			switch values := slices.Sorted(slices.Values(all[i][r.key])); {
			case failed[i] != nil && all[i] == nil:
				m.Failed = failed[i].Error()
			case values == nil:
				m.Absent = true
			default:
				m.Rounds, m.Median, m.Least, m.Most = values, median(values), values[0], values[len(values)-1]
			}
			result.Who = append(result.Who, m)
		}
		result.judge(r.goal)
		results = append(results, result)
	}
	return results, errors.Join(errs...)
}

func (r *Result) judge(g goal) {
	us := r.Who[0]
	if us.Failed != "" || us.Absent {
		r.Goal = g.text(r.Unit)
		return
	}
	var base *Measured
	for i := range r.Who {
		m := &r.Who[i]
		if m.Failed != "" || m.Absent {
			continue
		}
		switch {
		case g.of != "" && g.of != best:
			if m.Name == g.of {
				base = m
			}
		case m.Kind == peer && (base == nil || m.Median < base.Median != g.least):
			base = m
		}
	}
	if base != nil && base.Median != 0 {
		r.Ratio, r.Of = us.Median/base.Median, base.Name
	}
	r.Goal = g.text(r.Unit)
	if r.Goal == "" {
		return
	}
	value := us.Median
	if g.of != "" {
		if base == nil {
			return
		}
		value = r.Ratio
	}
	met := value <= g.most
	if g.least {
		met = value >= g.most
	}
	r.Met = &met
}

func (g goal) text(unit string) string {
	sign := "<="
	if g.least {
		sign = ">="
	}
	switch {
	case g.exact:
		return "0"
	case g.most == 0:
		return ""
	case g.of == "":
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", sign, figure.Number(g.most), unit))
	case g.of == best:
		return fmt.Sprintf("%s %g x best", sign, g.most)
	}
	if strings.HasPrefix(g.of, "floor") {
		return fmt.Sprintf("%s %g x floor", sign, g.most)
	}
	return fmt.Sprintf("%s %g x that", sign, g.most)
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// quantile of what is not sorted yet.
func quantile(list []float64, q float64) float64 {
	slices.Sort(list)
	return list[min(len(list)-1, int(float64(len(list))*q))]
}
