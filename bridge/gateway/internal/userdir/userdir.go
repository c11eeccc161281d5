//go:build !js

package userdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A Dir is the directory, for those who say the same --hub. Its methods may be called concurrently.
type Dir struct {
	path   string
	prefix string // of the names in it that are ours
	root   *os.Root
	log    *slog.Logger
}

// Path is where the directory is, unless Open says that it cannot be used: pagewire in the user's configuration
// directory, which is $XDG_CONFIG_HOME, or what the system has instead.
func Path() (string, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find this user's configuration directory: %w; set it to a directory of yours", err)
	}
	return filepath.Join(config, "pagewire"), nil
}

// Open makes the directory (mode 0700), or checks the one that is there. hub is the address where pages find the hub,
// host and port: those who say another one share nothing with us, as if they were on another machine. One that is this
// user's and that others may look into is closed to them, which log is told; any other that is not as it should be is
// refused. log may be nil.
func Open(hub string, log *slog.Logger) (*Dir, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	path, err := Path()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("the user's configuration directory: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("the directory that this user's processes share: %w", err)
	}
	root, err := openChecked(path, log)
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, prefix: prefix(hub), root: root, log: log}, nil
}

// openChecked opens a directory that is ours. What is done later is done below what was opened, so that it cannot be
// exchanged.
func openChecked(path string, log *slog.Logger) (*os.Root, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, fmt.Errorf(
			"%s is %s and not a directory: move it away, or set XDG_CONFIG_HOME to another directory",
			path, kind(before.Mode()))
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if err := checkDir(root, path, before, log); err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

func checkDir(root *os.Root, path string, before fs.FileInfo, log *slog.Logger) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	switch uid, known := owner(info); {
	case !os.SameFile(info, before):
		return fmt.Errorf("%s was exchanged while it was opened: find out what does that, and try again", path)
	case !known:
		return nil
	case uid != os.Geteuid():
		return fmt.Errorf("%s belongs to another user (its uid is %d, ours is %d): "+
			"set XDG_CONFIG_HOME to a directory of this user", path, uid, os.Geteuid())
	case mode&0o022 != 0:
		return fmt.Errorf("others may write to %s (its mode is %04o): check what is in it, then chmod 700 %s", path,
			mode, path)
	case mode&0o077 != 0:
		if err := root.Chmod(".", 0o700); err != nil {
			return fmt.Errorf("others may look into %s (its mode is %04o): %w; chmod 700 %s", path, mode, err, path)
		}
		log.Warn("others could look into the directory that this user's processes share; it is closed to them now",
			"directory", path, "before", fmt.Sprintf("%04o", mode))
	}
	return nil
}

// Close ends the use of the directory. Connections go on; listeners and locks are to be closed before.
func (d *Dir) Close() error { return d.root.Close() }

// String is where the directory is.
func (d *Dir) String() string { return d.path }

// prefix tells those who share something from those who do not: by the address, and by the machine, since a home
// directory may be several machines', where locks work between them (NFS) and sockets do not.
func prefix(hub string) string {
	machine := ""
	if runtime.GOOS == "linux" {
		id, _ := os.ReadFile("/etc/machine-id") // where there is none the address has to do
		machine = string(id)
	}
	hub = strings.ToLower(hub)
	if port, ok := strings.CutPrefix(hub, "localhost:"); ok {
		hub = "127.0.0.1:" + port
	}
	sum := sha256.Sum256([]byte(hub + "\x00" + machine))
	return hex.EncodeToString(sum[:4]) + "-"
}

// name is that of a file of ours. A name with a separator in it is a mistake of who wrote the call.
func (d *Dir) name(name string) string {
	if name == "" || strings.ContainsAny(name, `/\`) {
		panic(fmt.Sprintf("userdir: %q is no name of a file", name))
	}
	return d.prefix + name
}

func (d *Dir) full(name string) string { return filepath.Join(d.path, d.name(name)) }

// Path is where a file of ours is, or would be: one that is only opened by its path has a name that ends in its kind,
// such as HASH.log.
func (d *Dir) Path(kind string) string {
	return filepath.Join(d.path, strings.TrimSuffix(d.prefix, "-")+"."+kind)
}

// kind says in words what is in place of a file.
func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}
