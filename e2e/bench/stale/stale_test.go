package stale

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestTasksComeFromTheirSeed(t *testing.T) {
	tasks, err := Tasks(1, 100)
	again, _ := Tasks(1, 100)
	others, _ := Tasks(2, 100)
	if err != nil || !reflect.DeepEqual(tasks, again) || reflect.DeepEqual(tasks, others) {
		t.Fatalf("a seed does not decide (%v)", err)
	}
	pages, changes := map[string]bool{}, map[string]bool{}
	for _, task := range tasks {
		pages[task.Name] = true
		s := maps.Clone(task.Start)
		for _, step := range task.Steps {
			for _, c := range step {
				changes[c.How] = true
				before := task.Plan(s)
				r := task.Apply(c, s)
				if next := task.Plan(s); c.How == "taken" && next == before ||
					c.How == "new" && next != r.ID || r.ID == 0 && c.How != "elsewhere" {
					t.Errorf("%s %s: the next record was %d, and is %d", task.Name, c.How, before, next)
				}
			}
			if len(step) == 0 {
				changes[""] = true
			}
			id := task.Plan(s)
			if id == 0 {
				t.Fatalf("%s: nothing is left to do", task.Name)
			}
			s.Set(id, task.Done)
		}
		seen := State{}
		for _, r := range s {
			seen.Learn(`\"` + task.Line(r) + `\n\"`)
		}
		if !maps.Equal(seen, s) {
			t.Errorf("%s: lines do not lead to their records", task.Name)
		}
	}
	if len(pages) != 8 || len(changes) != len(Changes)+1 {
		t.Errorf("there are %v and %v", pages, slices.Collect(maps.Keys(changes)))
	}
}

// Three slots: the first that is free is #2.
func TestJudge(t *testing.T) {
	k := Kind{Rank: "hour", Field: "taken", Open: "free", Done: "mine", Other: "Ann"}
	then := State{1: {1, 8, "room", "Ann", "n"}, 2: {2, 9, "room", "free", "n"}, 3: {3, 10, "lab", "free", "n"}}
	text := func(s State) (all string) {
		for _, r := range s {
			all += k.Line(r) + "\n"
		}
		return all
	}
	taken, noted := maps.Clone(then), maps.Clone(then)
	taken.Set(2, "Ann")
	noted[3] = Record{3, 10, "lab", "free", "edited"}
	one := Task{Kind: k, Start: then, Steps: make([][]Change, 1)}
	for name, c := range map[string]struct {
		writes []Write
		old    int
		right  bool
	}{
		"the right one":          {[]Write{{2, "mine", text(then)}}, 0, true},
		"another":                {[]Write{{3, "mine", text(then)}}, 0, false},
		"another value":          {[]Write{{2, "Ann", text(then)}}, 0, false},
		"on a slot taken since":  {[]Write{{2, "mine", text(taken)}}, 1, false},
		"right by chance":        {[]Write{{3, "mine", text(taken)}}, 1, true},
		"right with an old note": {[]Write{{2, "mine", text(noted)}}, 1, true},
		"none":                   {nil, 0, false},
		"one too many":           {[]Write{{2, "mine", text(then)}, {3, "mine", text(then)}}, 0, false},
	} {
		old, right := one.Judge([]State{then, then}, c.writes)
		if old != c.old || right != c.right {
			t.Errorf("%s: %d on old state, right %v", name, old, right)
		}
	}
}

func TestLearnTakesTheNewLineOfADifference(t *testing.T) {
	s := State{}
	n := s.Learn(strings.ReplaceAll("@@ -7 +7 @@|-#7 tea | price 3 | quantity 0 | cup|+#7 tea | price 3 | quantity 2 | cup|", "|@", "\n@"))
	if n != 2 || s[7] != (Record{7, 3, "tea", "2", "cup"}) {
		t.Errorf("%d lines, %v", n, s)
	}
	s.Learn(`"words":"#7 tea | price 3 | quantity [-2-] {+5+} | [-cup-] {+a pot+}\n#8 `)
	if s[7] != (Record{7, 3, "tea", "5", "a pot"}) {
		t.Errorf("of marked words %v", s)
	}
}
