package daemon

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/userdir"
)

// maxLog bounds a log, in bytes. Above it a new file begins, and the earlier one is kept as
// path+".1".
const maxLog = 1 << 20

// maxSame bounds the lines with one message in a minute: a page that connects in a loop made 3,000
// in a second, and they must leave the others.
const maxSame = 200

// A logFile is a daemon's log, at a path in the user's directory.
type logFile struct {
	path string

	mu   sync.Mutex
	f    *os.File
	size int64
	same map[string]int // lines by message, since a time
	from time.Time
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
	l := &logFile{path: path, same: map[string]int{}}
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

// Write appends a line, unless there are too many with its message. Above maxLog it first begins a
// new file.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	given := len(p)
	if now := time.Now(); now.Sub(l.from) > time.Minute {
		l.from = now
		clear(l.same)
	}
	_, message, _ := bytes.Cut(p, []byte(" msg="))
	message, _, _ = bytes.Cut(message, []byte("=")) // up to its first attribute's name
	l.same[string(message)]++
	switch n := l.same[string(message)]; {
	case n == maxSame:
		p = append(bytes.TrimRight(p, "\n"), " (more are left out for a minute)\n"...)
	case n > maxSame:
		return given, nil
	}
	if l.size > maxLog {
		l.f.Close()
		if os.Rename(l.path, l.path+".1") != nil {
			_ = os.Truncate(l.path, 0) // without a rename this keeps the bound
		}
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	written, err := l.f.Write(p)
	l.size += int64(written)
	return min(written, given), err
}
