// Package bridge is the engine of Pagewire: an MCP server for live resources, in both protocol eras, as a plain
// state machine. Bytes, calls and the time go in; messages and requests to the host come out through Host.
//
// The same engine serves three hosts: a page (package wasm), the gateway, and a host of MCP Apps Views. The host
// owns everything that touches the world: ports, clocks, callbacks, timers.
//
// What the engine never does: block, lock, sleep, start a goroutine, read a clock, open anything, import
// encoding/json, reflect or net. So it can run inside a browser's callback, where blocking is a deadlock; it does
// the same thing every time under test; and it compiles with TinyGo without a scheduler. It is not safe for
// concurrent use: a host with several goroutines serialises its calls.
//
// A message's way through it: Receive (port.go) finds out what it is and in which era it speaks (era.go), the method's
// file answers it (session.go, list.go, read.go, subscribe.go, listen.go, tool.go), if need be when the host has
// answered (call.go, consent.go), and queue.go hands what came of that to the Host. A change's way: Touch (offer.go)
// finds who watches, update.go decides when they are told; listchanged.go does the same for the lists.
package bridge
