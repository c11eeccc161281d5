//go:build js && wasm && tinygo

package main

import "unsafe"

// recovers: ../build_tinygo.go says why.
const recovers = false

// arc4random takes the place of the C library's, from which the runtime has the seed of its maps: that one brings a
// cipher, and printf, as ../build_tinygo.go says.
//
//export arc4random
func arc4random() uint32 {
	randomGet(unsafe.Pointer(&seed), uint32(unsafe.Sizeof(seed)))
	return seed
}

var seed uint32

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(to unsafe.Pointer, n uint32) (errno uint32)
