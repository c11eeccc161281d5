package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pagewire/pagewire/bridge/internal/userdir"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// ofGo is what Go's libraries and runtime write, and people cannot read.
var ofGo = regexp.MustCompile(`dial (tcp|unix)|context (deadline|canceled)|\bEOF\b|(^|: )json|jsontext|unexpected (end|EOF)|` +
	`exit status|\b0x[0-9a-f]|%!|strconv|goroutine|invalid (argument|character|syntax|literal)|cannot unmarshal|<nil>|` +
	`open /|read /|stat /|mkdir|no such file or directory|permission denied|connection refused|broken pipe|i/o timeout|exec:|fork/exec|` +
	`(Get|Post) "| toml:|calling "|jsonrpc|parsing`)

// A failure is said in the words of people, whatever has failed. The test runs as a user who may not do everything.
func TestErrorsAreInPlainWords(t *testing.T) {
	home := atHome(t)
	private := filepath.Join(home, "private")
	fill(t, home, map[string]string{"private/x": "x", "broken.toml": "launch = [", "text.toml": "launch = 'yes'",
		"broken.json": "{", "private.json": "{}", "token": "short", "cert.pem": "x", ".cursor/mcp.json": "{\"a\": }", ".codex/config.toml": "a = [",
		"file": "x", ".zed": "x", ".gemini/settings.json": "[1"})
	taken := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	hub := testkit.Addr(t)
	for _, name := range []string{"private", "", ".."} {
		testkit.OK(t, os.Chmod(filepath.Join(home, name), 0o755))
	}
	testkit.OK(t, os.Chmod(filepath.Join(home, "private", "x"), 0o000), os.Chmod(filepath.Join(home, "private.json"), 0o000))
	testkit.OK(t, filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, testkit.OtherUID, testkit.OtherUID))
	}))
	in := func(name string) string { return filepath.Join(home, name) }
	for _, line := range []string{
		"serve --config " + in("none.toml"), "serve --config " + in("broken.toml"), "serve --config " + in("text.toml"),
		"serve --config " + private, "serve --config " + in("private.json"), "serve --config /dev/null",
		"serve --http " + taken.Addr().String(), "serve --http 127.0.0.1:none", "serve --http nowhere.invalid:80",
		"serve --http 127.0.0.1:0 --token-file " + in("token"), "serve --http 127.0.0.1:0 --token-file " + private,
		"serve --http 127.0.0.1:0 --token-file /proc/none/token", "serve --shown https://a.example --parts " + in("broken.json"),
		"serve --shown https://a.example --parts " + in("private.json"), "serve --shown https://a.example --parts " + private,
		"serve --http :0 --tls-cert " + in("cert.pem") + " --tls-key " + in("none.pem"),
		"serve --http :0 --tls-cert " + in("cert.pem") + " --tls-key " + in("cert.pem"),
		"serve --max-listens many --http :0", "serve --max-listens 99999999999999999999 --http :0", "serve --front=perhaps",
		"watch x --count many", "watch x --min-interval soon", "ls --json=perhaps", "ls --color red", "ls --hub " + hub, "ls --hub 7433",
		"ls --hub " + taken.Addr().String(), "read", "read x --hub " + hub, "call x {", "call x [1]", "call x - ", "tools --hub " + hub, "watch x --hub " + hub,
		"changes --hub " + hub, "inspect --hub " + hub, "pick x --parts " + in("broken.json"), "pick x --parts " + private, "pick x --parts " + in("private.json"),
		"assets write /proc/none", "assets write " + in("file"), "version -o " + private, "version -o /proc/none/x", "version -o " + in("file/x"), "version -o /dev/full --force",
		"config cursor --write", "config codex --write", "config codex --live", "config gemini-cli --write",
		"config cursor --http=" + hub + " --token-file " + in("token"), "config claude-code --write -- --config " + in("none.toml"),
		"extension install --user-data-dir " + in("file"), "extension install --user-data-dir /proc/none", "extension uninstall --user-data-dir " + in("file"),
		"doctor --chrome http://" + hub + " --hub " + hub, "config codex -- --launch=perhaps", "setup codex --yes -- --max-listens many", "doctor --chrome http://" + taken.Addr().String() + " --hub " + hub + " --token-file " + private, "node x", "setup --yes --timeout soon", "setup codex --yes --timeout 0",
	} {
		t.Run(line, func(t *testing.T) {
			cmd := process("command", strings.Fields(line)...)
			testkit.AsOther(t, cmd)
			cmd.Env = append(cmd.Env, "PATH=/nowhere", "PAGEWIRE_BROWSER=/nowhere")
			var text strings.Builder
			cmd.Err, cmd.Path, cmd.Stdout, cmd.Stderr = nil, testkit.Self(t), &text, &text
			cmd.Stdin = strings.NewReader("")
			err := cmd.Run()
			if found := ofGo.FindString(text.String()); found != "" || err == nil || text.Len() == 0 {
				t.Errorf("it says %q, %v, and of Go's %q", text.String(), err, found)
			}
		})
	}
}

