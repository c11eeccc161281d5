// Package link is the core's end of the link between a page and a core elsewhere: text frames,
// which LINK.md describes. js/link has the page's end, and testdata has the vectors that the tests
// of both read.
//
// An incoming frame: Peer.Receive decodes it (frame.go), checks its limits (limits.go), and calls
// the Core. An outgoing frame: a caller's Read, CallTool or Watched becomes a call in the buffer
// (peer.go), and Take returns all of them as one frame.
//
// It never starts a goroutine, holds a lock, reads a clock or writes to anything: the caller
// carries the frames. It does not interpret contents, and enforces its limits against every page.
package link
