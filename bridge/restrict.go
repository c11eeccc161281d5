//go:build !js

package bridge

// restricts includes restricted ports, events and skills. The core of a page, whose agents see all
// of it, is 700 bytes of brotli smaller without.
const restricts = true