// A daemon can end, be silent, or be another program.
func TestDaemonsThatFailAreSaidInPlainWords(t *testing.T) {
	atHome(t)
	hub := testkit.Addr(t)
	dir := testkit.Must(userdir.Open(hub))(t)
	defer dir.Close()
	var acts atomic.Value
	l := testkit.Must(dir.Listen("daemon"))(t)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1))
			acts.Load().(func(net.Conn))(c)
			c.Close()
		}
	}()
	for name, act := range map[string]func(net.Conn){
		"it ends":        func(c net.Conn) {},
		"it speaks HTTP": func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n") },
		"it sends JSON":  func(c net.Conn) { fmt.Fprintln(c, `{"pagewire": "one"}`) },
		"it is another":  func(c net.Conn) { fmt.Fprintln(c, `{"pagewire": 9, "version": "9"}`) },
		"its MCP is not": func(c net.Conn) { fmt.Fprintf(c, `{"pagewire": 1, "version": %q}`+"\nMCP\n", versionName()) },
		"it ends later":  func(c net.Conn) { fmt.Fprintf(c, `{"pagewire": 1, "version": %q}`+"\n", versionName()) },
	} {
		t.Run(name, func(t *testing.T) {
			acts.Store(act)
			for _, command := range []string{"ls", "tools", "read x", "call x", "changes", "inspect", "pick x", "watch x", "doctor"} {
				status, out, errs := run(append(strings.Fields(command), "--hub", hub)...)
				if found := ofGo.FindString(out + errs); found != "" || status == exitDone && command != "doctor" && command != "changes" {
					t.Errorf("%s: status %d, %s%s, and of Go's %q", command, status, out, errs, found)
				}
			}
		})
	}
}

// What people type and pages choose stays.
func TestNamesInErrors(t *testing.T) {
	for _, name := range []string{"EOF", "bind", "json", "context canceled"} {
		err := askError(name, &jsonrpc.Error{Code: -32602, Message: "reading: i/o timeout"}, "ls")
		if _, _, _, stderr := captured(t, err); stderr != "pagewire: "+name+": reading: no answer in time\npagewire: pagewire ls lists what there is\n" {
			t.Errorf("%q is in %q", name, stderr)
		}
	}
	if _, _, errs := run("EOF"); !strings.Contains(errs, `"EOF"`) {
		t.Error(errs)
	}
}

// What has no error of its own is said, too.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		`Get "http://daemon/x": dial unix /run/d.sock: connect: connection refused`: "nothing answers at /run/d.sock",
		"dial tcp 127.0.0.1:80: i/o timeout":                                        "127.0.0.1:80: no answer in time",
		"dial tcp: lookup nowhere.invalid: no such host":                            "nowhere.invalid: no computer has this name",
		"listen tcp 127.0.0.1:80: bind: address already in use":                     "127.0.0.1:80: another program uses this address",
		"x: open /a b/c: permission denied":                                         "x: /a b/c: you have no permission",
		"fork/exec /x: no such file or directory":                                   "/x: it does not exist",
		`exec: "xdg-open": executable file not found in $PATH`:                      `"xdg-open" cannot be run`,
		"x failed: exit status 3":                                                   "x failed: it failed with status 3",
		"json: cannot unmarshal string into Go value of type int":                   "it is not valid JSON",
		"https://a.example/EOFs: Resource not found":                                "https://a.example/EOFs: Resource not found",
		"x: EOF":                "x: it ended early",
		`unknown command "EOF"`: `unknown command "EOF"`,
		"it is no TOML: line 1, column 1: invalid character at start of key: {": "it is no TOML: line 1, column 1: invalid character at start of key: {",
		"invalid character '}' looking for beginning of value":                  "it is not valid JSON",
		"lookup nowhere.invalid on 127.0.0.53:53: no such host":                 "nowhere.invalid: no computer has this name",
		"settings.json: is read-only":                                           "settings.json: is read-only",
		"x: readLoopPeekFailLocked: %!w(<nil>)":                                 "x: it does not speak HTTP",
		`connection closed: calling "tools/list": client is closing: EOF`:       "the connection to pagewire serve ended",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q is said as %q, want %q", text, got, want)
		}
	}
}
