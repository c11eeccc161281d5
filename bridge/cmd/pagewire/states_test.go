//go:build unix

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

func fifo(path string) error { return syscall.Mkfifo(path, 0o600) }

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
			if !strings.Contains(errs, "no space left on device\npagewire: nothing was written: free space on that disk, "+
				"and try again\n") || strings.Contains(errs, ".pagewire-") {
				t.Errorf("%s, %q: status %d, %q", full, c.then, status, errs)
			}
			same(t, full+" is full", tree(t, home), before)
		}
	}
}

// If the system refuses a file, a person reads which of theirs, and what to do.
func TestRefusedFiles(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("not shown: only root can mount a small disk")
	}
	home := atHome(t)
	disk := filepath.Join(home, "disk")
	t.Setenv("XDG_CONFIG_HOME", disk)
	testkit.OK(t, os.Mkdir(disk, 0o700), testcmd.Command("mount", "-t", "tmpfs", "-o", "size=4k,mode=0700", "tmpfs", disk).Run())
	t.Cleanup(func() { syscall.Unmount(disk, 0) })
	testkit.OK(t, os.MkdirAll(filepath.Join(disk, "chromium"), 0o700), os.Mkdir(filepath.Join(disk, "pagewire"), 0o700),
		os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 4096), 0o600))
	refused := func(want string, args ...string) {
		t.Helper()
		if status, _, errs := run(args...); status != exitFailed || errs != "pagewire: "+want+", and try again\n" {
			t.Errorf("%q: status %d, %q, want %q", args, status, errs, want)
		}
	}
	refused("the extension's secret: "+disk+"/pagewire/extension: no space left on device\n"+
		"pagewire: free space on that disk", "extension", "install")
	testkit.OK(t, testcmd.Command("mount", "-o", "remount,ro", disk).Run())
	refused("the extension's secret: "+disk+"/pagewire/extension: read-only file system\n"+
		"pagewire: make that disk writable", "extension", "install")
	t.Setenv("HOME", "")
	refused("$HOME is not defined\npagewire: set it to your home directory", "setup", "codex", "--yes")
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
	if err := cli.Interruptible(ctx, func() error { return <-blocked }); err == nil ||
		!strings.Contains(err.Error(), "has not answered") {
		t.Errorf("it ends with %v", err)
	}
}
