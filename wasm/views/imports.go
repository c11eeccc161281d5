//go:build js && wasm

package main

import (
	"unsafe"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/view"
)

// The imports. None of them throws: js/views/edge.ts catches the errors of its own callees. Each takes text as address
// and length, and JavaScript must read the text before it returns.

//go:wasmimport pagewire toView
func toViewText(host, id int32, text unsafe.Pointer, textLen uint32)

//go:wasmimport pagewire toServer
func toServerText(host int32, text unsafe.Pointer, textLen uint32)

//go:wasmimport pagewire told
func toldText(text unsafe.Pointer, textLen uint32)

//go:wasmimport pagewire report
func reportText(text unsafe.Pointer, textLen uint32)

// wake asks JavaScript to call tick at a time on the clock of now, or never if at is -1. Only the last call counts.
//
//go:wasmimport pagewire wake
func wake(at float64)

func report(s string) { reportText(unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))) }

func told(s string) { toldText(unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))) }

// home is the number of a Host, and sends the Host's messages to the page.
type home int32

// joined is the buffer for a message of several pieces.
var joined []byte

func (h home) ToView(id view.ID, m bridge.Message) {
	text := m.Head
	if len(m.Contents)+len(m.Tail) > 0 {
		joined = m.AppendTo(joined[:0])
		text = joined
		if cap(joined) > 1<<20 {
			joined = nil
		}
	}
	toViewText(int32(h), int32(id), unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)))
}

func (h home) ToServer(text []byte) {
	toServerText(int32(h), unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)))
}
