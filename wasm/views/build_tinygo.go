//go:build js && wasm && (tinygo || lean)

package main

// recovers: ../build_tinygo.go says why, and what the tag lean is for.
const recovers = false
