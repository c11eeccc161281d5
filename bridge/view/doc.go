// Package view lets the Views of an MCP Apps host subscribe to the resources of their server.
//
// A Host stands between Views and one connection to a server. Each View has its own port at the engine (package
// bridge). The engine counts the watchers of each URI, bounds each View, merges and limits its updates, and forgets a
// closed View within the same call. A Host adds the server's side, in either protocol era: the first watcher of a URI
// subscribes there, the last one unsubscribes. It also decides which URIs a View may subscribe to, and handles the ways
// in which a View ends.
//
// Messages are JSON-RPC, one per call, between the Host and Views, and between the Host and the server. Ids to the
// server begin with "pagewire:", so a client of the home may share the connection. The Host answers each request of a
// View that Receive takes. The home calls Close for a View that ends, and Lost when the server does.
//
// A Host knows only one server, so it carries nothing to the Views of another. It sends a View only messages that the
// View has asked for, and only after it is initialized. It never passes on content by itself, starts a goroutine,
// locks, blocks, or reads a clock. Like the engine it is not safe for concurrent use, and compiles with TinyGo.
package view
