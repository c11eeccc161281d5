//go:build !js

package daemon

import (
	"math"

	"golang.org/x/sys/unix"
)

// inheritNothing has no child get what the agent left open for this process. Go closes only what it has opened itself.
func inheritNothing() {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // older kernels than 5.11 have it not
}
