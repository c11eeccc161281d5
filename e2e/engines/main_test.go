package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each test of package e2e, a new one too, is either in rows, to run in every engine, or in
// leftOut, with the reason.
func TestEachTestIsInOneList(t *testing.T) {
	listed := map[string]int{}
	for _, r := range rows {
		names := strings.Fields(r.tests)
		for _, own := range r.own {
			names = append(names, strings.Fields(own)...)
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			listed[name]++
		}
	}
	for _, e := range leftOut {
		for _, name := range strings.Fields(e.tests) {
			listed[name]++
		}
	}
	files, err := filepath.Glob("../*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).
			FindAllStringSubmatch(string(text), -1) {
			if listed[found[1]] != 1 {
				t.Errorf("%s of %s is in the lists %d times, want once", found[1], file,
					listed[found[1]])
			}
			delete(listed, found[1])
		}
	}
	for name, times := range listed {
		if times != 0 {
			t.Errorf("%s is in a list, and in no file", name)
		}
	}
}

func TestOnlyTestsThatRunNoOthersAreCounted(t *testing.T) {
	came, err := read(strings.NewReader(`{"Action":"run","Test":"TestStory"}
{"Action":"pass","Test":"TestStory/a"}
{"Action":"fail","Test":"TestStory/b/c"}
{"Action":"fail","Test":"TestStory/b"}
{"Action":"fail","Test":"TestStory"}
{"Action":"pass","Test":"TestNpm"}
{"Action":"fail"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := came.counted([]string{"TestStory"}); got != "1 of 2" {
		t.Errorf("counted %s", got)
	}
	if got := came.counted([]string{"TestNpm"}); got != "1" {
		t.Errorf("counted %s", got)
	}
	if got := came.counted([]string{"TestStart"}); got != "–" {
		t.Errorf("counted %s", got)
	}
}
