//go:build !js

// Package node makes one process of the gateway's parts: what `pagewire serve` runs.
//
// Every such process has a Gateway, which serves its own agents (stdio, HTTP). One of the processes is the hub
// (package hub). It brings the pages in: from browsers (browsers.go), by WebSocket, through the extension. The
// others get them from the hub. The package decides nothing that one of the parts could decide. It only says who is
// told what, and in what order everything ends.
package node
