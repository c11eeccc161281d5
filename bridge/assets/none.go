//go:build !pagewire_assets

package assets

import "io/fs"

// FS returns ErrNone.
func FS() (fs.FS, error) { return nil, ErrNone }

// Inspector returns ErrNone.
func Inspector() (fs.FS, error) { return nil, ErrNone }

const inject, shown, pick, core = "", "", "", "none"
