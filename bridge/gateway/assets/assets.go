// Package assets holds the files that a page needs, inside the binary: the page layer, the loader, the core and the
// types. So one static file can serve or copy all of them.
//
// The files are products of the build, so they are embedded only under the build tag pagewire_assets, which make build
// sets. Without it the package compiles on a fresh clone, and its functions return ErrNone. It never reads the disk and
// never downloads.
package assets

import "errors"

// Names are the files that FS holds, in an order for readers.
var Names = []string{"pagewire.js", "pagewire.mjs", "pagewire.elements.js", "pagewire.core.js", "pagewire.worker.js",
	"pagewire.wasm", "pagewire.d.ts"}

// ErrNone is the error of a binary that was built without the files.
var ErrNone = errors.New("this binary was built without its page files: build it with make build (go build -tags " +
	"pagewire_assets)")

// Inject returns the script that adds the page layer to a page, with the gateway as its core, or ErrNone.
func Inject() (string, error) {
	if inject == "" {
		return "", ErrNone
	}
	return inject, nil
}

// Core returns the name and the version of the compiler of the core, such as "tinygo 0.41.1", or "none" without the files.
func Core() string { return core }
