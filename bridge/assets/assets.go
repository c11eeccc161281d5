// Package assets has the files that a page needs, embedded in the binary: the page layer, the
// loader, the core and the types. So the binary needs no other file to serve or copy them.
//
// The build makes these files. So they are embedded only with the build tag pagewire_assets, which
// make build sets. Without the tag the package compiles on a fresh clone, and its functions return
// ErrNone. The package never reads the disk and never downloads.
package assets

import "errors"

// Names are the names of FS's files, in an order for readers.
var Names = []string{"pagewire.js", "pagewire.mjs", "pagewire.elements.js", "pagewire.core.js",
	"pagewire.worker.js", "pagewire.wasm", "pagewire.d.ts"}

// ErrNone is the error of a binary that was built without the files.
var ErrNone = errors.New(
	"this binary was built without its page files: build it with make build (go build -tags " +
		"pagewire_assets)")

// Inject returns the script that adds the page layer to a page, with the gateway as its core, or
// ErrNone.
func Inject() (string, error) {
	if inject == "" {
		return "", ErrNone
	}
	return inject, nil
}

// Shown returns the scripts for a world of their own that read what a page shows, and that make the
// rule of a part at which a person points, or ErrNone.
func Shown() (reader, picker string, err error) {
	if shown == "" {
		return "", "", ErrNone
	}
	return shown, pick, nil
}

// Core returns the name and version of the core's compiler, such as "tinygo 0.41.1", or "none"
// without the files.
func Core() string { return core }
