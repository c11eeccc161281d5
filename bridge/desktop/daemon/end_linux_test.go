package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
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

// Of three processes on one processor, those that work wait for it in turn, and the one that sleeps does not.
func TestWaitingForAProcessor(t *testing.T) {
	var one unix.CPUSet
	testkit.OK(t, unix.SchedGetaffinity(0, &one))
	for cpu := 0; one.Count() > 1; cpu++ {
		one.Clear(cpu)
	}
	var pids []int
	for _, does := range []string{"while :; do :; done", "while :; do :; done", "exec sleep 600"} {
		cmd := testcmd.Command("sh", "-c", does)
		testkit.OK(t, cmd.Start(), unix.SchedSetaffinity(cmd.Process.Pid, &one))
		defer cmd.Wait()
		defer cmd.Process.Kill()
		pids = append(pids, cmd.Process.Pid)
	}
	testkit.Eventually(t, "it sleeps", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pids[2]))
		return err == nil && strings.Contains(string(stat), "(sleep) S")
	})
	sleeper := waitingOf(pids[2])
	for _, pid := range pids[:2] {
		since := waitingOf(pid)
		testkit.Eventually(t, "it waits", func() bool { return since() > enough })
	}
	if waited := sleeper(); waited != 0 {
		t.Errorf("a process that sleeps has waited for %v", waited)
	}
}

// A daemon without descriptors cannot accept. It goes on for its agents, and accepts again when it can.
func TestFailedAccept(t *testing.T) {
	m := newMachine(t)
	a := m.connect(testkit.Legacy)
	c := testkit.Must(m.dial(AsCommand))(t)
	defer c.Close()
	var before unix.Rlimit
	testkit.OK(t, unix.Prlimit(c.Daemon.PID, unix.RLIMIT_NOFILE, nil, &before))
	none := before
	none.Cur = 0
	testkit.OK(t, unix.Prlimit(c.Daemon.PID, unix.RLIMIT_NOFILE, &none, nil))
	waits := make(chan error, 1)
	go func() {
		later, err := m.dial(AsCommand)
		if err == nil {
			later.Close()
		}
		waits <- err
	}()
	testkit.Eventually(t, "an accept has failed", func() bool {
		text, err := os.ReadFile(filepath.Join(m.home, "daemon.log"))
		return err == nil && strings.Contains(string(text), "too many open files")
	})
	a.reads(t, "0")
	m.tab.set(uri, "1")
	a.reads(t, "1")
	testkit.OK(t, unix.Prlimit(c.Daemon.PID, unix.RLIMIT_NOFILE, &before, nil))
	testkit.OK(t, testkit.Receive(t, "the process that waits is served", waits))
	m.checkDaemons(1)
}
