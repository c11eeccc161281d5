//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// others are the settings of a user for the programs that are not in lived.
var others = map[string]string{
	"claude-desktop": "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n",
	"cursor":         "{}",
	"vscode":         "// mine\n{\n\t\"servers\": {},\n\t\"inputs\": [ { \"id\": \"key\" } ],\n}",
	"windsurf":       "{ \"mcpServers\": { \"other\": { \"serverUrl\": \"http://x\" } } }",
	"zed":            "// mine\n{\n  \"theme\": \"One Dark\", // dark\n}\n",
}

// A household is a home in which config has written and has changed a user's files.
type household struct {
	home, client string
	flag         []string
	before       map[string]string // all files before config
	files        []string          // the existing files that config has changed
}

// inhabited makes config write in the home of a user who has settings of all programs.
func inhabited(t *testing.T, client string, flag ...string) *household {
	t.Helper()
	h := &household{home: atHome(t), client: client, flag: flag}
	fill(t, h.home, lived)
	for _, c := range clients {
		if text := others[c.name]; text != "" {
			name, _ := filepath.Rel(h.home, c.file(places{runtime.GOOS, h.home, os.Getenv}))
			fill(t, h.home, map[string]string{name: text})
		}
	}
	if slices.Contains(flag, "--force") { // the user has entries under our name, which --force replaces
		fill(t, h.home, map[string]string{
			".config/opencode/plugin/pagewire.js":                "export const Mine = 1;\n",
			".claude/skills/pagewire/hooks/hooks.json":           "{ \"mine\": 1 }",
			".claude/skills/pagewire/.claude-plugin/plugin.json": "{ \"name\": \"mine\" }",
			".config/opencode/opencode.json":                     `{"mcp": {"pagewire": {"command": ["mine"]}}}`,
			".gemini/settings.json":                              `{"mcpServers": {"pagewire": {"command": "mine"}}, "a": 1}`,
			".codex/config.toml":                                 "[mcp_servers.pagewire]\ncommand = \"mine\"\nx = 1\n",
		})
	}
	h.before = tree(t, h.home)
	done(t, append([]string{"config", client}, flag...)...)
	for path, text := range tree(t, h.home) {
		switch was, there := h.before[path]; {
		case there && was != text && text[0] == '-':
			h.files = append(h.files, path)
		}
	}
	slices.Sort(h.files)
	return h
}

// config runs a command line that must not hang.
func (h *household) config(t *testing.T, args ...string) (status int, stderr string) {
	t.Helper()
	type result struct {
		status int
		stderr string
	}
	over := make(chan result, 1)
	go func() {
		status, _, stderr := run(append([]string{"config", h.client}, args...)...)
		over <- result{status, stderr}
	}()
	r := testkit.Receive(t, strings.Join(args, " ")+" ends", over)
	return r.status, r.stderr
}

const theRecord = ".config/pagewire/live/record.json"

func each(paths func(h *household) []string, do func(path, text string) error) func(h *household) error {
	return func(h *household) (err error) {
		for _, path := range paths(h) {
			path = filepath.Join(h.home, path)
			text, _ := os.ReadFile(path)
			err = errors.Join(err, do(path, string(text)))
		}
		return err
	}
}

func theFiles(h *household) []string { return h.files }
func records(*household) []string    { return []string{theRecord} }

func rewritten(change func(text string) string) func(path, text string) error {
	return func(path, text string) error { return os.WriteFile(path, []byte(change(text)), 0o600) }
}

// replacedBy moves a file away and makes another kind of file in its place.
func replacedBy(with func(path string) error) func(path, text string) error {
	return func(path, _ string) error { return errors.Join(os.Rename(path, path+".away"), with(path)) }
}

func fifo(path string) error      { return syscall.Mkfifo(path, 0o600) }
func directory(path string) error { return os.Mkdir(path, 0o700) }
func dangling(path string) error  { return os.Symlink(path+".nowhere", path) }
func device(path string) error    { return os.Symlink("/dev/null", path) }
func linked(path string) error    { return os.Symlink(path+".away", path) }
func half(text string) string     { return text[:len(text)/2] }
func always(text string) func(string) string {
	return func(string) string { return text }
}

