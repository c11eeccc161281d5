package main

import (
	"slices"
	"strings"
	"testing"
)

func TestNoArrowLeadsUpwards(t *testing.T) {
	graph, err := list("github.com/pagewire/pagewire/...")
	if err != nil {
		t.Fatal(err)
	}
	height := layers(graph)
	for name, imports := range graph {
		for _, to := range imports {
			if height[to] >= height[name] {
				t.Errorf("%s imports %s, which does not stand below it", name, to)
			}
		}
	}
	var text strings.Builder
	drawText(&text, graph)
	command, engine := strings.Index(text.String(), "bridge/cmd/pagewire"), strings.Index(text.String(), "\nbridge ")
	if command < 0 || engine < command {
		t.Errorf("the command does not stand above the engine:\n%s", &text)
	}
}

func TestImpliedImportsAreLeftOut(t *testing.T) {
	graph := map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": nil}
	if got := needed(graph, "a"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("a is drawn as importing %q", got)
	}
}
