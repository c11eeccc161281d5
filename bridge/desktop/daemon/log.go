package daemon

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/pagewire/pagewire/bridge/internal/userdir"
)

// maxLog bounds a log, in bytes. Above it a new file begins, and the earlier one is kept as
// path+".1".
const maxLog = 1 << 20

// A logFile is a daemon's log, at a path in the user's directory.
type logFile struct {
	path string

	mu   sync.Mutex
	f    *os.File
	size int64
}

// LogPath returns the path of the log of a hub's daemon.
func LogPath(hub string) (string, error) {
	dir, err := userdir.Open(hub)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	return dir.Path("log"), nil
}

// OpenLog opens the log at a path, and appends to it.
func OpenLog(path string) (*logFile, error) {
	l := &logFile{path: path}
	return l, l.open()
}

func (l *logFile) open() error {
	if info, err := os.Lstat(l.path); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: l.path,
			Err: errors.New("it is no file: find out what put it there")}
	}
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.f, l.size = f, info.Size()
	return nil
}

// Write appends a line. Above maxLog it first begins a new file.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > maxLog {
		l.f.Close()
		if os.Rename(l.path, l.path+".1") != nil {
			_ = os.Truncate(l.path, 0) // without a rename this keeps the bound
		}
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.f.Write(p)
	l.size += int64(n)
	return n, err
}
