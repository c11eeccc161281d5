package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/mattn/go-runewidth"
	"golang.org/x/sys/unix"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// atTerminal runs a command whose output is a terminal of so many columns, and returns what the terminal gets.
func atTerminal(t *testing.T, columns uint16, args ...string) string {
	t.Helper()
	master := testkit.Must(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	defer master.Close()
	var number uint32
	raw := testkit.Must(master.SyscallConn())(t)
	testkit.OK(t, raw.Control(func(fd uintptr) {
		unlocked := int32(0)
		_, _, err := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlocked)))
		number = uint32(testkit.Must(unix.IoctlGetUint32(int(fd), syscall.TIOCGPTN))(t))
		size := unix.IoctlSetWinsize(int(fd), syscall.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
		if err != 0 || size != nil {
			t.Fatal(err, size)
		}
	}))
	cmd := process("command", args...)
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR="+os.Getenv("NO_COLOR"))
	terminal := testkit.Must(os.OpenFile("/dev/pts/"+grouped(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	err := cmd.Start()
	terminal.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_, _ = io.Copy(&out, master) // it fails when the command has closed the terminal
	_ = cmd.Wait()
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

// A terminal gets lines that fit it, with color, and a heading for each tab. A pipe gets all.
func TestListsFitTheTerminal(t *testing.T) {
	r := start(t, "", "one")
	long := "https://shop.example/state/" + strings.Repeat("orders/", 10) + "of-this-year"
	for uri, title := range map[string]string{
		"https://shop.example/state/chat": "チャット " + strings.Repeat("新しいメッセージ", 8),
		"https://shop.example/state/cafe": strings.Repeat("cafe\u0301 ", 15), // each é is two characters
		"https://shop.example/state/evil": "a\u202eb\x1b[2Jc\nd",
		long:                              "Orders",
	} {
		r.page.Describe(uri, map[string]any{"name": "x", "title": title})
		r.page.Offer(uri, "x")
	}
	r.page.SetTool("pay", testkit.Tool{Members: map[string]any{"description": strings.Repeat("Pays ", 30)}})
	fits := func(text string, columns int) {
		t.Helper()
		for line := range strings.Lines(text) {
			line = strings.NewReplacer(bold, "", plainly, "", dim, "", green, "", red, "", cyan, "").Replace(strings.TrimRight(line, "\n"))
			if runewidth.StringWidth(line) > columns || strings.ContainsAny(line, "\x1b\u202e") {
				t.Errorf("%d columns have no room for %q", columns, line)
			}
		}
	}
	out := atTerminal(t, 80, "ls", "--hub", r.addr)
	fits(out, 80)
	for _, want := range []string{bold + "Shop (tab 1, shop.example)" + plainly + "\n",
		"\n  https://shop.example/image       image\n", "\n  " + cart + "  Cart \uFFFD[31m\n",
		"  https://shop.example/state/chat  チャット 新しいメッセージ新しいメッセージ新…\n",
		"a\uFFFDb\uFFFD[2Jc d\n", "\n  https://shop.example/item/{id}   item\n", "\n  " + long[:77] + "…\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	fits(atTerminal(t, 40, "ls", "--hub", r.addr), 40)
	for _, columns := range []uint16{60, 100} {
		fits(atTerminal(t, columns, "tools", "--hub", r.addr), int(columns))
	}
	if wide := atTerminal(t, 80, "ls", "--wide", "--hub", r.addr); !strings.Contains(wide, long+" ") {
		t.Errorf("--wide prints\n%s", wide)
	}
	if _, piped, _ := r.command("ls"); !strings.Contains(piped, long+" ") || strings.Contains(piped, "\x1b[1m") {
		t.Errorf("a pipe gets\n%s", piped)
	}
	if wide := atTerminal(t, 80, "tools", "--wide", "--hub", r.addr); !strings.Contains(wide, strings.TrimSpace(strings.Repeat("Pays ", 30))) {
		t.Errorf("--wide prints\n%s", wide)
	}
	t.Setenv("NO_COLOR", "1")
	if out := atTerminal(t, 80, "ls", "--hub", r.addr); strings.Contains(out, "\x1b") {
		t.Errorf("NO_COLOR is ignored: %q", out)
	}
	if out := atTerminal(t, 80, "ls", "--color", "always", "--hub", r.addr); !strings.Contains(out, bold) {
		t.Errorf("--color always is ignored: %q", out)
	}
	t.Setenv("NO_COLOR", "")
	if out := atTerminal(t, 80, "ls", "--color", "never", "--hub", r.addr); strings.Contains(out, "\x1b") {
		t.Errorf("--color never is ignored: %q", out)
	}
	r.page.SetTool("PAY", testkit.Tool{})
	if _, out, _ := r.command("tools", "--color", "always"); !strings.HasPrefix(out, bold+"NAME") || strings.Contains(out, bold+"PAY") {
		t.Errorf("--color always is ignored in a pipe: %q", out)
	}
}
