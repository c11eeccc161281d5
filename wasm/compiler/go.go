//go:build js && wasm && !tinygo

// Package compiler has what differs between the two compilers of the wasm: Go and TinyGo.
package compiler

// Recovers says whether a panic in an export is caught there.
const Recovers = true
