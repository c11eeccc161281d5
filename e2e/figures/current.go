package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// current is an error that names the runs that are older than the code below root: what was measured has changed since,
// or was never committed.
func (b *book) current(root string) error {
	var errs []error
	for _, name := range runOrder[1:] { // sizes are compared by a test, with each build
		r, ok := b.Runs[name]
		if !ok {
			errs = append(errs, fmt.Errorf("there are no figures of %s", name))
			continue
		}
		commit, dirty := strings.CutSuffix(r.Commit, "+")
		if dirty || commit == "" {
			errs = append(errs, fmt.Errorf("%s was run with changes that were not committed", r.Command))
			continue
		}
		diff := exec.Command("git", append([]string{"diff", "--shortstat", commit, "--"}, figure.Code...)...)
		diff.Dir = root
		out, err := diff.CombinedOutput()
		if changed := strings.TrimSpace(string(out)); err != nil || changed != "" {
			errs = append(errs, fmt.Errorf("%s was run at %s; since then: %s", r.Command, commit, changed))
		}
	}
	return errors.Join(errs...)
}
