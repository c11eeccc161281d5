// Package bridge is the engine of Pagewire: an MCP server for live resources, in both protocol eras, as a plain state
// machine. Bytes, calls and the time go in; messages and requests to the host come out through Host.
//
// The same engine serves two hosts: a page (package wasm) and the gateway. The host owns all contact with the world:
// ports, clocks, callbacks, timers.
//
// The engine never blocks, locks, sleeps, starts a goroutine, reads a clock, opens anything, or imports encoding/json,
// reflect or net. So it can run inside a browser's callback, where blocking is a deadlock; it is deterministic under
// test; and it compiles with TinyGo without a scheduler. It is not safe for concurrent use: a host with several
// goroutines serialises its calls.
//
// The path of a message: Receive (port.go) decodes it and finds its era (era.go). The method's file answers it
// (session.go, list.go, read.go, subscribe.go, listen.go, tool.go), if needed after the host has answered (call.go,
// consent.go). queue.go passes the results to the Host. The path of a change: Touch (offer.go) finds the watchers,
// update.go decides when they are notified; listchanged.go does the same for the lists.
package bridge
