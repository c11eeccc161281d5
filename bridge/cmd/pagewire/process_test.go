package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// With much alive, a limit of 48 MiB would make Go collect all the time.
func TestSoftLimitFollowsWhatIsAlive(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	boundMemory()
	limited := func(what string, holds func(limit int64) bool) {
		testkit.Eventually(t, what, func() bool {
			runtime.GC()
			return holds(debug.SetMemoryLimit(-1))
		})
	}
	tabs := make([]byte, 3*softMemory)
	room := softAlive * int64(len(tabs))
	limited("the limit leaves room", func(limit int64) bool { return limit >= room })
	runtime.KeepAlive(tabs)
	limited("the limit is lower again", func(limit int64) bool { return limit >= softMemory && limit < room })
}
