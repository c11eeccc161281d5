//go:build pagewire_assets

package assets

import (
	"embed"
	"io/fs"
)

// Each file is named, so that the error of a build says which file is missing.
//
//go:embed dist/pagewire.js dist/pagewire.mjs dist/pagewire.elements.js dist/pagewire.core.js dist/pagewire.worker.js dist/pagewire.wasm dist/pagewire.d.ts
var dist embed.FS

// FS returns the embedded files, which are all in the root.
func FS() (fs.FS, error) { return fs.Sub(dist, "dist") }

//go:embed dist/inspector/index.html dist/inspector/demo.html dist/inspector/inspector.js dist/inspector/inspector.css dist/inspector/logo.svg
var inspectorDist embed.FS

// Inspector returns the files of the inspector page, which begins at index.html, and demo.html.
func Inspector() (fs.FS, error) { return fs.Sub(inspectorDist, "dist/inspector") }

//go:embed dist/pagewire.inject.js
var inject string

//go:embed dist/pagewire.shown.js
var shown string

//go:embed dist/pagewire.pick.js
var pick string

//go:embed dist/core
var core string
