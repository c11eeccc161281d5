//go:build !pagewire_assets

package assets

import "io/fs"

// FS returns the embedded files, each at the top by its name, or ErrNone.
func FS() (fs.FS, error) { return nil, ErrNone }

// Inspector returns the files of the inspector page, index.html first among them, or ErrNone.
func Inspector() (fs.FS, error) { return nil, ErrNone }

const inject, core = "", "none"