// The required remains of a user's file.
const (
	exact   = "each byte of it"
	merged  = "all that it says" // also later additions
	cleared = merged + ", without our parts"
	kept    = "a copy of each byte" // after another program has emptied it
	refused = "all as it was, and an error"
)

// states are the changes of files that can happen between two runs of config.
var states = map[string]struct {
	spoil func(h *household) error
	left  string
}{
	"as it was written":     {func(*household) error { return nil }, exact},
	"the record is gone":    {each(records, func(path, _ string) error { return os.Remove(path) }), merged},
	"the record is cut":     {each(records, rewritten(half)), refused},
	"the record is empty":   {each(records, rewritten(always(""))), refused},
	"the record says null":  {each(records, rewritten(always("null"))), merged},
	"the record is a list":  {each(records, rewritten(always("[]"))), refused},
	"the record has no end": {each(records, rewritten(func(s string) string { return s + "{" })), refused},
	"the record is of somewhere": {each(records, rewritten(func(s string) string {
		return strings.ReplaceAll(s, `"file": "/`, `"file": "`)
	})), refused},
	"the record is of a home before": {each(records, rewritten(func(s string) string {
		return strings.ReplaceAll(s, `"file": "/`, `"file": "/nowhere/`)
	})), merged},
	"the record lies": {each(records, rewritten(func(s string) string {
		return strings.ReplaceAll(s, `"sha256": "`, `"sha256": "0`)
	})), merged},
	"the record is a FIFO":    {each(records, replacedBy(fifo)), refused},
	"the record is none":      {each(records, replacedBy(directory)), refused},
	"the record leads away":   {each(records, replacedBy(dangling)), refused},
	"the file has changed":    {each(theFiles, since), merged},
	"the file is empty":       {each(theFiles, rewritten(always(""))), kept},
	"the file is blank":       {each(theFiles, rewritten(always("\n"))), kept},
	"the file is cut":         {each(theFiles, rewritten(half)), kept},
	"the file is gone":        {each(theFiles, func(path, _ string) error { return os.Remove(path) }), kept},
	"the file is read-only":   {each(theFiles, func(path, _ string) error { return os.Chmod(path, 0o440) }), refused},
	"the file is a link":      {each(theFiles, replacedBy(linked)), exact},
	"the file leads away":     {each(theFiles, replacedBy(dangling)), refused},
	"the file is a FIFO":      {each(theFiles, replacedBy(fifo)), refused},
	"the file is a directory": {each(theFiles, replacedBy(directory)), refused},
	"the file is a device":    {each(theFiles, replacedBy(device)), refused},
}

// since changes a file like a program, which rewrites JSON, or like a person, who adds a comment.
func since(path, text string) error {
	if root, ok := saying([]byte(text)).(map[string]any); ok && filepath.Ext(path) == ".json" {
		root["since"] = "new"
		text = indentedJSON(root)
	} else {
		text += "\n# since\n"
	}
	return os.WriteFile(path, []byte(text), 0o640)
}

// says reports whether a file still has all its earlier settings.
func says(path, text, before string) bool {
	if filepath.Ext(path) != ".json" {
		for line := range strings.Lines(before) {
			rest, ok := "", false
			if _, rest, ok = strings.Cut(text, strings.TrimSpace(line)); !ok {
				return false
			}
			text = rest
		}
		return true
	}
	return has(saying([]byte(text)), saying([]byte(before)))
}

