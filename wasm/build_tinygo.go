//go:build js && wasm && (tinygo || lean)

package main

import "github.com/pagewire/pagewire/bridge"

// What is otherwise in TinyGo's build. The tag lean makes the same of Go's, for tests on machines without TinyGo, and
// to say what safejs costs.

// recovers: before 0.42 TinyGo cannot recover on wasm. A panic is a trap there, which JavaScript sees as an exception;
// it is the same with later ones, so that there are no two kinds.
const recovers = false

// Without safejs the options come by calls, before all others: option for each text, then begin. safejs is 25 KB of 90
// in TinyGo's brotli, with the fmt that it brings.

var options bridge.Options

// option takes the text in the buffer: 0 is the name, 1 the version, 2 the origin.
//
//go:wasmexport option
func option(which, n int32) (status int32) {
	s := string(input[:n])
	switch which {
	case 0:
		options.Name = s
	case 1:
		options.Version = s
	case 2:
		options.Rule.Origin = s
	}
	return alive
}

// begin starts the engine. It serves tools if tools is not 0.
//
//go:wasmexport begin
func begin(tools int32) (status int32) {
	options.Tools = tools != 0
	start(options)
	return alive
}
