package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// published is the package.json of the npm package, with noVersion for each version of ours.
// js/package.json is for development: it is private, and has its tools.
//
// It has no dependencies and no scripts, so that installing it runs nothing. The platforms'
// programs are optional: npm installs the one that fits, or none (--omit=optional). Only
// pagewire/react needs React, and only pagewire/vue needs Vue; npm installs neither by itself.
//
// A resolver takes the first condition of an export that it knows. So types come first, then the
// servers that call themselves browsers too (workerd is Cloudflare's, edge-light Vercel's and
// Next.js's), which get a file that does nothing. browser comes before node, since Electron's
// windows are both. Bundlers take module for require too: only through that file, an ES module, do
// they find the core. Files for require have types of their own, or TypeScript takes them for ES
// modules.
//
// The page layer installs itself when it is imported: a bundler must not drop `import 'pagewire'`.
// It may drop an import of a hook, or of shareStore, that nothing uses. Servers' files have no side
// effects, but esbuild warns of each import without a name from a file that is not among
// sideEffects.
//
// A release adds THIRD-PARTY-LICENSES.txt.
//
//go:embed package.json
var published string

const noVersion = `"0.0.0"`

// stamped is the version of a release, which is stamped on everything instead of the one in
// js/package.json.
var stamped string

// readVersion returns the version of what is built.
func readVersion(root string) (string, error) {
	path := filepath.Join(root, "js", "package.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var pkg struct{ Version string }
	if err := json.Unmarshal(text, &pkg); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	version := cmp.Or(stamped, pkg.Version)
	if version == "" {
		return "", fmt.Errorf("%s: it has no version", path)
	}
	return version, nil
}

// writePackage fills dist/npm. It leaves out the maps of minified files: they would be two thirds
// of the package.
func writePackage(root, dist, version string) error {
	dir := filepath.Join(dist, "npm")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	var pkg struct{ Files []string }
	err := errors.Join(json.Unmarshal([]byte(published), &pkg),
		copyManual(filepath.Join(dir, "docs"), filepath.Join(root, "demo", "docs")))
	for _, name := range pkg.Files {
		from := dist
		switch name {
		case "docs", "THIRD-PARTY-LICENSES.txt":
			continue
		case "README.md":
			from = filepath.Join(root, "js", "npm")
		case "LICENSE":
			from = root
		}
		err = errors.Join(err, copyFile(filepath.Join(dir, name), filepath.Join(from, name)))
	}
	text := strings.ReplaceAll(published, noVersion, strconv.Quote(version))
	return errors.Join(err, os.WriteFile(filepath.Join(dir, "package.json"), []byte(text), 0o644))
}

// outward matches a link, or a picture, that leaves the manual.
var outward = regexp.MustCompile(`(\]\(|src="|srcset=")(\.\./[^)"\s]*)`)

// copyManual copies the manual's pages, for agents that write code. The list of the pages becomes
// llms.txt too. The package does not have what is beside the manual, so links to it lead to the
// forge.
func copyManual(to, from string) error {
	names, err := fs.Glob(os.DirFS(from), "*.md")
	err = errors.Join(err, os.MkdirAll(to, 0o755))
	for _, name := range names {
		text, readErr := os.ReadFile(filepath.Join(from, name))
		text = outward.ReplaceAllFunc(text, func(link []byte) []byte {
			at := bytes.Index(link, []byte("../"))
			return append(link[:at:at], forge+path.Join("demo/docs", string(link[at:]))...)
		})
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(to, name), text, 0o644))
		if name == "README.md" {
			err = errors.Join(err, os.WriteFile(filepath.Join(to, "llms.txt"), text, 0o644))
		}
	}
	return err
}

const forge = "https://github.com/pagewire/pagewire/blob/main/"
