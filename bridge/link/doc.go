// Package link is the core's end of the link between a page and a core that is elsewhere: text frames, which LINK.md
// describes. js/link has the page's end, and testdata has the vectors that the tests of both read.
//
// A frame's way in: Peer.Receive decodes it (frame.go), holds it against the limits (limits.go), and calls the Core.
// The way out: a caller's Read, CallTool or Watched becomes a call in the buffer (peer.go), and Take hands that over as
// one frame.
//
// It never starts a goroutine, holds a lock, reads a clock or writes to anything: whoever carries the frames does. It
// never looks into contents, nor lets a page say more than its limits, whatever the page is.
package link
