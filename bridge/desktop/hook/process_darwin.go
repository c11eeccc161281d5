package hook

import "golang.org/x/sys/unix"

const (
	// sessionLeader is EPROC_SLEADER of sys/sysctl.h.
	sessionLeader = 2
	// noTerminal is NODEV.
	noTerminal = -1
)

// look reads a process from the kernel.
func processOf(pid int) (process, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return process{}, false
	}
	began := k.Proc.P_starttime
	return process{
		pid: pid, parent: int(k.Eproc.Ppid), began: uint64(began.Sec)*1e6 + uint64(began.Usec),
		name:     unix.ByteSliceToString(k.Proc.P_comm[:]),
		terminal: k.Eproc.Flag&sessionLeader != 0 && k.Eproc.Tdev != noTerminal,
	}, true
}
