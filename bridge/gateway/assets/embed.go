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

func files() (fs.FS, error) { return fs.Sub(dist, "dist") }

//go:embed dist/inspector/index.html dist/inspector/inspector.js dist/inspector/inspector.css
var inspectorDist embed.FS

func inspector() (fs.FS, error) { return fs.Sub(inspectorDist, "dist/inspector") }

//go:embed dist/pagewire.inject.js
var inject string

//go:embed dist/core
var core string
