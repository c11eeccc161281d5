package bridge_test

// This test checks testdata/checklist.md: each row names proofs that exist, or the reason for
// having none. Whether a proof proves its rule is for its reader to judge. "Not yet" is no reason:
// nothing would tell that it is over.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	checklistRow = regexp.MustCompile(`(?m)^\| [\d.]+ \| .+ \| (.+) \|$`)
	proofSpan    = regexp.MustCompile("`([^`]+)`")
	noProof      = regexp.MustCompile(`^(no concern of .+|not kept): .{20,}$`)
)

func TestChecklist(t *testing.T) {
	text, err := os.ReadFile("testdata/checklist.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := checklistRow.FindAllSubmatch(text, -1)
	if len(rows) < 70 {
		t.Errorf("%d rows: this test does not see all", len(rows))
	}
	for _, row := range rows {
		proofs := proofSpan.FindAllSubmatch(row[1], -1)
		if len(proofs) == 0 && !noProof.Match(row[1]) {
			t.Errorf("neither a proof nor a reason: %s", row[0])
		}
		for _, proof := range proofs {
			if err := exists(string(proof[1])); err != nil && !noProof.Match(row[1]) {
				t.Errorf("%v: %s", err, row[0])
			}
		}
	}
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
