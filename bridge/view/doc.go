// Package view lets the Views of an MCP Apps host subscribe to the resources of the server that they came from.
//
// A Host stands between Views and one connection to a server. Each View is a port of its own of the engine (package
// bridge), which counts who watches what, bounds each View, merges and limits what it is told, and forgets a View that
// is gone within the same call. A Host adds the server's side: the first watcher of a URI subscribes there, the last
// one unsubscribes, in either protocol era; who may subscribe to what; and the ways in which a View ends.
//
// What travels: JSON-RPC messages, one per call, between the Host and Views, and between the Host and the server; in
// the direction of the server with ids that begin with "pagewire:", so that a client of the home may share the
// connection. Who must answer: the Host answers each request of a View that Receive takes. On close: the home says
// Close for a View, Lost for the server.
//
// What a Host never does: carry anything from one server to the Views of another, as it knows only one; send what a
// View has not asked for, or send to one that is not initialized; pass content on by itself; start a goroutine, lock,
// block, read a clock. Like the engine it is not safe for concurrent use, and compiles with TinyGo.
package view
