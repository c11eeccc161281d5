//go:build unix

package userdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

const hub = "127.0.0.1:7433"

// The tests run this binary again: as a process of this user that holds a lock or a socket, or as another user.
func TestMain(m *testing.M) {
	act, what := os.Getenv("USERDIR_TEST"), os.Getenv("USERDIR_TEST_NAME")
	var held any // keeps it from the garbage collector, which would release it
	var err error
	switch act {
	case "":
		os.Exit(m.Run())
	case "lock", "listen":
		d, opened := Open(hub)
		if err = opened; err != nil {
			break
		}
		if act == "lock" {
			held, err = d.TryLock(what)
		} else {
			held, err = d.Listen(what)
		}
	case "dial":
		held, err = net.Dial("unix", what)
	case "squat":
		held, err = net.Listen("unix", what)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("done")
	io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(held)
	os.Exit(0)
}

// A process does one thing, and stays until it is killed or the test ends.
type process struct {
	cmd  *exec.Cmd
	said string
}

func run(t *testing.T, as func(testing.TB, *exec.Cmd), act, name string) *process {
	t.Helper()
	cmd := testcmd.Command(os.Args[0])
	if as != nil {
		cmd = testcmd.Command(testkit.Self(t))
		as(t, cmd)
	}
	cmd.Env = append(os.Environ(), "USERDIR_TEST="+act, "USERDIR_TEST_NAME="+name,
		"GORACE=atexit_sleep_ms=0") // otherwise a process under -race takes a second to end
	in, out := testkit.Pipes(t, cmd)
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	line := make([]byte, 1000)
	n, _ := out.Read(line)
	return &process{cmd, strings.TrimSpace(string(line[:n]))}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	testkit.OK(t, p.cmd.Process.Kill())
	p.cmd.Wait()
}

// config gives the test a configuration directory, and returns the path of our directory in it.
func config(t *testing.T) string {
	t.Helper()
	return filepath.Join(testkit.Home(t), "pagewire")
}

func open(t *testing.T) *Dir {
	t.Helper()
	config(t)
	d := testkit.Must(Open(hub))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// says fails unless an error is one line with all the words.
func says(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want %q", what, words)
		return
	}
	for _, word := range append(words, "") {
		if !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q, want %q in one line", what, err, word)
		}
	}
}

func TestTheDirectoryIsForThisUserAlone(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := config(t)
	for _, before := range []fs.FileMode{0o700, 0o755} { // others may look into the second
		testkit.OK(t, os.MkdirAll(path, 0o700), os.Chmod(path, before))
		d := testkit.Must(Open(hub))(t)
		l := testkit.Must(d.Listen("socket"))(t)
		for name, want := range map[string]fs.FileMode{
			path: 0o700, d.full("socket"): 0o600, d.full("socket.lock"): 0o600,
		} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v; want mode %v", name, info.Mode(), err, want)
			}
		}
		if err := errors.Join(l.Remove(), os.Remove(path), d.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestDirectoriesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(path string) error
		words []string
	}{
		"a link to a directory": {func(path string) error { return os.Symlink(t.TempDir(), path) },
			[]string{"a symbolic link", "move it away"}},
		"a dangling link": {func(path string) error { return os.Symlink("nowhere", path) },
			[]string{"a symbolic link"}},
		"a file": {func(path string) error { return os.WriteFile(path, nil, 0o600) },
			[]string{"is a file and not a directory"}},
		"a FIFO": {func(path string) error { return syscall.Mkfifo(path, 0o600) },
			[]string{"is a named pipe and not a directory"}},
		"others may write": {func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777))
		}, []string{"others may write to", "its mode is 0777", "chmod 700 "}},
		"the group may write": {func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o770))
		}, []string{"its mode is 0770"}},
		"of another user": {func(path string) error {
			if os.Geteuid() != 0 {
				t.Skip("not shown: only root can make a directory of another user")
			}
			return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, testkit.OtherUID, testkit.OtherUID))
		}, []string{"belongs to another user", "its uid is 65534, ours is 0", "XDG_CONFIG_HOME"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := config(t)
			testkit.OK(t, c.make(path))
			before, _ := os.Lstat(path)
			_, err := Open(hub)
			says(t, name, err, append(c.words, path)...)
			if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() ||
				!os.SameFile(before, after) {
				t.Errorf("it was changed: %v, %v", after.Mode(), err)
			}
		})
	}
	t.Run("no place for it", func(t *testing.T) {
		path := config(t)
		testkit.OK(t, os.WriteFile(filepath.Dir(path)+"/x", nil, 0o600))
		t.Setenv("XDG_CONFIG_HOME", filepath.Dir(path)+"/x")
		t.Setenv("HOME", filepath.Dir(path)+"/x")
		_, err := Open(hub)
		says(t, "a file above it", err, "not a directory")
		t.Setenv("XDG_CONFIG_HOME", "")
		t.Setenv("HOME", "")
		_, err = Open(hub)
		says(t, "no home", err, "HOME", "set it")
	})
}

