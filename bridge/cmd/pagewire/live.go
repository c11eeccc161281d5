//go:build !js

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
)

// A setup is what config writes for one program, and takes back.
type setup struct {
	client client
	places places
	name   string // of the record
	dir    string // where the record is, and what files held before
	files  *fileChange
	record record
	kept   []string // sentences about what files held, where that is kept for good
}

// What is behind the name of a client in the name of a record: of --live, or of --write, which is taken back after
// that.
const liveRecord, entryRecord = "", ".entry"

// A record is what was written, so that --remove can take it back byte for byte. It lies with what was there before
// in a directory of ours.
type record struct {
	Files []recorded `json:"files"`
	Dirs  []string   `json:"dirs"` // that were made, outer ones first
}

type recorded struct {
	File   string `json:"file"`
	Before string `json:"before,omitempty"` // the file with what it held; "" if it was not there
	// SHA256 is of what was written; "" where what the file would be without is not known to the byte.
	SHA256 string `json:"sha256"`
	// Was is what was there instead of the bytes From to To of what was written: the file of Before may be cleaned
	// away, or cut, and this is not. A record that is older has no To.
	From  int        `json:"from,omitempty"`
	To    int        `json:"to,omitempty"`
	Was   []byte     `json:"was,omitempty"`
	Parts []keptPart `json:"parts"`
}

// A keptPart is a part that was not there before; without At it is all of the file.
type keptPart struct {
	At    []string `json:"at,omitempty"`
	List  bool     `json:"list,omitempty"`
	Value any      `json:"value,omitempty"`
	Held  int      `json:"held,omitempty"` // how many of the objects and lists that lead to it were there before
}

// newSetup reads what was written for a client before, if anything was.
func newSetup(c client, p places, what string) (*setup, error) {
	s := &setup{client: c, places: p, name: c.name + what, dir: filepath.Join(p.config(), "pagewire", "live"),
		files: &fileChange{title: c.title}}
	f, err := s.recordFile()
	if err != nil || f.is == nil {
		return s, err
	}
	err = json.Unmarshal(f.is, &s.record)
	for _, r := range s.record.Files {
		if err == nil && !filepath.IsAbs(r.File) {
			err = fmt.Errorf("%q is no path of a file", r.File)
		}
	}
	if err != nil {
		return nil, hintError{fmt.Errorf("%s is no record of pagewire: %w", f.path, err),
			"nothing was written: remove it, and what was written for " + c.title + " by hand"}
	}
	return s, nil
}

func (s *setup) recordFile() (*changedFile, error) {
	return s.ours(s.name+".json", 2)
}

// exists reports whether there is something to take back.
func (s *setup) exists() bool { return len(s.record.Files) > 0 }

// has reports whether a part is on record.
func (s *setup) has(p part) bool {
	return slices.ContainsFunc(s.record.Files, func(r recorded) bool {
		return r.File == p.file && slices.ContainsFunc(r.Parts, func(kept keptPart) bool { return kept.is(p) })
	})
}

func (k keptPart) is(p part) bool { return k.List == p.list && slices.Equal(k.At, p.at) }

// undo takes back what is on record: what the files held is put back where nothing else was changed, else our parts
// alone are taken out. A file that was there before stays, whatever has become of what is kept of it.
func (s *setup) undo(force bool) error {
	for _, r := range s.record.Files {
		if err := s.undoFile(r, force); err != nil {
			return err
		}
	}
	s.record.Files = nil
	f, err := s.recordFile()
	if err == nil {
		f.is = nil
	}
	return err
}

func (s *setup) undoFile(r recorded, force bool) error {
	f, err := s.files.file(r.File)
	if err != nil {
		return err
	}
	before, err := s.copyOf(r)
	if err != nil {
		return err
	}
	written := f.is
	switch base, known := r.base(f.is, before.is); {
	case f.is == nil: // somebody has taken it back already
	case known && !(f.link && base == nil):
		f.is = base
	default:
		if err := s.takeParts(f, r, before.is, force); err != nil {
			return err
		}
	}
	if !bytes.Equal(f.is, written) {
		before.is = nil
		return nil
	}
	s.leave(r, f, before)
	return nil
}

// leave ends what is on record of a file that has nothing of ours: somebody else has written it, and what is kept may
// be all that is left of before.
func (s *setup) leave(r recorded, f, before *changedFile) {
	if bytes.Equal(f.is, before.is) || blank(before.is) {
		before.is = nil
		return
	}
	s.kept = append(s.kept, fmt.Sprintf("%s is not as it was written; what it held before is kept in %s", r.File,
		before.path))
}

// in reports whether something of what was written is in a text.
func (r recorded) in(text []byte) bool {
	return slices.ContainsFunc(r.Parts, func(kept keptPart) bool { return kept.part(r.File).found(text) != "" })
}

func (k keptPart) part(file string) part {
	return part{file: file, at: k.At, list: k.List, value: k.Value, held: k.Held}
}

// copyOf is the file with what another one held before; one that is not there, if that was not. It lies beside the
// record, wherever that has been moved since.
func (s *setup) copyOf(r recorded) (*changedFile, error) {
	if r.Before == "" {
		return &changedFile{}, nil
	}
	return s.ours(filepath.Base(r.Before), 1)
}

// ours is a file in the directory of the record. Nobody else may read it.
func (s *setup) ours(name string, rank int) (*changedFile, error) {
	f, err := s.files.file(filepath.Join(s.dir, name))
	if err == nil {
		f.rank, f.mode = rank, 0o600
	}
	return f, err
}

