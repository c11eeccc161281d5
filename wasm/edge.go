//go:build js && wasm

// Package main is the page's home of the engine: the edge between Go and JavaScript, and nothing else. It is built
// into pagewire.wasm.
//
// What travels: numbers, and text through linear memory; a message is one piece of JSON text. JavaScript calls the
// exports in this file, the engine's answers leave by the imports in imports.go; js/core/edge.ts is the other side.
// Who must answer: an export returns alive or dead, at once; read is answered by complete, everything else by
// nothing. On close: once an export has returned dead, or thrown, or the Go program has exited, the instance must
// not be called again, and a new one takes its place.
//
// What it never does: block, which in an export silently returns garbage; let a panic out, which would leave broken
// state that later exports run on; pass a js.Value on the hot path (a //go:wasmexport call costs 7 ns and 130 more
// for a 30-byte string, a js.FuncOf callback 10,000); read a page's object; see the text of a resource.
package main

import (
	"unsafe"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/wasm/compiler"
)

// What an export returns.
const (
	alive int32 = 0
	dead  int32 = -1
)

var (
	engine *bridge.Engine
	died   bool
	input  []byte       // what JavaScript writes before it calls an export that takes a length
	armed  float64 = -1 // the time that wake was last told, or -1 for none
)

// start makes the engine.
func start(o bridge.Options) {
	o.ExposeErrors = true // the page layer says no more than agents may know
	engine = bridge.New(o, host{})
}

// contain ends every export: a panic becomes dead, and whatever fell due is told to JavaScript.
func contain(status *int32) {
	if compiler.Recovers {
		if r := recover(); r != nil {
			died = true
			report("core stopped" + reason(r))
		}
	}
	if died {
		*status = dead
		return
	}
	if at, ok := engine.Deadline(); !ok {
		arm(-1)
	} else {
		arm(float64(at))
	}
}

// reason says what a panic was about.
func reason(panicked any) string {
	switch r := panicked.(type) {
	case error:
		return ": " + r.Error()
	case string:
		return ": " + r
	}
	return ""
}

func arm(at float64) {
	if at != armed {
		armed = at
		wake(at)
	}
}

// limit is the number of bytes above which a message is not to be copied in.
//
//go:wasmexport limit
func limit() int32 { return int32(engine.MessageBytes()) }

// buffer returns the address of at least n bytes for JavaScript to write the next export's text to. It is good
// until the next call of any export.
//
//go:wasmexport buffer
func buffer(n int32) uint32 {
	if cap(input) < int(n) || cap(input) > 1<<20 && n < 1<<16 { // one large message must not hold its memory for ever
		input = make([]byte, max(int(n), 1<<12))
	}
	input = input[:cap(input)]
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(input))))
}

// register offers the resource whose descriptor is the n bytes in the buffer.
//
//go:wasmexport register
func register(now float64, n int32) (status int32) {
	defer contain(&status)
	r, err := bridge.DecodeResource(input[:n])
	if err == nil {
		err = engine.Register(bridge.Time(now), r)
	}
	if err != nil {
		report("resource refused: " + r.URI + ": " + err.Error())
	}
	return alive
}

// unregister withdraws the resource whose URI is in the buffer.
//
//go:wasmexport unregister
func unregister(now float64, n int32) (status int32) {
	defer contain(&status)
	engine.Unregister(bridge.Time(now), string(input[:n]))
	return alive
}

// touch says that the resource whose URI is in the buffer has changed.
//
//go:wasmexport touch
func touch(now float64, n int32) (status int32) {
	defer contain(&status)
	engine.Touch(bridge.Time(now), string(input[:n]))
	return alive
}

// setTools says what tools there are: the JSON text of an array of MCP tools is in the buffer.
//
//go:wasmexport setTools
func setTools(now float64, n int32) (status int32) {
	defer contain(&status)
	tools, err := bridge.DecodeTools(input[:n])
	if err == nil {
		err = engine.SetTools(bridge.Time(now), tools)
	}
	if err != nil {
		report("tools refused: " + err.Error())
	}
	return alive
}

// open begins a session.
//
//go:wasmexport open
func open(now float64, port uint32) (status int32) {
	defer contain(&status)
	if err := engine.Open(bridge.Time(now), bridge.PortID(port)); err != nil {
		refusePort(port, err.Error())
	}
	return alive
}

// receive takes the message in the buffer. Where whole is 0, it is the beginning of one that is too large.
//
//go:wasmexport receive
func receive(now float64, port uint32, n, whole int32) (status int32) {
	defer contain(&status)
	take := engine.Receive
	if whole == 0 {
		take = engine.Oversize
	}
	// A port that is not open has been closed, or refused; its last messages may still come.
	_ = take(bridge.Time(now), bridge.PortID(port), input[:n])
	return alive
}

// writable says whether a port takes more.
//
//go:wasmexport writable
func writable(now float64, port uint32, on int32) (status int32) {
	defer contain(&status)
	engine.Writable(bridge.Time(now), bridge.PortID(port), on != 0)
	return alive
}

// shut ends a session.
//
//go:wasmexport shut
func shut(now float64, port uint32) (status int32) {
	defer contain(&status)
	engine.Close(bridge.Time(now), bridge.PortID(port))
	return alive
}

// complete answers a read or a tool call. status is one of js/link/link.ts; size is that of the contents, which
// JavaScript holds; the buffer has n bytes of detail.
//
//go:wasmexport complete
func complete(now float64, call uint32, outcome, size, n int32) (status int32) {
	defer contain(&status)
	r := bridge.Result{Size: int(size), Detail: string(input[:n])}
	switch outcome {
	case 1:
		r.Failure = bridge.ReadFailed
	case 2:
		r.Failure = bridge.InvalidContents
	}
	engine.Complete(bridge.Time(now), bridge.CallID(call), r)
	return alive
}

// tick does what has fallen due: JavaScript calls it at the time that wake has been told.
//
//go:wasmexport tick
func tick(now float64) (status int32) {
	defer contain(&status)
	armed = -1
	engine.Tick(bridge.Time(now))
	return alive
}
