//go:build js && wasm && !tinygo

// Package compiler has the differences between the two compilers of the wasm: Go and TinyGo. It
// never knows what the program does.
package compiler

// Recovers reports whether an export can catch a panic.
const Recovers = true

// Main is a module's main. It blocks for ever: the exports can be called only while it runs.
func Main() { select {} }
