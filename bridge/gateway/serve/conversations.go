package serve

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
)

// conversations keep the record of each conversation in a file of mode 0600, in a directory next to the token. The
// file's name is a hash of the conversation's name, because that comes over a wire.
type conversations struct {
	dir string
	log *slog.Logger
}

const (
	// A record is kept for keptFor after its last use, and at most maxKept records are kept: 16 MiB.
	keptFor = 24 * time.Hour
	maxKept = 64
)

// conversationsOf keeps records next to the file with the token. If its path is "", the result is nil: none are kept.
func conversationsOf(token string, log *slog.Logger) gateway.Conversations {
	if token == "" {
		return nil
	}
	return conversations{filepath.Join(filepath.Dir(token), "conversations"), log}
}

func (c conversations) path(name string) string {
	hash := sha256.Sum256([]byte(name))
	return filepath.Join(c.dir, hex.EncodeToString(hash[:])+".json")
}

func (c conversations) Load(name string) []byte {
	path := c.path(name)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > gateway.MaxSnapshotBytes ||
		time.Since(info.ModTime()) > keptFor {
		return nil
	}
	text, _ := os.ReadFile(path) // another process may have removed it
	return text
}

func (c conversations) Save(name string, record []byte) {
	err := os.MkdirAll(c.dir, 0o700)
	if err == nil {
		c.prune(c.path(name))
		err = replace(c.path(name), record)
	}
	if err != nil {
		c.log.Warn("what an agent has seen is not kept for its next process", "reason", err)
	}
}

// replace writes a file atomically.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ours matches the names of records, and of replace's temporary files. The directory may have files of the user too,
// because the token may be anywhere.
var ours = regexp.MustCompile(`^[0-9a-f]{64}\.json(-[0-9]+)?$`)

// prune removes records that are too old, and then the oldest, until there is room for the file but, which it keeps.
func (c conversations) prune(but string) {
	ages := map[string]time.Duration{}
	entries, _ := os.ReadDir(c.dir) // Save reports an unusable directory
	for _, entry := range entries {
		path := filepath.Join(c.dir, entry.Name())
		if info, err := entry.Info(); err == nil && path != but && ours.MatchString(entry.Name()) {
			ages[path] = time.Since(info.ModTime())
		}
	}
	byAge := slices.SortedFunc(maps.Keys(ages), func(a, b string) int { return cmp.Compare(ages[a], ages[b]) })
	for i, path := range byAge {
		if i >= maxKept-1 || ages[path] > keptFor {
			_ = os.Remove(path) // another process may have been faster
		}
	}
}
