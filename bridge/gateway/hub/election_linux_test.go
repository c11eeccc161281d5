//go:build !js

package hub

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

func init() {
	disks["the home is read-only"] = unusable{func(m *machine) error { return mounted(m, syscall.MS_RDONLY, "") },
		"read-only file system"}
	disks["the disk is full"] = unusable{func(m *machine) error {
		// Room for the directory, and for nothing in it.
		return errors.Join(mounted(m, 0, "nr_inodes=2"), os.Mkdir(filepath.Join(m.config, "pagewire"), 0o700))
	}, "no space left on device"}
}

// mounted puts a file system of its own in place of the configuration directory.
func mounted(m *machine, flags uintptr, options string) error {
	if os.Geteuid() != 0 {
		m.t.Skip("not shown: only root can mount a file system")
	}
	if err := syscall.Mount("tmpfs", m.config, "tmpfs", flags, options); err != nil {
		return err
	}
	m.t.Cleanup(func() {
		if err := syscall.Unmount(m.config, 0); err != nil {
			m.t.Error(err)
		}
	})
	return nil
}
