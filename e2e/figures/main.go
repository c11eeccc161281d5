// Command figures keeps the numbers of README.md and demo/docs/ as old as the measurements, and no older. It measures
// nothing itself: it takes what other targets have left (sources.go) into demo/docs/figures.json, which says of each
// figure by which command, when, at which commit and on what machine it was measured, and writes figures.json's numbers
// into the documents (document.go). make figures runs it, and make bench ends with that.
//
//	figures           take what is there, and write
//	figures -list     print every figure by name
//	figures -current  fail, and say which runs are older than the code; for whoever makes a release
//
// A document marks its numbers in two ways. A part that is written whole:
//
//	<!-- figures: sizes, written by make figures -->
//	(a table)
//	<!-- end of figures -->
//
// and a number in a sentence, in the unit and with the decimals that the sentence has:
//
//	A page without agents pays 6.1 KB<!-- figure: pagewire.js, brotli -->.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// bookFile is where the figures are kept, from the top of the repository.
const bookFile = "demo/docs/figures.json"

func main() {
	list := flag.Bool("list", false, "print every figure by name, and write nothing")
	current := flag.Bool("current", false, "fail if figures are older than the code, and write nothing")
	flag.Parse()
	if err := run(*list, *current); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(list, current bool) error {
	b, err := open(bookFile)
	if err != nil {
		return err
	}
	if current {
		return b.current(".")
	}
	if list {
		for _, name := range b.names() {
			f, _ := b.find(name)
			fmt.Printf("%-70s %s\n", name, figure.Quantity(f.Value, f.Unit))
		}
		return nil
	}
	if err := b.take("."); err != nil {
		return err
	}
	if err := b.save(bookFile); err != nil {
		return err
	}
	files, err := documents(".")
	if err != nil {
		return err
	}
	for _, name := range files {
		before, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		after, err := b.rewrite(string(before))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if after == string(before) {
			continue
		}
		if err := os.WriteFile(name, []byte(after), 0o644); err != nil {
			return err
		}
		fmt.Println("figures: wrote", name)
	}
	return nil
}

// documents are the files that may hold figures: README.md and all Markdown of demo/docs and idl/upstream.
func documents(root string) ([]string, error) {
	var files []string
	for _, pattern := range []string{"README.md", "demo/docs/*.md", "demo/docs/*/*.md", "idl/upstream/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}
