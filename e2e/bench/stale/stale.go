// Package stale has the tasks of the benchmark of yesterday's page: what a page shows, what an
// agent shall do there, how a person changes it meanwhile, and what counts. It is pure: a seed
// always gives the same tasks, and the same writes the same verdict. README.md says the rest.
package stale

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	//go:embed kinds.json
	kinds []byte
	// Page is the script of the page, the same for all contenders.
	//go:embed page.js
	Page string
)

// A Kind of page has records with a rank and a field. A write sets the field of one record to Done:
// of the record with the least rank (with Most, the greatest) among those where it is Open.
type Kind struct {
	Name, Goal, Titles, Rank, Field, Open, Done, Other string // Other is what a person sets
	Most                                               bool
}

// A Record is a line of the page.
type Record struct {
	ID, Rank           int
	Title, Field, Note string
}

// A State has the records of a page by ID, from 1 on.
type State map[int]Record

// Line is how the page shows a record.
func (k Kind) Line(r Record) string {
	return fmt.Sprintf("#%d %s | %s %d | %s %s | %s", r.ID, r.Title, k.Rank, r.Rank, k.Field,
		r.Field, r.Note)
}

var line = regexp.MustCompile(`#(\d+) (\w+) \| \w+ (\d+) \| \w+ (\w+) \| ([\w ]*\w)`)

// marks are those of words that have changed: "[-old-] {+new+}".
var marks = regexp.MustCompile(`\[-[^\]]*-\] ?|\{\+|\+\}`)

// Learn adds to a state each line in a text, in whatever form a contender gives it, and returns
// their number. In a difference a new line is behind its old one. Pages remove no line.
func (s State) Learn(text string) int {
	all := line.FindAllStringSubmatch(marks.ReplaceAllString(text, ""), -1)
	for _, m := range all {
		id, _ := strconv.Atoi(m[1]) // the pattern has digits alone
		rank, _ := strconv.Atoi(m[3])
		s[id] = Record{id, rank, m[2], m[4], m[5]}
	}
	return len(all)
}

// Set sets the field of a record.
func (s State) Set(id int, field string) {
	r := s[id]
	r.Field = field
	s[id] = r
}

// Plan returns the record that the next write has to set, if the state is the true one.
func (k Kind) Plan(s State) (target int) {
	for _, id := range slices.Sorted(maps.Keys(s)) {
		if r, best := s[id], s[target].Rank; r.Field == k.Open &&
			(target == 0 || r.Rank != best && r.Rank > best == k.Most) {
			target = id
		}
	}
	return target
}

// A Change is one of a person, in the page's state of that time.
type Change struct {
	How  string // one of Changes
	Late bool   // after the second look of an agent that looks before each write
	seed uint64
}

// Changes are the kinds of a change: the next record is done by the person; another becomes the
// next; a new one does; a note on which no write depends; another part of the page.
var Changes = []string{"taken", "ahead", "new", "note", "elsewhere"}

// A Task is a page, and a person's changes before each write.
type Task struct {
	Kind
	Start State
	Steps [][]Change
}

// Tasks generates n tasks from a seed.
func Tasks(seed uint64, n int) (tasks []Task, err error) {
	var all []Kind
	if err := json.Unmarshal(kinds, &all); err != nil {
		return nil, err
	}
	for i := range n {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		t := Task{Kind: all[i%len(all)], Start: State{}}
		for range 20 + r.IntN(41) {
			t.add(r, t.Start, 100+r.IntN(900), []string{t.Open, t.Open, t.Other}[r.IntN(3)])
		}
		t.Steps = make([][]Change, 1+r.IntN(3))
		for step := range t.Steps {
			for range []int{0, 0, 0, 0, 0, 1, 1, 1, 1, 2}[r.IntN(10)] {
				t.Steps[step] = append(t.Steps[step],
					Change{Changes[r.IntN(len(Changes))], r.IntN(4) == 0, r.Uint64()})
			}
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

func (k Kind) add(r *rand.Rand, s State, rank int, field string) Record {
	word := func() string { words := strings.Fields(k.Titles); return words[r.IntN(len(words))] }
	id := len(s) + 1
	s[id] = Record{id, rank, word(), field, fmt.Sprintf("%s with note %d", word(), r.IntN(1000))}
	return s[id]
}

// Apply changes a state as the person does, and returns the record that is another one now. It is
// the zero Record if the change is elsewhere.
func (k Kind) Apply(c Change, s State) Record {
	r := rand.New(rand.NewPCG(c.seed, 0))
	target, changed := s[k.Plan(s)], s[1+r.IntN(len(s))]
	ahead := target.Rank - 1
	if k.Most {
		ahead = target.Rank + 1
	}
	switch c.How {
	case "taken":
		changed = target
		changed.Field = k.Other
	case "ahead":
		changed.Field, changed.Rank = k.Open, ahead
	case "new":
		changed = k.add(r, s, ahead, k.Open)
	case "note":
		changed.Note = fmt.Sprintf("edited to note %d", r.IntN(1000))
	default:
		return Record{}
	}
	s[changed.ID] = changed
	return changed
}

// A Write is one that the page has accepted: what it did, and what the page showed before it.
type Write struct {
	ID            int
	Field, Before string
}

// Judge compares each accepted write with what the agent believed in then. It returns the number of
// writes on old state, and whether each step has made the write that was right for the true state.
func (t Task) Judge(beliefs []State, writes []Write) (old int, right bool) {
	right = len(writes) == len(t.Steps)
	for i, w := range writes {
		truth := State{}
		truth.Learn(w.Before)
		if !maps.Equal(beliefs[i], truth) {
			old++
		}
		right = right && w.ID == t.Plan(truth) && w.Field == t.Done
	}
	return old, right
}
