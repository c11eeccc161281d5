//go:build !js

package bridge

// restricts says that a port may be restricted, and the host watch. The core of a page, whose agents see all of it, is
// 700 bytes of brotli smaller without.
const restricts = true
