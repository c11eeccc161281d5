package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig/files"
	"github.com/pagewire/pagewire/bridge/internal/jsonc"
)

func (p part) toml() bool { return filepath.Ext(p.file) == ".toml" }

// put returns a text with the part in it.
func (p part) put(text []byte, force bool) ([]byte, error) {
	whole, isWhole := p.value.(string)
	switch {
	case isWhole && len(text) > 0 && !p.wrote(text) && !force:
		return nil, errNotOwn
	case isWhole:
		return []byte(whole), nil
	case p.toml():
		return putTOML(text, p, force)
	}
	return putJSON(text, p, force)
}

// take returns a text without the part; nil means that the file goes.
//
// Why does config keep no record of what it writes? What is ours can be seen in the file: an entry
// named pagewire that runs pagewire serve or has our address, and hooks that run pagewire changes.
// With copies, a cut one made --remove empty the settings; with a record, our hooks stayed where it
// was lost. It cost 340 lines. A hook is ours only if its command has nothing else. BurntSushi/toml
// and go-toml drop comments when they write, so an entry is appended as a table, and taken out by
// the lines that go-toml's parser names. All texts are in temporary files before the first
// replacement.
func (p part) take(text []byte, force bool) ([]byte, error) {
	switch {
	case p.at == nil && !p.wrote(text) && !force:
		return nil, errNotOwn
	case p.at == nil:
		return nil, nil
	case p.toml():
		return takeTOML(text, p, force)
	}
	return takeJSON(text, p, force)
}

// has reports whether the part is in its file: an entry of our name, a hook of ours, any text. A
// file that cannot be read has no part of ours.
func (p part) has() bool {
	text, _ := files.Read(p.file)
	switch {
	case p.at == nil:
		return len(text) > 0
	case p.toml():
		is, _, _ := findTOML(text, p.at)
		return is != nil
	}
	return hasJSON(text, p)
}

// gone returns the program that an entry of ours starts, if it is not there any more.
func (p part) gone() string {
	var is any
	text, _ := files.Read(p.file)
	if p.toml() {
		is, _, _ = findTOML(text, p.at)
	} else if v := entryJSON(text, p); v != nil {
		is = jsonc.Decoded(v)
	}
	if words := wordsOf(is); ourEntry(is) && filepath.IsAbs(words[0]) {
		if _, err := os.Stat(words[0]); errors.Is(err, fs.ErrNotExist) {
			return words[0]
		}
	}
	return ""
}

// wrote reports whether config has written a whole file: it differs at most between the first mark
// and the last.
func (p part) wrote(text []byte) bool {
	head, rest, differs := strings.Cut(p.marked, mark)
	if !differs {
		return string(text) == p.value
	}
	tail := rest[strings.LastIndex(rest, mark)+len(mark):]
	is := string(text)
	return len(is) >= len(head)+len(tail) && strings.HasPrefix(is, head) &&
		strings.HasSuffix(is, tail) && strings.Count(is, "\n") == strings.Count(p.marked, "\n")
}

// secret reports whether the part has a token.
func (p part) secret() bool {
	e, _ := p.value.(entry)
	return slices.ContainsFunc(e, func(m member) bool { _, ok := m.value.(header); return ok })
}

// explain adds the file and a remedy to an error.
func (p part) explain(err error, byHand string) error {
	if errors.Is(err, errOther) || errors.Is(err, errNotOwn) {
		err = fmt.Errorf("%s %w", p.file, err)
		return cli.Hint(err, "nothing was written; --force replaces it")
	}
	err = fmt.Errorf("%s: %w", p.file, err)
	return cli.Hint(err, "nothing was written: mend the file, or "+byHand)
}

// checkUTF8 returns an error for a text that is not in UTF-8.
func checkUTF8(text []byte) error {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return fmt.Errorf("line %d is no text in UTF-8", bytes.Count(text[:i], []byte("\n"))+1)
		}
		i += n
	}
	return nil
}
