package testkit

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A process that starts has a copy of each listener until it runs, so it may hold an address at
// which this process itself has just listened.
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
		addr, kept := free()
		l, err := net.Listen("tcp", addr)
		kept.Close()
		if err != nil {
			t.Error(err)
			continue
		}
		l.Close()
	}
	stop()
	starting.Wait()
}

// Tests that run at once, in this process or in others, never get the same address.
func TestAddrIsOneTestsAlone(t *testing.T) {
	given := map[string]bool{}
	for range 500 { // of 20,000: six pairs would be equal by chance
		addr := Addr(t)
		if given[addr] {
			t.Errorf("%s is given twice", addr)
		}
		given[addr] = true
	}
}
