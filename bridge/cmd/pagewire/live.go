//go:build !js

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
)

// A setup is what config --live writes for one program, and takes back.
type setup struct {
	client client
	places places
	dir    string // where the record is, and what files held before
	files  *fileChange
	record record
}

// A record is what --live has written, so that --remove can take it back byte for byte. It lies with what was there
// before in a directory of ours.
type record struct {
	Files []recorded `json:"files"`
	Dirs  []string   `json:"dirs"` // that were made, outer ones first
}

type recorded struct {
	File   string     `json:"file"`
	Before string     `json:"before,omitempty"` // the file with what it held; "" if it was not there
	SHA256 string     `json:"sha256"`           // of what was written
	Parts  []keptPart `json:"parts"`
}

// A keptPart is a part that was not there before; without At it is all of the file.
type keptPart struct {
	At    []string `json:"at,omitempty"`
	List  bool     `json:"list,omitempty"`
	Value any      `json:"value,omitempty"`
}

// newSetup reads what was written for a client before, if anything was.
func newSetup(c client, p places) (*setup, error) {
	s := &setup{client: c, places: p, dir: filepath.Join(p.config(), "pagewire", "live"),
		files: &fileChange{title: c.title}}
	f, err := s.recordFile()
	if err != nil || f.is == nil {
		return s, err
	}
	if err := json.Unmarshal(f.is, &s.record); err != nil {
		return nil, hintError{fmt.Errorf("%s is no record of pagewire: %w", f.path, err),
			"nothing was written: remove it, and what was written for " + c.title + " by hand"}
	}
	return s, nil
}

func (s *setup) recordFile() (*changedFile, error) {
	return s.files.file(filepath.Join(s.dir, s.client.name+".json"))
}

// exists reports whether there is something to take back.
func (s *setup) exists() bool { return len(s.record.Files) > 0 }

// undo takes back what is on record: what the files held is put back where nothing else was changed, else our parts
// alone are taken out.
func (s *setup) undo(force bool) error {
	for _, r := range s.record.Files {
		var base []byte
		if r.Before != "" {
			before, err := s.files.file(r.Before)
			if err != nil {
				return err
			}
			base, before.is = before.is, nil
		}
		f, err := s.files.file(r.File)
		if err != nil {
			return err
		}
		switch {
		case f.is == nil: // somebody has taken it back already
		case sum(f.is) == r.SHA256 && !(f.link && base == nil):
			f.is = base
		default:
			if err := s.takeParts(f, r, base, force); err != nil {
				return err
			}
		}
	}
	s.record.Files = nil
	f, err := s.recordFile()
	if err == nil {
		f.is = nil
	}
	return err
}

// takeParts takes our parts out of a file that holds other changes too.
func (s *setup) takeParts(f *changedFile, r recorded, base []byte, force bool) (err error) {
	for _, kept := range slices.Backward(r.Parts) {
		p := part{file: r.File, at: kept.At, list: kept.List, value: kept.Value}
		if f.is, err = p.take(f.is, base, force); err != nil {
			return p.said(err, s.client.name)
		}
	}
	if base == nil && !f.link && blank(f.is) {
		f.is = nil
	}
	return nil
}

// blank reports whether a text says nothing.
func blank(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || text[0] == '{' && len(bytes.TrimSpace(text[1:])) == 1
}

// put writes parts, and keeps on record what was there before.
func (s *setup) put(parts []part, force bool) error {
	for len(parts) > 0 {
		file := parts[0].file
		mine := func(p part) bool { return p.file == file }
		r, err := s.putFile(slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !mine(p) }), force)
		if err != nil {
			return err
		}
		if len(r.Parts) > 0 {
			s.record.Files = append(s.record.Files, r)
		}
		parts = slices.DeleteFunc(slices.Clone(parts), mine)
	}
	f, err := s.recordFile()
	if err != nil || len(s.record.Files) == 0 {
		return err
	}
	f.first, f.is = true, []byte{} // it is there, for newDirs
	for _, dir := range s.files.newDirs() {
		if !slices.Contains(s.record.Dirs, dir) {
			s.record.Dirs = append(s.record.Dirs, dir)
		}
	}
	f.is, err = s.record.text()
	return err
}

// putFile writes the parts of one file.
func (s *setup) putFile(parts []part, force bool) (r recorded, err error) {
	f, err := s.files.file(parts[0].file)
	if err != nil {
		return r, err
	}
	base := f.is
	r.File = parts[0].file
	for _, p := range parts {
		after, err := p.put(f.is, force)
		if err != nil {
			return r, p.said(err, s.client.name)
		}
		if !bytes.Equal(after, f.is) {
			r.Parts = append(r.Parts, keptPart{p.at, p.list, generic(p.value)})
		}
		f.is = after
		f.secret = f.secret || p.secret()
	}
	r.SHA256 = sum(f.is)
	if len(r.Parts) == 0 || base == nil {
		return r, nil
	}
	r.Before = filepath.Join(s.dir, fmt.Sprintf("%s.%d.%s", s.client.name, len(s.record.Files)+1,
		filepath.Base(r.File)))
	before, err := s.files.file(r.Before)
	if err == nil {
		before.first, before.is = true, base
	}
	return r, err
}

// handOn notes directories that were made for this client, and hold something yet, on the record of another one:
// whoever is taken back last removes them.
func (s *setup) handOn(dirs []string) error {
	for _, c := range clients {
		other, err := newSetup(c, s.places)
		if len(dirs) == 0 || err != nil || !other.exists() {
			continue
		}
		f, err := other.recordFile()
		if err != nil {
			return err
		}
		other.record.Dirs = slices.Concat(dirs, other.record.Dirs)
		if f.is, err = other.record.text(); err != nil {
			return err
		}
		return other.files.do()
	}
	return nil
}

// text is the record as its file has it.
func (r record) text() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

func sum(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])
}

// secret reports whether there is a token in the part.
func (p part) secret() bool {
	e, _ := p.value.(entry)
	return slices.ContainsFunc(e, func(m member) bool { _, ok := m.value.(header); return ok })
}
