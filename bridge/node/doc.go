// Package node makes several processes one gateway. It carries the link over a bus (package bus),
// between a page at one node and its user's agents at another. BUS.md describes the messages.
//
// A page's node keeps the page's offers as text (package relay). A node with agents of the page's
// user has a gateway.Gateway for them, which opens a session with each page of the user, on any
// node. No engine runs for a page whose user has no agent, and a change without a watcher sends
// nothing over the bus.
//
// The package never lets a page and an agent of two users meet, never stores messages, never waits
// for another node while it holds a lock, and never looks into contents. Package tickets identifies
// users.
//
// A Node has four parts, each with a lock for its own maps alone: members (the other nodes), served
// (pages that have dialed this node), readers (users with agents here), findings. A Page and all
// that belongs to it are under the Page's lock. A Reader's sessions are used only by functions in
// its mailbox. A Page's lock is taken before the lock of served, and that of readers before that of
// members; ends, which both ends of sessions share, calls nothing that locks.
package node
