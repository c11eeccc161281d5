//go:build !js

package userdir

import (
	"io/fs"
	"os"
)

// LockFile locks an open file of another directory than this one, or fails with ErrHeld. The lock goes with the last
// descriptor of what was opened, so that a child that inherits one holds it too.
func LockFile(f *os.File) error { return flock(f) }

// OwnedByUs reports whether a file is this user's, as far as the system knows owners.
func OwnedByUs(info fs.FileInfo) bool {
	uid, known := owner(info)
	return !known || uid == os.Geteuid()
}