func TestAnotherAddressIsAnotherMachine(t *testing.T) {
	d := open(t)
	other := testkit.Must(Open("127.0.0.1:7434"))(t)
	defer other.Close()
	same := testkit.Must(Open("LOCALHOST:7433"))(t)
	defer same.Close()
	lock := testkit.Must(d.TryLock("file"))(t)
	defer lock.Remove()
	if theirs, err := other.TryLock("file"); err != nil {
		t.Errorf("the other one's lock: %v", err)
	} else {
		theirs.Remove()
	}
	if _, err := same.TryLock("file"); !errors.Is(err, ErrHeld) {
		t.Errorf("the same one's lock: %v", err)
	}
}

func TestALockIsThatOfOneProcess(t *testing.T) {
	d := open(t)
	other := run(t, nil, "lock", "x")
	if other.said != "done" {
		t.Fatal(other.said)
	}
	if _, err := d.TryLock("x"); !errors.Is(err, ErrHeld) {
		t.Errorf("while another has it: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Lock(ctx, "x"); !errors.Is(err, ErrHeld) || !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := d.Lock(t.Context(), "x")
		waited <- err
	}()
	other.kill(t)
	if err := testkit.Receive(t, "the lock of a killed process is free", waited); err != nil {
		t.Error(err)
	}
	if _, err := d.TryLock("x"); !errors.Is(err, ErrHeld) {
		t.Errorf("while this process has it: %v", err)
	}
}

// A lock whose file is removed is void: a waiting process must not get it while another has a new one.
func TestHammerLock(t *testing.T) {
	d := open(t)
	if l, err := d.TryLock("x"); err != nil || !l.holds() || l.Remove() != nil || l.holds() {
		t.Errorf("a lock whose file was removed: %v", err)
	}
	var all sync.WaitGroup
	held := make(chan bool, 1)
	for i := range 8 {
		all.Go(func() {
			for n := range 50 {
				l, err := d.Lock(t.Context(), "x")
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case held <- true:
				default:
					t.Error("two have it")
				}
				<-held
				if (n+i)%2 == 0 {
					err = l.Remove()
				} else {
					err = l.f.Close() // as if its process were killed
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// talk checks that the two ends are connected.
func talk(t *testing.T, l net.Listener, d *Dir, name string) {
	t.Helper()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			close(accepted)
			return
		}
		accepted <- c
	}()
	c := testkit.Must(d.Dial(t.Context(), name))(t)
	defer c.Close()
	other := testkit.Receive(t, "the connection is accepted", accepted)
	defer other.Close()
	io.WriteString(c, "hello")
	c.(*net.UnixConn).CloseWrite()
	if text, err := io.ReadAll(other); err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestOneListensAndOthersDial(t *testing.T) {
	d := open(t)
	if _, err := d.Dial(t.Context(), "x"); !errors.Is(err, ErrNobody) {
		t.Errorf("before: %v", err)
	}
	l := testkit.Must(d.Listen("x"))(t)
	talk(t, l, d, "x")
	if _, err := d.Listen("x"); !errors.Is(err, ErrHeld) {
		t.Errorf("a second one: %v", err)
	}
	if names, _ := os.ReadDir(d.String()); len(names) != 2 {
		t.Errorf("while it listens: %v", names)
	}
	if err := errors.Join(l.Remove(), l.Remove()); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(d.String()); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
	if _, err := d.Dial(t.Context(), "x"); !errors.Is(err, ErrNobody) {
		t.Errorf("after: %v", err)
	}
}

func TestASocketOfADeadProcessIsReplaced(t *testing.T) {
	d := open(t)
	other := run(t, nil, "listen", "x")
	if other.said != "done" {
		t.Fatal(other.said)
	}
	if _, err := d.Listen("x"); !errors.Is(err, ErrHeld) {
		t.Errorf("while it lives: %v", err)
	}
	other.kill(t)
	if info, err := os.Lstat(d.full("x")); err != nil || info.Mode().Type() != fs.ModeSocket {
		t.Fatalf("it has left nothing: %v, %v", info, err)
	}
	if _, err := d.Dial(t.Context(), "x"); !errors.Is(err, ErrNobody) {
		t.Errorf("dialled: %v", err)
	}
	l := testkit.Must(d.Listen("x"))(t)
	defer l.Remove()
	talk(t, l, d, "x")
}

// Our files were removed, and another process listens at the same path. We must not remove its socket.
func TestWhoseLockWasRemovedLeavesTheSocketOfTheNext(t *testing.T) {
	d := open(t)
	old := testkit.Must(d.Listen("x"))(t)
	testkit.OK(t, os.Remove(d.full("x")), os.Remove(d.full("x.lock")))
	fresh := testkit.Must(d.Listen("x"))(t)
	defer fresh.Remove()
	if err := old.Remove(); err != nil {
		t.Error(err)
	}
	talk(t, fresh, d, "x")
}

func TestWhatIsNoSocketIsNotReplaced(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"is a file":          func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"is a directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"is a named pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"is a symbolic link": func(path string) error { return os.Symlink("/nowhere/at/all", path) },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			path := d.full("x")
			testkit.OK(t, make(path))
			_, err := d.Listen("x")
			says(t, "listen", err, name+" and not a socket", path)
			if _, err := d.Dial(t.Context(), "x"); !errors.Is(err, ErrNobody) {
				t.Errorf("dial: %v", err)
			}
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("it is gone: %v", err)
			}
			if l, err := d.TryLock("x.lock"); err != nil {
				t.Errorf("the lock is kept: %v", err)
			} else {
				l.Remove()
			}
		})
	}
}

func TestAPathThatIsTooLongForASocketIsSaid(t *testing.T) {
	d := open(t)
	name := strings.Repeat("x", maxSocketPath-len(d.full("x"))+1)
	l, err := d.Listen(name)
	if err != nil {
		t.Fatalf("the longest one: %v", err)
	}
	talk(t, l, d, name)
	l.Remove()
	_, err = d.Listen(name + "x")
	says(t, "listen", err, "bytes, and this system takes", "XDG_CONFIG_HOME")
	_, err = d.Dial(t.Context(), name+"x")
	says(t, "dial", err, "bytes, and this system takes")
}

// The directory's mode keeps others out. If the mode is opened, the kernel's peer credentials still do.
func TestAnotherUserReachesNothing(t *testing.T) {
	d := open(t)
	l := testkit.Must(d.Listen("x"))(t)
	defer l.Remove()
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	if p := run(t, testkit.AsOther, "dial", d.full("x")); !strings.Contains(p.said, "permission denied") {
		t.Errorf("another user dials: %s", p.said)
	}
	for name, mode := range map[string]fs.FileMode{filepath.Dir(d.path): 0o755, d.path: 0o777, d.full("x"): 0o777} {
		testkit.OK(t, os.Chmod(name, mode))
	}
	for range 3 {
		if p := run(t, testkit.AsOther, "dial", d.full("x")); p.said != "done" {
			t.Errorf("another user dials: %s", p.said)
		}
	}
	c := testkit.Must(d.Dial(t.Context(), "x"))(t) // after the other user's connections
	c.Close()
	testkit.Receive(t, "this user's connection", accepted).Close()
	if len(accepted) != 0 {
		t.Errorf("%d connections of another user were accepted", len(accepted))
	}
	squat := run(t, testkit.AsOther, "squat", d.full("y"))
	if squat.said != "done" {
		t.Fatal(squat.said)
	}
	_, err := d.Dial(t.Context(), "y")
	if !errors.Is(err, ErrPeer) {
		t.Errorf("dial another user's process: %v", err)
	}
	says(t, "dial another user's process", err, "its uid is 65534, ours is 0")
}
