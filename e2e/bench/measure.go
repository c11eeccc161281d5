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

// A family is work that every contender does in each round, and the rows of its figures.
type family struct {
	name       string
	rows       []row
	contenders []contender
	// warm adds a first round that does not count, for the work that a program or a machine does only once.
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
	// us is the contender to judge. The row has no others of ours. If the goal names a floor, the row has only that beside
	// us. Default: the first contender, beside all.
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

// A goal is a bound for Pagewire's value.
type goal struct {
	most float64 // 0: no goal, or a goal of zero with exact
	// of is the base of which most is a multiple: `best` (the best peer in the same run), or a floor's name. With "" most
	// is in the row's unit.
	of string
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

// A contender without measure does not offer the family's work. A contender whose figures lack a row's key does not
// offer that row.
type contender struct {
	name    string
	kind    kind
	measure func(context.Context) (figures, error)
}

type figures map[string]float64

// A Result is a row with its measurements. Contenders are in the order of the family, ours first.
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

// Measured is one contender's result. Median, Least and Most are over the rounds.
type Measured struct {
	Name   string
	Kind   kind
	Rounds []float64
	Median float64
	Least  float64
	Most   float64
	Absent bool   // it does not offer this
	Failed string // the last error, if all rounds failed
	Lost   int    // failed rounds
}

// measure runs the rounds. A contender that fails twice is out, and the others go on. The error has the failures of
// ours.
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

// quantile returns a quantile of a list, and sorts it.
func quantile(list []float64, q float64) float64 {
	slices.Sort(list)
	return list[min(len(list)-1, int(float64(len(list))*q))]
}
