// Package secret keeps secrets in files: a user's token, and the secret of the extension.
//
// It never follows a link to a file, nor a linked way that another user may change. It never waits,
// and never repairs, replaces or removes an existing file: it refuses one that is empty, half
// written, not regular, or readable by others. The error names the file and says what to do.
package secret

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/pagewire/pagewire/bridge/internal/userdir"
)

const (
	randomBytes = 32
	// wholeLength is the length of our secrets in base64url. A shorter one must end in a newline.
	wholeLength = 43
	maxFile     = 4096
)

var shape = regexp.MustCompile(`^[A-Za-z0-9_-]{32,}$`)

// Make returns the secret in the file at path. If there is no file, it makes one: 32 random bytes
// as base64url and a newline, of mode 0600, with directories of mode 0700 if they are missing.
// Concurrent callers get the same secret.
func Make(path string) (string, error) {
	text, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	if err := userdir.CheckWay(filepath.Dir(path)); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	random := make([]byte, randomBytes)
	rand.Read(random) // it does not fail
	text = base64.RawURLEncoding.EncodeToString(random)
	if err := put(path, text+"\n"); errors.Is(err, fs.ErrExist) {
		return Load(path) // another process was faster
	} else if err != nil {
		return "", err
	}
	return text, nil
}

// put makes a file that is complete as soon as it exists. It fails with fs.ErrExist if there is a
// file at path.
func put(path, text string) error {
	staged, err := userdir.Stage(path, []byte(text), 0o600)
	defer os.Remove(staged)
	if err != nil {
		return err
	}
	// A link fails if another process has just put a file there; a rename would replace that file.
	if err = os.Link(staged, path); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// This file system has no hard links.
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	return os.Rename(staged, path)
}

// Load returns the secret in the file at path. It fails with fs.ErrNotExist if there is no file.
func Load(path string) (string, error) {
	text, err := readPrivate(path)
	if err != nil {
		return "", err
	}
	secret, ended := strings.CutSuffix(text, "\n")
	secret = strings.TrimSuffix(secret, "\r")
	switch {
	case text == "":
		return "", fmt.Errorf("%s is empty: remove it, and a new one is made", path)
	case !shape.MatchString(secret), !ended && len(secret) < wholeLength:
		return "",
			fmt.Errorf("%s does not hold a whole secret: remove it, and a new one is made", path)
	}
	return secret, nil
}

// readPrivate reads a file that belongs to this user and that nobody else may read.
func readPrivate(path string) (string, error) {
	text, info, err := ReadOwn(path)
	if err != nil {
		return "", err
	}
	if mode := info.Mode().Perm(); userdir.Permits(mode, 0o077) {
		return "", fmt.Errorf(
			"others may read or write %s (its mode is %04o): chmod 600 %s, or remove it if it may "+
				"have been read", path, mode, path)
	}
	return text, nil
}

// ReadOwn reads the first 4 KiB of a regular file that belongs to this user. It follows no link.
func ReadOwn(path string) (text string, info fs.FileInfo, err error) {
	named, err := os.Lstat(path)
	if err != nil {
		return "", nil, err
	}
	if !named.Mode().IsRegular() {
		return "", nil,
			fmt.Errorf("%s is %s, and must be a file: remove it, or name another one", path,
				userdir.Kind(named.Mode()))
	}
	// Without O_NONBLOCK, a FIFO that has replaced the file since Lstat would block us.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	switch info, err = f.Stat(); {
	case err != nil:
		return "", nil, err
	case !os.SameFile(named, info):
		return "", nil, fmt.Errorf("%s was replaced while it was opened: try again", path)
	case !userdir.OwnedByUs(info):
		return "", nil,
			fmt.Errorf("%s belongs to another user: remove it, or name another file", path)
	}
	all, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(all), info, err
}
