//go:build unix

package userdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds the links of one way, as Linux does.
const maxLinks = 40

// CheckWay returns an error if the way to a directory leads over a link, and another user may
// change a part of it: then that user chooses the directory. Links of this user, or of root, to
// directories of theirs are as good as directories. Parts that do not exist are ignored.
func CheckWay(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	at, links, foreign := "/", 0, ""
	for left := strings.Split(dir, "/"); len(left) > 0; {
		next := filepath.Join(at, left[0])
		left = left[1:]
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		if foreign == "" && changeable(info) {
			foreign = next
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return fmt.Errorf("%s: the link %s cannot be followed", dir, next)
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		left = append(strings.Split(to, "/"), left...)
	}
	if links > 0 && foreign != "" {
		return fmt.Errorf("the way to %s leads over a link, and another user may change %s: "+
			"name a directory that only this user can change", dir, foreign)
	}
	return nil
}
