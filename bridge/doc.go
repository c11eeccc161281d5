// Package bridge is the engine of Pagewire: an MCP server for live resources, in both protocol
// eras, as a plain state machine. Bytes, calls and the time go in; messages and requests to the
// host come out through Host.
//
// The same engine serves two hosts: a page (package wasm) and the gateway. The host owns all
// contact with the world: ports, clocks, callbacks, timers.
//
// The engine never blocks, locks, sleeps, starts a goroutine, reads a clock, opens anything, or
// imports encoding/json, reflect or net. So it can run inside a browser's callback, where blocking
// is a deadlock; it is deterministic under test; and it compiles with TinyGo without a scheduler.
// It is not safe for concurrent use: a host with several goroutines serialises its calls.
//
// Each file uses only the files below it:
//
//	port.go                              what the host does with ports: Open, Receive, Close
//	complete.go touch.go register.go     what the host says: answers, changes, what there is
//	enter.go                             the frame of a call: what is due first, the host last
//	message.go                           finds the handler of a message
//	read.go skills.go list.go tool.go subscribe.go consent.go events.go session.go   the handlers
//	update.go listchanged.go             when an agent is told of a change
//	listen.go watch.go call.go           what is open: listens, watches, questions to the host
//	sight.go pending.go send.go          what a port sees, what waits at it, and what it is sent
//	engine.go                            all state
//	host.go options.go errors.go codec.go descriptor.go   the contract with the host
//
// So a message goes down from Receive to its handler and to call.go, which queues the question;
// drain in enter.go asks the host. The answer goes down from Complete to the handler's answer and
// to send.go.
package bridge
