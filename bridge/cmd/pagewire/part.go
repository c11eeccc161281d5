//go:build !js

package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
)

// A part is one thing that config writes into a file: a member of an object, an element of a list, or all of the file.
type part struct {
	file string
	// at are the names from the root to the member, or to the list.
	at   []string
	list bool
	// value is what generic takes.
	value any
	// text is all of the file; at is empty then.
	text string
	// held is how many of holders were there before the part, where what the file held then is not known any more.
	held int
}

// errOther and errEdited say that there is something of our name, and that it is not what we would write, or have
// written.
var (
	errOther  = errors.New("has another entry named " + serverName)
	errEdited = errors.New("has an entry named " + serverName + " that was edited since")
	errNotOwn = errors.New("is there already, and pagewire did not write it")
)

// name is the member's, and "" for an element of a list.
func (p part) name() string {
	if p.list {
		return ""
	}
	return p.at[len(p.at)-1]
}

// holders are the names of the objects, and of the list, that lead to the part.
func (p part) holders() []string {
	if p.list {
		return p.at
	}
	return p.at[:len(p.at)-1]
}

// leaf is what the last name stands for when nothing is there yet.
func (p part) leaf() any {
	if p.list {
		return []any{p.value}
	}
	return p.value
}

// ours reports whether an element of a list is a hook of ours, whatever else was made of it.
func (p part) ours(element []byte) bool { return bytes.Contains(element, []byte(" changes --hook ")) }

func (p part) toml() bool { return filepath.Ext(p.file) == ".toml" }

// put is the text of the part's file with the part in it, which is the old one if it is there.
func (p part) put(text []byte, force bool) ([]byte, error) {
	switch {
	case len(p.at) == 0 && len(text) > 0 && string(text) != p.text && !force:
		return nil, errNotOwn
	case len(p.at) == 0:
		return []byte(p.text), nil
	case p.toml():
		return putTOML(text, p, force)
	}
	return putJSON(text, p, force)
}

// take is the text without the part; base is what the file was before the part was put there, nil if there was none.
func (p part) take(text, base []byte, force bool) ([]byte, error) {
	switch {
	case len(p.at) == 0 && len(text) > 0 && string(text) != p.text && !force:
		return nil, errEdited
	case len(p.at) == 0:
		return base, nil
	case p.toml():
		return takeTOML(text, p, force)
	}
	return takeJSON(text, base, p, force)
}

// found is what of the part's name is in a text, as it is written there; "" for nothing.
func (p part) found(text []byte) string {
	if len(p.at) == 0 {
		return string(text)
	}
	if p.toml() {
		if table, err := findTOML(text, p.at); err == nil && table.header >= 0 {
			return string(text[table.header:table.end])
		}
		return ""
	}
	d, err := parseJSON(text)
	if err != nil {
		return ""
	}
	chain, rest, err := d.walk(p)
	if err != nil || len(rest) > 0 {
		return ""
	}
	c := chain[len(chain)-1]
	at, _, err := d.look(c, p)
	if err != nil || at < 0 {
		return ""
	}
	return string(d.source(c.value(at)))
}

// has reports whether a part is in its file. What cannot be read holds nothing of ours.
func (p part) has() bool {
	text, _ := settings(p.file)
	return p.found(text) != ""
}

// said adds the file to what is wrong with it, and what to do.
func (p part) said(err error, client string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errOther) || errors.Is(err, errNotOwn):
		return hintError{fmt.Errorf("%s %w", p.file, err), "nothing was written; --force replaces it"}
	case errors.Is(err, errEdited):
		return hintError{fmt.Errorf("%s %w", p.file, err), "nothing was written; --force takes it out as it is"}
	}
	return hintError{fmt.Errorf("%s: %w", p.file, err),
		"nothing was written: mend the file, or put there what pagewire config " + client + " prints"}
}
