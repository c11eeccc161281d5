package browser

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// Another user's browser is refused, no matter which file names its port.
func TestRunningIsThisUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not shown: only root can make a socket and a file another user's")
	}
	const nobody = 65534
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "chromium")
	file := filepath.Join(dir, "DevToolsActivePort")
	testkit.OK(t, os.Mkdir(dir, 0o700))
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	text := []byte(port + "\n/devtools/browser/abc")
	testkit.OK(t, os.WriteFile(file, text, 0o600))
	if got := active(dir); got == "" {
		t.Fatal("this user's own is not found: this test would prove nothing")
	}
	testkit.OK(t, os.Chown(file, nobody, nobody))
	if got := active(dir); got != "" {
		t.Errorf("by another user's file: %s", got)
	}
	testkit.OK(t, os.Remove(file))
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	testkit.OK(t, os.WriteFile(elsewhere, text, 0o600), os.Symlink(elsewhere, file))
	if got := active(dir); got != "" {
		t.Errorf("by a link: %s", got)
	}
	os.Remove(file)
	testkit.OK(t, os.WriteFile(file, text, 0o600))
	os.Remove(file)
	_, port, _ = net.SplitHostPort(listenAs(t, nobody).Addr().String())
	testkit.OK(t, os.WriteFile(file, []byte(port+"\n/devtools/browser/abc"), 0o600))
	if got := active(dir); got != "" {
		t.Errorf("where another user listens: %s", got)
	}
}

// listenAs listens as another user: meanwhile, this thread makes files, and so sockets, as that user.
func listenAs(t *testing.T, uid int) net.Listener {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := unix.SetfsuidRetUid(uid); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if _, back := unix.SetfsuidRetUid(0); err != nil || back != nil {
		t.Fatal(err, back)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
