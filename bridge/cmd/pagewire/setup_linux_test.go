package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// terminal returns the two ends of a pseudo terminal: a person's, and a program's.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person = testkit.Must(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	t.Cleanup(func() { person.Close() })
	var unlocked, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request,
			uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	program = testkit.Must(os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	t.Cleanup(func() { program.Close() })
	return person, program
}

// On a terminal setup asks, and Enter is yes. It does what was answered, and nothing if the answers end.
func TestSetupAsks(t *testing.T) {
	const codex, qwen = "Set up Codex? [Y/n] ", "Set up Qwen Code? [Y/n] "
	const live, extension = "Tell models when a page changes? [Y/n] ",
		"Let the Pagewire extension reach agents from Chromium? [Y/n] "
	const host = ".config/chromium/NativeMessagingHosts/com.pagewire.host.json"
	for answers, want := range map[string]struct {
		status       int
		asked, files string
	}{
		"\n\n\n\n": {exitDone, codex + qwen + live + extension, ".codex/config.toml .codex/hooks.json " + host +
			" .qwen/settings.json"},
		"n\n Yes \nmaybe\nno\n": {exitDone, codex + qwen + live + extension, ".qwen/settings.json"},
		"n\nn\n":                {exitFailed, codex + qwen + "pagewire: no agent program was chosen, and nothing was written\n", ""},
		"\n\x04":                {exitFailed, codex + qwen + "pagewire: interrupted, and nothing was written\n", ""},
		"signal":                {exitFailed, codex + "pagewire: interrupted, and nothing was written\n", ""},
	} {
		t.Run(fmt.Sprintf("%q", answers), func(t *testing.T) {
			home := lonely(t)
			t.Setenv("XDG_CONFIG_HOME", "")
			for _, dir := range []string{".codex", ".qwen", ".config/chromium"} {
				testkit.OK(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
			}
			person, program := terminal(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out, errs testkit.Log
			ended := make(chan int, 1)
			go func() {
				ended <- pagewire(ctx, []string{"setup", "--timeout", "0"}, program, &out, &errs)
			}()
			if answers == "signal" {
				testkit.Eventually(t, "it asks", func() bool { return errs.Has(codex) })
				cancel()
			} else {
				testkit.Must(person.WriteString(answers))(t)
			}
			if status := testkit.Receive(t, "setup ends", ended); status != want.status {
				t.Errorf("status %d, %s", status, &errs)
			}
			const found = "pagewire: agent programs: Codex, Qwen Code; browsers: Chromium\n"
			if !strings.HasPrefix(errs.String(), found+want.asked) {
				t.Errorf("it asks %q", &errs)
			}
			is, got := tree(t, home), []string(nil)
			for _, path := range strings.Fields(".codex/config.toml .codex/hooks.json " + host + " .qwen/settings.json") {
				if is[path] != "" {
					got = append(got, path)
				}
			}
			if strings.Join(got, " ") != want.files {
				t.Errorf("it has written %q, want %q", got, want.files)
			}
			if hooks := strings.Contains(is[".qwen/settings.json"], `"hooks"`); hooks != (answers == "\n\n\n\n") {
				t.Errorf("it has written hooks: %v", hooks)
			}
		})
	}
}
