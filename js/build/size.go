package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/andybalholm/brotli"
)

// An artefact is a file of dist/ whose weight a page pays.
type artefact struct {
	name   string
	budget int // bytes of brotli at quality 11; 0: none
}

// artefacts and their budgets. pagewire.js is paid by every page that uses Pagewire, agent or not; pagewire.wasm (as Go
// builds it, safejs included) only by pages that an agent visits; pagewire.views.wasm only by pages that host Views. A
// budget is raised with the reason in the commit, or not at all.
var artefacts = []artefact{
	{"pagewire.js", 6_100},
	{"pagewire.mjs", 6_100},
	{"pagewire.core.js", 0},
	{"pagewire.worker.js", 0},
	{"pagewire.wasm", 562_000},
	{"pagewire.elements.js", 0},
	{"store.js", 0},
	{"react.js", 0},
	{"views.js", 0},
	{"view.js", 0},
	{"pagewire.views.wasm", 459_300},
	// The core by Go without safejs, which no page loads: what safejs costs is the difference.
	{"test/tinygo.wasm", 0},
}

// weigh prints a table of what each artefact in dist weighs raw, by gzip -9 and by brotli 11. It returns their brotli
// by name, and an error that names those above their budget. The brotli is a Go one; on these files it is as small as
// the reference coder, to the byte.
func weigh(w io.Writer, dist string, list []artefact) (map[string]int, error) {
	type weight struct {
		raw, gzip, brotli int
		err               error
	}
	weights := make([]weight, len(list))
	var wg sync.WaitGroup
	for i, a := range list {
		wg.Go(func() {
			text, err := os.ReadFile(filepath.Join(dist, a.name))
			weights[i] = weight{len(text), gzipped(text), brotlied(text, brotli.BestCompression), err}
		})
	}
	wg.Wait()

	var heavy []string
	brotlis := map[string]int{}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "raw\tgzip\tbrotli\tbudget\t  artefact")
	for i, a := range list {
		got := weights[i]
		if got.err != nil {
			return nil, fmt.Errorf("%w (run make build first)", got.err)
		}
		brotlis[a.name] = got.brotli
		budget := "-"
		if a.budget > 0 {
			budget = fmt.Sprint(a.budget)
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%s\t  %s\n", got.raw, got.gzip, got.brotli, budget, a.name)
		if a.budget > 0 && got.brotli > a.budget {
			heavy = append(heavy, fmt.Sprintf("%s weighs %d bytes brotli, %d above its budget of %d", a.name,
				got.brotli, got.brotli-a.budget, a.budget))
		}
	}
	if err := table.Flush(); err != nil {
		return nil, err
	}
	if len(heavy) > 0 {
		return brotlis, fmt.Errorf("%s", strings.Join(heavy, "; "))
	}
	return brotlis, nil
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
