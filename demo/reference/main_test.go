//go:build !js

package main

import (
	"os"
	"strings"
	"testing"
)

func TestTheReferenceIsWhatTheCommandsSay(t *testing.T) {
	const root = "../.."
	want, err := reference(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(root + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what the commands say: run make generate", file)
	}
	for _, part := range []string{"## pagewire serve\n", "## pagewire extension install\n", "## pagewire-node\n",
		"| `--hub address` |", "| `-v`, `--version` |", "pagewire config codex --live\n"} {
		if !strings.Contains(string(want), part) {
			t.Errorf("it lacks %q: the test sees nothing", part)
		}
	}
}

func TestALineWithoutARuleIsAnError(t *testing.T) {
	h := cut("About\n  a b\n\nUsage:\n  x [flags]\n\nFlags:\n  what is this\n  -h, --help   help\n\nExamples:\n  x y\n")
	if prose(h.about) != "About\n\n```text\na b\n\n" && !strings.Contains(prose(h.about), "```text\na b\n") {
		t.Errorf("%q", prose(h.about))
	}
	if len(h.flags) != 2 || len(h.examples) != 1 || table(nil, []string{"x"}, h.flags) == nil {
		t.Errorf("%+v", h)
	}
}
