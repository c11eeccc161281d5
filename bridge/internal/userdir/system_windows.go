package userdir

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const (
	maxSocketPath = 107
	errRefused    = windows.WSAECONNREFUSED
)

func owner(fs.FileInfo) (uid int, known bool) { return 0, false }

// Permits: there are no permission bits on Windows. The user's directories are private.
func Permits(_, _ fs.FileMode) bool { return false }

// CheckWay: the user's directories are private on Windows, and a link takes an administrator.
func CheckWay(string) error { return nil }

// peer treats every process as this user's: the profile's access list keeps others out.
func peer(uintptr) (uid int, err error) { return os.Geteuid(), nil }

// LockFile locks an open file, or fails with ErrHeld.
func LockFile(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = raw.Control(func(fd uintptr) {
		const now = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
		locked = windows.LockFileEx(windows.Handle(fd), now, 0, 1, 0, &windows.Overlapped{})
	})
	if errors.Is(locked, windows.ERROR_LOCK_VIOLATION) {
		return ErrHeld
	}
	return errors.Join(err, locked)
}
