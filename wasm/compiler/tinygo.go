//go:build js && wasm && tinygo

// Package compiler has the differences between the two compilers of the wasm: Go and TinyGo.
package compiler

import "unsafe"

// Recovers is false, since TinyGo cannot recover on wasm. A panic is a trap there, which JavaScript sees as an exception.
const Recovers = false

// Main is a module's main. It returns at once: without a scheduler it must, and the exports can be called after it.
func Main() {}

// arc4random takes the place of the C library's, from which the runtime has the seed of its maps: that one brings a
// cipher, and printf, 7 KB of brotli.
//
//export arc4random
func arc4random() uint32 {
	randomGet(unsafe.Pointer(&seed), uint32(unsafe.Sizeof(seed)))
	return seed
}

var seed uint32

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(to unsafe.Pointer, n uint32) (errno uint32)
