package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// A share is what a module has of one package, or of what is no package's.
type share struct {
	name      string
	functions int
	code      []byte
	brotli    int
}

// least is what a package must weigh in brotli to have a row of its own.
const least = 1_000

// weighPackages prints what the code of each package weighs in a module of wasm/, which is built once more for that,
// with the names of its functions. A package's brotli is its share of whole, the module's: each is compressed by
// itself, and that is scaled so that it sums up. Strings, types and the runtime's tables of functions are data, which
// names no package.
func weighPackages(w io.Writer, root string, tc toolchain, pkg string, whole int) error {
	dir, err := os.MkdirTemp("", "pagewire-size-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "named.wasm")
	if err := tc.named().compile(root, out, pkg); err != nil {
		return err
	}
	module, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	paths, err := dependencies(root, pkg)
	if err != nil {
		return err
	}
	shares, err := sharesOf(module, paths)
	if err != nil {
		return err
	}
	weighShares(shares, whole)
	printShares(w, pkg, shares)
	return nil
}

// named is tc with the names of functions left in what it compiles.
func (tc toolchain) named() toolchain {
	tc.names = true
	return tc
}

// dependencies are the paths of all packages that may be in what TinyGo compiles of pkg.
func dependencies(root, pkg string) ([]string, error) {
	cmd := exec.Command("go", "list", "-deps", "-tags=tinygo", pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -deps %s: %w", pkg, err)
	}
	// What the compiler adds stands in no list.
	return append(strings.Fields(string(text)), "internal/task", "internal/gclayout"), nil
}

// sharesOf splits the code of a module by package, and has its data.
func sharesOf(module []byte, paths []string) ([]*share, error) {
	all, err := sections(module)
	if err != nil {
		return nil, err
	}
	names, err := functionNames(all)
	if err != nil {
		return nil, err
	}
	packageOf := packagesBy(paths)
	byName := map[string]*share{}
	take := func(name string, body []byte) *share {
		s := byName[name]
		if s == nil {
			s = &share{name: name}
			byName[name] = s
		}
		s.code = append(s.code, body...)
		return s
	}
	for _, s := range all {
		switch {
		case s.id == dataSection:
			take("(data)", s.body)
		case s.id == codeSection:
			r := reader{rest: s.body}
			first := imported(all)
			for i := range r.number() {
				take(packageOf(names[first+i]), r.bytes(r.number())).functions++
			}
			if r.err != nil {
				return nil, fmt.Errorf("code section: %w", r.err)
			}
		case s.id != customSection:
			take("(tables)", s.body)
		}
	}
	shares := make([]*share, 0, len(byName))
	for _, s := range byName {
		shares = append(shares, s)
	}
	return shares, nil
}

// shareQuality is that of the brotli by which shares are found: in proportion it says the same as 11, in a tenth of the
// time.
const shareQuality = 6

// weighShares gives each share its part of whole, and sorts them.
func weighShares(shares []*share, whole int) {
	var wg sync.WaitGroup
	for _, s := range shares {
		wg.Go(func() { s.brotli = brotlied(s.code, shareQuality) })
	}
	wg.Wait()
	sum := 0
	for _, s := range shares {
		sum += s.brotli
	}
	for _, s := range shares {
		s.brotli = s.brotli * whole / max(sum, 1)
	}
	slices.SortFunc(shares, func(a, b *share) int { return cmp.Or(b.brotli-a.brotli, cmp.Compare(a.name, b.name)) })
}

func printShares(w io.Writer, pkg string, shares []*share) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\nfunctions\traw\tbrotli\t  in %s\n", pkg)
	var small share
	count := 0
	for _, s := range shares {
		if s.brotli < least {
			count++
			small.functions, small.brotli = small.functions+s.functions, small.brotli+s.brotli
			small.code = append(small.code, s.code...)
			continue
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t  %s\n", s.functions, len(s.code), s.brotli, s.name)
	}
	fmt.Fprintf(table, "%d\t%d\t%d\t  (%d others)\n", small.functions, len(small.code), small.brotli, count)
	table.Flush() // to where everything is printed
}

// imported is how many functions a module imports: they are numbered before its own.
func imported(all []section) (n int) {
	for _, s := range all {
		if s.id != importSection {
			continue
		}
		r := reader{rest: s.body}
		for range r.number() {
			r.bytes(r.number())
			r.bytes(r.number())
			if r.byte() != 0 { // a memory or a table: TinyGo imports functions alone
				return n
			}
			r.number()
			n++
		}
	}
	return n
}

// functionNames reads the custom section "name", by the numbers of functions.
func functionNames(all []section) (map[int]string, error) {
	names := map[int]string{}
	for _, s := range all {
		r := reader{rest: s.body}
		if s.id != customSection || string(r.bytes(r.number())) != "name" {
			continue
		}
		for len(r.rest) > 0 {
			id, body := r.byte(), reader{rest: r.bytes(r.number())}
			if id != 1 {
				continue
			}
			for range body.number() {
				i := body.number()
				names[i] = string(body.bytes(body.number()))
			}
			if body.err != nil {
				return nil, fmt.Errorf("names: %w", body.err)
			}
		}
		return names, r.err
	}
	return nil, errors.New("names: the module has none")
}

// packagesBy returns what says to which of the packages a function belongs, by the name that TinyGo gives it:
// "(*github.com/pagewire/pagewire/bridge.Engine).Open", "main.open#wasmexport". C has names without packages.
func packagesBy(paths []string) func(function string) string {
	return func(function string) string {
		name := strings.TrimLeft(function, "(*")
		if i := strings.IndexAny(name, "[#$"); i >= 0 { // type arguments, and parts of a function
			name = name[:i]
		}
		for end := strings.LastIndexByte(name, '.'); end > 0; end = strings.LastIndexByte(name[:end], '.') {
			if path := name[:end]; path == "main" || slices.Contains(paths, path) {
				return path
			}
		}
		return "(libc)"
	}
}
