package testkit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Processes lists the processes with an entry in their environment, such as "HOME=/x": a program
// and the processes that it has started, also detached ones. It works only on Linux.
func Processes(entry string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err == nil && strings.Contains("\x00"+string(env), "\x00"+entry+"\x00") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// endProcesses ends the processes with an entry in their environment, which may be stopped.
func endProcesses(t testing.TB, entry string) {
	t.Helper()
	for _, pid := range Processes(entry) {
		if p, err := os.FindProcess(pid); err == nil && pid != os.Getpid() && p.Kill() == nil {
			t.Log("the test has left process " + strconv.Itoa(pid) + " behind, which was ended")
		}
	}
}
