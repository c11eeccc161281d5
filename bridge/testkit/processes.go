package testkit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Processes lists the processes with an entry in their environment, such as "HOME=/x": a program and all that it has
// started, also where that has detached itself. It knows those of Linux alone.
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
