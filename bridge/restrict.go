//go:build !js

package bridge

// restricts means that ports may be restricted, and that the host may watch. The core of a page, whose agents see all
// of it, is 700 bytes of brotli smaller without.
const restricts = true
