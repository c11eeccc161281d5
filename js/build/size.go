package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/andybalholm/brotli"
)

// An artefact is a file of dist/ that pages download.
type artefact struct {
	name   string
	budget int // bytes of brotli at quality 11; 0: none
}

// artefacts have budgets. Every page with Pagewire downloads pagewire.js, with or without an agent;
// only pages that an agent visits download pagewire.wasm, and only hosts of Views views.js.
// pagewire.mjs has 460 bytes more than pagewire.js: outside a page importing it must not throw. The
// budgets are those of TinyGo's build. A budget is raised with the reason in the commit, or not at
// all.
var artefacts = []artefact{
	{"pagewire.js", 6_132}, // a tenth of @mcp-b/global 5.1.0
	{"pagewire.mjs", 6_600},
	{"pagewire.core.js", 0}, {"pagewire.worker.js", 0},
	{"pagewire.wasm", 46_000},
	{"pagewire.elements.js", 6_430}, {"store.js", 2_000}, {"react.js", 1_450}, {"vue.js", 300},
	{"views.js", 9_000}, {"view.js", 1_600},
	{"pagewire.shown.js", 14_890}, // in pages that an agent watches
	{"pagewire.pick.js", 3_200},   // in pages where a person points at a part
	// in pages in development; in any other build the second takes its place
	{"dev.js", 13_000}, {"dev.none.js", 300},
	// the same reader, and its port to the worker; no page downloads it
	{"extension/shown.js", 16_120},
}

// A weight has the sizes of an artefact, in bytes.
type weight struct {
	Name              string
	Raw, Gzip, Brotli int
	Budget            int `json:",omitempty"` // of the brotli; 0: none
}

// weigh weighs each artefact in dist: raw, by gzip -9 and by brotli 11. The brotli coder is in Go;
// on these files its output is as small as the reference coder's, to the byte.
func weigh(dist string, list []artefact) ([]weight, error) {
	weights := make([]weight, len(list))
	failed := make([]error, len(list))
	var wg sync.WaitGroup
	for i, a := range list {
		wg.Go(func() {
			text, err := os.ReadFile(filepath.Join(dist, a.name))
			if err != nil {
				failed[i] = fmt.Errorf("%w (run make build first)", err)
				return
			}
			weights[i] = weight{a.name, len(text), gzipped(text),
				brotlied(text, brotli.BestCompression), a.budget}
		})
	}
	wg.Wait()
	return weights, errors.Join(failed...)
}

// printWeights writes the table, and returns an error that names the artefacts above their budgets.
func printWeights(w io.Writer, weights []weight) error {
	var heavy []string
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "raw\tgzip\tbrotli\tbudget\t  artefact")
	for _, a := range weights {
		budget := "-"
		if a.Budget > 0 {
			budget = fmt.Sprint(a.Budget)
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%s\t  %s\n", a.Raw, a.Gzip, a.Brotli, budget, a.Name)
		if a.Budget > 0 && a.Brotli > a.Budget {
			heavy = append(heavy, fmt.Sprintf(
				"%s weighs %d bytes brotli, %d above its budget of %d", a.Name, a.Brotli,
				a.Brotli-a.Budget, a.Budget))
		}
	}
	err := table.Flush()
	if err == nil && len(heavy) > 0 {
		err = errors.New(strings.Join(heavy, "; "))
	}
	return err
}

func gzipped(text []byte) int {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	w.Write(text)                                           // a bytes.Buffer does not fail
	w.Close()
	return out.Len()
}

func brotlied(text []byte, quality int) int {
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, quality)
	w.Write(text)
	w.Close()
	return out.Len()
}
