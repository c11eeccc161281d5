package hook

import (
	"strings"
	"testing"
)

func TestStat(t *testing.T) {
	const rest = " S 100 200 200 34816 200 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2"
	for text, want := range map[string]process{
		"200 (bash)" + rest:                                      {200, 100, 4711, "bash", true},
		"201 (npm exec page)" + rest:                             {201, 100, 4711, "npm exec page", false},
		"202 (a) S 1 2 3 4 (b)" + rest:                           {202, 100, 4711, "a) S 1 2 3 4 (b", false},
		"200 (cat)" + strings.Replace(rest, " 34816 ", " 0 ", 1): {200, 100, 4711, "cat", false},
	} {
		if got, ok := parseStat(text); got != want || !ok {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "200", "200 (", "200 (bash", "200 (bash)", "200 (bash) S", "x (bash)" + rest,
		"200 (bash) S x" + rest[6:], ") ("} {
		if got, ok := parseStat(text); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