// has reports whether a value still has all members and elements of an earlier one. An empty object or list may be
// gone, since --remove removes it with our part.
func has(now, before any) bool {
	switch before := before.(type) {
	case map[string]any:
		members, _ := now.(map[string]any)
		for name, value := range before {
			if !has(members[name], value) {
				return false
			}
		}
		return true
	case []any:
		list, _ := now.([]any)
		for _, value := range before {
			if !slices.ContainsFunc(list, func(one any) bool { return reflect.DeepEqual(one, value) }) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(now, before)
}

// left checks the rest of a user's files. last means that config must have taken back all its parts.
func (h *household) left(t *testing.T, what, want string, last bool) {
	t.Helper()
	now := tree(t, h.home)
	for _, path := range h.files {
		before, text := h.before[path], now[path]
		if _, ok := now[path+".away"]; ok && want != refused { // the link's target
			text = now[path+".away"]
		}
		switch {
		case want == exact && last && text != before:
			t.Errorf("%s: %s is %q, want %q", what, path, text, before)
		case slices.Contains(h.flag, "--force") && !last: // --force has replaced the user's entry
		case want == exact || want == merged || want == cleared:
			if text == "" || text[:10] != before[:10] || !says(path, text[11:], before[11:]) {
				t.Errorf("%s: %s is %q, want all of %q", what, path, text, before)
			}
			if last && want == cleared && strings.Contains(text, "pagewire") {
				t.Errorf("%s: %s still has our part: %q", what, path, text)
			}
		case want == kept:
			found := false
			for _, text := range now {
				found = found || text[0] == '-' && text[11:] == before[11:]
			}
			if !found {
				t.Errorf("%s: %s is %q, and nothing is kept of %q", what, path, text, before)
			}
		}
	}
	for path, before := range h.before { // the files that config did not change
		if !slices.Contains(h.files, path) && before[0] == '-' && now[path] != before {
			t.Errorf("%s: %s is %q, want %q", what, path, now[path], before)
		}
	}
}

func TestNothingOfAPersonsFilesIsLost(t *testing.T) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // without a disk to wait for: 6 s instead of 45
	}
	for _, c := range clients {
		for _, flag := range [][]string{{"--write"}, {"--live"}, {"--live", "--force"}} {
			if flag[0] == "--live" && c.notifier == nil {
				continue
			}
			for name, s := range states {
				if slices.Contains(flag, "--force") && s.left != exact {
					continue // only the kept copies have the entries that --force has replaced
				}
				// The same code changes all files: one program each for TOML, JSON and JSON with comments is enough.
				if flag[0] == "--write" && !slices.Contains([]string{"codex", "gemini-cli", "vscode"}, c.name) &&
					name != "as it was written" && name != "the file has changed" {
					continue
				}
				// The next command differs only for tables, members and whole files, so one program each is enough.
				thens := [][]string{{"--remove"}}
				if slices.Contains([]string{"codex", "gemini-cli", "opencode"}, c.name) {
					thens = append(thens, flag)
				}
				if c.name == "codex" {
					thens = append(thens, []string{"--remove", "--force"})
				}
				for _, then := range thens {
					t.Run(strings.Join(append(append([]string{c.name}, flag...), append(then, name)...), " "),
						func(t *testing.T) {
							h := inhabited(t, c.name, flag...)
							testkit.OK(t, s.spoil(h))
							h.meets(t, s.left, then)
						})
				}
			}
		}
	}
}

// meets runs config in a household after a change of its files.
func (h *household) meets(t *testing.T, left string, then []string) {
	t.Helper()
	spoilt := tree(t, h.home)
	status, errs := h.config(t, then...)
	if status != exitDone {
		same(t, "after a refusal", tree(t, h.home), spoilt)
		if !strings.Contains(errs, "nothing was written") || left == exact {
			t.Errorf("status %d, stderr %q", status, errs)
		}
		return
	}
	if left == refused && len(h.files) > 0 {
		same(t, "it is done", tree(t, h.home), spoilt) // config had nothing to do
		return
	}
	last := then[0] == "--remove"
	h.left(t, strings.Join(then, " "), left, last)
	if !last {
		if status, errs := h.config(t, "--remove"); status != exitDone {
			t.Errorf("--remove: status %d, %q", status, errs)
		}
		h.left(t, "--remove", left, true)
	}
}

