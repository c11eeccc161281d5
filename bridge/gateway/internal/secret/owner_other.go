//go:build !unix

package secret

import "io/fs"

// owned is always true here: a file in the user's configuration directory is the user's.
func owned(fs.FileInfo) bool { return true }
