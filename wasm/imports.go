//go:build js && wasm

package main

import (
	"unsafe"

	"github.com/pagewire/pagewire/bridge"
)

// The imports. None of them throws: js/core/edge.ts catches the errors of its own callees. Each
// takes text as address and length, and JavaScript must read the text before it returns.

//go:wasmimport pagewire send
func sendText(port uint32, text unsafe.Pointer, textLen uint32, call, hole uint32)

//go:wasmimport pagewire read
func readText(call uint32, key unsafe.Pointer, keyLen uint32, uri unsafe.Pointer, uriLen uint32,
	params unsafe.Pointer, paramsLen uint32)

//go:wasmimport pagewire callTool
func callToolText(call uint32, name unsafe.Pointer, nameLen uint32, args unsafe.Pointer,
	argsLen uint32)

//go:wasmimport pagewire end
func endCall(call uint32)

//go:wasmimport pagewire watched
func watchedText(uri unsafe.Pointer, uriLen uint32, on uint32)

//go:wasmimport pagewire closed
func closedText(port uint32, why unsafe.Pointer, whyLen uint32)

//go:wasmimport pagewire report
func reportText(text unsafe.Pointer, textLen uint32)

// wake asks JavaScript to call tick at a time on the clock of now, or never if at is -1. Only the
// last call counts.
//
//go:wasmimport pagewire wake
func wake(at float64)

func report(s string) { reportText(text(s)) }

func refusePort(port uint32, why string) {
	p, n := text(why)
	closedText(port, p, n)
}

func text(s string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
}

func bytes(b []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))
}

// host is the page as the engine sees it.
type host struct{}

func (host) Send(to bridge.PortID, m bridge.Message) {
	// The engine writes a message in one piece: the tail follows the head, and one text is cheaper
	// to decode than two.
	p, n := bytes(m.Head[:len(m.Head)+len(m.Tail)])
	sendText(uint32(to), p, n, uint32(m.Call), uint32(len(m.Head)))
}

func (host) Read(call bridge.CallID, r bridge.Request) {
	key, keyLen := text(r.Key)
	uri, uriLen := text(r.URI)
	params, paramsLen := text(r.Params)
	readText(uint32(call), key, keyLen, uri, uriLen, params, paramsLen)
}

func (host) CallTool(call bridge.CallID, t bridge.ToolCall) {
	name, nameLen := text(t.Name)
	args, argsLen := bytes(t.Arguments)
	callToolText(uint32(call), name, nameLen, args, argsLen)
}

func (host) End(call bridge.CallID) { endCall(uint32(call)) }

func (host) Watched(uri string, on bool) {
	p, n := text(uri)
	flag := uint32(0)
	if on {
		flag = 1
	}
	watchedText(p, n, flag)
}
