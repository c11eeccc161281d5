package testkit

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Listens returns the addresses where a process listens by TCP, from /proc of Linux: none if the
// process has ended.
func Listens(t testing.TB, pid int) (addresses []string) {
	t.Helper()
	sockets := map[string]bool{}
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	for _, fd := range fds {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && sockets[f[9]] {
				addresses = append(addresses, f[1])
			}
		}
	}
	return addresses
}
