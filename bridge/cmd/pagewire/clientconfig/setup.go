package clientconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig/files"
	"github.com/pagewire/pagewire/bridge/gateway/skills"
)

// A Setup writes Pagewire into the settings of one client, or takes it out. A method that changes
// files changes none of them if one cannot be changed. It returns the names of the files that it
// has changed.
type Setup struct {
	Client Client
	Places Places
	Force  bool // replace and remove what is not ours, but has our name
	Keep   bool // write no entry where there is one, unless Force is set

	Binary string   // the path of this program
	Serve  []string // the flags of the server that the client starts
	// URL is the address of a server that runs, instead of one that the client starts, and Token
	// its token.
	URL, Token string
	Hub        string   // the flag's value for hooks; "" for the default
	Inline     []string // origins whose contents the hooks may print

	Notes []string // what a person should know of the last change
}

// entry returns the entry that the client needs.
func (s *Setup) entry() part {
	return part{file: s.Client.File(s.Places), at: s.Client.at(),
		value: s.Client.entry(s.Binary, append([]string{"serve"}, s.Serve...), s.URL, s.Token)}
}

// Entry returns the text of the client's file with the entry alone.
func (s *Setup) Entry() ([]byte, error) { return s.entry().put(nil, false) }

// Link returns a link that installs the entry.
func (s *Setup) Link() string { return s.Client.link(s.entry().value.(entry)) }

// parts returns what config writes: the entry, and with live the notifier. The entry goes into the
// plugin, if the program has one for it and the client's file has no entry.
func (s *Setup) parts(live bool) []part {
	e, n := s.entry(), s.Client.notifier
	if !live {
		return []part{e}
	}
	if n.server != nil && !e.has() {
		e = s.inPlugin(e)
	}
	return append([]part{e}, n.parts(s.Client.Name, s.Places,
		command{goos: s.Places.GOOS, binary: s.Binary, hub: s.Hub, inline: s.Inline})...)
}

func (s *Setup) inPlugin(e part) part {
	e.file, e.folder = s.Client.notifier.server(s.Places), s.Client.notifier.folder(s.Places)
	return e
}

// skills returns Pagewire's skills, each in a directory of its name.
func (s *Setup) skills() (all []part) {
	for _, name := range skills.Names {
		dir := filepath.Join(s.Client.skills(s.Places), name)
		file := filepath.Join(dir, "SKILL.md")
		all = append(all, part{file: file, value: skills.Text(name), folder: dir})
	}
	return all
}

// Write puts the entry into the client's file, and with live the notifier too.
func (s *Setup) Write(ctx context.Context, live bool) ([]string, error) {
	return s.put(ctx, func() []part { return s.parts(live) })
}

// WriteSkills writes Pagewire's skills.
func (s *Setup) WriteSkills(ctx context.Context) ([]string, error) { return s.put(ctx, s.skills) }

func (s *Setup) put(ctx context.Context, parts func() []part) ([]string, error) {
	defer files.TakeTurn(ctx, s.Places.Home)()
	c, err := s.with(slices.DeleteFunc(parts(), func(p part) bool {
		return s.Keep && !s.Force && p.at != nil && !p.hook && p.has()
	}))
	if err != nil {
		return nil, err
	}
	return c.Do(ctx)
}

// with returns the change that puts parts into their files.
func (s *Setup) with(parts []part) (*files.Change, error) {
	c := &files.Change{Title: s.Client.Title}
	for _, p := range parts {
		f, err := c.File(p.file)
		if err != nil {
			return nil, err
		}
		if err = checkUTF8(f.Is); err == nil {
			f.Is, err = p.put(f.Is, s.Force)
		}
		if err != nil {
			return nil, p.explain(err, "put there what pagewire config "+s.Client.Name+" prints")
		}
		f.Secret = f.Secret || p.secret()
	}
	return c, nil
}

