package bridge_test

// Keeps testdata/checklist.md honest: each rule of both protocol eras has a row, and each row names a proof that
// exists. Whether a proof proves its rule is for its reader to judge.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sections are those of the checklist, and how many topics each has.
var sections = []struct {
	title  string
	topics int
}{
	{"Legacy: 2024-11-05 to 2025-11-25", 11},
	{"Modern: 2026-07-28", 14},
	{"Defects of the Go SDK's server", 10},
}

func TestChecklist(t *testing.T) {
	text, err := os.ReadFile("testdata/checklist.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range checkChecklist(string(text), exists) {
		t.Error(violation)
	}
}

var (
	checklistRow = regexp.MustCompile(`^\| (\d+)\.(\d+) \| (.+) \| (.+) \|$`)
	proofSpan    = regexp.MustCompile("`([^`]+)`")
	noProof      = regexp.MustCompile(`^(no concern of .+|not yet|not kept): .{20,}$`)
)

// checkChecklist says which rows are missing, out of order, or without a proof that exists.
func checkChecklist(text string, exists func(proof string) error) (violations []string) {
	refuse := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	parts := strings.Split(text, "\n## ")[1:]
	if len(parts) != len(sections) {
		refuse("%d sections, want %d", len(parts), len(sections))
		return
	}
	for i, section := range sections {
		title, body, _ := strings.Cut(parts[i], "\n")
		if title != section.title {
			refuse("section %q, want %q", title, section.title)
		}
		topic, rule := 0, 0
		for line := range strings.Lines(body) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| |") || strings.HasPrefix(line, "|---") {
				continue
			}
			row := checklistRow.FindStringSubmatch(line)
			if row == nil {
				refuse("%s: not a row: %s", title, line)
				continue
			}
			number := row[1] + "." + row[2]
			switch number {
			case fmt.Sprintf("%d.%d", topic, rule+1):
				rule++
			case fmt.Sprintf("%d.1", topic+1):
				topic, rule = topic+1, 1
			default:
				refuse("%s: %s does not follow %d.%d", title, number, topic, rule)
			}
			if noProof.MatchString(row[4]) {
				continue
			}
			proofs := proofSpan.FindAllStringSubmatch(row[4], -1)
			if len(proofs) == 0 {
				refuse("%s: %s has neither a proof nor a reason", title, number)
			}
			for _, proof := range proofs {
				if err := exists(proof[1]); err != nil {
					refuse("%s: %s: %v", title, number, err)
				}
			}
		}
		if topic != section.topics {
			refuse("%s: ends with %d, want %d", title, topic, section.topics)
		}
	}
	return violations
}

// exists looks for a conversation, a Go test or a file of tests under Node.
func exists(proof string) error {
	if proof == "oracle" {
		proof = "bridge:TestAllThatTheEngineSaysIsWellFormed"
	}
	dir, test, isGo := strings.Cut(proof, ":")
	switch {
	case isGo:
		files, _ := filepath.Glob(
			filepath.Join("..", filepath.FromSlash(dir), "*_test.go")) // the pattern is well formed
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if strings.Contains(string(text), "\nfunc "+test+"(t *testing.T) {") {
				return nil
			}
		}
		return fmt.Errorf("no test %s in %s", test, dir)
	case strings.HasSuffix(proof, ".mjs"):
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(proof)))
		if err == nil && !strings.Contains(string(text), "test(") {
			err = fmt.Errorf("no test in %s", proof)
		}
		return err
	}
	_, err := os.Stat(filepath.Join("testdata", proof+".txtar"))
	return err
}

// The check is checked: each of these must be refused, in those words.
func TestChecklistCheckRefuses(t *testing.T) {
	sound := "# Title\n"
	for _, s := range sections {
		sound += "\n## " + s.title + "\n\n| | rule | proof |\n|---|---|---|\n"
		for n := 1; n <= s.topics; n++ {
			sound += fmt.Sprintf("| %d.1 | a rule | `story_legacy` |\n| %d.2 | a rule | not yet: because it takes "+
				"its time |\n", n, n)
		}
	}
	if got := checkChecklist(sound, exists); len(got) > 0 {
		t.Fatalf("a sound checklist is refused: %q", got)
	}
	for _, c := range []struct{ old, new, want string }{
		{"| 3.1 | a rule | `story_legacy` |\n| 3.2 | a rule | not yet: because it takes its time |\n", "",
			"4.1 does not follow 2.2"},
		{"| 3.1 | a rule | `story_legacy` |\n", "", "3.2 does not follow 2.2"},
		{"| 14.1 | a rule | `story_legacy` |\n| 14.2 | a rule | not yet: because it takes its time |\n", "",
			"ends with 13, want 14"},
		{"`story_legacy`", "`story_nobody_wrote`", "story_nobody_wrote"},
		{"`story_legacy`", "`bridge/wire:TestNobodyWrote`", "no test TestNobodyWrote in bridge/wire"},
		{"`story_legacy`", "`js/test/nothing.test.mjs`", "nothing.test.mjs"},
		{"`story_legacy`", "surely", "neither a proof nor a reason"},
		{"`story_legacy`", "not yet: later", "neither a proof nor a reason"},
		{"`story_legacy` |", "`story_legacy`", "not a row"},
		{"\n## Modern: 2026-07-28", "\n## Other", `section "Other"`},
	} {
		mutated := strings.Replace(sound, c.old, c.new, 1)
		if mutated == sound {
			t.Fatalf("%q is not in the sound checklist", c.old)
		}
		if got := strings.Join(checkChecklist(mutated, exists), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%q for %q:\n got %q\nwant %q", c.new, c.old, got, c.want)
		}
	}
}
