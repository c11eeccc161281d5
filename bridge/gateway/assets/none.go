//go:build !pagewire_assets

package assets

import "io/fs"

func files() (fs.FS, error) { return nil, ErrNone }

func inspector() (fs.FS, error) { return nil, ErrNone }

const inject, core = "", "none"
