// Command imports draws which packages of this module import which: one paragraph for each layer. A
// package stands above all its imports, so no arrow leads upwards. Tests are left out, and so is an
// import that another import implies. It never judges: bridge/policy_test.go decides which imports
// are allowed.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

func main() {
	graph, err := list()
	if err != nil {
		fmt.Fprintln(os.Stderr, "imports:", err)
		os.Exit(1)
	}
	draw(os.Stdout, graph)
}

// list returns the packages of the module with their imports from the module, as paths below the
// module's.
func list() (map[string][]string, error) {
	cmd := testcmd.Command("go", "list", "-json=ImportPath,Imports,Module", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	graph := map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
			Module     struct{ Path string }
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return graph, nil
		} else if err != nil {
			return nil, err
		}
		ours := p.Module.Path + "/"
		name := strings.TrimPrefix(p.ImportPath, ours)
		graph[name] = nil
		for _, to := range p.Imports {
			if below, ok := strings.CutPrefix(to, ours); ok {
				graph[name] = append(graph[name], below)
			}
		}
	}
}

// layers returns each package's layer: 0 without imports, otherwise one more than the highest layer
// of its imports.
func layers(graph map[string][]string) map[string]int {
	height := map[string]int{}
	var of func(name string) int
	of = func(name string) int {
		if h, ok := height[name]; ok {
			return h
		}
		h := 0
		for _, to := range graph[name] {
			h = max(h, of(to)+1)
		}
		height[name] = h
		return h
	}
	for name := range graph {
		of(name)
	}
	return height
}

// needed returns the imports of a package that no other of its imports implies.
func needed(graph map[string][]string, name string) (list []string) {
	for _, to := range graph[name] {
		if !slices.ContainsFunc(graph[name],
			func(via string) bool { return via != to && reaches(graph, via, to) }) {
			list = append(list, to)
		}
	}
	slices.Sort(list)
	return list
}

func reaches(graph map[string][]string, from, to string) bool {
	return slices.ContainsFunc(graph[from],
		func(next string) bool { return next == to || reaches(graph, next, to) })
}

func draw(w io.Writer, graph map[string][]string) {
	height := layers(graph)
	for h := slices.Max(slices.Collect(maps.Values(height))); h >= 0; h-- {
		for _, name := range slices.Sorted(maps.Keys(graph)) {
			if height[name] == h {
				fmt.Fprintln(w,
					strings.TrimSpace(fmt.Sprintf("%-36s %s", name,
						strings.Join(needed(graph, name), ", "))))
			}
		}
		if h > 0 {
			fmt.Fprintln(w, "   v")
		}
	}
}
