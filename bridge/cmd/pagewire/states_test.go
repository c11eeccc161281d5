//go:build unix

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig"
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
	before       map[string]string // all files before config
	spoilt       map[string]string // all files after the change
	files        []string          // the existing files that config has changed
}

// inhabited makes config write in the home of a user who has settings of all programs.
func inhabited(t *testing.T, client, flag string) *household {
	t.Helper()
	h := &household{home: atHome(t), client: client}
	fill(t, h.home, lived)
	for _, c := range clientconfig.Clients {
		if text := others[c.Name]; text != "" {
			name, _ := filepath.Rel(h.home, c.File(testkit.Must(clientconfig.Here())(t)))
			fill(t, h.home, map[string]string{name: text})
		}
	}
	h.before = tree(t, h.home)
	done(t, "config", client, flag)
	for path, text := range tree(t, h.home) {
		if was, there := h.before[path]; there && was != text && text[0] == '-' {
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

// each changes each file that config has changed.
func each(do func(path, text string) error) func(h *household) error {
	return func(h *household) (err error) {
		for _, path := range h.files {
			path = filepath.Join(h.home, path)
			text, _ := os.ReadFile(path)
			err = errors.Join(err, do(path, string(text)))
		}
		return err
	}
}

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

// What config must do after a change.
const (
	merges   = "all that the user's file said is there, without our parts"
	leaves   = "all that the file says now stays"
	refuses  = "all is as it was, and an error, or nothing was to be done"
	anything = "all is as it was, and an error, or all that the file says now stays"
)

// states are the changes of files that can happen between two runs of config.
var states = map[string]struct {
	spoil func(h *household) error
	then  string
}{
	"as it was written":       {func(*household) error { return nil }, merges},
	"the file has changed":    {each(since), merges},
	"the file is a link":      {each(replacedBy(linked)), merges},
	"the file is empty":       {each(rewritten(always(""))), leaves},
	"the file is blank":       {each(rewritten(always("\n"))), leaves},
	"the file is gone":        {each(func(path, _ string) error { return os.Remove(path) }), leaves},
	"the file is cut":         {each(rewritten(half)), anything},
	"the file is read-only":   {each(func(path, _ string) error { return os.Chmod(path, 0o440) }), refuses},
	"the file leads away":     {each(replacedBy(dangling)), refuses},
	"the file is a FIFO":      {each(replacedBy(fifo)), refuses},
	"the file is a directory": {each(replacedBy(directory)), refuses},
	"the file is a device":    {each(replacedBy(device)), refuses},
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

func TestNothingOfAPersonsFilesIsLost(t *testing.T) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // without a disk to wait for
	}
	for _, c := range clientconfig.Clients {
		for _, flag := range []string{"--write", "--live"} {
			if flag == "--live" && !c.IsLive() {
				continue
			}
			for name, s := range states {
				// The same code changes all files: one program each for TOML, JSON and JSON with comments is enough.
				if flag == "--write" && !slices.Contains([]string{"codex", "gemini-cli", "vscode"}, c.Name) &&
					name != "as it was written" && name != "the file has changed" {
					continue
				}
				for _, then := range [][]string{{"--remove"}, {flag}, {"--remove", "--force"}} {
					t.Run(strings.Join(slices.Concat([]string{c.Name, flag}, then, []string{name}), " "), func(t *testing.T) {
						h := inhabited(t, c.Name, flag)
						testkit.OK(t, s.spoil(h))
						h.spoilt = tree(t, h.home)
						h.meets(t, s.then, then)
					})
				}
			}
		}
	}
}

// meets runs config in a household after a change of its files.
func (h *household) meets(t *testing.T, want string, args []string) {
	t.Helper()
	was := tree(t, h.home)
	status, errs := h.config(t, args...)
	now := tree(t, h.home)
	if status != exitDone {
		same(t, "after a refusal", now, was)
		if !strings.Contains(errs, "nothing was written") || want == merges || want == leaves {
			t.Errorf("status %d, stderr %q", status, errs)
		}
		return
	}
	if want == refuses && len(h.files) > 0 {
		same(t, "it is done", now, was)
		return
	}
	for _, path := range h.files {
		before, is := h.spoilt[path], now[path]
		if want == merges {
			before = h.before[path]
		}
		if away, ok := now[path+".away"]; ok {
			is = away // the link's target
		}
		if before != "" && (is == "" || is[:10] != before[:10] || !says(path, is[11:], before[11:])) {
			t.Errorf("%s: %s is %q, want all of %q", args, path, is, before)
		}
		if args[0] == "--remove" && want == merges && strings.Contains(is, "pagewire") {
			t.Errorf("%s: %s still has our part: %q", args, path, is)
		}
	}
	for path, before := range h.before { // the files that config did not change
		if !slices.Contains(h.files, path) && before[0] == '-' && now[path] != before {
			t.Errorf("%s: %s is %q, want %q", args, path, now[path], before)
		}
	}
	if args[0] != "--remove" {
		h.meets(t, want, []string{"--remove"})
	}
}

// --remove takes out all that config has written, in any order of commands, and leaves what a person has written. What
// config makes is the user's alone. A command that has nothing to do changes nothing, and says so.
func TestRemoveTakesOutAll(t *testing.T) {
	for _, c := range clientconfig.Clients {
		ways := []string{"--write", "--write, --write --force -- --launch"}
		if c.IsLive() {
			ways = append(ways, "--live --inline https://a.example -- --chrome auto, --live --force", "--write, --live",
				"--live, --write --force -- --launch", "--write, --live --force -- --launch")
		}
		for _, way := range ways {
			for what, files := range map[string]map[string]string{"an empty home": {}, "a home that is lived in": lived} {
				t.Run(c.Name+" in "+what+": "+way, func(t *testing.T) {
					home := atHome(t)
					fill(t, home, files)
					before := tree(t, home)
					for step := range strings.SplitSeq(way, ", ") {
						args := append([]string{"config", c.Name}, strings.Fields(step)...)
						was := tree(t, home)
						out, errs := done(t, args...)
						if !strings.Contains(errs, "pagewire: restart "+c.Title+" to have it noticed\n") || out == "" {
							t.Errorf("%s prints %q and says %q", step, out, errs)
						}
						now := tree(t, home)
						for path := range strings.Lines(out) {
							path, _ = filepath.Rel(home, strings.TrimSpace(path))
							if now[path] == was[path] {
								t.Errorf("%s says that it wrote %s", step, path)
							}
						}
						for path, text := range now {
							if was[path] == "" && text[0] == '-' && text[:10] != "-rw-------" {
								t.Errorf("others may read %s: %.10s", path, text)
							}
						}
						if _, errs := done(t, args...); !strings.HasSuffix(errs, " has it already\n") {
							t.Errorf("%s a second time says %q", step, errs)
						}
						same(t, step+" a second time", tree(t, home), now)
					}
					done(t, "config", c.Name, "--remove")
					now := tree(t, home)
					for path, text := range now {
						if was := before[path]; strings.Contains(text, "pagewire") ||
							was != "" && text[0] == '-' && (text[:10] != was[:10] || !says(path, text[11:], was[11:])) {
							t.Errorf("%s was %q, and is %q", path, was, text)
						}
					}
					for path := range before {
						if now[path] == "" {
							t.Errorf("%s is gone", path)
						}
					}
					if _, errs := done(t, "config", c.Name, "--remove"); !strings.HasSuffix(errs, " has nothing of pagewire\n") {
						t.Errorf("--remove a second time says %q", errs)
					}
					same(t, "--remove a second time", tree(t, home), now)
				})
			}
		}
	}
}

// If several processes write at once, each writes all its changes or none, and --remove leaves what a person has written.
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
		done(t, "config", name, "--remove", "--force")
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
			{[]string{"--live"}, []string{"--live", "--force", "--", "--launch"}}, {[]string{"--live"}, []string{"--remove"}}} {
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
		for _, args := range []string{"--write", "--live", "--remove"} {
			for _, name := range []string{"codex", "opencode"} {
				done(t, "config", name, args)
			}
			filepath.WalkDir(home, func(path string, _ fs.DirEntry, _ error) error {
				info, err := os.Lstat(path)
				if err != nil || info.Sys().(*syscall.Stat_t).Uid != testkit.OtherUID {
					t.Errorf("after %s %s belongs to %v, %v", args, path, info.Sys(), err)
				}
				return nil
			})
		}
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