// base is what a file held before, if it holds now what was written; kept is the file that was to hold that. Where it
// was not there it is nil.
func (r recorded) base(now, kept []byte) (base []byte, known bool) {
	switch {
	case r.SHA256 == "" || sum(now) != r.SHA256:
		return nil, false
	case r.Before == "":
		return nil, true
	case r.To > 0:
		if r.From < 0 || r.From > r.To || r.To > len(now) {
			return nil, false
		}
		return splice(now, r.From, r.To, string(r.Was)), true
	}
	return kept, len(kept) > 0
}

// takeParts takes our parts out of a file that holds other changes too.
func (s *setup) takeParts(f *changedFile, r recorded, base []byte, force bool) (err error) {
	written := f.is
	for _, kept := range slices.Backward(r.Parts) {
		p := kept.part(r.File)
		if len(kept.At) == 0 && r.To > 0 {
			base = r.Was
		}
		if f.is, err = p.take(f.is, base, force); err != nil {
			return p.said(err, s.client.name)
		}
	}
	switch {
	case r.Before != "" && f.is == nil:
		f.is = []byte{} // it was there
	case r.Before == "" && !f.link && blank(f.is) && !bytes.Equal(f.is, written):
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
		if err := s.putFile(slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !mine(p) }),
			force); err != nil {
			return err
		}
		parts = slices.DeleteFunc(slices.Clone(parts), mine)
	}
	f, err := s.recordFile()
	if err != nil || len(s.record.Files) == 0 || len(s.files.changed()) == 0 {
		return err
	}
	f.is = []byte{} // it is there, for newDirs
	for _, dir := range s.files.newDirs() {
		if !slices.Contains(s.record.Dirs, dir) {
			s.record.Dirs = append(s.record.Dirs, dir)
		}
	}
	f.is, err = s.record.text()
	return err
}

// putFile writes the parts of one file. Where some of it is on record already, what was there before that stays so.
func (s *setup) putFile(parts []part, force bool) error {
	f, err := s.files.file(parts[0].file)
	if err != nil {
		return err
	}
	r, base, known := recorded{File: parts[0].file}, f.is, true
	i := slices.IndexFunc(s.record.Files, func(other recorded) bool { return other.File == r.File })
	if i >= 0 {
		r = s.record.Files[i]
		before, err := s.copyOf(r)
		if err != nil {
			return err
		}
		if base, known = r.base(f.is, before.is); !known && !r.in(f.is) { // it is another file by now
			s.leave(r, f, before)
			s.record.Files = slices.Delete(s.record.Files, i, i+1)
			r, base, known, i = recorded{File: r.File}, f.is, true, -1
		}
	}
	written := f.is
	for _, p := range parts {
		after, err := p.put(f.is, force)
		if err != nil {
			return p.said(err, s.client.name)
		}
		if !bytes.Equal(after, f.is) {
			r.keep(p, base)
		}
		f.is = after
		f.secret = f.secret || p.secret()
	}
	if bytes.Equal(f.is, written) && (f.is == nil) == (written == nil) {
		return nil
	}
	r.SHA256, r.From, r.To, r.Was = "", 0, 0, nil
	if known {
		r.SHA256 = sum(f.is)
	}
	if known && base != nil {
		r.From, r.To = differing(base, f.is, len(parts[0].at) == 0)
		r.Was = base[r.From : len(base)-(len(f.is)-r.To)]
	}
	if i >= 0 {
		s.record.Files[i] = r
		return nil
	}
	if base != nil {
		if r.Before, err = s.keepCopy(r.File, base); err != nil {
			return err
		}
	}
	s.record.Files = append(s.record.Files, r)
	return nil
}

// keep notes a part that was not in what a file held before.
func (r *recorded) keep(p part, base []byte) {
	kept := keptPart{At: p.at, List: p.list, Value: generic(p.value)}
	if i := slices.IndexFunc(r.Parts, func(other keptPart) bool { return other.is(p) }); i >= 0 {
		kept.Held = r.Parts[i].Held
		r.Parts[i] = kept
		return
	}
	if len(p.at) > 0 && !p.toml() {
		kept.Held = depth(base, p)
	}
	r.Parts = append(r.Parts, kept)
}

// differing are the bytes of a text that another one has not, or with all set all of them.
func differing(before, text []byte, all bool) (from, to int) {
	if to = len(text); all {
		return 0, to
	}
	for from < min(len(before), len(text)) && before[from] == text[from] {
		from++
	}
	for end := len(before); to > from && end > from && before[end-1] == text[to-1]; end-- {
		to--
	}
	return from, to
}

// keepCopy puts what a file held into one of ours, beside the record: into a new one, for an old one may be all that
// is left of something.
func (s *setup) keepCopy(path string, base []byte) (string, error) {
	for n := len(s.record.Files) + 1; ; n++ {
		f, err := s.ours(fmt.Sprintf("%s.%d.%s", s.name, n, filepath.Base(path)), 1)
		if err != nil {
			return "", err
		}
		if f.is == nil {
			f.is = append([]byte{}, base...) // also of a file that was empty
			return f.name, nil
		}
	}
}

// handOn notes directories that were made for this client, and hold something yet, on the record of another one:
// whoever is taken back last removes them.
func (s *setup) handOn(ctx context.Context, dirs []string) error {
	for _, c := range clients {
		for _, what := range []string{liveRecord, entryRecord} {
			other, err := newSetup(c, s.places, what)
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
			return other.files.do(ctx)
		}
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
