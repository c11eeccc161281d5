// Package userdir is the directory that the processes of one user on one machine share, with locks
// and sockets. The kernel keeps it for this user alone.
//
// The directory is checked when it is opened: it is this user's own, no link, and closed to others.
// Both ends of a socket ask the kernel for the other's user (SO_PEERCRED on Linux, LOCAL_PEERCRED
// on macOS and FreeBSD), so they need no secret, and should send none. On Windows the profile's
// access list is the check.
//
// The package follows no link, and deletes only what it has made.
package userdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A Dir is the directory, for processes with the same --hub. Its methods may be called
// concurrently.
type Dir struct {
	path   string
	prefix string // of the names of our files
	root   *os.Root
}

// Open makes the directory (mode 0700), or checks an existing one: pagewire in the user's
// configuration directory, which is $XDG_CONFIG_HOME or the system's equivalent. hub is the address
// at which pages find the daemon, host and port: processes with another hub share nothing with us,
// as if they were on another machine. If a directory of this user is open to others, Open closes it
// to them. It refuses any other faulty directory.
func Open(hub string) (*Dir, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf(
			"find this user's configuration directory: %w; set it to a directory of yours", err)
	}
	if err := os.MkdirAll(config, 0o700); err != nil {
		return nil, fmt.Errorf("the user's configuration directory: %w", err)
	}
	path := filepath.Join(config, "pagewire")
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("the directory that this user's processes share: %w", err)
	}
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil,
			fmt.Errorf(
				"%s is %s and not a directory: move it away, or set XDG_CONFIG_HOME to another directory", path,
				Kind(before.Mode()))
	}
	// Later steps work below the opened directory, so it cannot be exchanged.
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if err := check(root, path, before); err != nil {
		root.Close()
		return nil, err
	}
	return &Dir{path: path, prefix: prefix(hub), root: root}, nil
}

func check(root *os.Root, path string, before fs.FileInfo) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	switch uid, known := owner(info); {
	case !os.SameFile(info, before):
		return fmt.Errorf(
			"%s was exchanged while it was opened: find out what does that, and try again", path)
	case !known:
		return nil
	case uid != os.Geteuid():
		return fmt.Errorf("%s belongs to another user (its uid is %d, ours is %d): "+
			"set XDG_CONFIG_HOME to a directory of this user", path, uid, os.Geteuid())
	case mode&0o022 != 0:
		return fmt.Errorf(
			"others may write to %s (its mode is %04o): check what is in it, then chmod 700 %s",
			path, mode, path)
	case mode&0o077 != 0:
		if err := root.Chmod(".", 0o700); err != nil {
			return fmt.Errorf("others may look into %s (its mode is %04o): %w; chmod 700 %s", path,
				mode, err, path)
		}
	}
	return nil
}

// OwnedByUs reports whether a file is this user's, as far as the system knows owners.
func OwnedByUs(info fs.FileInfo) bool {
	uid, known := owner(info)
	return !known || uid == os.Geteuid()
}

// Close ends the use of the directory. Connections go on; the caller removes listeners and locks
// before.
func (d *Dir) Close() error { return d.root.Close() }

// String is the directory's path.
func (d *Dir) String() string { return d.path }

// prefix separates processes that share only the directory: by the address, and by the machine.
// Several machines may share a home directory (NFS): locks work between them, sockets do not.
func prefix(hub string) string {
	machine := ""
	if runtime.GOOS == "linux" {
		id, _ := os.ReadFile("/etc/machine-id") // without it the address alone must do
		machine = string(id)
	}
	hub = strings.ToLower(hub)
	if port, ok := strings.CutPrefix(hub, "localhost:"); ok {
		hub = "127.0.0.1:" + port
	}
	sum := sha256.Sum256([]byte(hub + "\x00" + machine))
	return hex.EncodeToString(sum[:4])
}

func (d *Dir) name(name string) string { return d.prefix + "-" + name }

func (d *Dir) full(name string) string { return filepath.Join(d.path, d.name(name)) }

// Path is the path of a file that is opened by path, not below the directory: HASH.log.
func (d *Dir) Path(extension string) string { return filepath.Join(d.path, d.prefix+"."+extension) }

// Stage writes a text into a temporary file beside path, with which the caller replaces the file
// there: a full disk or a crash leaves that one whole. The caller removes the temporary file, also
// after an error, which is about path.
func Stage(path string, text []byte, mode fs.FileMode) (staged string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".pagewire-*") // of mode 0600
	if err == nil {
		staged = f.Name()
		_, err = f.Write(text)
		err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		at.Path = path
	}
	return staged, err
}

// Kind names the kind of a file.
func Kind(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}
