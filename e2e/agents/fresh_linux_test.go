package agents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/e2e/npmregistry"
)

// From nothing to an agent that sees a page, in three actions: npm install -g pagewire, pagewire
// setup, and the start of the agent program. Everything is what a user gets: the packed npm
// packages, Gemini CLI as npm has it, a real browser. Nothing else is there: the root of the file
// system is new, with the system's programs in it read-only, an empty home, and a network without
// any other machine. Only the model is scripted.
//
// setup fails after the 60 s that the README promises. Each action's time is logged.
func TestSetupInAFreshRoot(t *testing.T) {
	const inside = "PAGEWIRE_TEST_FRESH"
	if os.Getenv(inside) != "" {
		bringUp(t)
		threeActions(t, freshRoot(t))
		return
	}
	cmd := testcmd.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Logf("this system gives no namespaces (%v): the home is empty, and the rest is the machine's", err)
		addr := testkit.Addr(t)
		threeActions(t, "", "--hub", addr)
		return
	}
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// bringUp starts the loopback device of a new network.
func bringUp(t *testing.T) {
	t.Helper()
	lo := testkit.Must(unix.NewIfreq("lo"))(t)
	lo.SetUint16(unix.IFF_UP)
	fd := testkit.Must(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0))(t)
	testkit.OK(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo), unix.Close(fd))
}

// freshRoot makes the root directory of a new system, with the programs of this one.
func freshRoot(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	testkit.OK(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", root, "tmpfs", 0, ""))
	t.Cleanup(func() { testkit.OK(t, unix.Unmount(root, unix.MNT_DETACH)) })
	for _, dir := range []string{"home", "root", "tmp", "run", "var"} {
		testkit.OK(t, os.Mkdir(filepath.Join(root, dir), 0o777))
	}
	shown := []string{"/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/dev", "/proc", dir(t, "gemini")}
	for _, name := range []string{"node", "npm"} { // a version manager may have them
		path := testkit.Must(filepath.EvalSymlinks(testkit.Must(exec.LookPath(name))(t)))(t)
		shown = append(shown, filepath.Dir(filepath.Dir(path)))
	}
	shown = append(shown, filepath.Dir(testkit.Must(filepath.EvalSymlinks(testkit.Must(browser.Find())(t)))(t)))
	for _, dir := range shown {
		to := filepath.Join(root, dir)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err == nil && info.Mode()&os.ModeSymlink != 0:
			testkit.OK(t, os.Symlink(testkit.Must(os.Readlink(dir))(t), to))
		default:
			testkit.OK(t, err, os.MkdirAll(to, 0o755), unix.Mount(dir, to, "", unix.MS_BIND|unix.MS_REC, ""))
			// Without a user of its own the system may also be written to.
			if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil && dir == "/usr" {
				t.Logf("%s can be written to: %v", dir, err)
			}
		}
	}
	return root
}

