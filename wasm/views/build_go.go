//go:build js && wasm && !tinygo

package main

// recovers: a panic in an export is caught there.
const recovers = true