// toWrite returns the change that --live would make for a client.
func toWrite(t *testing.T, name string) *setup {
	t.Helper()
	p := testkit.Must(here())(t)
	i := slices.IndexFunc(clients, func(c client) bool { return c.name == name })
	c := &configuration{client: clients[i], places: p}
	server, err1 := c.server()
	s, err2 := newSetup(c.client, p)
	parts, err3 := c.parts(s, server)
	err := errors.Join(err1, err2, err3)
	for _, p := range parts {
		err = errors.Join(err, s.put(c.client.liveKey(), p, false))
	}
	if err = errors.Join(err, s.save(-1)); err != nil {
		t.Fatal(err)
	}
	return s
}

// step makes the first n of the changes, like a killed process. more means that others are left.
func step(t *testing.T, s *setup, n int) (more bool) {
	t.Helper()
	all := s.files.changed()
	for _, f := range all[:n] {
		testkit.OK(t, f.stage(), f.replace(s.client.title))
	}
	return n < len(all)
}

// After a process was killed between two files, --remove takes back all its changes, even if a --remove was killed.
func TestConfigIsKilledBetweenTwoSteps(t *testing.T) {
	for _, name := range clientNames(isLive) {
		for what, files := range map[string]map[string]string{"empty": {}, "lived in": lived} {
			for _, killed := range []string{"--live, --remove", "--live, --live, --remove", "--remove, --remove"} {
				for n, more := 0, true; more; n++ {
					home := atHome(t)
					fill(t, home, files)
					before := tree(t, home)
					first, rest, _ := strings.Cut(killed, ", ")
					if first == "--live" {
						more = step(t, toWrite(t, name), n)
					} else {
						done(t, "config", name, "--live")
						p, _ := here()
						s, err := newSetup(toWrite(t, name).client, p)
						testkit.OK(t, err, s.undo(s.client.liveKey(), false), s.save(1))
						more = step(t, s, n)
					}
					for flag := range strings.SplitSeq(rest, ", ") {
						done(t, "config", name, flag)
					}
					now := tree(t, home)
					for _, all := range []map[string]string{before, now} { // the record may already lack directories
						maps.DeleteFunc(all, func(_, text string) bool { return text[0] == 'd' })
					}
					same(t, fmt.Sprintf("%s, %s, %s is killed after %d steps", name, what, killed, n), now, before)
				}
			}
		}
	}
}

// If several processes write at once, each writes all its changes or none, and --remove restores the earlier files.
func TestConfigsThatWriteAtOnce(t *testing.T) {
	home := atHome(t)
	fill(t, home, lived)
	before := tree(t, home)
	args := [][]string{{"codex", "--live"}, {"codex", "--write"}, {"codex", "--remove"}, {"gemini-cli", "--live"},
		{"gemini-cli", "--write", "--force", "--", "--launch"}, {"gemini-cli", "--remove", "--force"}}
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			if status, _, errs := run(append([]string{"config"}, args[i%len(args)]...)...); status != exitDone &&
				!strings.Contains(errs, "nothing was written") {
				t.Errorf("%q: status %d, %q", args[i%len(args)], status, errs)
			}
		})
	}
	all.Wait()
	for _, name := range []string{"codex", "gemini-cli"} {
		for range 2 {
			done(t, "config", name, "--remove", "--force")
		}
	}
	now := tree(t, home)
	for path, text := range before {
		if is := now[path]; text[0] == '-' && (is == "" || is[:10] != text[:10] || !says(path, is[11:], text[11:])) {
			t.Errorf("%s is %q, want all of %q", path, now[path], text)
		}
	}
}

