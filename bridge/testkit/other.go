package testkit

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// roleEnv is the environment variable that gives a process a role in place of running tests.
const roleEnv = "PAGEWIRE_TESTKIT_ROLE"

// Main must be the first call of a TestMain whose tests use OtherUser. In the other user's process
// it plays the role, and does not return.
func Main() {
	role := os.Getenv(roleEnv)
	if role == "" {
		return
	}
	if err := play(role, os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// The roles of OtherUser.
const (
	// Dial connects an address with standard input and output, as nc does.
	Dial = "dial"
	// Squat listens at an address, writes the line "listening" to standard output, and then the
	// data of all connections.
	Squat = "squat"
)

func play(role, at string, in io.Reader, out io.Writer) error {
	switch role {
	case Dial:
		c, err := net.Dial("tcp", at)
		if err != nil {
			return err
		}
		go io.Copy(c, in)
		_, err = io.Copy(out, c)
		return err
	case Squat:
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "listening")
		go func() { // the process ends with its input
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go io.Copy(out, c)
			}
		}()
		_, err = io.Copy(io.Discard, in)
		return err
	}
	return fmt.Errorf("testkit: no role %q", role)
}

// OtherUser returns a command that plays a role at an address as another user of this machine: see
// AsOther. The test binary's TestMain must call Main.
func OtherUser(t testing.TB, role, at string) *exec.Cmd {
	t.Helper()
	cmd := testcmd.Command("")
	AsOther(t, cmd) // this may end the test
	cmd.Path = selfOf(t)
	cmd.Args = []string{cmd.Path, at}
	cmd.Err = nil
	// otherwise it takes a second to end under -race
	cmd.Env = append(os.Environ(), roleEnv+"="+role, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// selves are copies of the test binary, one for each test: it is some 20 MB.
var selves struct {
	sync.Mutex
	of map[testing.TB]string
}

func selfOf(t testing.TB) string {
	t.Helper()
	selves.Lock()
	defer selves.Unlock()
	if selves.of == nil {
		selves.of = map[testing.TB]string{}
	}
	if selves.of[t] == "" {
		selves.of[t] = Self(t)
		t.Cleanup(func() {
			selves.Lock()
			defer selves.Unlock()
			delete(selves.of, t)
		})
	}
	return selves.of[t]
}
