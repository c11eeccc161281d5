//go:build pagewire_assets

package assets

import (
	"embed"
	"io/fs"
)

// Named one by one, so that a build in which one is missing fails and says which.
//
//go:embed dist/pagewire.js dist/pagewire.mjs dist/pagewire.elements.js dist/pagewire.core.js dist/pagewire.worker.js dist/pagewire.wasm dist/pagewire.d.ts
var dist embed.FS

// FS returns the embedded files, each at the top by its name, or ErrNone.
func FS() (fs.FS, error) { return fs.Sub(dist, "dist") }

//go:embed dist/inspector/index.html dist/inspector/inspector.js dist/inspector/inspector.css
var inspectorDist embed.FS

// Inspector returns the files of the inspector page, index.html first among them, or ErrNone.
func Inspector() (fs.FS, error) { return fs.Sub(inspectorDist, "dist/inspector") }

//go:embed dist/pagewire.inject.js
var inject string

//go:embed dist/core
var core string
