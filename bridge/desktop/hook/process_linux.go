package hook

import (
	"os"
	"strconv"
	"strings"
)

// look reads a process from /proc/PID/stat: proc_pid_stat(5).
func processOf(pid int) (process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(string(text))
}

// parseStat reads "pid (name) state ppid pgrp session tty_nr", and the start time in the 22nd
// field. A name can contain brackets and spaces.
func parseStat(text string) (p process, ok bool) {
	number, rest, found := strings.Cut(text, " (")
	end := strings.LastIndex(rest, ") ")
	if !found || end < 0 {
		return p, false
	}
	p.name = rest[:end]
	f := strings.Fields(rest[end+2:])
	if len(f) < 20 {
		return p, false
	}
	var err [5]error
	var session, tty int
	p.pid, err[0] = strconv.Atoi(number)
	p.parent, err[1] = strconv.Atoi(f[1])
	session, err[2] = strconv.Atoi(f[3])
	tty, err[3] = strconv.Atoi(f[4])
	p.began, err[4] = strconv.ParseUint(f[19], 10, 64)
	p.terminal = session == p.pid && tty != 0
	return p, err == [5]error{}
}
