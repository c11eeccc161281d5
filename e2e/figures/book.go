package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// A book is figures.json: every figure, and the runs that they are of.
type book struct {
	Runs    map[string]measurement
	Figures []entry
}

// A measurement is one measurement of many figures.
type measurement struct {
	Command string
	Date    time.Time
	Machine string `json:",omitempty"`
	Commit  string `json:",omitempty"` // "+" behind it: with changes that were not committed
	Rounds  int    `json:",omitempty"`
	Short   bool   `json:",omitempty"`
	Core    string `json:",omitempty"` // what compiled the core
}

// An entry is a row of figures: Pagewire's, and what it is compared with.
type entry struct {
	Name  string
	Value float64
	Unit  string `json:",omitempty"`
	Run   string
	Goal  string  `json:",omitempty"`
	Met   *bool   `json:",omitempty"`
	Ratio float64 `json:",omitempty"` // Value to what Of did
	Of    string  `json:",omitempty"`
	// Text, Beside and Quotient are a row that was measured as text; its Value says nothing.
	Text, Beside, Quotient string `json:",omitempty"`
	// Others are the medians of all others that were measured in the same rounds, by name; "floor: …" is a bare wire.
	Others map[string]float64 `json:",omitempty"`
}

// open reads the book; one that is not there is empty.
func open(file string) (*book, error) {
	b := &book{Runs: map[string]measurement{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

func (b *book) save(file string) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // "<=" is in goals, and people read them
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(b); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// runOrder are all runs, as they are kept and told.
var runOrder = []string{"size", "bench", "models", "fleet", "tests", "engines", "agents"}

// replace puts the figures of a run in the place of those that the book has of it.
func (b *book) replace(name string, r measurement, figures []entry) {
	b.Figures = slices.DeleteFunc(b.Figures, func(e entry) bool { return e.Run == name })
	for _, e := range figures {
		e.Run = name
		b.Figures = append(b.Figures, e)
	}
	b.Runs[name] = r
	slices.SortStableFunc(b.Figures, func(x, y entry) int {
		return slices.Index(runOrder, x.Run) - slices.Index(runOrder, y.Run)
	})
}

// of are a run's figures.
func (b *book) of(run string) []entry {
	return slices.DeleteFunc(slices.Clone(b.Figures), func(e entry) bool { return e.Run != run })
}

// A quantity is what a name in a document stands for.
type quantity struct {
	Value float64
	Unit  string
}

const floorPrefix = "floor: "

// floor is the bare wire that the row is compared with, or the only one that was measured beside.
func (e entry) floor() (v float64, ok bool) {
	if strings.HasPrefix(e.Of, floorPrefix) {
		v, ok = e.Others[e.Of]
		return v, ok
	}
	n := 0
	for name, median := range e.Others {
		if strings.HasPrefix(name, floorPrefix) {
			v, n = median, n+1
		}
	}
	return v, n == 1
}

// quantities are the names under which documents find a row: its own for Pagewire's figure, and with a word behind it
// what it is compared with.
func (e entry) quantities() map[string]quantity {
	if e.Text != "" {
		return nil
	}
	all := map[string]quantity{e.Name: {e.Value, e.Unit}}
	for name, v := range e.Others {
		all[e.Name+": "+name] = quantity{v, e.Unit}
	}
	if other, ok := e.Others[e.Of]; ok {
		all[e.Name+", best"] = quantity{other, e.Unit}
	}
	if e.Ratio > 0 {
		all[e.Name+", ratio"] = quantity{e.Ratio, "×"}
		all[e.Name+", times"] = quantity{1 / e.Ratio, "×"}
	}
	if floor, ok := e.floor(); ok {
		all[e.Name+", floor"] = quantity{floor, e.Unit}
	}
	return all
}

// names are all that a document can name, sorted.
func (b *book) names() []string {
	var all []string
	for _, e := range b.Figures {
		for name := range e.quantities() {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// find looks a name up. The error names those that share a word with it.
func (b *book) find(name string) (quantity, error) {
	for _, e := range b.Figures {
		if q, ok := e.quantities()[name]; ok {
			return q, nil
		}
	}
	var near []string
	first, _, _ := strings.Cut(name, ",")
	for _, other := range b.names() {
		if strings.HasPrefix(other, first) {
			near = append(near, other)
		}
	}
	return quantity{}, fmt.Errorf("no figure is named %q (near it: %q); go run ./e2e/figures -list prints all names",
		name, near)
}

// row is the entry of a name.
func (b *book) row(name string) (entry, error) {
	for _, e := range b.Figures {
		if e.Name == name {
			return e, nil
		}
	}
	return entry{}, fmt.Errorf("no figure is named %q; go run ./e2e/figures -list prints all names", name)
}