// If any disk is full, all files stay unchanged, and no partial file is left.
func TestADiskThatIsFull(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("not shown: only root can mount a small disk")
	}
	for _, full := range []string{".codex", ".config"} {
		for _, c := range []struct{ first, then []string }{{nil, []string{"--live"}}, {nil, []string{"--write"}},
			{[]string{"--live"}, []string{"--live", "--", "--launch"}}, {[]string{"--live"}, []string{"--remove"}}} {
			home := atHome(t)
			disk := filepath.Join(home, full)
			testkit.OK(t, os.Mkdir(disk, 0o700), testcmd.Command("mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", disk).Run())
			t.Cleanup(func() { syscall.Unmount(disk, 0) })
			fill(t, home, lived)
			if c.first != nil {
				done(t, append([]string{"config", "codex"}, c.first...)...)
			}
			text := []byte(strings.Repeat("x", 4096))
			f, err := os.Create(filepath.Join(disk, "filler"))
			for err == nil {
				_, err = f.Write(text)
			}
			f.Close()
			before := tree(t, home)
			status, _, errs := run(append([]string{"config", "codex"}, c.then...)...)
			if status == exitDone {
				continue // the disk had enough space for it
			}
			if !strings.Contains(errs, "no space left") || !strings.Contains(errs, "nothing was written") {
				t.Errorf("%s, %q: status %d, %q", full, c.then, status, errs)
			}
			same(t, full+" is full", tree(t, home), before)
		}
	}
}

// If root runs config in a user's home, the user still owns all files that it replaces or makes.
func TestConfigKeepsOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not shown: only root can give a file away")
	}
	for _, files := range []map[string]string{{}, lived} {
		home := atHome(t)
		fill(t, home, files)
		given := func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, testkit.OtherUID, testkit.OtherUID))
		}
		testkit.OK(t, filepath.WalkDir(home, given))
		before := tree(t, home)
		for _, args := range []string{"--write", "--live", "--remove", "--remove"} {
			for _, name := range []string{"codex", "opencode"} {
				done(t, "config", name, args)
			}
			filepath.WalkDir(home, func(path string, _ fs.DirEntry, _ error) error {
				info, err := os.Lstat(path)
				if err != nil || ownerOf(info) != (owner{testkit.OtherUID, testkit.OtherUID}) {
					t.Errorf("after %s %s belongs to %v, %v", args, path, ownerOf(info), err)
				}
				return nil
			})
		}
		same(t, "at the end", tree(t, home), before)
	}
}

// config does not replace another user's file, even if the permissions of the directory allow it.
func TestAFileOfAnotherUser(t *testing.T) {
	home := atHome(t)
	fill(t, home, map[string]string{".cursor/mcp.json": "{}"})
	testkit.OK(t, os.Chmod(filepath.Join(home, ".cursor", "mcp.json"), 0o644))
	cmd := process("command", "config", "cursor", "--write")
	testkit.AsOther(t, cmd)
	var errs strings.Builder
	cmd.Path, cmd.Err, cmd.Stderr = testkit.Self(t), nil, &errs
	for _, path := range []string{home, filepath.Join(home, ".cursor")} {
		testkit.OK(t, os.Chmod(path, 0o777))
	}
	testkit.OK(t, os.Chmod(filepath.Dir(home), 0o755))
	before := tree(t, home)
	if err := cmd.Run(); err == nil || !strings.Contains(errs.String(), "belongs to another user (its uid is 0") {
		t.Errorf("%v, %s", err, errs.String())
	}
	same(t, "after the refusal", tree(t, home), before)
}

// A signal before the first replacement prevents all changes. While the system blocks on a file, it ends the command.
func TestConfigIsInterrupted(t *testing.T) {
	home := atHome(t)
	fill(t, home, lived)
	before := tree(t, home)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs strings.Builder
	if status := pagewire(ctx, []string{"config", "codex", "--live"}, strings.NewReader(""), &errs, &errs); status !=
		exitFailed || !strings.Contains(errs.String(), "interrupted, and nothing was written") {
		t.Errorf("status %d, %q", status, errs.String())
	}
	same(t, "after a signal", tree(t, home), before)
	blocked := make(chan error)
	defer close(blocked)
	if err := interruptible(ctx, func() error { return <-blocked }); err == nil ||
		!strings.Contains(err.Error(), "has not answered") {
		t.Errorf("it ends with %v", err)
	}
}
