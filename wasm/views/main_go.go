//go:build js && wasm && !tinygo

package main

// main blocks for ever: under Go the exports can be called only while it runs.
func main() { select {} }
