//go:build js && wasm && tinygo

// Package compiler has the differences between the two compilers of the wasm: Go and TinyGo. It
// never knows what the program does.
package compiler

import "unsafe"

// Recovers is false, since TinyGo cannot recover on wasm. A panic is a trap there: JavaScript gets
// an exception.
const Recovers = false

// Main is a module's main. It returns at once, as it must without a scheduler: the exports can be
// called after it.
func Main() {}

// arc4random replaces the C library's, which would link a cipher and printf: 7 KB of brotli. The
// runtime takes the seed of its maps from it.
//
//export arc4random
func arc4random() uint32 {
	randomGet(unsafe.Pointer(&seed), uint32(unsafe.Sizeof(seed)))
	return seed
}

var seed uint32

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(to unsafe.Pointer, n uint32) (errno uint32)
