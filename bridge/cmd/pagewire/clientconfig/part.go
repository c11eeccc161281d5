package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pagewire/pagewire/bridge/weborigin"
)

// A part is a unit that config writes into a file: an entry, a hook, or all of the file.
type part struct {
	file string
	// at is the path from the root to the entry, or to the list of the hook; nil: all of the file.
	at     []string
	hook   bool
	events []string // of a hook: all at which config writes hooks
	// value is an entry, or the text of a file. marked is that text with marks in place of what
	// differs from machine to machine; "": nothing does.
	value  any
	marked string
	// folder is the outermost folder that only Pagewire uses; "": the file is in a folder of its
	// program.
	folder string
}

// Errors about what is there under our name.
var (
	errOther   = errors.New("has another entry named " + serverName)
	errNotOurs = errors.New("has an entry named " + serverName + " that is for something else")
	errNotOwn  = errors.New("is there, and is not what this pagewire writes")
)

// A hintError adds a remedy to an error.
type hintError struct {
	error
	hint string
}

func (e hintError) Unwrap() error { return e.error }

// Hint returns the remedy.
func (e hintError) Hint() string { return e.hint }

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
	text, _ := Read(p.file)
	switch {
	case p.at == nil:
		return len(text) > 0
	case p.toml():
		is, _, _ := findTOML(text, p.at)
		return is != nil
	}
	return hasJSON(text, p)
}

// mark is the text of a part in place of what differs from machine to machine.
const mark = "@machine@"

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
		return hintError{err, "nothing was written; --force replaces it"}
	}
	err = fmt.Errorf("%s: %w", p.file, err)
	return hintError{err, "nothing was written: mend the file, or " + byHand}
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

// ourEntry reports whether an entry of our name is ours: it starts pagewire serve, with whatever
// flags and by whatever program, or it has the address of a gateway on this machine.
func ourEntry(is any) bool {
	var words []string
	members, _ := is.(map[string]any)
	for _, name := range []string{"command", "args", "url", "serverUrl", "httpUrl"} {
		list, ok := members[name].([]any)
		if !ok {
			list = []any{members[name]}
		}
		for _, word := range list {
			text, _ := word.(string) // of a shell it may be a whole command line
			words = append(words, strings.Fields(text)...)
		}
	}
	for i, word := range words {
		if u, err := url.Parse(word); err == nil && u.Path == "/mcp" && weborigin.IsLoopbackHost(u.Hostname()) ||
			i > 0 && word == "serve" && ourProgram(words[i-1]) {
			return true
		}
	}
	return false
}

// ourProgram reports whether a path, or a package of npm, is this program.
func ourProgram(path string) bool {
	name, _, _ := strings.Cut(path[strings.LastIndexAny(path, `/\`)+1:], "@")
	self, err := os.Executable()
	plain := strings.NewReplacer(".exe", "", ".cmd", "", "'", "", `"`, "").Replace
	return plain(name) == serverName || err == nil && plain(name) == plain(filepath.Base(self))
}

// changesCommand is a command line that runs pagewire changes and nothing else: in a pipeline or a
// list of commands a person has put it there. The first word is the program.
var changesCommand = regexp.MustCompile(strings.ReplaceAll(
	`^(?:& )?(word) changes(?: word)*$`, "word",
	`(?:[\w./:@%+,=*~$\\-]|'[^']*'|"[^"]*"|\\')+`))

// ourHook reports whether a hook is ours: it runs pagewire changes, in each of the shells that it
// has a command for.
func ourHook(is any) bool {
	hook, _ := is.(map[string]any)
	ours := false
	for _, shell := range []string{"command", "bash", "powershell"} {
		if run, ok := hook[shell].(string); ok {
			words := changesCommand.FindStringSubmatch(run)
			if ours = words != nil && ourProgram(words[1]); !ours {
				return false
			}
		}
	}
	return ours
}

// includes reports whether an existing value includes a wanted one. It may have further members,
// which are the user's.
func includes(is, want any) bool {
	members, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(want, is)
	}
	has, ok := is.(map[string]any)
	for name, value := range members {
		got, there := has[name]
		if name == "type" && !there {
			continue // clients detect it themselves
		}
		if !there || !reflect.DeepEqual(value, got) {
			return false
		}
	}
	return ok
}

// newlineOf returns the line end that a text uses.
func newlineOf(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}
