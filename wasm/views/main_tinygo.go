//go:build js && wasm && tinygo

package main

// main returns at once: under TinyGo without a scheduler it must, and the exports can be called after it.
func main() {}
