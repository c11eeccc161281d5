package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A setup is the set of files that config writes for one client, and takes back.
type setup struct {
	client client
	dir    string // of the record
	files  *fileChange
	record record
	kept   []string // messages about earlier contents that keep has saved
}

// A record lists the parts that config has written, so that --remove can restore the files byte for byte.
type record struct {
	Dirs []string `json:"dirs"` // the directories that config has made
	// Written has three keys for each client: of --live, --write and --skill. --remove takes back --live first.
	Written map[string][]*written `json:"written"`
}

// A written is one file. A program can write to its file at any time. So --remove replaces the file by Before only if
// it has not changed since config wrote it. Otherwise it takes out our parts.
type written struct {
	File   string  `json:"file"`
	Before *string `json:"before"` // nil: the file did not exist
	SHA256 string  `json:"sha256"` // of our text; "" if the file had changed before config wrote to it again
	Parts  []part  `json:"parts"`
}

func (c client) liveKey() string  { return c.name }
func (c client) entryKey() string { return c.name + ".entry" }
func (c client) skillKey() string { return c.name + ".skill" }

// newSetup reads the record.
func newSetup(c client, p places) (*setup, error) {
	s := &setup{client: c, dir: filepath.Join(p.config(), "pagewire", "live"), files: &fileChange{title: c.title}}
	f, err := s.recordFile()
	if err == nil && f.is != nil {
		if err = s.record.parse(f.is); err != nil {
			err = hintError{fmt.Errorf("%s is no record of pagewire: %w", f.path, err),
				"nothing was written: remove it, and what was written for " + c.title + " by hand"}
		}
	}
	if s.record.Written == nil {
		s.record.Written = map[string][]*written{}
	}
	return s, err
}

func (r *record) parse(text []byte) error {
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	for _, list := range r.Written {
		for _, w := range list {
			if w == nil || !filepath.IsAbs(w.File) {
				return fmt.Errorf("%+v has no absolute path of a file", w)
			}
			for i, p := range w.Parts {
				if _, whole := p.Value.(string); !whole && len(p.At) < 2 {
					return fmt.Errorf("%+v is no part of %s", p, w.File)
				}
				w.Parts[i].file = w.File
			}
		}
	}
	return nil
}

func (s *setup) recordFile() (*changedFile, error) {
	return s.files.file(filepath.Join(s.dir, "record.json"))
}

// save adds the record to the change, or its removal if the record is empty. order is -1 to write it before other
// files, and 1 after them.
func (s *setup) save(order int) error {
	f, err := s.recordFile()
	if err != nil {
		return err
	}
	if f.order, f.is = order, nil; len(s.record.Written) == 0 {
		return nil
	}
	f.is = []byte{} // so that newDirs counts its directory
	for _, dir := range s.files.newDirs() {
		if !slices.Contains(s.record.Dirs, dir) {
			s.record.Dirs = append(s.record.Dirs, dir)
		}
	}
	f.is = []byte(indentedJSON(s.record))
	return nil
}

// on returns the record of a file under a key, or nil.
func (s *setup) on(key, file string) *written {
	i := slices.IndexFunc(s.record.Written[key], func(w *written) bool { return w.File == file })
	if i < 0 {
		return nil
	}
	return s.record.Written[key][i]
}

// put adds a part to the change, and records the earlier content of its file.
func (s *setup) put(key string, p part, force bool) error {
	f, err := s.files.file(p.file)
	if err != nil {
		return err
	}
	after, err := p.put(f.is, force)
	if err != nil {
		return p.explain(err, s.client.name)
	}
	if f.is != nil && bytes.Equal(after, f.is) {
		return nil
	}
	w := s.on(key, p.file)
	unchanged := w != nil && sum(f.is) == w.SHA256
	if w != nil && !unchanged && !slices.ContainsFunc(w.Parts, func(p part) bool { return p.found(f.is) != "" }) {
		s.keep(w, f) // another program has replaced the file
		s.record.Written[key] = slices.DeleteFunc(s.record.Written[key], func(other *written) bool { return other == w })
		w = nil
	}
	if w == nil {
		w, unchanged = &written{File: p.file}, true
		if f.is != nil {
			before := string(f.is)
			w.Before = &before
		}
		s.record.Written[key] = append(s.record.Written[key], w)
	}
	f.is, f.secret = after, f.secret || p.secret()
	p.Value = generic(p.Value)
	w.Parts = append(slices.DeleteFunc(w.Parts, p.sameAs), p)
	if w.SHA256 = ""; unchanged {
		w.SHA256 = sum(after)
	}
	return nil
}

// undo takes back all parts that are recorded under a key.
func (s *setup) undo(key string, force bool) error {
	for _, w := range s.record.Written[key] {
		if err := s.undoFile(w, force); err != nil {
			return err
		}
	}
	delete(s.record.Written, key)
	return nil
}

func (s *setup) undoFile(w *written, force bool) error {
	f, err := s.files.file(w.File)
	if err != nil {
		return err
	}
	found := f.is
	switch {
	case f.is == nil: // it was removed, and stays removed
	case sum(f.is) == w.SHA256 && (w.Before != nil || !f.isLink()):
		f.is = w.before()
	default:
		for _, p := range slices.Backward(w.Parts) {
			if f.is, err = p.remove(f.is, w.before(), force); err != nil {
				return p.explain(err, s.client.name)
			}
		}
		switch empty := blank(f.is) && !bytes.Equal(f.is, found); {
		case w.Before == nil && empty && !f.isLink():
			f.is = nil
		case f.is == nil:
			f.is = []byte{} // the file or its link was there before
		}
	}
	if bytes.Equal(f.is, found) {
		s.keep(w, f)
	}
	return nil
}

func (w *written) before() []byte {
	if w.Before == nil {
		return nil
	}
	return []byte(*w.Before)
}

// keep saves the earlier content of a file in the record's directory, since another program has overwritten that file.
func (s *setup) keep(w *written, f *changedFile) {
	if before := w.before(); !bytes.Equal(f.is, before) && !blank(before) {
		path := filepath.Join(s.dir, sum(before)[:8]+"-"+filepath.Base(w.File))
		if copied, err := s.files.file(path); err == nil {
			copied.is = before
			s.kept = append(s.kept, fmt.Sprintf("%s is not as it was written; what it held before is kept in %s", w.File,
				path))
		}
	}
}

// blank reports whether a text is empty or an empty object.
func blank(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || text[0] == '{' && len(bytes.TrimSpace(text[1:])) == 1
}

func sum(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])
}

func indentedJSON(v any) string { return encodedJSON(v, "  ") }

// encodedJSON is json.Marshal without HTML's escapes, and with a newline at the end.
func encodedJSON(v any, indent string) string {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", indent)
	_ = out.Encode(v) // it fails only for types that do not occur here
	return b.String()
}
