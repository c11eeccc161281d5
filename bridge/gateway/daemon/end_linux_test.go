package daemon

import (
	"errors"
	"io"
	"runtime"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// endPeer ends only the process that the kernel names, but not a process that a debugger has.
func TestEndOfThePeer(t *testing.T) {
	if err := endPeer(memory{}); err == nil {
		t.Error("what is no socket was ended")
	}
	m := newMachine(t)
	a := m.connect(testkit.Legacy)
	c := testkit.Must(m.dial(AsCommand))(t)
	defer c.Close()
	runtime.LockOSThread() // only the thread that attached may wait and detach
	defer runtime.UnlockOSThread()
	testkit.OK(t, syscall.PtraceAttach(c.Daemon.PID))
	if _, err := syscall.Wait4(c.Daemon.PID, nil, syscall.WALL, nil); err != nil {
		t.Fatal(err)
	}
	if err := endPeer(c.Conn); !errors.Is(err, errTraced) {
		t.Errorf("a debugger has it: %v", err)
	}
	testkit.OK(t, syscall.PtraceDetach(c.Daemon.PID))
	if err := endPeer(c.Conn); err != nil {
		t.Error(err)
	}
	io.Copy(io.Discard, c.In)
	if err := endPeer(c.Conn); err != nil {
		t.Errorf("it has gone: %v", err)
	}
	a.reads(t, "0")
	m.checkDaemons(2)
}
