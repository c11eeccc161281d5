package testkit

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A process that starts has a copy of each listener until it runs, so it may hold an address at which this process
// itself has just listened.
func TestAddrIsFreeWhileProcessesStart(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var starting sync.WaitGroup
	for range 2 {
		starting.Go(func() {
			for ctx.Err() == nil {
				testcmd.Command(os.Args[0], "-test.run=^$").Run()
			}
		})
	}
	for range 10_000 {
		l, err := net.Listen("tcp", Addr(t))
		if err != nil {
			t.Error(err)
			continue
		}
		l.Close()
	}
	stop()
	starting.Wait()
}
