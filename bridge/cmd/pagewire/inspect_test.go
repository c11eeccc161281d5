package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// serving runs a gateway in a new home until the test ends, and returns its address and its token file.
func serving(t *testing.T) (addr, token string) {
	t.Helper()
	testkit.Home(t)
	addr = testkit.Addr(t)
	token = testkit.Must(access.TokenFile())(t)
	serveAt(t, addr, addr)
	return addr, token
}

// serveAt runs a gateway until the test ends. It returns when the gateway answers and has the port at; "" is none.
func serveAt(t *testing.T, addr, at string) { serveWith(t, at, serve.Options{Hub: addr}) }

func serveWith(t *testing.T, at string, o serve.Options) {
	t.Helper()
	o.Version = versionName()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- serve.Foreground(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := testkit.Receive(t, "the gateway ends", over); err != nil {
			t.Error(err)
		}
	})
	testkit.Eventually(t, "it serves", func() bool {
		s, err := serve.Ask(ctx, o.Hub, versionName())
		return err == nil && s.Addr == at
	})
}

// inspecting runs the command without a browser, and waits until it has printed the file's path.
func inspecting(t *testing.T, ctx context.Context, addr string) (path string, status <-chan int, stderr *bytes.Buffer) {
	t.Helper()
	t.Setenv("DISPLAY", "") // no screen
	t.Setenv("WAYLAND_DISPLAY", "")
	return inspectingThere(t, ctx, addr)
}

// inspectingThere is inspecting with the screen that the test has set.
func inspectingThere(t *testing.T, ctx context.Context, addr string) (path string, status <-chan int,
	stderr *bytes.Buffer) {
	t.Helper()
	out, in := io.Pipe()
	ended := make(chan int, 1)
	stderr = &bytes.Buffer{}
	go func() {
		ended <- pagewire(ctx, []string{"inspect", "--hub", addr}, strings.NewReader(""), in, stderr)
		in.Close()
	}()
	path, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no path: %v, %s", err, stderr)
	}
	return strings.TrimSpace(path), ended, stderr
}

var inTicketFile = regexp.MustCompile(`content="0; url=(http://[^/]*/)#ticket=(\w+)"`)

func TestInspectLeadsABrowserThere(t *testing.T) {
	addr, token := serving(t)
	path, status, stderr := inspecting(t, t.Context(), addr)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(path) != filepath.Dir(token) {
		t.Errorf("the file is %s, %v, %v", path, info, err)
	}
	text, _ := os.ReadFile(path)
	m := inTicketFile.FindStringSubmatch(string(text))
	if m == nil || m[1] != "http://"+addr+"/" {
		t.Fatalf("the file holds %s", text)
	}
	if secret, _ := os.ReadFile(token); strings.Contains(string(text), strings.TrimSpace(string(secret))) {
		t.Error("the file holds the token")
	}
	r, err := http.Post(m[1]+"session", "application/json", strings.NewReader(`{"ticket":"`+m[2]+`"}`))
	var out struct{ Session string }
	if err == nil {
		err = json.NewDecoder(r.Body).Decode(&out)
		r.Body.Close()
	}
	if err != nil || out.Session == "" {
		t.Errorf("the ticket gives %+v, %v", out, err)
	}
	if got := testkit.Receive(t, "the command ends", status); got != exitDone ||
		!strings.Contains(stderr.String(), "the inspector is open") {
		t.Errorf("status %d, %s", got, stderr)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// An interrupted inspect removes the file.
func TestInspectThatIsEnded(t *testing.T) {
	addr, _ := serving(t)
	ctx, cancel := context.WithCancel(t.Context())
	path, status, stderr := inspecting(t, ctx, addr)
	cancel()
	if got := testkit.Receive(t, "the command ends", status); got != exitDone {
		t.Errorf("status %d, %s", got, stderr)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// A screen does not mean that there is a browser: xdg-open exits with 3 if it finds none.
func TestInspectWithoutABrowser(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("xdg-open is not used there")
	}
	addr, _ := serving(t)
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "xdg-open"), []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":99")
	ctx, cancel := context.WithCancel(t.Context())
	path, status, stderr := inspectingThere(t, ctx, addr)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	cancel()
	if got := testkit.Receive(t, "the command ends", status); got != exitDone {
		t.Errorf("status %d, %s", got, stderr)
	}
}

// If another program has the port, inspect must not lead the browser to it.
func TestInspectOfASquatter(t *testing.T) {
	testkit.Home(t)
	addr := testkit.Addr(t)
	l := testkit.Must(net.Listen("tcp", addr))(t)
	defer l.Close()
	serveAt(t, addr, "")
	if status, out, errs := run("inspect", "--hub", addr); status != exitFailed || out != "" ||
		!strings.Contains(errs, "another program has "+addr) {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
}
