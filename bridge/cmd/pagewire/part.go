package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"unicode/utf8"
)

// A part is a unit that config writes: a member of an object, an element of a list, or a whole file.
type part struct {
	file string
	At   []string `json:"at,omitempty"`   // the path from the root to the member or the list; empty: the whole file
	List bool     `json:"list,omitempty"` // the part is an element of the list at At
	// Value is an argument for generic, or the text of a whole file.
	Value any `json:"value"`
}

// Errors about an entry under our name that differs from ours.
var (
	errOther  = errors.New("has another entry named " + serverName)
	errEdited = errors.New("has an entry named " + serverName + " that was edited since")
	errNotOwn = errors.New("is there already, and pagewire did not write it")
)

func (p part) sameAs(other part) bool { return p.List == other.List && slices.Equal(p.At, other.At) }

// holders returns the names of the objects and the list that contain the part.
func (p part) holders() []string {
	if p.List {
		return p.At
	}
	return p.At[:len(p.At)-1]
}

// ours reports whether an element of a list is our hook, even if it was edited.
func (p part) ours(element []byte) bool { return bytes.Contains(element, []byte(" changes --hook ")) }

func (p part) toml() bool { return filepath.Ext(p.file) == ".toml" }

// put returns a text with the part in it.
func (p part) put(text []byte, force bool) ([]byte, error) {
	if !utf8.Valid(text) { // the record could not hold it
		return nil, errors.New("it is no text in UTF-8")
	}
	if whole, ok := p.Value.(string); ok {
		if len(text) > 0 && string(text) != whole && !force {
			return nil, errNotOwn
		}
		return []byte(whole), nil
	}
	if p.toml() {
		return putTOML(text, p, force)
	}
	return putJSON(text, p, force)
}

// remove returns a text without the part. base is the file's text before put; nil if there was no file.
func (p part) remove(text, base []byte, force bool) ([]byte, error) {
	if whole, ok := p.Value.(string); ok {
		if len(text) > 0 && string(text) != whole && !force {
			return nil, errEdited
		}
		return base, nil
	}
	if p.toml() {
		return takeTOML(text, p, force)
	}
	return takeJSON(text, base, p, force)
}

// found returns the text of a part, or "" if it is missing.
func (p part) found(text []byte) string {
	switch {
	case len(p.At) == 0:
		return string(text)
	case p.toml():
		return foundTOML(text, p)
	}
	return foundJSON(text, p)
}

// has reports whether a part is in its file. A file that cannot be read has no part of ours.
func (p part) has() bool {
	text, _ := settings(p.file)
	return p.found(text) != ""
}

// secret reports whether the part has a token.
func (p part) secret() bool {
	e, _ := p.Value.(entry)
	return slices.ContainsFunc(e, func(m member) bool { _, ok := m.value.(header); return ok })
}

// explain adds the file and a remedy to an error.
func (p part) explain(err error, client string) error {
	switch {
	case errors.Is(err, errOther) || errors.Is(err, errNotOwn):
		return hintError{fmt.Errorf("%s %w", p.file, err), "nothing was written; --force replaces it"}
	case errors.Is(err, errEdited):
		return hintError{fmt.Errorf("%s %w", p.file, err), "nothing was written; --force takes it out as it is"}
	}
	return hintError{fmt.Errorf("%s: %w", p.file, err),
		"nothing was written: mend the file, or put there what pagewire config " + client + " prints"}
}

// includes reports whether an existing value includes a wanted one. It may have further members, which are the user's.
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

// splice replaces a range of a text. The result is never nil.
func splice(text []byte, from, to int, with string) []byte {
	return append(append(append(make([]byte, 0, len(text)+len(with)), text[:from]...), with...), text[to:]...)
}