// Remove takes out the entry and the notifier.
func (s *Setup) Remove(ctx context.Context) ([]string, error) {
	parts := append(s.parts(s.Client.IsLive()), s.entry())
	if n := s.Client.notifier; n != nil && n.server != nil {
		parts = append(parts, s.inPlugin(s.entry()))
	}
	return s.take(ctx, parts)
}

// RemoveSkills takes the skills out.
func (s *Setup) RemoveSkills(ctx context.Context) ([]string, error) {
	return s.take(ctx, s.skills())
}

// take takes parts out. What is not ours stays: it is an error if there is nothing else, and
// otherwise a note.
func (s *Setup) take(ctx context.Context, parts []part) ([]string, error) {
	defer files.TakeTurn(ctx, s.Places.Home)()
	c, left, err := s.without(parts)
	if err != nil {
		return nil, err
	}
	done, err := c.Do(ctx)
	if err != nil {
		return done, err
	}
	if len(done) == 0 && left != nil {
		return nil, cli.Hint(left, "nothing was written; --force takes it out as it is")
	}
	for _, p := range parts {
		dir := filepath.Dir(p.file)
		for ; p.folder != "" && strings.HasPrefix(dir, p.folder); dir = filepath.Dir(dir) {
			_ = syscall.Rmdir(dir) // it fails if the directory is not empty, or a link
		}
	}
	return done, nil
}

// without returns the change that takes parts out of their files, and an error about what is not
// ours.
func (s *Setup) without(parts []part) (c *files.Change, left, err error) {
	c = &files.Change{Title: s.Client.Title}
	for _, p := range parts {
		f, err := c.File(p.file)
		if err != nil {
			return nil, nil, err
		}
		if len(f.Is) == 0 {
			continue
		}
		text := f.Is
		if err = checkUTF8(text); err == nil {
			text, err = p.take(text, s.Force)
		}
		if errors.Is(err, errNotOurs) || errors.Is(err, errNotOwn) {
			left = fmt.Errorf("%s %w", p.file, err)
			s.note(left.Error() + ": it stays, and --force takes it out")
			continue
		}
		if err != nil {
			return nil, nil, p.explain(err, "take "+serverName+" out of it by hand")
		}
		if f.Is = text; p.folder != "" && saysNothing.Match(text) {
			f.Is = nil
		}
		if f.Is == nil && files.IsLink(f.Name) {
			f.Is = []byte{} // a person has made the link
		}
	}
	for _, f := range c.Files {
		if left == nil && strings.Contains(string(f.Is), serverName) {
			s.note(f.Name + " names " + serverName + " elsewhere: that stays")
		}
	}
	return c, left, nil
}

func (s *Setup) note(note string) {
	if !slices.Contains(s.Notes, note) {
		s.Notes = append(s.Notes, note)
	}
}

// A State is what a client's settings have of Pagewire.
type State struct {
	Entry       bool   // an entry of our name
	Live, Parts int    // how many of the parts of the notifier are there
	Gone        string // the program that the entry starts, if it is not there any more
}

// IsHere reports whether the client has run here, or is on the PATH.
func (s *Setup) IsHere() bool {
	path := s.Client.File(s.Places)
	if dir := filepath.Dir(path); dir != s.Places.Home {
		path = dir
	}
	_, err := os.Stat(path)
	if err != nil {
		_, err = exec.LookPath(cmp.Or(s.Client.program, s.Client.Name))
	}
	return err == nil
}

// State looks at the client's settings. An error says why they cannot be read.
func (s *Setup) State() (is State, err error) {
	if _, err = files.Read(s.Client.File(s.Places)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return is, err
	}
	for i, p := range s.parts(s.Client.IsLive()) {
		switch has := p.has(); {
		case i == 0:
			is.Entry, is.Gone = has, p.gone()
		case has:
			is.Live++
			fallthrough
		default:
			is.Parts++
		}
	}
	return is, nil
}