// threeActions does the three actions of a new user in a root; "" is this system's. flags are for serve.
func threeActions(t *testing.T, root string, flags ...string) {
	top, in := root, "" // in is the directory of our files as the user's programs see it
	if root == "" {
		top = testkit.ShortDir(t)
		in = top
	}
	home, desktop := fmt.Sprintf("%s/home/ada-%d", in, os.Getpid()), in+"/desktop"
	testkit.OK(t, os.MkdirAll(filepath.Join(root, desktop), 0o755),
		// Ada has used her browser before.
		os.MkdirAll(filepath.Join(root, home, ".config/chromium"), 0o700))
	chromium := testkit.Must(browser.Find())(t)
	testkit.OK(t, os.WriteFile(filepath.Join(root, desktop, "xdg-open"), []byte("#!/bin/sh\nexec "+chromium+
		" --headless=new --no-sandbox --no-first-run --disable-background-networking --disable-component-update --disable-sync"+
		" --disable-gpu --user-data-dir="+home+"/.config/chromium \"$1\"\n"), 0o755))
	npm, stop, err := npmregistry.Serve("../..", t.TempDir())
	testkit.OK(t, err)
	defer stop()

	isConnected, asked := make(chan bool), make(chan bool, 1)
	m := newModel(t, step{before: func() { asked <- true; <-isConnected }, tool: "read_page_resource"}, step{say: "DONE"})
	goOn := sync.OnceFunc(func() { close(isConnected) })
	t.Cleanup(goOn) // the model's server ends only with its requests
	hub := "127.0.0.1:7433"
	if len(flags) > 0 {
		hub = flags[1]
	}
	m.steps[0].args = object{"uri": "http://" + hub + "/demo/order"}
	p := programNamed(t, "gemini-cli", m.URL, []string{"pagewire", "serve"})
	p.install(t, filepath.Join(root, home)) // Ada has signed in
	bins := []string{home + "/npm/bin", desktop, dir(t, "gemini/node_modules/.bin")}
	for _, name := range []string{"node", "npm"} {
		bins = append(bins, filepath.Dir(testkit.Must(exec.LookPath(name))(t)))
	}
	env := append(p.environment(home), "DISPLAY=:0", "npm_config_registry="+npm, "npm_config_prefix="+home+"/npm",
		"npm_config_audit=false", "npm_config_update_notifier=false", "PATH="+strings.Join(bins, ":")+":/usr/bin:/bin")
	run := func(line string) *exec.Cmd {
		cmd := testcmd.Command("/bin/sh", "-c", line)
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Chroot, cmd.Dir, cmd.Env = root, home, env
		return cmd
	}
	t.Cleanup(func() { endAll(home) })
	began := time.Now()
	timed := func(line string, do func()) {
		begin := time.Now()
		do()
		t.Logf("%5.1f s  %s", time.Since(begin).Seconds(), line)
	}

	const install = "npm install -g pagewire"
	timed(install, func() {
		if out, err := run(install).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", install, err, out)
		}
	})
	setup := "pagewire setup --yes --timeout 60s"
	if len(flags) > 0 {
		setup += " -- " + strings.Join(flags, " ")
	}
	said, ended := testkit.LogOf(t, "setup"), make(chan error, 1)
	timed(setup, func() {
		cmd := run(setup)
		cmd.Stdout, cmd.Stderr = said, said
		testkit.OK(t, cmd.Start())
		go func() { ended <- cmd.Wait() }()
		testkit.Eventually(t, "setup asks for the program's start", func() bool {
			return said.Has("→ start Gemini CLI")
		})
	})
	line := "pagewire doctor " + strings.Join(flags, " ")
	agent := p.command[1:]
	answer := make(chan []byte, 1)
	timed("gemini, until it is connected and sees a page", func() {
		cmd := run(`exec gemini "$@"`)
		cmd.Args = append(append(cmd.Args, "gemini"), agent...)
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				out = fmt.Appendf(out, "\n%v", err)
			}
			answer <- out
		}()
		if err := testkit.Receive(t, "setup ends", ended); err != nil {
			doctor, _ := run(line).CombinedOutput()
			t.Fatalf("setup ends with %v, and says\n%s\nthe doctor says\n%s", err, said, doctor)
		}
	})

	t.Logf("%5.1f s  in all", time.Since(began).Seconds())

	const want = "Gemini CLI is connected; it sees 1 page"
	if !strings.HasSuffix(said.String(), "\n"+want+"\n") {
		t.Errorf("setup ends in\n%s", said)
	}
	testkit.Receive(t, "the model is asked", asked)
	out, err := run(line).Output()
	if first, _, _ := strings.Cut(string(out), "\n"); err != nil || !strings.HasSuffix(first, want) {
		t.Errorf("the doctor says %v\n%s", err, out)
	}
	goOn()
	text := testkit.Receive(t, "the agent ends", answer)
	if !strings.Contains(string(text), "DONE") || !strings.Contains(unescaped(m.last()), `{"tea":"Assam","cups":"2"}`) {
		t.Errorf("the agent says %s\nits model got %.2000s", text, m.last())
	}
}
