package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// source is what js/package.json says. That file is for development (private, with its tools); the package that is
// published is generated from these members, so that a version stands in one place.
type source struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	License     string          `json:"license"`
	Keywords    []string        `json:"keywords,omitempty"`
	Homepage    string          `json:"homepage,omitempty"`
	Repository  json.RawMessage `json:"repository,omitempty"`
}

// export is one entry of "exports". Types come first: a resolver takes the first condition that it knows.
type export struct {
	Types   string `json:"types,omitempty"`
	Default string `json:"default"`
}

// manifest is the package.json that is published. It has no dependencies and no scripts, so that installing it runs
// nothing.
type manifest struct {
	source
	Type        string            `json:"type"`
	Types       string            `json:"types"`
	Main        string            `json:"main"`
	Exports     map[string]export `json:"exports"`
	SideEffects []string          `json:"sideEffects"`
	Unpkg       string            `json:"unpkg"`
	Jsdelivr    string            `json:"jsdelivr"`
	Files       []string          `json:"files"`
}

func readPackage(path string) (source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	var pkg source
	if err := json.Unmarshal(text, &pkg); err != nil {
		return source{}, fmt.Errorf("%s: %w", path, err)
	}
	if pkg.Name == "" || pkg.Version == "" {
		return source{}, fmt.Errorf("%s: name and version are required", path)
	}
	return pkg, nil
}

func manifestOf(pkg source) manifest {
	const types = "./pagewire.d.ts"
	return manifest{
		source: pkg,
		Type:   "module",
		Types:  types,
		Main:   "./pagewire.mjs",
		Exports: map[string]export{
			".":              {types, "./pagewire.mjs"},
			"./iife":         {types, "./pagewire.js"},
			"./core":         {"", "./pagewire.core.js"},
			"./worker":       {"", "./pagewire.worker.js"},
			"./wasm":         {"", "./pagewire.wasm"},
			"./package.json": {"", "./package.json"},
		},
		// The page layer installs itself when it is imported: a bundler must not drop `import 'pagewire'`.
		SideEffects: []string{"./pagewire.mjs", "./pagewire.js", "./pagewire.worker.js"},
		Unpkg:       "./pagewire.js",
		Jsdelivr:    "./pagewire.js",
		Files:       slices.Concat(shipped, []string{"README.md", "LICENSE"}),
	}
}

// writePackage fills dist/npm. Source maps stay out: they would be two thirds of the package.
func writePackage(root, dist string, pkg source) error {
	dir := filepath.Join(dist, "npm")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, name := range shipped {
		if err := copyFile(filepath.Join(dir, name), filepath.Join(dist, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"README.md", "LICENSE"} {
		if err := copyFile(filepath.Join(dir, name), filepath.Join(root, name)); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(manifestOf(pkg), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "package.json"), append(text, '\n'), 0o644)
}
