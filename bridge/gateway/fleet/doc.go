//go:build !js

// Package fleet makes several processes one gateway: a page at one node, its user's agents at another, and between them
// the link, over a bus (package bus). BUS.md has what nodes say to each other.
//
// Where a page is, its node keeps what it offers as text (package relay); where agents of its user are, their node has
// a gateway.Gateway for them, which opens a session with each page of the user, wherever that is. No engine runs for a
// page whose user has no agent, and nothing crosses the bus for a change that nobody watches.
//
// The package never lets a page and an agent of two users meet, never stores what nodes say, never waits for another
// node while it holds a lock, and never looks into contents. Package tickets identifies users.
package fleet
