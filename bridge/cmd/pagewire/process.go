package main

import (
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
)

// What a process does for as long as it serves.

// surviveClosedOutput makes a write to a closed output an error that does not end the process. A
// killed agent closes the output, and then this process must still end its children. It does not
// ignore SIGPIPE: children would inherit that.
func surviveClosedOutput() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// softMemory is the size above which garbage is collected before the heap has grown by collectAt.
// Pages may send 17 MB at once, and the buffers would otherwise take three times that. GOMEMLIMIT
// overrides it.
//
// Why a soft limit of 48 MiB for memory? With it, agents' reads of 15 MB take the gateway to 82 MB;
// without it, reads of 17 MB took 131. Ordinary use never reaches it: collections per second are
// the same.
const softMemory = 48 << 20

// softAlive is how many times the live heap and the stacks the soft limit is at least: with 1,000
// tabs or 100,000 resources a limit of 48 MiB alone would leave no room, and Go would collect all
// the time.
const softAlive = 2

// collectAt is the growth of the heap, in percent, after which garbage is collected. A daemon has
// about 2 MB alive. With 10 tabs it takes 21.2 MB at Go's 100, and 19.1 MB at 50, with equally fast
// reads. GOGC overrides it.
const collectAt = 50

func boundGarbage() {
	if os.Getenv("GOMEMLIMIT") == "" {
		boundMemory()
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
}

// boundMemory sets the soft limit now, and after each collection.
func boundMemory() {
	alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(alive)
	debug.SetMemoryLimit(max(softMemory,
		softAlive*int64(alive[0].Value.Uint64()+alive[1].Value.Uint64())))
	// A cleanup runs after the collection that finds its object dead.
	runtime.AddCleanup(&struct{ _ *int }{}, func(int) { boundMemory() }, 0)
}
