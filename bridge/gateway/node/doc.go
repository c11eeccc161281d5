//go:build !js

// Package node makes one process of the gateway's parts: what `pagewire serve` runs.
//
// Every such process has a Gateway of its own, which serves its own agents (stdio, HTTP). One of them is the hub
// (package hub) and brings the pages in: from browsers (browsers.go), by WebSocket, through the extension; the others
// get them from it. The package decides nothing that one of the parts could decide; it only says who is told of what,
// and in what order all ends.
package node
