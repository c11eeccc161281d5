package launched

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endWithUs makes the kernel kill a browser when the thread that has started it ends. A browser
// that works ends by itself when its pipe is closed; one that is stuck does not.
func endWithUs(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }

// adopt makes this process the parent of its children's orphans, so that reap can wait for them.
// Otherwise, in a container whose first process waits for no child, each browser would leave four
// zombies.
func adopt() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reapTime is how long a browser's other processes may outlive it. They take some 20 ms.
const reapTime = time.Second

// reap waits for the processes that a browser has left to this one: its zygotes, and its crash
// handlers.
func reap(browser int) {
	for end := time.Now().Add(reapTime); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		left := adopted(browser)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// adopted lists the children of this process that a browser has left to it. Other children belong
// to their starters.
func adopted(browser int) (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range bytes.Fields(text) {
			pid, err := strconv.Atoi(string(field))
			if err != nil {
				continue
			}
			session, _ := unix.Getsid(pid)
			comm, _ := os.ReadFile("/proc/" + string(field) + "/comm")
			if session == browser || bytes.HasPrefix(comm, []byte("chrome_crashpad")) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// used reports whether a process has the profile in its command line, as all processes of a browser
// do.
func used(profile string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(files, func(file string) bool {
		text, _ := os.ReadFile(file) // empty for a process that has ended
		return bytes.Contains(text, []byte("--user-data-dir="+profile))
	})
}
