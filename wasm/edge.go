//go:build js && wasm

// Package main connects the engine to a page: the edge between Go and JavaScript, and nothing else.
// It is built into pagewire.wasm.
//
// Numbers cross the edge, and text through linear memory; a message is one piece of JSON text.
// JavaScript calls the exports in this file; the engine's answers leave by the imports in
// imports.go; js/core/edge.ts is the other side. An export returns alive or dead, at once. complete
// answers a read; other calls have no answer. Once an export has returned dead, or thrown, or the
// Go program has exited, JavaScript must not call the instance again, and starts a new one.
//
// An export never blocks: blocking silently returns garbage. It lets no panic out, which would
// leave broken state for later exports. No js.Value crosses on the hot path: a //go:wasmexport call
// costs 7 ns and 130 more for a 30-byte string, a js.FuncOf callback 10,000. Go never reads a
// page's object, and never sees the text of a resource.
package main

import (
	"unsafe"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/wasm/compiler"
)

// The results of an export.
const (
	alive int32 = 0
	dead  int32 = -1
)

var (
	engine *bridge.Engine
	died   bool
	input  []byte       // JavaScript writes it before it calls an export that takes a length
	armed  float64 = -1 // the time of the last wake, or -1 for none
)

func main() { compiler.Main() }

// start makes the engine.
func start(o bridge.Options) {
	o.ExposeErrors = true // the page layer's error texts have only facts that agents may know
	engine = bridge.New(o, host{})
}

// contain ends every export. A panic becomes dead, and the time of the next tick goes to
// JavaScript.
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

// reason is the text of a panic.
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

// limit is the number of bytes above which a message must not be copied in.
//
//go:wasmexport limit
func limit() int32 { return int32(engine.MessageBytes()) }

// buffer returns the address of at least n bytes, into which JavaScript writes the next export's
// text. It is valid until the next call of any export.
//
//go:wasmexport buffer
func buffer(n int32) uint32 {
	if cap(input) < int(n) || cap(input) > 1<<20 && n < 1<<16 {
		// one large message must not hold its memory for ever
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
	} else if r.Mended != "" {
		report("the resource " + r.URI + " differs for agents: " + r.Mended)
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

// touch reports a change of the resource whose URI is in the buffer.
//
//go:wasmexport touch
func touch(now float64, n int32) (status int32) {
	defer contain(&status)
	engine.Touch(bridge.Time(now), string(input[:n]))
	return alive
}

// setTools replaces the tools: the JSON text of an array of MCP tools is in the buffer.
//
//go:wasmexport setTools
func setTools(now float64, n int32) (status int32) {
	defer contain(&status)
	tools, bad := bridge.DecodeTools(input[:n])
	err := engine.SetTools(bridge.Time(now), tools)
	if err == nil {
		err = bad
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

// receive takes the message in the buffer. If whole is 0, it is the beginning of a message that is
// too large.
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

// writable sets whether a port accepts updates.
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

// complete answers a read or a tool call. outcome is a Status of js/link/link.ts; size is the
// length of the contents, which JavaScript holds; the buffer has n bytes of detail.
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

// tick does the work that has fallen due. JavaScript calls it at the time of the last wake.
//
//go:wasmexport tick
func tick(now float64) (status int32) {
	defer contain(&status)
	armed = -1
	engine.Tick(bridge.Time(now))
	return alive
}
