//go:build js && wasm && !tinygo

// Package compiler has the differences between the two compilers of the wasm: Go and TinyGo.
package compiler

// Recovers reports whether an export can catch a panic.
const Recovers = true
